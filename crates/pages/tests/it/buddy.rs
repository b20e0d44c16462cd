//! Free lists: splitting, merging, migrate types, the reserve. Cannot show: races, which the check crate's
//! worlds look for.

use crate::world::{Spec, World, assert_balanced};
use slablab_pages::policy::{MinFree, PcpRule, Reserve, Steal, ZoneRule};
use slablab_pages::{MigrateType, Pages, PagesPolicy, ZoneInfo};
use slablab_platform::{Event, FrameKind, Gfp, NodeId, Pfn};

const NODE: NodeId = NodeId(0);
/// May use every last frame.
const ALL: Gfp = Gfp::MEMALLOC;

/// One zone, no per-CPU lists, no watermarks: the buddy alone.
const fn bare(release: (u32, u32, u32)) -> PagesPolicy {
    PagesPolicy {
        pcp: PcpRule::NONE,
        min_free: MinFree::Kib(0),
        zones: Some(ZoneRule::One),
        ..PagesPolicy::for_release(release.0, release.1, release.2)
    }
}

const ERAS: [(u32, u32, u32); 3] = [(2, 6, 32), (3, 2, 0), (6, 12, 0)];

/// Runs `test` on one node of `frames` frames under each release's rules, and checks the balance afterwards.
#[track_caller]
fn check(frames: u32, policies: &[PagesPolicy], test: impl Fn(&Pages<World>)) {
    for policy in policies {
        World::enter(Spec::uniform(1, frames), || {
            let pages = Pages::<World>::new(*policy);
            test(&pages);
            assert_balanced(&pages);
        });
    }
}

fn info(pages: &Pages<World>) -> ZoneInfo {
    pages.zone_info(NODE, 0).expect("the only zone")
}

fn free_blocks(pages: &Pages<World>) -> Vec<u32> {
    info(pages).blocks[..=10].iter().map(|types| types.iter().sum()).collect()
}

fn alloc(pages: &Pages<World>, gfp: Gfp, order: u8) -> Option<Pfn> {
    pages.alloc(gfp | ALL, order, NODE, FrameKind::Allocated)
}

#[test]
fn a_split_leaves_one_block_of_each_order_and_a_merge_restores_all() {
    check(4096, &ERAS.map(bare), |pages| {
        let before = free_blocks(pages);
        let pfn = alloc(pages, Gfp::MOVABLE, 0).unwrap();
        assert_eq!(free_blocks(pages), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, before[10] - 1]);
        assert_eq!(World::counted(Event::BuddySplit), 10);
        assert_eq!(pages.free_frames(NODE), 4095);
        pages.free(pfn);
        assert_eq!(free_blocks(pages), before);
        assert_eq!(World::counted(Event::BuddyMerge), 10);
        assert_eq!(pages.free_frames(NODE), 4096);
    });
}

#[test]
fn lists_are_last_in_first_out_and_split_upper_halves() {
    check(4096, &ERAS.map(bare), |pages| {
        let blocks: Vec<Pfn> = (0..8).map(|_| alloc(pages, Gfp::MOVABLE, 0).unwrap()).collect();
        let first = blocks[0];
        // The lower half is handed out, the upper one listed: addresses ascend.
        assert_eq!(blocks, (0..8).map(|n| first.plus(n)).collect::<Vec<_>>());
        for n in [1, 3, 5] {
            pages.free(blocks[n]);
        }
        assert_eq!(alloc(pages, Gfp::MOVABLE, 0), Some(blocks[5]));
        assert_eq!(alloc(pages, Gfp::MOVABLE, 0), Some(blocks[3]));
    });
}

/// Frames 0 to 7 are allocated one by one; then 2 and 3 are freed (one block of order 1), then 6, then 0.
/// Frame 0's buddy 1 is in use, but the pair's buddy of order 1 is free: it would soon merge further, so from
/// 2.6.35 on it goes to the tail.
#[test]
fn a_block_that_would_soon_merge_goes_to_the_tail() {
    for (release, first) in [((2, 6, 34), 0), ((2, 6, 35), 6)] {
        check(4096, &[bare(release)], |pages| {
            let blocks: Vec<Pfn> = (0..8).map(|_| alloc(pages, Gfp::MOVABLE, 0).unwrap()).collect();
            for n in [2, 3, 6, 0] {
                pages.free(blocks[n]);
            }
            assert_eq!(alloc(pages, Gfp::MOVABLE, 0), Some(blocks[first]), "{release:?}");
        });
    }
}

#[test]
fn the_end_of_a_zone_is_no_multiple_of_the_largest_block() {
    check(1024 + 512 + 8 + 1, &ERAS.map(bare), |pages| {
        assert_eq!(free_blocks(pages), [1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]);
        let mut taken = vec![];
        while let Some(pfn) = alloc(pages, Gfp::MOVABLE, 0) {
            taken.push(pfn);
        }
        assert_eq!(taken.len(), 1024 + 512 + 8 + 1);
        assert_eq!(pages.free_frames(NODE), 0);
        taken.into_iter().for_each(|pfn| pages.free(pfn));
        assert_eq!(free_blocks(pages), [1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]);
    });
}

#[test]
fn untouched_memory_has_no_descriptors() {
    check(1 << 28, &ERAS.map(bare), |pages| {
        assert_eq!(World::frames_touched(), 0);
        assert_eq!(pages.free_frames(NODE), 1 << 28);
        assert_eq!(pages.census(NODE).untouched, 1 << 28);
        let pfn = alloc(pages, Gfp::NONE, 0).unwrap();
        pages.free(pfn);
        assert!(World::frames_touched() < 64, "{} descriptors", World::frames_touched());
        let rest = Pfn(pfn.0 + 4096);
        assert_eq!(pages.take_free(rest, 1 << 20, |_| panic!("no block beyond the frontier is listed")), 0);
        assert_balanced(pages);
        assert!(World::frames_touched() < 64, "checking touches none either");
    });
}

/// The hints read before the first lock are what the first lock publishes.
#[test]
fn an_untouched_zone_has_the_counters_it_would_publish() {
    let closed =
        ERAS.map(|era| PagesPolicy { min_free: MinFree::Kib(1 << 20), reserve: Reserve::None, ..bare(era) });
    check(1024 + 512 + 8 + 1, &closed, |pages| {
        assert_eq!(pages.alloc(Gfp::KERNEL, 0, NODE, FrameKind::Slab), None);
        assert_eq!((World::counted(Event::LockZone), World::frames_touched()), (0, 0));
    });
}

#[test]
fn exhaustion_is_none_and_so_is_an_order_too_large() {
    check(2048, &ERAS.map(bare), |pages| {
        assert_eq!(alloc(pages, Gfp::NONE, 11), None);
        let (a, b) = (alloc(pages, Gfp::MOVABLE, 10), alloc(pages, Gfp::MOVABLE, 10));
        assert!(a.is_some() && b.is_some());
        assert_eq!(alloc(pages, Gfp::MOVABLE, 0), None);
        assert_eq!(World::counted(Event::PageAllocFail), 2);
        pages.free(a.unwrap());
        assert_eq!(alloc(pages, Gfp::MOVABLE, 10), a);
    });
}

#[test]
fn a_refused_permit_fails_the_request() {
    check(2048, &ERAS.map(bare), |pages| {
        World::set_permit(false);
        assert_eq!(alloc(pages, Gfp::NONE, 0), None);
        assert_eq!(World::counted(Event::PageAllocFail), 1);
        World::set_permit(true);
        assert!(alloc(pages, Gfp::NONE, 0).is_some());
    });
}

#[test]
#[should_panic(expected = "broken: free of frame 0, which is Buddy")]
fn a_double_free_is_reported() {
    check(2048, &[bare((6, 12, 0))], |pages| {
        let pfn = alloc(pages, Gfp::NONE, 0).unwrap();
        pages.free(pfn);
        pages.free(pfn);
    });
}

// Migrate types.

/// Blocks of each type on the free lists, as frames.
fn frames_by_type(pages: &Pages<World>) -> [u32; MigrateType::COUNT] {
    let blocks = info(pages).blocks;
    core::array::from_fn(|ty| (0..=10).map(|order| blocks[order][ty] << order).sum())
}

/// All memory is movable at boot, so the first unmovable request steals the largest block, relabels its
/// pageblocks, and keeps the rest of it; the second one need not steal.
#[test]
fn stealing_a_large_block_relabels_its_pageblocks() {
    let none = |release| PagesPolicy { reserve: Reserve::None, ..bare(release) };
    check(8192, &ERAS.map(none), |pages| {
        let first = alloc(pages, Gfp::NONE, 0).unwrap();
        assert_eq!(World::counted(Event::BuddySteal), 1);
        assert_eq!(frames_by_type(pages), [8192 - 1024, 1023, 0, 0]);
        let second = alloc(pages, Gfp::NONE, 0).unwrap();
        assert_eq!(World::counted(Event::BuddySteal), 1);
        pages.free(first);
        pages.free(second);
        // Back in one piece, and still unmovable.
        assert_eq!(frames_by_type(pages), [8192 - 1024, 1024, 0, 0]);
    });
}

/// Only small movable blocks are left, of `held` frames in one pageblock of 512; an unmovable request
/// follows.
fn steal_from_a_pageblock(pages: &Pages<World>, keep_free: u32) -> [u32; MigrateType::COUNT] {
    let mut taken = vec![];
    while let Some(pfn) = alloc(pages, Gfp::MOVABLE, 5) {
        taken.push(pfn);
    }
    taken.sort();
    for pfn in &taken[..keep_free as usize / 32] {
        pages.free(*pfn);
    }
    alloc(pages, Gfp::NONE, 0).unwrap();
    frames_by_type(pages)
}

/// A block of order 5 is at least half a pageblock's order (4): its pageblock's free part is moved, and the
/// label with it when that is half of the pageblock.
#[test]
fn half_a_pageblock_decides_the_label() {
    let none = |release| PagesPolicy { reserve: Reserve::None, ..bare(release) };
    for (free, relabelled) in [(256 - 32, false), (256, true), (480, true)] {
        check(8192, &ERAS.map(none), |pages| {
            assert_eq!(steal_from_a_pageblock(pages, free), [0, free - 1, 0, 0], "all of it moves");
            // The label shows when a block that was allocated as movable comes back, one whose buddy is in
            // use.
            let neighbour = Pfn((free + 32).min(480));
            pages.free(neighbour);
            let expected = if relabelled { [0, free + 31, 0, 0] } else { [32, free - 1, 0, 0] };
            assert_eq!(frames_by_type(pages), expected, "{free} free");
        });
    }
}

/// With only single frames left, 2.6.32 borrows one and leaves the pageblock alone; modern kernels let
/// unmovable requests claim. Reclaimable requests always claim; movable ones never do for so small a block.
#[test]
fn small_blocks_are_borrowed_or_claimed_by_era() {
    let rows = [
        (Steal::Largest, Gfp::NONE, false),
        (Steal::Largest, Gfp::RECLAIMABLE, true),
        (Steal::ClaimOrSmallest, Gfp::NONE, true),
        (Steal::ClaimOrSmallest, Gfp::RECLAIMABLE, true),
    ];
    for (steal, gfp, claims) in rows {
        let policy = PagesPolicy { steal, reserve: Reserve::None, ..bare((6, 12, 0)) };
        check(8192, &[policy], |pages| {
            let mut taken = vec![];
            while let Some(pfn) = alloc(pages, Gfp::MOVABLE, 0) {
                taken.push(pfn);
            }
            taken.sort();
            (0..20).step_by(2).for_each(|n| pages.free(taken[n]));
            alloc(pages, gfp, 0).unwrap();
            let movable_left = if claims { 0 } else { 9 };
            assert_eq!(
                frames_by_type(pages)[MigrateType::Movable as usize],
                movable_left,
                "{steal:?} {gfp:?}"
            );
        });
    }
}

/// A movable request that finds only unmovable blocks: 2.6.32 breaks the largest, modern kernels the
/// smallest.
#[test]
fn who_cannot_claim_takes_the_smallest_block() {
    for (steal, broken) in [(Steal::Largest, 3), (Steal::ClaimOrSmallest, 1)] {
        let policy = PagesPolicy { steal, reserve: Reserve::None, ..bare((6, 12, 0)) };
        check(8192, &[policy], |pages| {
            let mut taken = vec![];
            while let Some(pfn) = alloc(pages, Gfp::NONE, 3) {
                taken.push(pfn);
            }
            taken.sort();
            pages.free(taken[0]);
            let small = alloc(pages, Gfp::NONE, 1).unwrap();
            let others: Vec<Pfn> = (0..3).map(|_| alloc(pages, Gfp::NONE, 1).unwrap()).collect();
            assert_eq!((small, pages.free_frames(NODE)), (taken[0], 0));
            pages.free(others[1]);
            pages.free(taken[9]);
            assert_eq!(free_blocks(pages)[..4], [0, 1, 0, 1]);
            alloc(pages, Gfp::MOVABLE, 0).unwrap();
            let mut expected = [0, 1, 0, 1];
            expected[broken] = 0;
            for rest in &mut expected[..broken] {
                *rest += 1;
            }
            assert_eq!(free_blocks(pages)[..4], expected, "{steal:?}");
            // The remainder stays unmovable, and goes to the heads of its lists.
            assert_eq!(frames_by_type(pages), [0, 9, 0, 0]);
            let next = if broken == 3 { taken[9].plus(2) } else { taken[9] };
            assert_eq!(alloc(pages, Gfp::NONE, 1), Some(next), "{steal:?}");
        });
    }
}

/// With blocks of both other types free, and neither worth claiming alone, the first of the documented
/// sequence is taken.
#[test]
fn fallbacks_have_an_order() {
    let [movable, unmovable, reclaimable] = [Gfp::MOVABLE, Gfp::NONE, Gfp::RECLAIMABLE];
    for (gfp, first, second) in [
        (unmovable, reclaimable, movable),
        (reclaimable, unmovable, movable),
        (movable, reclaimable, unmovable),
    ] {
        let policy = PagesPolicy { reserve: Reserve::None, ..bare((6, 12, 0)) };
        check(8192, &[policy], |pages| {
            // One block of each type, then the rest; then both come back, to the lists of their pageblocks'
            // types.
            let blocks = [second, first].map(|gfp| alloc(pages, gfp, 10).unwrap());
            while alloc(pages, gfp, 10).is_some() {}
            blocks.into_iter().for_each(|pfn| pages.free(pfn));
            assert_eq!(alloc(pages, gfp, 0), Some(blocks[1]), "{gfp:?}");
        });
    }
}

/// `MIGRATE_RESERVE`: two pageblocks, served when nothing else is left.
#[test]
fn the_last_resort_is_used_last() {
    let policy = PagesPolicy { min_free: MinFree::Kib(4096), ..bare((2, 6, 32)) };
    check(8192, &[policy], |pages| {
        assert_eq!(frames_by_type(pages), [8192 - 1024, 0, 0, 1024]);
        let mut taken = vec![];
        while let Some(pfn) = alloc(pages, Gfp::NONE, 5) {
            taken.push(pfn);
            if taken.len() == (8192 - 1024) / 32 {
                assert_eq!(frames_by_type(pages), [0, 0, 0, 1024]);
            }
        }
        assert_eq!(taken.len(), 8192 / 32);
        taken.into_iter().for_each(|pfn| pages.free(pfn));
        assert_eq!(frames_by_type(pages)[MigrateType::Reserve as usize], 1024);
    });
}

/// A machine down to its low watermark, so that atomic requests go on with the slow path's rights.
fn down_to_low(pages: &Pages<World>) -> Vec<Pfn> {
    // All of it is touched first: a block from beyond the frontier has no state that could be stale.
    let touched: Vec<Pfn> = core::iter::from_fn(|| alloc(pages, Gfp::MOVABLE, 10)).collect();
    touched.into_iter().for_each(|pfn| pages.free(pfn));
    let request = || pages.alloc(Gfp::NONE, 0, NODE, FrameKind::Allocated);
    core::iter::from_fn(request).collect()
}

fn reserve(pages: &Pages<World>) -> u32 {
    frames_by_type(pages)[MigrateType::Reserve as usize]
}

const HIGH_ATOMIC: PagesPolicy = PagesPolicy { min_free: MinFree::Kib(4096), ..bare((6, 12, 0)) };

/// `MIGRATE_HIGHATOMIC`: an atomic request above order 0 keeps its pageblock for its like.
#[test]
fn atomic_requests_reserve_a_pageblock() {
    check(8192, &[HIGH_ATOMIC], |pages| {
        down_to_low(pages);
        assert_eq!(reserve(pages), 0);
        assert!(pages.alloc(Gfp::ATOMIC, 1, NODE, FrameKind::Allocated).is_some());
        assert!(reserve(pages) > 256, "{} frames reserved", reserve(pages));
        let (before, free) = (reserve(pages), pages.free_frames(NODE));
        assert!(pages.alloc(Gfp::ATOMIC, 1, NODE, FrameKind::Allocated).is_some());
        assert_eq!((reserve(pages), pages.free_frames(NODE)), (before - 2, free - 2));
        assert!(pages.alloc(Gfp::NONE, 1, NODE, FrameKind::Allocated).is_none());
    });
}

/// 1 % of the zone and one pageblock at most; and the reserve stays in one piece when all memory is free
/// again.
#[test]
fn the_atomic_reserve_is_bounded_and_does_not_leak() {
    check(8192, &[HIGH_ATOMIC], |pages| {
        let mut taken = down_to_low(pages);
        taken.extend(core::iter::from_fn(|| pages.alloc(Gfp::ATOMIC, 1, NODE, FrameKind::Allocated)));
        taken.into_iter().for_each(|pfn| pages.free(pfn));
        assert_eq!((reserve(pages), pages.free_frames(NODE)), (512, 8192));
        let whole = alloc(pages, Gfp::NONE, 10).unwrap();
        assert_eq!(reserve(pages), 512);
        pages.free(whole);
    });
}

/// Other requests see the zone without the reserve: they stop above low by the number of reserved frames.
#[test]
fn the_atomic_reserve_does_not_count_for_others() {
    check(8192, &[HIGH_ATOMIC], |pages| {
        let taken = down_to_low(pages);
        let lowest = pages.free_frames(NODE);
        pages.alloc(Gfp::ATOMIC, 1, NODE, FrameKind::Allocated).unwrap();
        taken.into_iter().for_each(|pfn| pages.free(pfn));
        down_to_low(pages);
        assert_eq!(pages.free_frames(NODE), lowest + 512);
    });
}

/// Before it gives up, a request that may reclaim takes a reserved pageblock back.
#[test]
fn the_atomic_reserve_is_given_up_before_failure() {
    check(8192, &[HIGH_ATOMIC], |pages| {
        let mut taken = down_to_low(pages);
        pages.alloc(Gfp::ATOMIC, 1, NODE, FrameKind::Allocated).unwrap();
        taken.drain(..600).for_each(|pfn| pages.free(pfn));
        taken.extend(down_to_low(pages));
        let before = reserve(pages);
        World::on_reclaim(|_| true);
        assert!(pages.alloc(Gfp::KERNEL, 0, NODE, FrameKind::Allocated).is_some());
        assert_eq!((before > 256, reserve(pages)), (true, 0));
    });
}

#[test]
fn free_frames_of_a_range_can_be_taken_and_given_back() {
    check(2048, &ERAS.map(bare), |pages| {
        let before = free_blocks(pages);
        let held: Vec<Pfn> = (0..64).map(|_| alloc(pages, Gfp::MOVABLE, 0).unwrap()).collect();
        let first = held[0].0 / 64 * 64;
        held.iter().filter(|pfn| pfn.0 % 2 == 1).for_each(|pfn| pages.free(*pfn));
        let mut taken = Vec::new();
        assert_eq!(pages.take_free(Pfn(first), 64, |pfn| taken.push(pfn)), 32);
        let odd: Vec<Pfn> = (first..first + 64).filter(|pfn| pfn % 2 == 1).map(Pfn).collect();
        assert_eq!(taken, odd);
        assert_eq!(pages.take_free(Pfn(first), 64, |_| panic!("a frame is free")), 0);
        taken.into_iter().for_each(|pfn| pages.free(pfn));
        held.iter().filter(|pfn| pfn.0 % 2 == 0).for_each(|pfn| pages.free(*pfn));
        assert_eq!(free_blocks(pages), before);
    });
}

#[test]
fn the_fragmentation_index_says_why_a_request_fails() {
    check(1024, &[bare((6, 1, 0))], |pages| {
        let held: Vec<Pfn> = (0..1024).map(|_| alloc(pages, Gfp::MOVABLE, 0).unwrap()).collect();
        assert_eq!(pages.fragmentation(NODE, 0, 3), 0, "no memory");
        held.iter().filter(|pfn| pfn.0 % 2 == 1).for_each(|pfn| pages.free(*pfn));
        // 1000 - (1000 + 512 * 1000 / 8) / 512
        assert_eq!(pages.fragmentation(NODE, 0, 3), 874);
        assert!(!pages.has_block(NODE, 0, 3, MigrateType::Movable));
        held.iter().filter(|pfn| pfn.0 % 2 == 0).for_each(|pfn| pages.free(*pfn));
        assert_eq!(pages.fragmentation(NODE, 0, 3), -1000);
        assert!(pages.has_block(NODE, 0, 3, MigrateType::Movable));
    });
}
