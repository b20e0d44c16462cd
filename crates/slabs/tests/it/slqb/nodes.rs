//! Requests by node, nodes without memory, and exhausted memory (docs/theory/slqb.md 4.2, 8).

use super::*;
use slablab_platform::{Frames, Topology};

#[test]
fn requests_by_node() {
    let both = &[JANUARY, SEPTEMBER];
    check(&Case::new(
        "another node's list, one object per request, under list_lock",
        two_nodes(),
        both,
        &[AllocOn(0, 1, 128)],
        &[
            Counted(Event::SlqbAllocSlabNew, 2),
            Counted(Event::SlqbAllocSlabFill, 126),
            Counted(Event::AllocFastpath, 0),
            // The first request finds that the node's list was never used, and takes no lock for it.
            Counted(Event::LockNodeList, 127 + 2),
            Live(128),
        ],
    ));
    check(&Case::new(
        "objects freed on node 1 are local; freed on node 0 they return to node 1's list",
        two_nodes(),
        both,
        &[AllocOn(0, 1, 512), Free(2, 256), Free(0, 256), AllocOn(0, 1, 1)],
        &[
            Counted(Event::FreeFastpath, 256),
            Counted(Event::SlqbFreeRemote, 256),
            Counted(Event::SlqbClaimRemoteListObjects, 256),
            Parked(511, 511),
        ],
    ));
    check(&Case::new(
        "a request for the CPU's own node uses the CPU's list",
        two_nodes(),
        both,
        &[AllocOn(0, 0, 100), Free(0, 100), AllocOn(0, 0, 100)],
        &[Counted(Event::AllocFastpath, 100), Counted(Event::LockNodeList, 0)],
    ));
}

#[test]
fn memoryless_cpus_follow_the_policy() {
    // 1,000 objects are live, 20,000 come and go. Section 8: in September the pages are about live objects +
    // hiwater / 2 + one incomplete batch.
    let churn = &[Alloc(0, 1000), Churn(0, 20_000)];
    let case =
        |name, presets, steps, expected| check(&Case::new(name, memoryless(), presets, steps, expected));
    case(
        "September as it was asked: a page per allocation; what is handed back is bounded",
        &["slqb@2009-09,memoryless=as-asked"],
        churn,
        &[
            Counted(Event::SlqbAllocSlabNew, 21_000),
            Counted(Event::AllocFastpath, 0),
            Pages(1000 + 512, 1000 + 512 + 256 + 255),
            Live(1000),
        ],
    );
    case(
        "January: nearly every object ever freed pins its page",
        &[JANUARY],
        churn,
        &[Counted(Event::SlqbAllocSlabNew, 21_000), Pages(21_000, 21_000), Parked(20_000, 20_000)],
    );
    case(
        "the late file searches other nodes' lists first, under list_lock",
        &[SEPTEMBER],
        churn,
        &[Counted(Event::AllocFastpath, 0), Pages(16, 16 + 8), Parked(0, 512)],
    );
    case(
        "its frees count as local, so the queue serves allocations",
        &["slqb@2009-09,memoryless=free-as-local"],
        churn,
        // The thousand pages of the first allocations are still there, and their objects circulate.
        &[Counted(Event::SlqbAllocSlabNew, 1001), Counted(Event::AllocFastpath, 19_999), Pages(1001, 1001)],
    );
    case(
        "the nearest node with memory counts as its own",
        &["slqb@2009-09,memoryless=nearest", "slqb@2009-01,memoryless=nearest"],
        churn,
        &[
            Counted(Event::SlqbAllocSlabNew, 16),
            Counted(Event::AllocFastpath, 19_999),
            Counted(Event::LockNodeList, 0),
            Pages(16, 16),
        ],
    );
    case(
        "a request for the node without memory uses the nearest node, and does not leak",
        &[SEPTEMBER, "slqb@2009-01,memoryless=nearest"],
        &[AllocOn(2, 0, 1000)],
        &[Counted(Event::SlqbAllocSlabNew, 16)],
    );
}

#[test]
fn thisnode_requests_use_no_other_node() {
    Machine::new(memoryless()).expect("the spec is right").enter(|| {
        let heap = Heap::new(SEPTEMBER, &CacheSpec::of_size(64));
        let on = |cpu, node| {
            Model::run_on(CpuId(cpu));
            heap.cache.alloc(&heap.backing(), Gfp::KERNEL | Gfp::THISNODE, Some(NodeId(node)))
        };
        assert!(on(0, 0).is_none(), "node 0 has no memory");
        assert!(on(2, 0).is_none(), "node 0 has no memory");
        let object = on(0, 1).expect("node 1 has memory");
        assert!(on(2, 0).is_none() && on(0, 0).is_none(), "THISNODE must not use other nodes' lists");
        assert_eq!(heap.cache.destroy(&heap.backing()), Err(Busy { live_objects: 1 }));
        heap.cache.free(&heap.backing(), object).expect("the object is the cache's");
        heap.end();
    });
}

#[test]
fn exhausted_memory_is_none_until_other_lists_have_some() {
    let spec = MachineSpec { nodes: vec![NodeSpec { bytes: 4 * MIB }; 2], ..two_nodes() };
    Machine::new(spec).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(SEPTEMBER, &CacheSpec::of_size(4096));
        Model::run_on(CpuId(0));
        while let Some(object) = heap.cache.alloc(&heap.backing(), Gfp::KERNEL, None) {
            heap.held.push_back(object);
        }
        let total = heap.held.len();
        assert!(total > 1000, "only {total} pages were got");
        // Pages of node 1 belong to the node's list. 64 objects freed here return to that list, where the
        // zonelist search finds them.
        let node = |object| {
            Model::with_frame(Model::locate(object).0, |_| {
                Model::locate(object).0 >= Model::node_frames(NodeId(1)).0
            })
        };
        let (far, near): (VecDeque<_>, VecDeque<_>) = heap.held.drain(..).partition(|object| node(*object));
        heap.held = far;
        heap.step(Free(0, 64));
        heap.held.extend(near);
        assert_eq!(heap.cache.counted(Event::SlqbFlushRfreeList), 1);
        heap.step(Alloc(0, 64));
        assert_eq!(heap.held.len(), total);
        heap.end();
    });
}

#[test]
fn usage_counts_objects_on_the_node_of_their_memory() {
    let table: &[(&str, u64, u64)] = &[
        // In the queue of a CPU on another node; on a remote list; in `remote_free`.
        ("slqb@2009-09,memoryless=free-as-local", 100, 0),
        ("slqb@2009-09,memoryless=remote-first", 100, 1),
        ("slqb@2009-09,memoryless=nearest", 100, 0),
    ];
    for (preset, parked, flushes) in table {
        Machine::new(memoryless()).expect("the spec is right").enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(4096));
            heap.step(Alloc(0, 100));
            heap.step(Free(0, 100));
            let usage = [heap.cache.usage_on(NodeId(0)), heap.cache.usage_on(NodeId(1))];
            assert_eq!(usage[0], Usage::default(), "{preset}: node 0 has no memory");
            assert_eq!((usage[1].slabs, usage[1].parked), (100, *parked), "{preset}");
            assert_eq!(heap.cache.counted(Event::SlqbFlushRfreeList), *flushes, "{preset}");
            heap.end();
        });
    }
}
