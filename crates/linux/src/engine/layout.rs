//! Caches are made in an image, and what they look like there.

use super::classic::slob_geometry;
use super::policy::LinuxPolicy;
use super::shared::Booted;
use crate::image::{Booting, address, with_end};
use slablab_engines::ended;
use slablab_platform::Platform;
use slablab_slabs::cache::CacheFlags;
use slablab_slabs::{CacheSpec, Geometry};
use std::cell::RefCell;
use std::collections::HashMap;

/// An image for questions of layout, what it was booted for, and its answers: by size, alignment, flags, and
/// the size that a kernel said.
struct Layouts {
    policy: LinuxPolicy,
    cpus: u16,
    booted: Booted,
    known: HashMap<(u32, u32, u64, u32), Option<Geometry>>,
}

thread_local! {
    static LAYOUTS: RefCell<Option<Layouts>> = const { RefCell::new(None) };
}

/// The sizes and orders of a cache under the tree, on the machine that this code runs on.
pub(super) fn layout<P: Platform>(spec: &CacheSpec, policy: &LinuxPolicy) -> Option<Geometry> {
    LAYOUTS.with_borrow_mut(|layouts| {
        let fits = |layouts: &Layouts| layouts.policy == *policy && layouts.cpus == P::cpus();
        if !layouts.as_ref().is_some_and(fits) {
            // An image of its own, which no run gets to see.
            let tree = policy.tree.expect("policies of a registered tree");
            let (policy, cpus, booted) = (*policy, P::cpus(), Booted::of::<P>(policy, &tree.plain));
            *layouts = Some(Layouts { policy, cpus, booted, known: HashMap::new() });
        }
        let Layouts { booted, known, .. } = layouts.as_mut().expect("just made");
        let key = (spec.object_size, spec.align, flags(spec), spec.known_size);
        *known.entry(key).or_insert_with(|| Some(make_known(booted, "layout", spec)?.1))
    })
}

/// Flags that shim/caches.c knows, by bit.
const PASSED: [CacheFlags; 4] =
    [CacheFlags::HWCACHE_ALIGN, CacheFlags::RECLAIM_ACCOUNT, CacheFlags::DMA, CacheFlags::TYPESAFE_BY_RCU];
const CONSTRUCTOR: u64 = 1 << 6;

fn flags(spec: &CacheSpec) -> u64 {
    let bits = PASSED.iter().enumerate().filter(|(_, flag)| spec.flags.has(**flag)).map(|(bit, _)| 1 << bit);
    let constructor = if spec.flags.has(CacheFlags::CONSTRUCTOR) { CONSTRUCTOR } else { 0 };
    bits.sum::<u64>() | constructor
}

/// Makes a cache in an image; its address, 0 if the tree refuses.
fn make(booted: &Booted, name: &str, size: u32, spec: &CacheSpec) -> u64 {
    let image = &booted.image;
    let name = with_end(name);
    let arguments = [address(&name), size.into(), spec.align.into(), flags(spec), 0];
    image
        .run(0, image.functions.create, arguments, &Booting(image))
        .unwrap_or_else(|finding| ended(finding.to_string()))
}

/// Makes a cache of the specification: of its objects' size, or of the size that a real kernel said if that
/// is larger than what the tree makes of it.
pub(super) fn make_known(booted: &Booted, name: &str, spec: &CacheSpec) -> Option<(u64, Geometry)> {
    if !spec.is_possible() {
        return None;
    }
    let cache = make(booted, name, spec.object_size, spec);
    let geometry = (cache != 0).then(|| geometry(booted, cache, spec))?;
    if booted.is_slob() || spec.known_size <= geometry.size {
        return Some((cache, geometry));
    }
    let cache = make(booted, name, spec.known_size, spec);
    (cache != 0)
        .then(|| (cache, Geometry { object_size: spec.object_size, ..self::geometry(booted, cache, spec) }))
}

fn geometry(booted: &Booted, cache: u64, spec: &CacheSpec) -> Geometry {
    if booted.is_slob() {
        return slob_geometry(booted, cache, spec);
    }
    let number = |name: &str| {
        let said = booted.file(cache, name);
        said.unwrap_or_else(|| ended(format!("the tree has no file `{name}` of a cache"))).total as u32
    };
    let (size, order) = (number("slab_size"), number("order") as u8);
    let min_order = (0..=order).find(|order| 4096u32 << order >= size).unwrap_or(order);
    Geometry {
        object_size: number("object_size"),
        size,
        spacing: size,
        link_offset: 0,
        order,
        objects: number("objs_per_slab"),
        min_order,
        min_objects: (4096 << min_order) / size,
    }
}
