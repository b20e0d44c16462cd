//! Random programs against a dumb reference: a set of the frames that are out. Whatever the policy and the
//! topology, blocks are aligned, never overlap, lie where they should, and all come back.
//!
//! A failure prints its seed; a found seed becomes a row here.

use crate::world::{Random, Spec, World, assert_balanced};
use slablab_pages::policy::{Kswapd, PcpRule, Reserve, Steal, ZoneRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{Event, FrameKind, FrameState, Frames, Gfp, NodeId, Pfn, Topology, Word};
use std::collections::BTreeMap;

/// A block that is out.
#[derive(Clone, Copy, Debug)]
struct Block {
    order: u8,
    kind: FrameKind,
}

struct Reference {
    blocks: BTreeMap<u32, Block>,
    frames: u64,
}

impl Reference {
    fn take(&mut self, pfn: Pfn, block: Block, seed: u64) {
        let frames = 1u32 << block.order;
        assert!(pfn.0.is_multiple_of(frames), "seed {seed}: frame {} is no multiple of {frames}", pfn.0);
        let before = self.blocks.range(..pfn.0 + frames).next_back();
        if let Some((other, taken)) = before {
            assert!(
                other + (1 << taken.order) <= pfn.0,
                "seed {seed}: {pfn:?} {block:?} overlaps {other} {taken:?}"
            );
        }
        let node = (0..World::nodes()).map(NodeId).find(|node| {
            let (first, count) = World::node_frames(*node);
            (first.0..first.0 + count).contains(&pfn.0) && pfn.0 + frames <= first.0 + count
        });
        assert!(node.is_some(), "seed {seed}: {pfn:?} {block:?} is in no node");
        self.blocks.insert(pfn.0, block);
        self.frames += frames as u64;
    }

    fn give(&mut self, nth: usize) -> (Pfn, Block) {
        let (pfn, block) = self.blocks.iter().nth(nth).map(|(pfn, block)| (*pfn, *block)).expect("a block");
        self.blocks.remove(&pfn);
        self.frames -= 1 << block.order;
        (Pfn(pfn), block)
    }
}

/// One program: `steps` random requests and frees on random CPUs, then everything back.
fn run(spec: &Spec, policy: PagesPolicy, seed: u64, steps: u32) {
    World::enter(spec.clone(), || {
        let pages = Pages::<World>::new(policy);
        let mut random = Random(seed * 2 + 1);
        let mut reference = Reference { blocks: BTreeMap::new(), frames: 0 };
        let total: u64 = (0..World::nodes()).map(|node| pages.total_frames(NodeId(node))).sum();
        // Programs lean to requests or to frees in turn, so that memory runs out and empties.
        for step in 0..steps {
            World::run_on(random.below(spec.cpus.len() as u64) as u16);
            let leaning = if step / 500 % 2 == 0 { 6 } else { 3 };
            if random.below(9) < leaning || reference.blocks.is_empty() {
                request(&pages, &mut random, &mut reference, seed);
            } else {
                let nth = random.below(reference.blocks.len().min(200) as u64) as usize;
                let (pfn, block) = reference.give(nth);
                assert_found(pfn, block, seed);
                pages.free(pfn);
            }
            if step % 1000 == 0 {
                assert_counts(&pages, &reference, total, seed);
            }
        }
        while !reference.blocks.is_empty() {
            let (pfn, _) = reference.give(0);
            pages.free(pfn);
        }
        assert_counts(&pages, &reference, total, seed);
    });
}

fn request(pages: &Pages<World>, random: &mut Random, reference: &mut Reference, seed: u64) {
    let one_of = |random: &mut Random, flags: &[Gfp]| flags[random.below(flags.len() as u64) as usize];
    let mut gfp =
        one_of(random, &[Gfp::KERNEL, Gfp::ATOMIC, Gfp::NONE, Gfp::KERNEL | Gfp::NORETRY, Gfp::MEMALLOC]);
    gfp = gfp | one_of(random, &[Gfp::NONE, Gfp::NONE, Gfp::MOVABLE, Gfp::RECLAIMABLE]);
    gfp = gfp | one_of(random, &[Gfp::NONE, Gfp::NONE, Gfp::THISNODE, Gfp::DMA32]);
    let order = match random.below(8) {
        0..4 => 0,
        4..7 => random.below(4) as u8,
        _ => random.below(pages.max_order() as u64 + 2) as u8,
    };
    let kind = [FrameKind::Slab, FrameKind::Large, FrameKind::Allocated][random.below(3) as usize];
    let node = NodeId(random.below(World::nodes() as u64) as u16);
    let Some(pfn) = pages.alloc(gfp, order, node, kind) else { return };
    let block = Block { order, kind };
    reference.take(pfn, block, seed);
    assert_found(pfn, block, seed);
    let state = World::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
    let (first, count) = World::node_frames(state.node);
    assert!((first.0..first.0 + count).contains(&pfn.0), "seed {seed}: {pfn:?} says {:?}", state.node);
    assert!(!gfp.has(Gfp::THISNODE) || state.node == node, "seed {seed}: {pfn:?} of {:?}", state.node);
    if gfp.has(Gfp::DMA32) && pages.policy().zones == Some(ZoneRule::X86) {
        assert!((pfn.0 as u64) << 12 < 4 << 30, "seed {seed}: {pfn:?} is above 4 GiB");
    }
}

/// Every frame of a slab or a large block leads to its head.
fn assert_found(pfn: Pfn, block: Block, seed: u64) {
    let last = (1u32 << block.order) - 1;
    for frame in [0, last / 2, last] {
        let address = World::address(pfn, (frame as u64) << World::page_shift());
        let found = Pages::<World>::block_of(address).map(|(head, state)| (head, state.order, state.kind));
        let expected = (block.kind != FrameKind::Allocated).then_some((pfn, block.order, block.kind));
        assert_eq!(found, expected, "seed {seed}: frame {frame} of {pfn:?} {block:?}");
    }
}

fn assert_counts(pages: &Pages<World>, reference: &Reference, total: u64, seed: u64) {
    let censuses = (0..World::nodes()).map(|node| pages.census(NodeId(node)));
    let (mut all, mut out) = (0, 0);
    for census in censuses {
        all += census.total();
        out += census.allocated + census.slab + census.large;
    }
    assert_eq!((all, out), (total, reference.frames), "seed {seed}");
    assert_balanced(pages);
}

/// Every era and several what-ifs on one topology.
#[track_caller]
fn check(spec: &Spec, steps: u32) {
    let releases = [(2, 6, 29), (2, 6, 38), (4, 4, 0), (5, 10, 0), (6, 12, 0)];
    let mut policies: Vec<PagesPolicy> =
        releases.iter().map(|(a, b, c)| PagesPolicy::for_release(*a, *b, *c)).collect();
    let modern = policies[4];
    policies.extend([
        PagesPolicy { zones: Some(ZoneRule::X86), ..modern },
        PagesPolicy { pcp: PcpRule::NONE, merge_to_tail: false, steal: Steal::Largest, ..modern },
        PagesPolicy { max_order: Some(4), pageblock_order: Some(3), reserve: Reserve::LastResort, ..modern },
        PagesPolicy { lowmem_reserve_ratio: 0, kswapd: Kswapd::Never, reserve: Reserve::None, ..modern },
        PagesPolicy::for_release(2, 4, 9),
        PagesPolicy::for_release(2, 4, 10),
    ]);
    for (n, policy) in policies.into_iter().enumerate() {
        run(spec, policy, n as u64 + 1, steps);
    }
}

#[test]
fn one_node() {
    check(&Spec::uniform(1, 6000), 6000);
}

#[test]
fn four_nodes() {
    check(&Spec::uniform(4, 3 * 1024 + 77), 6000);
}

#[test]
fn two_of_eight_nodes_with_memory() {
    let mut spec = Spec::uniform(8, 0);
    (spec.nodes[1], spec.nodes[6]) = (4096, 5000);
    check(&spec, 4000);
}

#[test]
fn pages_of_64_kib() {
    check(&Spec { page_shift: 16, ..Spec::uniform(2, 2000) }, 4000);
}

#[test]
fn pages_of_16_kib() {
    check(&Spec { page_shift: 14, ..Spec::uniform(2, 6000) }, 4000);
}

#[test]
fn slots_that_refuse() {
    check(&Spec { refuse_every: 3, ..Spec::uniform(2, 5000) }, 4000);
}

/// Memory across 16 MiB and 4 GiB: three zones on one node.
#[test]
fn zones_below_and_above_4_gib() {
    check(&Spec { first: 0, ..Spec::uniform(1, (1 << 20) + 5000) }, 3000);
}

/// A machine of 1 TiB, 64 nodes and 1,024 CPUs has descriptors for what it used.
#[test]
fn one_tebibyte() {
    let spec = Spec { cpus: (0..1024).map(|cpu| cpu / 16).collect(), ..Spec::uniform(64, 1 << 22) };
    run(&spec, PagesPolicy::for_release(6, 12, 0), 1, 3000);
    World::enter(spec, || {
        let pages = Pages::<World>::new(PagesPolicy::for_release(6, 12, 0));
        let free: u64 = (0..64).map(|node| pages.free_frames(NodeId(node))).sum();
        assert_eq!((free, World::frames_touched()), (1 << 28, 0));
        for cpu in 0..1024 {
            World::run_on(cpu);
            let pfn = pages.alloc(Gfp::KERNEL, 0, World::cpu_node(World::cpu()), FrameKind::Slab);
            assert!(pfn.is_some());
        }
        assert_eq!(World::counted(Event::PcpRefill), 1024);
        assert!(World::frames_touched() < 100_000, "{} descriptors", World::frames_touched());
        assert_balanced(&pages);
    });
}
