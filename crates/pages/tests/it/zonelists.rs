//! Which node serves a request.

use crate::world::{Spec, World, assert_balanced};
use slablab_pages::policy::{Gap, MinFree, PcpRule, ZoneReclaim};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{FrameKind, Frames, Gfp, NodeId, Pfn, ReclaimStep, Reclaimed};
use std::rc::Rc;

/// The nodes that serve requests for `local`, in order, until all memory is gone.
fn order_of_nodes(spec: &Spec, gfp: Gfp, local: u16) -> Vec<u16> {
    let policy = PagesPolicy {
        pcp: PcpRule::NONE,
        min_free: MinFree::Kib(0),
        gap: Gap::Quarter,
        no_fragment: false,
        ..PagesPolicy::for_release(6, 1, 0)
    };
    World::enter(spec.clone(), || {
        let pages = Pages::<World>::new(policy);
        let mut nodes: Vec<u16> = vec![];
        while let Some(pfn) = pages.alloc(gfp | Gfp::MEMALLOC, 9, NodeId(local), FrameKind::Slab) {
            let (_, state) = Pages::<World>::block_of(World::address(pfn, 0)).expect("a slab");
            if nodes.last() != Some(&state.node.0) {
                nodes.push(state.node.0);
            }
        }
        assert_balanced(&pages);
        nodes
    })
}

#[track_caller]
fn check(spec: &Spec, gfp: Gfp, expected: &[(u16, &[u16])]) {
    for (local, nodes) in expected {
        assert_eq!(order_of_nodes(spec, gfp, *local), *nodes, "requests for node {local}");
    }
}

const FRAMES: u32 = 2048;

#[test]
fn equally_distant_nodes_follow_in_turn() {
    let spec = Spec::uniform(4, FRAMES);
    check(
        &spec,
        Gfp::NONE,
        &[(0, &[0, 1, 2, 3]), (1, &[1, 2, 3, 0]), (2, &[2, 3, 0, 1]), (3, &[3, 0, 1, 2])],
    );
}

#[test]
fn nearer_nodes_come_first() {
    // A ring of four: neighbours at 16, the opposite node at 22.
    let distance =
        vec![vec![10, 16, 22, 16], vec![16, 10, 16, 22], vec![22, 16, 10, 16], vec![16, 22, 16, 10]];
    let spec = Spec { distance, ..Spec::uniform(4, FRAMES) };
    check(
        &spec,
        Gfp::NONE,
        &[(0, &[0, 1, 3, 2]), (1, &[1, 2, 0, 3]), (2, &[2, 3, 1, 0]), (3, &[3, 0, 2, 1])],
    );
}

/// Two nodes whose memory is equally near to 0 and 1: each list favours one of them, in turn. Load decides
/// between nodes of equal distance on one side only.
#[test]
fn load_spreads_the_first_choice() {
    let distance =
        vec![vec![10, 40, 20, 20], vec![40, 10, 20, 20], vec![20, 20, 10, 40], vec![20, 20, 40, 10]];
    let spec = Spec { distance, ..Spec::uniform(4, FRAMES) };
    check(
        &spec,
        Gfp::NONE,
        &[(0, &[0, 2, 3, 1]), (1, &[1, 3, 2, 0]), (2, &[2, 0, 1, 3]), (3, &[3, 1, 0, 2])],
    );
}

#[test]
fn nodes_without_cpus_are_preferred() {
    let spec = Spec { cpus: vec![0, 1, 3], ..Spec::uniform(4, FRAMES) };
    check(&spec, Gfp::NONE, &[(0, &[0, 2, 1, 3]), (1, &[1, 2, 3, 0])]);
}

/// Two of eight nodes have memory: requests for the others go to the nearest, and nowhere with THISNODE.
#[test]
fn nodes_without_memory() {
    let mut spec = Spec::uniform(8, 0);
    (spec.nodes[2], spec.nodes[5]) = (FRAMES, FRAMES);
    // Node 0's list favours 2, so node 1's favours 5. By node 7, more lists favour 5.
    check(&spec, Gfp::NONE, &[(0, &[2, 5]), (1, &[5, 2]), (2, &[2, 5]), (3, &[5, 2]), (7, &[2, 5])]);
    check(&spec, Gfp::THISNODE, &[(0, &[]), (2, &[2]), (7, &[])]);
    spec.distance = (0..8u32).map(|a| (0..8).map(|b: u32| 10 + 5 * a.abs_diff(b)).collect()).collect();
    check(&spec, Gfp::NONE, &[(0, &[2, 5]), (3, &[2, 5]), (4, &[5, 2]), (7, &[5, 2])]);
}

#[test]
fn this_node_or_nothing() {
    check(&Spec::uniform(4, FRAMES), Gfp::THISNODE, &[(0, &[0]), (3, &[3])]);
}

/// `zone_reclaim_mode`: a near zone below low is reclaimed before a farther node serves, if nodes are far
/// enough from each other. The far zone is not reclaimed, as it has CPUs of its own.
#[test]
fn near_zones_are_reclaimed_first() {
    let policy =
        |zone_reclaim| PagesPolicy { zone_reclaim, pcp: PcpRule::NONE, ..PagesPolicy::for_release(2, 6, 32) };
    let near = NodeId(0);
    // Distance of the nodes, the rule, flags, whether the world frees pages; then the requests for local
    // reclaim, and whether the near node serves.
    for (distance, rule, gfp, frees, asked, home) in [
        (21, ZoneReclaim::Above(20), Gfp::KERNEL, true, 1, true),
        (20, ZoneReclaim::Above(20), Gfp::KERNEL, true, 0, false),
        (20, ZoneReclaim::On, Gfp::KERNEL, true, 1, true),
        (21, ZoneReclaim::Off, Gfp::KERNEL, true, 0, false),
        (21, ZoneReclaim::On, Gfp::KERNEL, false, 1, false),
        (21, ZoneReclaim::On, Gfp::ATOMIC, true, 0, false),
    ] {
        let spec =
            Spec { distance: vec![vec![10, distance], vec![distance, 10]], ..Spec::uniform(2, 1 << 14) };
        World::enter(spec, || {
            let pages = Rc::new(Pages::<World>::new(policy(rule)));
            let all = std::iter::from_fn(|| {
                pages.alloc(Gfp::MEMALLOC | Gfp::THISNODE, 5, near, FrameKind::Allocated)
            });
            let mut taken: Vec<Pfn> = all.collect();
            World::asked();
            let world_pages = pages.clone();
            World::on_reclaim(move |ask| {
                let freed: Vec<Pfn> = if frees { taken.drain(..64).collect() } else { vec![] };
                freed.iter().for_each(|pfn| world_pages.free(*pfn));
                assert_eq!((ask.step, ask.node, ask.zone), (ReclaimStep::Zone, near, 0));
                Reclaimed::freed(freed.len() as u32 * 32)
            });
            let pfn = pages.alloc(gfp, 0, near, FrameKind::Allocated).expect("the far node has memory");
            let served = World::with_frame(pfn, |frame| frame.node());
            let what = format!("{distance} {rule:?} {gfp:?} {frees}");
            assert_eq!((World::asked().len(), served == near), (asked, home), "{what}");
            // A CPU of the far node does not reclaim the near one.
            World::run_on(3);
            pages.alloc(gfp | Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN, 5, near, FrameKind::Slab);
            assert_eq!(World::asked(), [], "{what}");
        });
    }
}

/// Local reclaim by release (docs/theory/pagealloc.md 6).
#[test]
fn zone_reclaim_by_release() {
    for (release, expected) in [
        ((2, 4, 9), ZoneReclaim::Off),
        ((2, 6, 32), ZoneReclaim::Above(20)),
        ((3, 2, 0), ZoneReclaim::Above(30)),
        ((3, 16, 0), ZoneReclaim::Off),
        ((6, 18, 0), ZoneReclaim::Off),
    ] {
        let (major, minor, patch) = release;
        assert_eq!(PagesPolicy::for_release(major, minor, patch).zone_reclaim, expected, "{release:?}");
    }
}
