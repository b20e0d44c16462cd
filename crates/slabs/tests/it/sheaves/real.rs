//! Rules that the counters of the code of Linux 7.2 showed (docs/fidelity.md).

use super::*;

/// CPU 0 on a node with memory, CPU 1 on one without.
fn one_of_two_has_memory() -> MachineSpec {
    let mib = |bytes| NodeSpec { bytes: bytes * MIB };
    MachineSpec {
        cpu_node: vec![0, 1],
        nodes: vec![mib(256), mib(0)],
        memoryless_nodes: false,
        ..MachineSpec::uniform(2, 2, 256 * MIB)
    }
}

#[test]
fn barns_that_have_nothing_are_not_locked() {
    check(&Case {
        name: "the first allocation",
        machine: one_node,
        presets: &["slub@7.1"],
        spec: SMALL,
        steps: &[Alloc(0, 1)],
        expected: &[Counted(BarnGetFail, 1), Counted(LockBarn, 0)],
    });
}

/// A shrink gives back the spare and what is in the barn, under one lock of the barn; the main sheaf stays.
#[test]
fn a_shrink_keeps_the_main_sheaf() {
    check(&Case {
        name: "a full main sheaf, and a full spare",
        machine: one_node,
        presets: &["slub@7.1"],
        spec: SMALL,
        steps: &[Alloc(0, 120), Free(0, 120), Mark, Shrink(Idle::All)],
        expected: &[Counted(SheafFlush, 120), Counted(SheafFree, 1), Counted(LockBarn, 1), Parked(0)],
    });
}

#[test]
fn each_cpu_gets_its_main_sheaf_when_the_cache_is_made() {
    for (preset, sheaves) in [("slub@7.1", 2), ("slub@7.1,elastic=4", 0), ("slub@7.1,sheaves=off", 0)] {
        Machine::new(one_of_two_has_memory()).expect("the spec is right").enter(|| {
            let heap = Heap::new(preset, &SMALL);
            (0..2).for_each(|cpu| heap.up(cpu));
            assert_eq!(heap.cache.counted(SheafAlloc), sheaves, "{preset}");
            heap.end();
        });
    }
}

#[test]
fn a_request_for_a_node_without_memory() {
    check(&Case {
        name: "the sheaf's next object is of another node",
        machine: one_of_two_has_memory,
        presets: &["slub@7.1"],
        spec: SMALL,
        steps: &[AllocOn(1, 1, 1)],
        expected: &[Counted(AllocNodeMismatch, 1), Counted(AllocSlowpath, 1), Counted(AllocFastpath, 0)],
    });
    let slabs = |presets: &'static [&'static str], made: u64| {
        check(&Case {
            name: "two slabs with a free object are on the other node's list",
            machine: one_of_two_has_memory,
            presets,
            spec: CacheSpec::of_size(1024),
            steps: &[Alloc(0, 8), FreeEvery(0, 4), Mark, AllocOn(0, 1, 1)],
            expected: &[Counted(AllocSlab, made)],
        });
    };
    slabs(&["slub@7.1,sheaves=off,max_order=0,min_partial=0"], 0);
    slabs(&["slub@7.1,sheaves=off,max_order=0,min_partial=2"], 1);
    slabs(&["slub@7.1,sheaves=off,max_order=0,min_partial=0,memoryless=as-asked"], 1);
    slabs(&["slub@7.1,sheaves=off,max_order=0,min_partial=2,memoryless=anywhere"], 0);
}
