//! Per-CPU page lists: what takes `zone->lock` and what does not.

use crate::world::{Spec, World, assert_balanced};
use slablab_pages::policy::{MinFree, ZoneRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, FrameKind, Frames, Gfp, NodeId, Pfn};

const NODE: NodeId = NodeId(0);

fn policy(release: (u32, u32, u32)) -> PagesPolicy {
    PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(release.0, release.1, release.2) }
}

fn alloc(pages: &Pages<World>, order: u8) -> Pfn {
    pages.alloc(Gfp::KERNEL, order, NODE, FrameKind::Slab).expect("memory")
}

/// Frames on a CPU's lists.
fn kept(pages: &Pages<World>, cpu: u16) -> u32 {
    pages.pcp_frames(CpuId(cpu), NODE, 0).expect("nobody holds the slot")
}

/// `count` blocks of `order` are allocated and freed on one CPU: `locks` acquisitions of `zone->lock` for
/// each.
#[track_caller]
fn check(release: (u32, u32, u32), order: u8, count: usize, locks: (u64, u64)) {
    World::enter(Spec::uniform(1, 1 << 18), || {
        let pages = Pages::<World>::new(policy(release));
        let blocks: Vec<Pfn> = (0..count).map(|_| alloc(&pages, order)).collect();
        let taken = World::counted(Event::LockZone);
        let kept = order <= pages.policy().pcp.max_order;
        assert_eq!(World::counted(Event::PcpAlloc), if kept { count as u64 } else { 0 });
        blocks.into_iter().for_each(|pfn| pages.free(pfn));
        let given = World::counted(Event::LockZone) - taken;
        assert_eq!(World::counted(Event::PcpFree), World::counted(Event::PcpAlloc));
        assert_eq!((taken, given), locks, "{release:?} order {order}");
        assert_balanced(&pages);
    });
}

/// 2.6: batch 31, high 186, order 0 only. 5.14: orders to 3, batch 63 (shifted down by the order), high 642
/// or so, for half a machine of two CPUs.
#[test]
fn batches_take_one_lock() {
    check((2, 6, 32), 0, 31, (1, 0));
    check((2, 6, 32), 0, 32, (2, 0));
    // 310 blocks in ten refills, exactly; 310 frees reach 186 once, and again after each batch of 31.
    check((2, 6, 32), 0, 310, (10, 5));
    check((2, 6, 32), 1, 31, (31, 31));
    check((2, 6, 32), 3, 31, (31, 31));
    check((5, 10, 0), 1, 31, (31, 31));
    check((6, 1, 0), 0, 63, (1, 0));
    check((6, 1, 0), 1, 31, (1, 0));
    check((6, 1, 0), 3, 7, (1, 0));
    check((6, 1, 0), 3, 8, (2, 0));
    check((6, 1, 0), 4, 8, (8, 8));
}

/// 1,000 pages are allocated and freed. Acquisitions of `zone->lock` for both, pages that the CPU keeps then,
/// and after 40 seconds without work.
fn tuned(policy: PagesPolicy) -> [u64; 4] {
    World::enter(Spec::uniform(1, 1 << 18), || {
        let min_free = MinFree::Computed;
        let pages = Pages::<World>::new(PagesPolicy { min_free, ..policy });
        let blocks: Vec<Pfn> = (0..1_000).map(|_| alloc(&pages, 0)).collect();
        let taken = World::counted(Event::LockZone);
        blocks.into_iter().for_each(|pfn| pages.free(pfn));
        let given = World::counted(Event::LockZone) - taken;
        let before = kept(&pages, 0);
        (0..40).for_each(|_| pages.refresh(CpuId(0)));
        assert_balanced(&pages);
        [taken, given, before.into(), kept(&pages, 0).into()]
    })
}

/// Since 6.7 refills double: 63, 126, 252, 504, 1,008. The CPU may keep 643 pages and as many more.
#[test]
fn lists_tune_their_length() {
    assert_eq!(tuned(policy((6, 12, 0)).tuned()), [5, 0, 1_953, 643]);
    // 16 refills of a batch; 643 pages overflow by a batch.
    assert_eq!(tuned(policy((6, 12, 0))), [16, 6, 630, 630]);
}

/// A CPU that finds its zone below high keeps fewer pages, until pages that it gives back lift the zone.
#[test]
fn a_zone_below_high_gets_pages_back() {
    World::enter(Spec::uniform(1, 1 << 18), || {
        let min_free = MinFree::Computed;
        let pages = Pages::<World>::new(PagesPolicy { min_free, ..policy((6, 12, 0)).tuned() });
        let high = pages.zone_marks(NODE, 0).high;
        let mut blocks = Vec::new();
        while pages.zone_free(NODE, 0) > high - 500 {
            blocks.push(alloc(&pages, 0));
        }
        // The next request sees it.
        blocks.extend(pages.alloc(Gfp::MEMALLOC, 0, NODE, FrameKind::Slab));
        let most = kept(&pages, 0) + 3_000;
        blocks.drain(..3_000).for_each(|pfn| pages.free(pfn));
        // They go back until the zone is above high: 3,000 are more than it lacks.
        let lacked = most - kept(&pages, 0);
        assert!((500..2_500).contains(&lacked), "{lacked}");
        assert!(pages.zone_free(NODE, 0) > high);
        blocks.into_iter().for_each(|pfn| pages.free(pfn));
        assert_balanced(&pages);
    });
}

#[test]
fn a_page_freed_is_the_next_one_allocated() {
    for release in [(2, 6, 32), (6, 1, 0)] {
        World::enter(Spec::uniform(1, 1 << 18), || {
            let pages = Pages::<World>::new(policy(release));
            let (a, b) = (alloc(&pages, 0), alloc(&pages, 0));
            // Frames of a batch come in the order they were cut.
            assert_eq!(b, a.plus(1));
            pages.free(a);
            pages.free(b);
            assert_eq!((alloc(&pages, 0), alloc(&pages, 0)), (b, a));
        });
    }
}

#[test]
fn the_lists_count_as_allocated_to_the_zone() {
    World::enter(Spec::uniform(1, 1 << 18), || {
        let pages = Pages::<World>::new(policy((2, 6, 32)));
        let pfn = alloc(&pages, 0);
        assert_eq!((pages.free_frames(NODE), kept(&pages, 0)), ((1 << 18) - 31, 30));
        let census = pages.census(NODE);
        assert_eq!((census.pcp, census.slab, census.total()), (30, 1, 1 << 18));
        pages.free(pfn);
        assert_eq!((pages.free_frames(NODE), kept(&pages, 0)), ((1 << 18) - 31, 31));
        assert_balanced(&pages);
    });
}

/// A CPU frees what another allocated: the freeing CPU keeps it, and returns a batch when it has too much.
#[test]
fn pages_move_with_whoever_frees_them() {
    World::enter(Spec::uniform(1, 1 << 18), || {
        let pages = Pages::<World>::new(policy((2, 6, 32)));
        let blocks: Vec<Pfn> = (0..185).map(|_| alloc(&pages, 0)).collect();
        World::run_on(1);
        blocks.into_iter().for_each(|pfn| pages.free(pfn));
        assert_eq!((kept(&pages, 0), kept(&pages, 1)), (1, 185));
        assert_eq!(World::counted(Event::PcpDrain), 0);
        World::run_on(0);
        let last = alloc(&pages, 0);
        World::run_on(1);
        pages.free(last);
        assert_eq!((kept(&pages, 1), World::counted(Event::PcpDrain)), (186 - 31, 1));
        assert_balanced(&pages);
    });
}

/// A CPU that goes keeps nothing, of any node; the others keep theirs.
#[test]
fn a_cpu_that_goes_down_gives_its_pages_back() {
    World::enter(Spec::uniform(2, 1 << 18), || {
        let pages = Pages::<World>::new(policy((6, 1, 0)));
        World::run_on(1);
        let far = pages.alloc(Gfp::KERNEL, 3, NodeId(1), FrameKind::Slab).expect("memory");
        let near = [alloc(&pages, 0), alloc(&pages, 1)];
        World::run_on(0);
        alloc(&pages, 0);
        let others = kept(&pages, 0);
        let on = |node: u16| pages.pcp_frames(CpuId(1), NodeId(node), 0).expect("nobody holds the slot");
        assert!(others > 0 && on(0) > 0 && on(1) > 0);
        pages.cpu_down(CpuId(1));
        assert_eq!((on(0), on(1), kept(&pages, 0)), (0, 0, others));
        assert_eq!(pages.free_frames(NODE), (1 << 18) - 4 - others as u64);
        assert_eq!(pages.free_frames(NodeId(1)), (1 << 18) - 8);
        assert_balanced(&pages);
        near.into_iter().chain([far]).for_each(|pfn| pages.free(pfn));
        assert_balanced(&pages);
    });
}

/// A slot that refuses costs a lock, not the request.
#[test]
fn a_refused_slot_goes_to_the_buddy() {
    let spec = Spec { refuse_every: 1, ..Spec::uniform(1, 1 << 18) };
    World::enter(spec, || {
        let pages = Pages::<World>::new(policy((6, 1, 0)));
        let pfn = alloc(&pages, 0);
        pages.free(pfn);
        assert_eq!(World::counted(Event::Slotless), 2);
        assert_eq!(World::counted(Event::LockZone), 2);
        assert_eq!(pages.free_frames(NODE), 1 << 18);
    });
}

/// Memory of another node has lists of its own on each CPU.
#[test]
fn each_zone_has_its_own_lists() {
    World::enter(Spec::uniform(2, 1 << 18), || {
        let pages = Pages::<World>::new(policy((2, 6, 32)));
        let far = pages.alloc(Gfp::KERNEL, 0, NodeId(1), FrameKind::Slab).unwrap();
        let near = alloc(&pages, 0);
        pages.free(far);
        assert_eq!(pages.pcp_frames(CpuId(0), NodeId(1), 0), Some(31));
        assert_eq!(kept(&pages, 0), 30);
        let (_, state) = Pages::<World>::block_of(World::address(near, 0)).expect("a slab");
        assert_eq!(state.node, NODE);
        assert_balanced(&pages);
    });
}

/// Slabs, large blocks and compound blocks have tails; a plain block has none, and stale tails are not
/// believed.
#[test]
fn tails_lead_to_the_head() {
    World::enter(Spec::uniform(1, 1 << 18), || {
        let pages = Pages::<World>::new(policy((6, 1, 0)));
        let find =
            |pfn: Pfn, frame: u32| Pages::<World>::block_of(World::address(pfn, (frame as u64) << 12 | 8));
        for kind in [FrameKind::Slab, FrameKind::Large] {
            let pfn = pages.alloc(Gfp::KERNEL, 3, NODE, kind).unwrap();
            for frame in 0..8 {
                let (head, state) = find(pfn, frame).expect("inside the block");
                assert_eq!((head, state.kind, state.order, state.node), (pfn, kind, 3, NODE));
            }
            pages.free(pfn);
            assert!((0..8).all(|frame| find(pfn, frame).is_none()), "freed");
            let plain = pages.alloc(Gfp::KERNEL, 3, NODE, FrameKind::Allocated).unwrap();
            assert_eq!(plain, pfn);
            assert!((0..8).all(|frame| find(plain, frame).is_none()), "neither slab nor large");
            pages.free(plain);
        }
        // Tails of an order-3 block are stale once its memory is four blocks of order 1.
        let pfn = pages.alloc(Gfp::KERNEL, 4, NODE, FrameKind::Slab).unwrap();
        pages.free(pfn);
        let small: Vec<Pfn> =
            (0..8).map(|_| pages.alloc(Gfp::KERNEL, 1, NODE, FrameKind::Slab).unwrap()).collect();
        for head in small {
            assert_eq!(find(head, 1).map(|(pfn, _)| pfn), Some(head));
        }
    });
}

/// Frames that a CPU keeps of 600 that were freed, while kswapd reclaims or not.
fn kept_of_600(release: (u32, u32, u32), reclaims: bool) -> u32 {
    World::enter(Spec::uniform(1, 1 << 18), || {
        let pages = Pages::<World>::new(policy(release));
        let blocks: Vec<Pfn> = (0..600).map(|_| alloc(&pages, 0)).collect();
        pages.set_reclaiming(NODE, true);
        pages.set_reclaiming(NODE, reclaims);
        blocks.into_iter().for_each(|pfn| pages.free(pfn));
        assert_balanced(&pages);
        kept(&pages, 0)
    })
}

/// Since 5.14 a CPU keeps less than four batches of 63 while kswapd reclaims, up to 642 frames otherwise.
#[test]
fn a_cpu_keeps_less_while_kswapd_reclaims() {
    assert!((600..=642).contains(&kept_of_600((6, 1, 0), false)));
    assert!((189..252).contains(&kept_of_600((6, 1, 0), true)));
    assert_eq!(kept_of_600((5, 10, 0), true), kept_of_600((5, 10, 0), false));
}
