//! The first, high-order attempt at a slab: its flags by release, and its cost when memory is low.

use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{Event, FrameKind, Frames, Gfp, NodeId};
use slablab_slabs::engines::slub::{FirstTry, Slub};
use slablab_slabs::preset::Preset;
use slablab_slabs::slab::Slab;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Front, Misuse};

#[test]
fn first_attempt_flags_by_release() {
    fn check(first_try: FirstTry, gfp: Gfp, can_fall_back: bool, plus: Gfp, minus: Gfp) {
        let quiet = Gfp::NOWARN | Gfp::NORETRY;
        assert_eq!(
            first_try.flags(gfp, can_fall_back),
            (gfp | quiet | plus) & !minus,
            "{first_try:?} {gfp:?} {can_fall_back}"
        );
    }
    let (kernel, stubborn) = (Gfp::KERNEL, Gfp::KERNEL | Gfp::NOFAIL);
    for gfp in [kernel, stubborn, Gfp::ATOMIC] {
        for can_fall_back in [false, true] {
            check(FirstTry::NoRetry, gfp, can_fall_back, Gfp::NONE, Gfp::NONE);
            check(FirstTry::FreePagesCheck, gfp, can_fall_back, Gfp::NONE, Gfp::NONE);
            check(FirstTry::NoRetryNoFail, gfp, can_fall_back, Gfp::NONE, Gfp::NOFAIL);
            check(FirstTry::NoWaitNoKswapd, gfp, can_fall_back, Gfp::NONE, Gfp::RECLAIM);
            check(FirstTry::NoWaitNoKswapdNoPage, gfp, can_fall_back, Gfp::NONE, Gfp::RECLAIM);
        }
    }
    for gfp in [kernel, stubborn] {
        check(FirstTry::NoWait, gfp, true, Gfp::NOMEMALLOC, Gfp::DIRECT_RECLAIM | Gfp::NOFAIL);
        check(FirstTry::NoReclaim, gfp, true, Gfp::NOMEMALLOC, Gfp::RECLAIM | Gfp::NOFAIL);
        check(FirstTry::NoWait, gfp, false, Gfp::NONE, Gfp::NOFAIL);
        check(FirstTry::NoReclaim, gfp, false, Gfp::NONE, Gfp::NOFAIL);
    }
    check(FirstTry::NoReclaim, Gfp::ATOMIC, true, Gfp::NONE, Gfp::NONE);
}

/// The cost of one new slab.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    kswapd_wakes: u64,
    direct_reclaims: u64,
    failed_requests: u64,
    fallbacks: u64,
}

/// Allocates a slab of order 3 when the free frames are just below a watermark. Nothing can be reclaimed.
fn cost(preset: &str, below_min: bool) -> Cost {
    let Ok(Preset::Slub(policy)) = Preset::parse(preset) else { panic!("{preset} is no SLUB") };
    let mut machine = Machine::new(MachineSpec::uniform(1, 1, 256 << 20)).expect("the spec is right");
    machine.enter(|| {
        let pages = Pages::<Model>::new(PagesPolicy::for_release(2, 6, 29));
        let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(4096), &policy);
        let zone = || pages.zones_of(NodeId(0)).rev().find_map(|zone| pages.zone_info(NodeId(0), zone));
        let is_above = || {
            let zone = zone().expect("a zone");
            zone.free > if below_min { zone.marks.min } else { zone.marks.low }
        };
        while is_above() {
            pages.alloc(Gfp::KERNEL | Gfp::MEMALLOC, 0, NodeId(0), FrameKind::Allocated).expect("reserves");
        }
        let count = || {
            let counted = [Event::KswapdWake, Event::DirectReclaim, Event::PageAllocFail];
            counted.map(Model::counted)
        };
        let zero = count();
        let _ = cache.alloc(&Backing::pages(&pages), Gfp::KERNEL, None);
        let [kswapd_wakes, direct_reclaims, failed_requests] = count();
        Cost {
            kswapd_wakes: kswapd_wakes - zero[0],
            direct_reclaims: direct_reclaims - zero[1],
            failed_requests: failed_requests - zero[2],
            fallbacks: cache.counted(Event::OrderFallback),
        }
    })
}

#[test]
fn cost_of_the_first_attempt_when_memory_is_low() {
    fn check(word: &str, below_min: bool, expected: (u64, u64, u64, u64)) {
        let (kswapd_wakes, direct_reclaims, failed_requests, fallbacks) = expected;
        let right = Cost { kswapd_wakes, direct_reclaims, failed_requests, fallbacks };
        let preset = format!("slub@2.6.29,first_try={word}");
        assert_eq!(cost(&preset, below_min), right, "{preset}, below min: {below_min}");
    }
    // Below `low`, the second pass accepts the lower watermark and finds a block.
    check("noretry", false, (1, 0, 0, 0));
    check("nowait", false, (1, 0, 0, 0));
    check("nowait-nokswapd", false, (0, 0, 0, 0));
    check("nowait-nokswapd-nopage", false, (1, 0, 1, 1));
    check("freepages-check", false, (1, 0, 0, 1));
    // Below `min`, a request that may sleep finds nothing, so the order-0 request wakes kswapd and reclaims
    // too. In this era a request that may not sleep may use a quarter of the reserves, so its second pass
    // finds a block of order 3.
    check("noretry", true, (2, 2, 2, 0));
    check("nowait", true, (1, 0, 0, 0));
    check("nowait-nokswapd", true, (0, 0, 0, 0));
    check("nowait-nokswapd-nopage", true, (1, 1, 2, 0));
    check("freepages-check", true, (1, 1, 1, 0));
}

/// Zhang's check compares all free pages with an eighth of the memory, far above any watermark.
#[test]
fn the_check_of_free_pages_is_an_eighth_of_memory() {
    fn check(free_above: i64, fallbacks: u64) {
        let preset = Preset::parse("slub@2.6.29,first_try=freepages-check").expect("the preset is right");
        let Preset::Slub(policy) = preset else { panic!("{preset:?} is no SLUB") };
        let mut machine = Machine::new(MachineSpec::uniform(1, 1, 256 << 20)).expect("the spec is right");
        machine.enter(|| {
            let pages = Pages::<Model>::new(PagesPolicy::for_release(2, 6, 29));
            let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(4096), &policy);
            let target = (pages.total_frames(NodeId(0)) / 8).strict_add_signed(free_above);
            while pages.free_frames(NodeId(0)) > target {
                // Whole blocks first: single pages would come from a CPU's list, a batch at a time.
                let order = if pages.free_frames(NodeId(0)) > target + 512 { 8 } else { 1 };
                pages.alloc(Gfp::KERNEL, order, NodeId(0), FrameKind::Allocated).expect("memory is left");
            }
            let _ = cache.alloc(&Backing::pages(&pages), Gfp::KERNEL, None);
            assert_eq!(cache.counted(Event::OrderFallback), fallbacks, "{free_above} pages above an eighth");
        });
    }
    check(2, 0);
    check(0, 1);
}

/// A slab of the smallest order has fewer objects than one of the preferred order. Every free of the engine
/// refuses an address after its last object, and no allocation returns one.
#[test]
fn the_tail_of_a_fallback_slab_is_no_object() {
    fn check(preset: &str) {
        const SIZE: u32 = 704;
        let Ok(Preset::Slub(policy)) = Preset::parse(preset) else { panic!("{preset} is no SLUB") };
        let spec = MachineSpec { fail_order: Some(1), ..MachineSpec::uniform(1, 1, 256 << 20) };
        let mut machine = Machine::new(spec).expect("the spec is right");
        machine.enter(|| {
            let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 1, 0));
            let backing = Backing::pages(&pages);
            let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(SIZE), &policy);
            let objects = cache.geometry().min_objects;
            assert!(objects < cache.geometry().objects, "{preset}: the order can fall back");
            let object = cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
            assert_eq!(cache.counted(Event::OrderFallback), 1, "{preset}");
            let (slab, _) = Slab::<Model>::of(object).expect("an object is in a slab");
            assert!(cache.starts_at(slab.pfn(), (objects - 1) * SIZE), "{preset}: the last object");
            assert!(!cache.starts_at(slab.pfn(), objects * SIZE), "{preset}: malloc's fast free");
            let bogus = Model::address(slab.pfn(), (objects * SIZE).into());
            assert_eq!(cache.owns(bogus), Err(Misuse::NotAnObject), "{preset}");
            assert_eq!(cache.free(&backing, bogus), Err(Misuse::NotAnObject), "{preset}");
            assert_eq!(cache.free_bulk(&backing, &[bogus]), Err(Misuse::NotAnObject), "{preset}: in bulk");
            for _ in 0..objects {
                let other = cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
                assert_ne!(other, bogus, "{preset}: the address was handed out");
            }
            // The fast path frees objects of the CPU slab, whatever the slab's order.
            let before = cache.counted(Event::FreeFastpath);
            let newest = cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
            cache.free(&backing, newest).expect("it is the cache's");
            assert_eq!(cache.counted(Event::FreeFastpath) - before, u64::from(policy.cpu_slab), "{preset}");
        });
    }
    for preset in ["slub@2.6.29", "slub@6.1", "slub@6.12", "slub@7.1,sheaves=off", "slub@7.1"] {
        check(preset);
    }
}
