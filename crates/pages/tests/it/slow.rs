//! The slow path: the order of reclaim requests, by era and flags.

use crate::world::{Spec, World, assert_balanced};
use slablab_pages::policy::{Kswapd, MinFree, PcpRule, Reserve, Retries, ZoneRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::ReclaimStep::{self, Compact, Direct, Oom, Wait, WakeKswapd};
use slablab_platform::{Event, FrameKind, FrameState, Frames, Gfp, NodeId, Pfn, Reclaimed, Word};
use std::cell::RefCell;
use std::rc::Rc;

const NODE: NodeId = NodeId(0);
const OLD: (u32, u32, u32) = (2, 6, 32);
const NEW: (u32, u32, u32) = (6, 1, 0);

fn policy(release: (u32, u32, u32)) -> PagesPolicy {
    PagesPolicy {
        pcp: PcpRule::NONE,
        min_free: MinFree::Kib(4096),
        zones: Some(ZoneRule::One),
        reserve: Reserve::None,
        retries: Retries::Bounded(3),
        ..PagesPolicy::for_release(release.0, release.1, release.2)
    }
}

fn alloc(pages: &Pages<World>, gfp: Gfp, order: u8) -> Option<Pfn> {
    pages.alloc(gfp, order, NODE, FrameKind::Allocated)
}

/// What the world does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// Nothing can be done.
    Hopeless,
    /// Claims progress without freeing a page.
    Empty,
    /// This step frees 64 blocks of order 5.
    Frees(ReclaimStep),
}

/// A machine with no memory left sees one request: which steps it takes, and whether it is served.
#[track_caller]
fn check(release: (u32, u32, u32), gfp: Gfp, order: u8, answer: Answer, steps: &[ReclaimStep], served: bool) {
    check_policy(policy(release), gfp, order, answer, steps, served);
}

#[track_caller]
fn check_policy(
    policy: PagesPolicy,
    gfp: Gfp,
    order: u8,
    answer: Answer,
    steps: &[ReclaimStep],
    served: bool,
) {
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Rc::new(Pages::<World>::new(policy));
        let taken = Rc::new(RefCell::new(vec![]));
        while let Some(pfn) = alloc(&pages, Gfp::MEMALLOC, 5) {
            taken.borrow_mut().push(pfn);
        }
        World::steps();
        let (world_pages, world_taken) = (pages.clone(), taken.clone());
        World::on_reclaim(move |ask| {
            if answer == Answer::Frees(ask.step) {
                let blocks = world_taken.borrow_mut().drain(..64).collect::<Vec<_>>();
                blocks.into_iter().for_each(|pfn| world_pages.free(pfn));
            }
            answer != Answer::Hopeless && (answer == Answer::Empty || answer == Answer::Frees(ask.step))
        });
        let before = World::counted(Event::DirectReclaim);
        let pfn = alloc(&pages, gfp, order);
        let asked = World::steps();
        assert_eq!(asked, steps, "{gfp:?} order {order}, {answer:?}");
        assert_eq!(pfn.is_some(), served, "{gfp:?} order {order}, {answer:?}");
        let directly = asked.iter().filter(|step| **step == Direct).count() as u64;
        assert_eq!(World::counted(Event::DirectReclaim) - before, directly);
        assert_balanced(&pages);
    });
}

#[test]
fn nothing_helps() {
    use Answer::Hopeless;
    check(OLD, Gfp::KERNEL, 0, Hopeless, &[WakeKswapd, Direct, Oom], false);
    check(OLD, Gfp::KERNEL, 3, Hopeless, &[WakeKswapd, Direct, Oom], false);
    check(NEW, Gfp::KERNEL, 0, Hopeless, &[WakeKswapd, Direct, Oom], false);
    check(NEW, Gfp::KERNEL, 3, Hopeless, &[WakeKswapd, Compact, Direct, Compact, Oom], false);
}

#[test]
fn who_may_not_wait_only_wakes_kswapd() {
    use Answer::Hopeless;
    check(OLD, Gfp::ATOMIC, 0, Hopeless, &[WakeKswapd], false);
    check(NEW, Gfp::ATOMIC, 0, Hopeless, &[WakeKswapd], false);
    // Before 4.4 every request woke kswapd; the mask of 4.6's SLUB asks for neither step.
    check(OLD, Gfp::NONE, 3, Hopeless, &[WakeKswapd], false);
    check(NEW, Gfp::NONE, 3, Hopeless, &[], false);
    let never = PagesPolicy { kswapd: Kswapd::Never, ..policy(OLD) };
    check_policy(never, Gfp::ATOMIC, 3, Hopeless, &[], false);
}

#[test]
fn gfp_thisnode_gave_up_at_once() {
    let this_node = Gfp::KERNEL | Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN;
    check(OLD, this_node, 0, Answer::Hopeless, &[], false);
    check(NEW, this_node, 0, Answer::Hopeless, &[WakeKswapd, Direct], false);
    // THISNODE alone never kills.
    check(NEW, Gfp::KERNEL | Gfp::THISNODE, 0, Answer::Hopeless, &[WakeKswapd, Direct], false);
}

/// SLUB's first call of 2.6.29: one round of reclaim for the high order, then failure.
#[test]
fn noretry_reclaims_once() {
    let noretry = Gfp::KERNEL | Gfp::NORETRY | Gfp::NOWARN;
    check(OLD, noretry, 3, Answer::Hopeless, &[WakeKswapd, Direct], false);
    check(OLD, noretry, 3, Answer::Empty, &[WakeKswapd, Direct], false);
    check(OLD, noretry, 3, Answer::Frees(Direct), &[WakeKswapd, Direct], true);
    check(NEW, noretry, 3, Answer::Empty, &[WakeKswapd, Compact, Direct, Compact], false);
    // Costly: compaction, and no reclaim at all.
    check(NEW, noretry, 4, Answer::Empty, &[WakeKswapd, Compact], false);
}

#[test]
fn progress_is_repeated_and_bounded() {
    use Answer::Empty;
    check(OLD, Gfp::KERNEL, 3, Empty, &[WakeKswapd, Direct, Direct, Direct], false);
    check(OLD, Gfp::KERNEL, 4, Empty, &[WakeKswapd, Direct], false);
    check(OLD, Gfp::KERNEL | Gfp::RETRY_MAYFAIL, 6, Empty, &[WakeKswapd, Direct, Direct], false);
    check(OLD, Gfp::KERNEL | Gfp::NOFAIL, 4, Empty, &[WakeKswapd, Direct, Direct, Direct], false);
    check(NEW, Gfp::KERNEL, 0, Empty, &[WakeKswapd, Direct, Direct, Direct], false);
    check(NEW, Gfp::KERNEL, 4, Empty, &[WakeKswapd, Compact, Direct, Compact], false);
}

#[test]
fn each_step_can_help() {
    for (release, order, steps) in [
        (OLD, 3, vec![WakeKswapd, Direct]),
        (NEW, 0, vec![WakeKswapd, Direct]),
        (NEW, 3, vec![WakeKswapd, Compact, Direct]),
    ] {
        check(release, Gfp::KERNEL, order, Answer::Frees(Direct), &steps, true);
    }
    check(NEW, Gfp::KERNEL, 3, Answer::Frees(Compact), &[WakeKswapd, Compact], true);
    check(OLD, Gfp::KERNEL, 3, Answer::Frees(Oom), &[WakeKswapd, Direct, Oom], true);
    check(OLD, Gfp::KERNEL, 3, Answer::Frees(WakeKswapd), &[WakeKswapd], true);
    // 2.6.32 compacts nothing.
    check(OLD, Gfp::KERNEL, 3, Answer::Frees(Compact), &[WakeKswapd, Direct, Oom], false);
}

/// Without FS the OOM killer stays away, and for costly orders too.
#[test]
fn who_may_kill() {
    use Answer::Hopeless;
    let nofs = Gfp(Gfp::KERNEL.0 & !Gfp::FS.0);
    check(OLD, nofs, 0, Hopeless, &[WakeKswapd, Direct], false);
    check(NEW, nofs, 0, Hopeless, &[WakeKswapd, Direct], false);
    check(OLD, Gfp::KERNEL, 4, Hopeless, &[WakeKswapd, Direct], false);
    check(OLD, Gfp::KERNEL | Gfp::NOFAIL, 4, Hopeless, &[WakeKswapd, Direct, Oom], false);
    check(NEW, Gfp::KERNEL | Gfp::RETRY_MAYFAIL, 0, Hopeless, &[WakeKswapd, Direct], false);
}

/// kswapd is woken per node, and only where the order would push a zone below low.
#[test]
fn kswapd_is_woken_where_memory_is_short() {
    World::enter(Spec::uniform(2, 1 << 14), || {
        let pages = Pages::<World>::new(policy(OLD));
        while pages.alloc(Gfp::MEMALLOC | Gfp::THISNODE, 5, NODE, FrameKind::Slab).is_some() {}
        World::steps();
        assert!(alloc(&pages, Gfp::KERNEL, 0).is_some(), "served by the other node");
        assert_eq!(World::steps(), []);
        assert!(alloc(&pages, Gfp::ATOMIC | Gfp::THISNODE, 0).is_none());
        assert_eq!(World::steps(), [WakeKswapd]);
    });
}

/// Pages that other CPUs keep are drained before the last attempt.
#[test]
fn per_cpu_lists_are_drained() {
    let with_pcp = PagesPolicy { pcp: PagesPolicy::for_release(2, 6, 32).pcp, ..policy(OLD) };
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Pages::<World>::new(with_pcp);
        let mut taken = vec![];
        while let Some(pfn) = alloc(&pages, Gfp::MEMALLOC, 0) {
            taken.push(pfn);
        }
        taken.sort();
        World::steps();
        World::on_reclaim(|_| true);
        // The batch of this machine is 3, so 16 frames stay on CPU 1's lists: two blocks of order 3, if they
        // were in the buddy.
        World::run_on(1);
        taken[..16].iter().for_each(|pfn| pages.free(*pfn));
        assert_eq!(pages.free_frames(NODE), 0);
        World::run_on(0);
        let everything = Gfp::KERNEL | Gfp::NORETRY;
        assert!(alloc(&pages, everything, 3).is_none(), "16 frames are below min");
        assert_eq!(pages.free_frames(NODE), 16);
        assert!(alloc(&pages, Gfp::MEMALLOC, 3).is_some());
        assert_balanced(&pages);
    });
}

/// A reclaimer takes the reserves, and where there are none it fails: it asks for no step that waits.
#[test]
fn a_reclaimer_never_reclaims() {
    for release in [OLD, NEW] {
        World::enter(Spec::uniform(1, 1 << 14), || {
            let pages = Pages::<World>::new(policy(release));
            while alloc(&pages, Gfp::KERNEL, 0).is_some() {}
            World::steps();
            World::set_reclaimer(true);
            let reserved = alloc(&pages, Gfp::KERNEL, 0).expect("the reserves");
            let state = World::with_frame(reserved, |frame| FrameState::unpack(frame.state.load()));
            assert!(state.reserve, "{state:?}");
            while alloc(&pages, Gfp::KERNEL, 0).is_some() {}
            assert_eq!(pages.free_frames(NODE), 0);
            World::steps();
            for gfp in [Gfp::KERNEL, Gfp::KERNEL | Gfp::NOMEMALLOC, Gfp::KERNEL | Gfp::NOFAIL] {
                assert!(alloc(&pages, gfp, 0).is_none(), "{gfp:?}");
                assert_eq!(World::steps(), [WakeKswapd], "{gfp:?}");
            }
            assert_balanced(&pages);
        });
    }
}

/// The request says which zones help it.
#[test]
fn a_request_names_its_zone_class() {
    let zones = Some(ZoneRule::X86);
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Pages::<World>::new(PagesPolicy { zones, ..policy(NEW) });
        while alloc(&pages, Gfp::MEMALLOC, 5).is_some() {}
        World::asked();
        for (gfp, class) in [(Gfp::DMA, 0), (Gfp::DMA32, 1), (Gfp::NONE, 2)] {
            assert!(alloc(&pages, gfp | Gfp::KERNEL, 0).is_none());
            let asked = World::asked();
            assert!(asked.len() >= 3 && asked.iter().all(|ask| ask.class == class), "{gfp:?}: {asked:?}");
        }
    });
}

/// A block that the world hands over is the request's although every free list is empty.
#[test]
fn a_block_can_be_handed_over() {
    for (release, order, step) in [(OLD, 0, Direct), (NEW, 3, Direct), (NEW, 3, Compact), (OLD, 2, Oom)] {
        World::enter(Spec::uniform(1, 1 << 14), || {
            let pages = Pages::<World>::new(policy(release));
            let theirs = alloc(&pages, Gfp::MEMALLOC, order).expect("an empty machine");
            while alloc(&pages, Gfp::MEMALLOC, 0).is_some() {}
            World::on_reclaim(
                move |ask| {
                    if ask.step == step { Reclaimed::page(theirs) } else { Reclaimed::NOTHING }
                },
            );
            let slab = pages.alloc(Gfp::KERNEL, order, NODE, FrameKind::Slab);
            assert_eq!(slab, Some(theirs), "{release:?} {step:?}");
            let mut state = World::with_frame(theirs, |frame| FrameState::unpack(frame.state.load()));
            assert_eq!((state.kind, state.order, state.reserve), (FrameKind::Slab, order, false));
            assert_balanced(&pages);
            state.kind = FrameKind::Allocated;
            World::with_frame(theirs, |frame| frame.state.store(state.pack()));
            // The world wrote to it, so it does not read as zeros.
            let exact = pages.alloc_exact(Gfp::KERNEL, 1 << order, 0, NODE);
            assert_eq!(exact, Some((theirs, false)), "{release:?} {step:?}");
            pages.free_exact(theirs);
            assert_eq!(pages.free_frames(NODE), 1 << order);
            assert_balanced(&pages);
        });
    }
}

/// A block of another order is no answer.
#[test]
#[should_panic(expected = "broken: reclaim handed frame")]
fn a_block_that_does_not_fit_is_refused() {
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Pages::<World>::new(policy(OLD));
        let theirs = alloc(&pages, Gfp::MEMALLOC, 1).expect("an empty machine");
        while alloc(&pages, Gfp::MEMALLOC, 0).is_some() {}
        World::on_reclaim(move |_| Reclaimed::page(theirs));
        alloc(&pages, Gfp::KERNEL, 0);
    });
}

/// A world in which nothing is ever free and every request waits at most twice; the steps that it sees.
#[track_caller]
fn waits(retries: Retries, gfp: Gfp, order: u8, rounds_free: bool, steps: &[ReclaimStep]) {
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Pages::<World>::new(PagesPolicy { retries, ..policy(OLD) });
        while alloc(&pages, Gfp::MEMALLOC, 0).is_some() {}
        World::steps();
        let mut left = 2;
        World::on_reclaim(move |ask| {
            left -= (ask.step == Wait) as usize;
            let progress = if ask.step == Wait { left > 0 } else { ask.step == Direct && rounds_free };
            Reclaimed { freed: 0, progress, page: None }
        });
        assert!(alloc(&pages, gfp, order).is_none());
        assert_eq!(World::steps(), steps, "{retries:?} {gfp:?} {order}");
    });
}

/// 2.6.32 waits for disks before it tries again, a request that may kill nobody too: all up to order 3, but
/// those with NORETRY. After a kill there is no wait, as there is memory.
#[test]
fn requests_of_2_6_wait_before_they_try_again() {
    let no_fs = Gfp::KERNEL.without(Gfp::FS);
    let all = [WakeKswapd, Direct, Wait, Direct, Wait];
    waits(Retries::AsKernel, no_fs, 0, false, &all);
    waits(Retries::AsKernel, no_fs, 3, false, &all);
    waits(Retries::AsKernel, Gfp::KERNEL, 0, true, &all);
    waits(Retries::AsKernel, Gfp::KERNEL, 0, false, &[WakeKswapd, Direct, Oom]);
    waits(Retries::AsKernel, no_fs, 4, true, &[WakeKswapd, Direct]);
    waits(Retries::AsKernel, no_fs | Gfp::NORETRY, 0, true, &[WakeKswapd, Direct]);
    // Where waiting changes nothing there are no waits.
    waits(Retries::Bounded(2), no_fs, 0, false, &[WakeKswapd, Direct]);
    waits(Retries::Bounded(2), no_fs, 0, true, &[WakeKswapd, Direct, Direct]);
}

/// Where waiting costs time the rounds have no bound: a page that comes back late is still found. Requests
/// that are repeated until enough pages were freed count these pages.
#[test]
fn rounds_are_as_the_kernels() {
    let rounds = |release, gfp, order, freed, last: usize| {
        World::enter(Spec::uniform(1, 1 << 14), || {
            let retries = Retries::AsKernel;
            let pages = Rc::new(Pages::<World>::new(PagesPolicy { retries, ..policy(release) }));
            let mut taken = vec![];
            while let Some(pfn) = alloc(&pages, Gfp::MEMALLOC, 5) {
                taken.push(pfn);
            }
            let (world_pages, mut left) = (pages.clone(), last);
            World::on_reclaim(move |ask| {
                left -= (ask.step == Direct) as usize;
                if left == 0 {
                    taken.drain(..).for_each(|pfn| world_pages.free(pfn));
                }
                match ask.step {
                    Direct => Reclaimed::freed(freed),
                    Wait => Reclaimed { progress: true, ..Reclaimed::NOTHING },
                    _ => Reclaimed::NOTHING,
                }
            });
            let served = alloc(&pages, gfp, order).is_some();
            (served, World::steps().iter().filter(|step| **step == Direct).count())
        })
    };
    let mayfail = Gfp::KERNEL | Gfp::RETRY_MAYFAIL;
    for release in [OLD, NEW] {
        assert_eq!(rounds(release, Gfp::KERNEL, 0, 1, 1000), (true, 1000));
        assert_eq!(rounds(release, Gfp::KERNEL | Gfp::NOFAIL, 5, 1, 100), (true, 100));
        assert_eq!(rounds(release, Gfp::KERNEL | Gfp::NORETRY, 0, 1, 2), (false, 1));
        assert_eq!(rounds(release, mayfail, 6, 32, 100), (false, 2));
        assert_eq!(rounds(release, mayfail, 6, 16, 100), (false, 4));
        assert_eq!(rounds(release, mayfail, 6, 1, 100), (false, 16));
    }
}
