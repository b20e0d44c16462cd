//! Decisions of engines in small situations: a table of each rule that no other test depends on.

use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_pages::Pages;
use slablab_platform::{Gfp, NodeId};
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Preset};

fn slub(text: &str) -> SlubPolicy {
    match Preset::parse(text) {
        Ok(Preset::Slub(policy)) => policy,
        other => panic!("{text}: {other:?}"),
    }
}

/// Node 0 has the only CPU and no memory. The nearest node is neither the first nor the last.
fn memoryless(near: [u32; 4]) -> MachineSpec {
    let bytes = |node| if node == 0 { 0 } else { 64 << 20 };
    let row = |from: usize| (0..4).map(|to| if from == to { 10 } else { near[from.max(to)] }).collect();
    MachineSpec {
        cpu_node: vec![0],
        nodes: (0..4).map(|node| NodeSpec { bytes: bytes(node) }).collect(),
        distance: (0..4).map(row).collect(),
        memoryless_nodes: true,
        ..MachineSpec::uniform(1, 4, 64 << 20)
    }
}

/// The node of an object that a request for node 0 gets.
fn served_by(preset: &str, near: [u32; 4]) -> u16 {
    Machine::new(memoryless(near)).expect("the spec is right").enter(|| {
        let policy = slub(preset);
        let pages = Pages::<Model>::new(Preset::Slub(policy).pages());
        let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(256), &policy);
        let object = cache.alloc(&Backing::pages(&pages), Gfp::KERNEL, Some(NodeId(0)));
        let (_, state) = Pages::<Model>::block_of(object.expect("memory is left")).expect("a slab");
        state.node.0
    })
}

/// docs/theory/slub.md 10: `numa_mem_id()` of the node that was asked for.
#[test]
fn a_request_for_a_node_without_memory_is_served_by_the_nearest() {
    for (near, node) in [([10, 40, 20, 30], 2), ([10, 20, 40, 30], 1), ([10, 40, 30, 20], 3)] {
        assert_eq!(served_by("slub@6.1,memoryless=nearest", near), node, "distances {near:?}");
    }
}
