//! Watermarks as behaviour: which requests may take the last frames, and when free memory in small blocks is
//! not enough. The numbers themselves are tested beside `machine.rs`.

use crate::world::{Spec, World, assert_balanced};
use slablab_pages::policy::{MinFree, OrderCheck, PcpRule, Reserve, Retries, ZoneRule};
use slablab_pages::{Level, Pages, PagesPolicy, Tuning};
use slablab_platform::{Event, FrameKind, Gfp, NodeId, Pfn, ReclaimStep};

const NODE: NodeId = NodeId(0);
const MIN: u64 = 1024;

fn policy(release: (u32, u32, u32)) -> PagesPolicy {
    PagesPolicy {
        pcp: PcpRule::NONE,
        min_free: MinFree::Kib(4096),
        zones: Some(ZoneRule::One),
        reserve: Reserve::None,
        ..PagesPolicy::for_release(release.0, release.1, release.2)
    }
}

fn alloc(pages: &Pages<World>, gfp: Gfp, order: u8) -> Option<Pfn> {
    pages.alloc(gfp, order, NODE, FrameKind::Allocated)
}

/// How many frames stay free when requests with `gfp` take single frames until one fails.
#[track_caller]
fn check(release: (u32, u32, u32), gfp: Gfp, left: u64) {
    check_as(false, release, gfp, left);
}

/// The same for a task that is a reclaimer, or is none.
#[track_caller]
fn check_as(reclaimer: bool, release: (u32, u32, u32), gfp: Gfp, left: u64) {
    World::enter(Spec::uniform(1, 1 << 15), || {
        World::set_reclaimer(reclaimer);
        let pages = Pages::<World>::new(policy(release));
        while alloc(&pages, gfp, 0).is_some() {}
        assert_eq!(pages.free_frames(NODE), left, "{release:?} {gfp:?}");
        assert_balanced(&pages);
    });
}

/// A request is refused when it would not leave more than the mark.
#[test]
fn flags_decide_how_far_down() {
    let (half, harder) = (MIN - MIN / 2, MIN / 2 - MIN / 8);
    for release in [(2, 6, 32), (6, 1, 0)] {
        check(release, Gfp::KERNEL, MIN);
        check(release, Gfp::HIGH | Gfp::KERNEL, half);
        check(release, Gfp::ATOMIC, harder);
        check(release, Gfp::MEMALLOC, 0);
        check(release, Gfp::MEMALLOC | Gfp::KERNEL | Gfp::NOMEMALLOC, MIN);
    }
    // Until 4.3 every request that may not wait was harder; from then on only atomic requests.
    check((2, 6, 32), Gfp::NONE, MIN - MIN / 4);
    check((6, 1, 0), Gfp::NONE, MIN);
    check((2, 6, 32), Gfp::ATOMIC | Gfp::NOMEMALLOC, harder);
    check((6, 1, 0), Gfp::ATOMIC | Gfp::NOMEMALLOC, half);
    // GFP_THISNODE gave up before trying at min.
    check((2, 6, 32), Gfp::KERNEL | Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN, MIN + MIN / 4);
    check((6, 1, 0), Gfp::KERNEL | Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN, MIN);
}

/// A reclaimer's requests need no flag to take every frame, unless they say that they do without.
#[test]
fn reclaimers_use_no_watermark() {
    for release in [(2, 6, 32), (6, 1, 0)] {
        check_as(true, release, Gfp::KERNEL, 0);
        check_as(true, release, Gfp::NOWAIT, 0);
        check_as(true, release, Gfp::KERNEL | Gfp::NOMEMALLOC, MIN);
    }
}

/// docs/theory/pagealloc.md 7: order 3 with free memory in order 0 only fails both marks under both rules;
/// 2.6.32 reclaims, modern kernels compact first. With one block of order 3, far below the halved marks, the
/// rules differ.
#[test]
fn an_order_3_request_and_free_memory_in_order_0() {
    use ReclaimStep::{Compact, Direct, WakeKswapd};
    let noretry = Gfp::KERNEL | Gfp::NORETRY;
    let rows = [
        (OrderCheck::Halving, (2, 6, 32), 0, false, vec![WakeKswapd, Direct]),
        (OrderCheck::AnyBlock, (6, 1, 0), 0, false, vec![WakeKswapd, Compact, Direct, Compact]),
        (OrderCheck::Halving, (2, 6, 32), 1, false, vec![WakeKswapd, Direct]),
        (OrderCheck::AnyBlock, (6, 1, 0), 1, true, vec![]),
        // Without order 0, more than min/2 = 512 must be left of `blocks * 8 - 7`: 64 are too few for min, 80
        // for low.
        (OrderCheck::Halving, (2, 6, 32), 64, false, vec![WakeKswapd, Direct]),
        (OrderCheck::Halving, (2, 6, 32), 65, true, vec![WakeKswapd]),
        (OrderCheck::Halving, (2, 6, 32), 80, true, vec![WakeKswapd]),
        (OrderCheck::Halving, (2, 6, 32), 81, true, vec![]),
    ];
    for (order_check, release, blocks, served, steps) in rows {
        World::enter(Spec::uniform(1, 1 << 15), || {
            let pages = Pages::<World>::new(PagesPolicy { order_check, ..policy(release) });
            fragment(&pages, 4096, blocks);
            assert_eq!(pages.free_frames(NODE), 4096 + 8 * blocks as u64);
            let refused = World::counted(Event::WatermarkLow);
            World::steps();
            assert!(alloc(&pages, Gfp::KERNEL, 0).is_some_and(|pfn| {
                pages.free(pfn);
                true
            }));
            assert_eq!(alloc(&pages, noretry, 3).is_some(), served, "{order_check:?} with {blocks} blocks");
            assert_eq!(World::steps(), steps, "{order_check:?} with {blocks} blocks");
            assert_eq!(World::counted(Event::WatermarkLow) - refused, !steps.is_empty() as u64);
            assert_balanced(&pages);
        });
    }
}

/// Leaves `singles` free frames, no two of them buddies, and `blocks` free blocks of order 3, no two of them
/// buddies.
fn fragment(pages: &Pages<World>, singles: usize, blocks: usize) {
    let mut all = vec![];
    while let Some(pfn) = alloc(pages, Gfp::MEMALLOC, 0) {
        all.push(pfn);
    }
    World::steps();
    all.sort();
    (0..singles).for_each(|n| pages.free(all[2 * n]));
    let from = 4 * singles;
    for block in 0..blocks {
        (0..8).for_each(|n| pages.free(all[from + 16 * block + n]));
    }
}

/// `lowmem_reserve`: a zone keeps 1/256 of the memory above it from requests that could have used that
/// memory.
#[test]
fn lower_zones_are_kept_for_those_who_need_them() {
    let policy = PagesPolicy { zones: Some(ZoneRule::X86), min_free: MinFree::Kib(0), ..policy((6, 1, 0)) };
    World::enter(Spec::uniform(1, 1 << 15), || {
        let pages = Pages::<World>::new(policy);
        let dma = pages.zone_info(NODE, 0).unwrap();
        assert_eq!((dma.name, dma.frames, dma.lowmem_reserve), ("DMA", 4096, [0, 112, 112]));
        while alloc(&pages, Gfp::KERNEL, 0).is_some() {}
        assert_eq!(pages.free_frames(NODE), 112);
        while alloc(&pages, Gfp::DMA, 0).is_some() {}
        assert_eq!(pages.free_frames(NODE), 0);
        assert_balanced(&pages);
    });
}

/// A block that is taken for another migrate type raises the marks by a pageblock, up to 1.5 times the high
/// one, and kswapd is woken, once for each; since 5.0. What kswapd has reclaimed for lowers them.
#[test]
fn a_block_for_another_type_raises_the_marks() {
    for (release, boosts) in [((4, 20, 0), false), ((6, 1, 0), true)] {
        World::enter(Spec::uniform(1, 1 << 15), || {
            let pages = Pages::<World>::new(PagesPolicy { retries: Retries::AsKernel, ..policy(release) });
            let usual = pages.zone_marks(NODE, 0);
            // Half of memory is free in movable blocks of order 5.
            let mut taken: Vec<Pfn> =
                core::iter::from_fn(|| alloc(&pages, Gfp::MOVABLE | Gfp::MEMALLOC, 5)).collect();
            taken.sort();
            taken.iter().step_by(2).for_each(|pfn| pages.free(*pfn));
            assert_eq!(pages.zone_boost(NODE, 0), 0);
            for step in 1..=5 {
                World::steps();
                // The eight free blocks of a pageblock.
                (0..8).for_each(|_| assert!(alloc(&pages, Gfp::KERNEL, 5).is_some()));
                let boost = if boosts { (512 * step).min(usual.high * 3 / 2) } else { 0 };
                assert_eq!(pages.zone_boost(NODE, 0), boost, "{release:?} {step}");
                let marks = pages.zone_marks(NODE, 0);
                assert_eq!((marks.min, marks.high), (usual.min + boost, usual.high + boost));
                assert_eq!(World::steps(), vec![ReclaimStep::WakeKswapd; usize::from(boosts)]);
            }
            pages.lower_marks(NODE, 0, 5_000);
            assert_eq!(pages.zone_marks(NODE, 0), usual);
        });
    }
}

/// 2.6's kswapd leaves a zone alone above 8 times its high mark for the order, 12,288 frames here. Without
/// order 0 more than half of that must be left of `blocks * 8 - 7`, though free memory is more than 8 times
/// high anyhow.
#[test]
fn times_a_mark_is_tested_by_order() {
    for (blocks, expected) in [(768, false), (769, true)] {
        World::enter(Spec::uniform(1, 1 << 16), || {
            let pages = Pages::<World>::new(policy((2, 6, 32)));
            fragment(&pages, 12_288, blocks);
            let is_above = |times, order| pages.is_above_times(NODE, 0, times, Level::High, order, 0);
            assert!(is_above(8, 0) && is_above(1, 3), "{blocks}");
            assert_eq!(is_above(8, 3), expected, "{blocks}");
            assert!(!is_above(13, 0), "{blocks}");
        });
    }
}

/// What an administrator sets while the machine runs: the marks, what CPUs keep, and how far marks rise.
#[test]
fn marks_can_be_set() {
    let check = |release, tuning: Tuning, expected: [u64; 3], most| {
        World::enter(Spec::uniform(1, 1 << 15), || {
            let (a, b, c) = release;
            let pcp = PagesPolicy::for_release(a, b, c).pcp;
            let pages = Pages::<World>::new(PagesPolicy { pcp, ..policy(release) });
            let before = pages.tuning();
            assert_eq!(before.boost_factor, Tuning::BOOST_FACTOR);
            pages.tune(tuning);
            assert_eq!(pages.tuning(), tuning);
            let info = pages.zone_info(NODE, 0).unwrap();
            let marks = [info.marks.min, info.marks.low, info.marks.high];
            assert_eq!((marks, info.pcp.high), (expected, most), "{release:?}");
            pages.tune(before);
            assert_eq!(pages.tuning(), before);
            let again = pages.zone_info(NODE, 0).unwrap();
            assert_eq!(again.marks.min, before.min_free_kib as u64 / 4, "{release:?}");
        });
    };
    let tuning = Tuning { min_free_kib: 4096, scale_factor: 1000, boost_factor: 0 };
    // A tenth of 32,768 frames between two marks; two CPUs share the low one.
    check((6, 1, 0), tuning, [1024, 4300, 7576], 2150);
    check((6, 1, 0), Tuning { scale_factor: 10, ..tuning }, [1024, 1280, 1536], 640);
    // Before the factor: a quarter.
    check((2, 6, 29), tuning, [1024, 1280, 1536], 42);
    World::enter(Spec::uniform(1, 1 << 15), || {
        let pages = Pages::<World>::new(PagesPolicy { retries: Retries::AsKernel, ..policy((6, 1, 0)) });
        let boosts = |boost_factor| {
            pages.tune(Tuning { boost_factor, ..pages.tuning() });
            let blocks: Vec<Pfn> =
                core::iter::from_fn(|| alloc(&pages, Gfp::MOVABLE | Gfp::MEMALLOC, 5)).collect();
            blocks.iter().for_each(|pfn| pages.free(*pfn));
            (0..8).for_each(|_| assert!(alloc(&pages, Gfp::KERNEL, 5).is_some()));
            let boost = pages.zone_boost(NODE, 0);
            pages.lower_marks(NODE, 0, boost);
            boost
        };
        assert_eq!((boosts(0), boosts(Tuning::BOOST_FACTOR)), (0, 512));
    });
}
