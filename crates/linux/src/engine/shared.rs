//! The image of a machine, for all caches on it.
//!
//! Caches are made one by one, and no function of an engine makes what they share before. The image is found
//! by the machine: the address of the first frame's descriptor, which no other machine of its time has.

use super::attributes::Attributes;
use super::books::Books;
use super::costs::Costs;
use super::locks::Locks;
use super::policy::{LinuxPolicy, Tree};
use crate::image::{Image, Machine};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, NodeId, Pfn, Platform};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::rc::{Rc, Weak};

/// A block of the page allocator that a cache has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) cache: u32,
    pub(super) order: u8,
    pub(super) node: u16,
}

/// A booted image, and room for what its files say.
#[derive(Debug)]
pub(crate) struct Booted {
    pub(super) image: Image,
    pub(super) text: RefCell<Vec<u8>>,
}

/// An image, and what the program keeps of it.
pub(crate) struct Shared<P: Platform> {
    booted: Booted,
    /// Blocks by their first frame. One that waits for a grace period is no cache's.
    pub(super) blocks: RefCell<HashMap<u64, Block>>,
    /// What is due after a grace period: by the slab's first frame, the head and the function.
    pub(super) waiting: RefCell<HashMap<u64, (u64, u64)>>,
    /// Nodes' frames: the first, and their number.
    nodes: Vec<(Pfn, u32)>,
    /// CPUs as the image knows them.
    pub(super) online: Vec<Cell<bool>>,
    /// What SLAB and SLOB need.
    pub(super) books: Books,
    /// The locks of the tree's code, in a world that charges.
    pub(super) locks: Locks<P>,
    /// What its functions cost, in a world that charges.
    pub(super) costs: Costs,
    /// What is written to files of single caches.
    pub(super) attributes: &'static Attributes,
}

impl<P: Platform> fmt::Debug for Shared<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("image", &self.booted.image).finish_non_exhaustive()
    }
}

impl<P: Platform> Deref for Shared<P> {
    type Target = Booted;

    fn deref(&self) -> &Booted {
        &self.booted
    }
}

/// Names a machine under a tree: the descriptor of its first frame, and the policies.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    machine: usize,
    policy: LinuxPolicy,
}

thread_local! {
    static IMAGES: RefCell<Vec<(Key, Weak<dyn Any>)>> = const { RefCell::new(Vec::new()) };
}

impl<P: Platform> Shared<P> {
    /// The image of the machine that this code runs on.
    ///
    /// # Panics
    /// If the tree cannot be booted: the run ends with its words.
    pub(super) fn of(policy: &LinuxPolicy) -> Rc<Shared<P>> {
        let first = (0..P::nodes()).map(|node| P::node_frames(NodeId(node))).find(|frames| frames.1 > 0);
        let machine =
            first.map_or(0, |(pfn, _)| P::with_frame(pfn, |frame| std::ptr::from_ref(frame).addr()));
        let key = Key { machine, policy: *policy };
        IMAGES.with_borrow_mut(|images| {
            images.retain(|(_, image)| image.strong_count() > 0);
            let known = images.iter().filter(|(other, _)| *other == key);
            let known = known.filter_map(|(_, image)| image.upgrade()?.downcast().ok()).next();
            known.unwrap_or_else(|| {
                let made = Rc::new(Shared::boot(policy));
                let weak: Weak<Shared<P>> = Rc::downgrade(&made);
                images.push((key, weak));
                made
            })
        })
    }

    /// The node of a frame.
    #[inline]
    pub(super) fn node_of(&self, pfn: Pfn) -> usize {
        let holds = |(first, count): &(Pfn, u32)| pfn.0.wrapping_sub(first.0) < *count;
        self.nodes.iter().position(holds).unwrap_or(0)
    }

    /// A new image, for a machine like the one that this code runs on.
    fn boot(policy: &LinuxPolicy) -> Shared<P> {
        let tree = policy.tree.expect("policies of a registered tree");
        let booted = Booted::of::<P>(policy, if P::charges() { &tree.instrumented } else { &tree.plain });
        Shared {
            blocks: RefCell::default(),
            waiting: RefCell::default(),
            nodes: (0..P::nodes()).map(|node| P::node_frames(NodeId(node))).collect(),
            online: (0..P::cpus()).map(|cpu| Cell::new(P::cpu_online(CpuId(cpu)))).collect(),
            books: Books::default(),
            locks: Locks::new(),
            costs: Costs::of(&booted.image),
            attributes: &tree.attributes,
            booted,
        }
    }
}

impl Booted {
    /// An image of the tree, for a machine like the one that this code runs on.
    ///
    /// # Panics
    /// As [`Shared::of`].
    pub(super) fn of<P: Platform>(policy: &LinuxPolicy, image: &Path) -> Booted {
        let tree = policy.tree.expect("policies of a registered tree");
        // Boots with those of each parameter's names that the tree knows.
        let image = Image::boot(image, &machine_of::<P>(tree), &policy.parameters());
        let image = image.unwrap_or_else(|error| slablab_engines::ended(error.to_string()));
        Booted { image, text: RefCell::new(vec![0; 1 << 16]) }
    }
}

/// What an image must know of the machine that this code runs on.
fn machine_of<P: Platform>(tree: &Tree) -> Machine {
    if P::page_shift() != 12 {
        slablab_engines::ended(format!(
            "{} is built for pages of 4 KiB, and the machine has pages of {} KiB: expected a machine of 4K pages",
            slablab_report::visible::path(&tree.plain),
            (1u64 << P::page_shift()) >> 10
        ));
    }
    let moved = (0..P::cpus()).map(CpuId).find(|cpu| P::cpu_memory_node(*cpu) != P::cpu_node(*cpu));
    if let Some(cpu) = moved {
        slablab_engines::ended(format!(
            "the machine takes memory of CPU {} from another node than its own, as ia64 and ppc64 do, and the tree is \
             x86-64: expected memoryless_nodes = false",
            cpu.0
        ));
    }
    let release = tree.release;
    let pages = Pages::<P::Ground>::new(PagesPolicy::for_release(
        release.major.into(),
        release.minor.into(),
        release.patch.into(),
    ));
    let nodes = || (0..P::nodes()).map(NodeId);
    let zones = |node: NodeId| {
        let has = pages.zones_of(node).rev().filter(|zone| pages.zone_info(node, *zone).is_some());
        has.map(|zone| (node.0, u16::from(zone))).collect::<Vec<_>>()
    };
    let end = nodes().map(P::node_frames).map(|(first, count)| u64::from(first.0) + u64::from(count)).max();
    Machine {
        cpu_node: (0..P::cpus()).map(|cpu| P::cpu_node(CpuId(cpu)).0).collect(),
        cpu_online: (0..P::cpus()).map(|cpu| P::cpu_online(CpuId(cpu))).collect(),
        node_memory: nodes().map(|node| P::node_frames(node).1 > 0).collect(),
        zonelists: nodes().map(|node| pages.nearest(node).flat_map(zones).collect()).collect(),
        frames: end.unwrap_or(0).next_multiple_of(1 << 10),
    }
}
