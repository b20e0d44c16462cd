//! The size per object for each object size, and the limits that depend on it, for every cache of every
//! dumped kernel (docs/theory/slub.md 4.4, 4.5, 7).

use crate::truth;
use crate::truth::{Attributes, Cache, Run};
use slablab_slabs::cache::{LinkPlace, alignment_on, layout};
use slablab_slabs::{CacheFlags, CacheSpec};
use std::collections::BTreeSet;

/// Evaluates `holds` for the caches of all runs that `counts` selects. Returns the number of caches, and
/// those for which `holds` is false.
fn check(
    counts: impl Fn(&Run) -> bool,
    holds: impl Fn(&Run, &Cache, &Attributes) -> bool,
) -> (usize, Vec<(&'static str, &'static str)>) {
    let caches = truth::caches();
    let runs = truth::runs();
    let pairs = runs.iter().filter(|run| counts(run)).flat_map(|run| {
        let mine = caches.iter().filter(|cache| cache.is_in(run));
        mine.filter_map(move |cache| Some((run, cache, cache.attributes.as_ref()?)))
    });
    let (mut total, mut failed) = (0, Vec::new());
    for (run, cache, attributes) in pairs {
        total += 1;
        if !holds(run, cache, attributes) {
            failed.push((run.name, cache.name));
        }
    }
    println!("{} of {total} exact", total - failed.len());
    (total, failed)
}

fn without_debugging(run: &Run) -> bool {
    !run.debug
}

/// The caches that have a constructor, from the dumps that show it; kernels of the other dumps have the same
/// caches.
fn with_constructor() -> BTreeSet<&'static str> {
    let told = |cache: &Cache| {
        cache
            .attributes
            .as_ref()
            .is_some_and(|shown| shown.constructor_known && shown.flags.has(CacheFlags::CONSTRUCTOR))
    };
    truth::caches().iter().filter(|cache| told(cache)).map(|cache| cache.name).collect()
}

#[test]
fn object_sizes_match_every_dump() {
    let (total, failed) = check(without_debugging, |run, cache, attributes| {
        attributes.predicted_size(&run.policy()) == cache.slab_size
    });
    let (silent, other): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|(run, _)| run.starts_with("counters/"));
    // Two dumps do not show which caches have constructors. Exactly those caches differ.
    assert_eq!(silent.len(), 10);
    assert!(silent.iter().all(|(_, cache)| with_constructor().contains(cache)), "{silent:?}");
    // In 6.18, vm_area_struct sets the link's place inside the object, which sysfs does not show.
    assert!(
        other
            .iter()
            .all(|(run, cache)| run.contains("618") | run.contains("trace") && *cache == "vm_area_struct")
    );
    assert_eq!(other.len(), 5);
    println!("{total} caches; {} whose constructor is not in the dump, {} links placed by the caller", 10, 5);
}

/// With the constructors from other dumps, and the link places that callers set, no difference is left.
#[test]
fn object_sizes_match_with_constructors_and_link_places() {
    let constructors = with_constructor();
    let (_, failed) = check(without_debugging, |run, cache, attributes| {
        let spec = attributes.spec();
        let known = attributes.constructor_known;
        let link_inside = run.release.starts_with("6.18") && cache.name == "vm_area_struct";
        let mut flags = spec.flags.with(CacheFlags::LINK_INSIDE, link_inside);
        if !known {
            flags = flags.with(CacheFlags::CONSTRUCTOR, constructors.contains(cache.name));
        }
        layout(&CacheSpec { flags, ..spec }, run.policy().link).0 == cache.slab_size
    });
    assert_eq!(failed, []);
}

/// If `hwcache_align` is the only requirement, it is the whole alignment. A caller may set a larger
/// alignment.
#[test]
fn hwcache_align_gives_cache_line_alignment() {
    let line_only = |attributes: &Attributes| CacheSpec { align: 0, ..attributes.spec() };
    let (_, less) = check(
        |_| true,
        |run, _, attributes| {
            alignment_on(&line_only(attributes), run.cache_line) <= attributes.align
                && attributes.spec().on_line(run.cache_line).align == attributes.align
        },
    );
    assert_eq!(less, []);
    let (total, more) = check(
        |_| true,
        |run, _, attributes| {
            !attributes.flags.has(CacheFlags::HWCACHE_ALIGN)
                || alignment_on(&line_only(attributes), run.cache_line) == attributes.align
        },
    );
    // arm64 sets 128 bytes, its smallest kmalloc, for its own metadata and for bios.
    assert!(more.iter().all(|(run, _)| *run == "arm64_smp4"), "{more:?}");
    println!("{total} caches, {} whose callers ask for more than a line", more.len());
}

#[test]
fn cpu_partial_matches_every_dump() {
    let (_, failed) = check(
        |_| true,
        |run, cache, attributes| {
            let by_size = run.policy().cpu_partial_of(cache.slab_size, 1 << run.page_shift);
            attributes.cpu_partial == if run.debug { 0 } else { by_size }
        },
    );
    assert_eq!(failed, []);
}

#[test]
fn min_partial_matches_every_dump() {
    let (_, failed) = check(
        |_| true,
        |run, cache, attributes| attributes.min_partial == run.policy().min_partial_of(cache.slab_size),
    );
    assert_eq!(failed, []);
}

/// The last column of the table in docs/theory/slub.md 4.4: slabs on a CPU's partial list for 4K pages and 8
/// CPUs, which is twice the number that the objects fill.
#[test]
fn cpu_partial_slabs_match_the_table() {
    let Some(slablab_slabs::Preset::Slub(policy)) =
        slablab_slabs::Release::parse("6.1").and_then(slablab_slabs::Preset::of_kernel)
    else {
        panic!("6.1 has a preset");
    };
    let slabs =
        [(64, 4), (128, 8), (192, 12), (256, 4), (512, 4), (1024, 2), (2048, 3), (4096, 2), (8192, 3)];
    for (size, slabs) in slabs {
        let input = slablab_slabs::order::OrderInput {
            size,
            page_shift: 12,
            cpus: 8,
            min_order: 0,
            max_order: 3,
            min_objects: 0,
        };
        let objects = (4096u32 << policy.order.order(input)) / size;
        assert_eq!((2 * policy.cpu_partial_of(size, 4096)).div_ceil(objects), slabs, "{size} bytes");
        let doubled = slablab_slabs::engines::slub::SlubPolicy { cpu_partial_factor: 2, ..policy };
        assert_eq!(doubled.cpu_partial_of(size, 4096), 2 * policy.cpu_partial_of(size, 4096));
    }
}

/// The link is in the middle since 5.7, at the start before, and after an object that must survive a free.
#[test]
fn link_offset_by_release() {
    fn check(object_size: u32, flags: CacheFlags, place: LinkPlace, size_and_link: (u32, u32)) {
        let spec = CacheSpec { flags, ..CacheSpec::of_size(object_size) };
        assert_eq!(layout(&spec, place), size_and_link, "{object_size} bytes, {flags:?}, {place:?}");
    }
    let plain = CacheFlags::NONE;
    let constructor = CacheFlags::CONSTRUCTOR;
    let rcu = CacheFlags::TYPESAFE_BY_RCU;
    let inside = rcu | CacheFlags::LINK_INSIDE;
    check(1, plain, LinkPlace::Start, (8, 0));
    check(1, plain, LinkPlace::Middle, (8, 0));
    check(20, plain, LinkPlace::Start, (24, 0));
    check(20, plain, LinkPlace::Middle, (24, 8));
    check(192, plain, LinkPlace::Middle, (192, 96));
    check(200, plain, LinkPlace::Middle, (200, 96));
    for place in [LinkPlace::Start, LinkPlace::Middle] {
        check(192, constructor, place, (200, 192));
        check(190, rcu, place, (200, 192));
        check(192, inside, place, (192, 184));
    }
    check(192, rcu | CacheFlags::HWCACHE_ALIGN, LinkPlace::Middle, (256, 192));
    check(24, CacheFlags::HWCACHE_ALIGN, LinkPlace::Middle, (32, 8));
    check(33, CacheFlags::HWCACHE_ALIGN, LinkPlace::Middle, (64, 16));
}
