//! Sheaves and the layers below them: CPU slabs, CPU partial lists, node lists, refills.

use super::*;

/// 6.18 has CPU slabs below its sheaves; 7.0 does not. Double caching saves locks: the rest of a slab stays
/// in the CPU slab and is not put on the node's list. It costs more parked objects.
#[test]
fn cpu_slabs_below_sheaves_save_list_locks() {
    // 42 objects per slab, 32 per sheaf.
    let spec = CacheSpec { sheaf_capacity: 32, ..CacheSpec::of_size(96) };
    let case = |name, preset, steps, expected| {
        check(&Case { name, machine: one_node, presets: preset, spec, steps, expected });
    };
    case("behind", &["slub@6.18,max_order=0"], &[Alloc(0, 8)], &[CpuSlabs(1), Parked(24 + 10)]);
    case(
        "no CPU slab below the sheaves",
        &["slub@6.18,max_order=0,cpu_slab=no"],
        &[Alloc(0, 8)],
        &[CpuSlabs(0), Parked(24)],
    );
    let refills = &[Mark, Alloc(0, 320)];
    case(
        "locks",
        &["slub@6.18,max_order=0"],
        refills,
        &[Counted(SheafRefill, 320), Counted(LockNodeList, 0)],
    );
    // Ten refills: nine of them take the rest of a slab off the list, and eight list the rest of a new slab.
    let expected = &[Counted(SheafRefill, 320), Counted(LockNodeList, 17)];
    case("locks without", &["slub@6.18,max_order=0,cpu_slab=no"], refills, expected);
}

/// A refill takes as many slabs off a list as have the objects it wants, under one lock. 15 slabs of 64
/// objects, of which a CPU of another node frees one in `n`; a sheaf has 60.
#[test]
fn a_refill_detaches_the_slabs_that_it_needs() {
    const EVENTS: [Event; 4] = [DetachOne, DetachTwo, DetachThree, DetachMore];
    let case = |steps, counts: [u64; 4]| {
        let presets = &["slub@7.0,max_order=0", "slub@7.3,max_order=0"];
        let expected: [Expected; 4] = std::array::from_fn(|nth| Counted(EVENTS[nth], counts[nth]));
        check(&Case {
            name: "detached",
            machine: two_nodes,
            presets,
            spec: SMALL,
            steps,
            expected: &expected,
        });
    };
    macro_rules! one_in {
        ($n:expr) => {
            &[Alloc(0, 960), FreeEvery(2, $n), Mark, Alloc(0, 1)]
        };
    }
    case(&[Alloc(0, 1)], [0, 0, 0, 0]);
    case(one_in!(1), [1, 0, 0, 0]);
    case(one_in!(2), [0, 1, 0, 0]);
    case(one_in!(3), [0, 0, 1, 0]);
    case(one_in!(5), [0, 0, 0, 1]);
}

/// Each free on another CPU finds a full slab. Without CPU partial lists each takes `list_lock`; with them
/// none does until the list overflows.
#[test]
fn cpu_partial_lists_save_list_locks() {
    // 16 objects of 256 bytes per slab. The first object of each slab is freed.
    let run = |preset: &str| {
        let mut machine = Machine::new(one_node()).expect("the spec is right");
        machine.enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(256));
            heap.step(Alloc(0, 16 * 64 + 1));
            heap.step(Mark);
            heap.step(FreeEvery(1, 16));
            let since = |event: Event| heap.cache.counted(event) - heap.own.zero[event as usize];
            let found = (since(LockNodeList), since(CpuPartialDrain), since(FreeSlowpath));
            heap.end();
            found
        })
    };
    assert_eq!(run("slub@6.1,max_order=0,cpu_partial=0"), (64, 0, 64), "a lock per free");
    // The list's limit is 7 slabs: 2 * 52 / 16. Every seventh free moves seven slabs under one lock.
    assert_eq!(run("slub@6.1,max_order=0"), (9, 9, 64), "a lock per drain");
    assert_eq!(run("slub@2.6.32,max_order=0"), (64, 0, 64), "before there were CPU partial lists");
    // Until 5.15 the limit counts objects: five slabs with one free object each.
    assert_eq!(run("slub@3.2,max_order=0,cpu_partial=5"), (12, 12, 64), "a list of objects");
    // Without CPU slabs the objects go into the sheaf of the CPU that frees them.
    assert_eq!(run("slub@7.0,max_order=0"), (0, 0, 0), "a sheaf takes them");
}

/// Without CPU slabs, a free takes `list_lock` only for a slab that was full or becomes empty, and no slab is
/// ever frozen.
#[test]
fn without_cpu_slabs_only_full_or_emptied_slabs_take_list_lock() {
    let case = |name, steps, expected| {
        let presets = &["slub@7.0,max_order=0,sheaves=off"];
        check(&Case { name, machine: one_node, presets, spec: CacheSpec::of_size(256), steps, expected });
    };
    // 16 objects per slab.
    case(
        "frees into a full slab",
        &[Alloc(0, 16), Mark, Free(1, 1)],
        &[Counted(LockNodeList, 1), Counted(FreeAddPartial, 1)],
    );
    case(
        "frees into a partial slab",
        &[Alloc(0, 16), Free(1, 1), Mark, Free(1, 14)],
        &[Counted(LockNodeList, 0)],
    );
    case(
        "frees one at a time",
        &[Alloc(0, 1), Mark, Alloc(0, 15)],
        &[Counted(LockNodeList, 15), Counted(AllocSlab, 0)],
    );
    // `min_partial` is 5, including the slab that becomes empty: four stay, the others are returned.
    let expected = &[Counted(FreeSlab, 4), Counted(FreeRemovePartial, 4), Counted(FreeFrozen, 0)];
    case("the slab becomes empty", &[Alloc(0, 16 * 8), Mark, Free(0, 16 * 8)], expected);
}

#[test]
fn the_refill_policy_decides_which_callers_refill() {
    let spec = CacheSpec { sheaf_capacity: 32, ..SMALL };
    let case = |presets, steps, expected| {
        check(&Case { name: "refill", machine: one_node, presets, spec, steps, expected });
    };
    let none = &[Counted(SheafRefill, 0), Counted(BarnGetFail, 1), Counted(AllocFastpath, 0)];
    case(&["slub@6.18", "slub@7.0,refill=may-block"], &[AllocAtomic(0, 1)], none);
    case(&["slub@6.18"], &[Alloc(0, 1)], &[Counted(SheafRefill, 32), Counted(AllocFastpath, 1)]);
    case(BOTH, &[AllocAtomic(0, 1)], &[Counted(SheafRefill, 60), Counted(AllocFastpath, 1)]);
}

/// A miss takes slabs of other nodes only while those have more than `min_partial`: two of seven slabs with a
/// free object.
#[test]
fn a_miss_takes_from_other_nodes_above_min_partial() {
    let case = |preset, slabs_made| {
        check(&Case {
            name: "two objects in a slab",
            machine: two_nodes,
            presets: preset,
            spec: CacheSpec::of_size(2048),
            steps: &[Alloc(2, 14), FreeEvery(2, 2), Mark, Alloc(0, 10)],
            expected: slabs_made,
        });
    };
    case(&["slub@7.0,max_order=0,sheaves=off,defrag_ratio=1024"], &[Counted(AllocSlab, 4)]);
    case(&["slub@7.0,max_order=0,sheaves=off,defrag_ratio=0"], &[Counted(AllocSlab, 5)]);
}

/// A refill takes the free objects of another node's slabs, or makes slabs of its own. One CPU runs at a time
/// here, so waiting for a lock and trying it are the same.
#[test]
fn the_remote_refill_policy_decides_whether_other_nodes_slabs_are_used() {
    let case = |preset, made| {
        check(&Case {
            name: "remote refill",
            machine: two_nodes,
            presets: preset,
            spec: CacheSpec::of_size(2048),
            steps: &[Alloc(2, 14), FreeEvery(0, 2), Mark, Alloc(0, 10)],
            expected: made,
        });
    };
    // Twelve objects for the sheaf, in slabs of two: seven of them from the other node, or none.
    case(&["slub@7.0,max_order=0,defrag_ratio=1024"], &[Counted(AllocSlab, 3)]);
    case(&["slub@7.0,max_order=0,defrag_ratio=1024,remote_refill=wait"], &[Counted(AllocSlab, 3)]);
    case(&["slub@7.0,max_order=0,defrag_ratio=1024,remote_refill=off"], &[Counted(AllocSlab, 6)]);
}

/// The objects of a sheaf that no CPU uses leave it together, those of a main sheaf in batches of 32
/// (docs/theory/sheaves.md 4).
#[test]
fn a_main_sheaf_is_flushed_in_batches() {
    check(&Case {
        name: "an oversize sheaf of 64 objects of a slab",
        machine: one_node,
        presets: &["slub@7.0,max_order=0,update=bit-lock"],
        spec: SMALL,
        steps: &[Lend(0, 64), Mark, Return(0)],
        expected: &[Counted(SheafFlush, 64), Counted(LockSlab, 1)],
    });
    check(&Case {
        name: "a main sheaf of 59 objects of a slab",
        machine: one_node,
        presets: &["slub@7.0,max_order=0,update=bit-lock"],
        spec: SMALL,
        steps: &[Alloc(0, 1), Mark, Shrink(Idle::All)],
        expected: &[Counted(SheafFlush, 59), Counted(LockSlab, 2)],
    });
}

/// A miss adds slabs to the CPU's partial list until that has more than half of its limit, counted in objects
/// or in slabs.
#[test]
fn a_miss_fills_the_cpu_partial_list_to_half() {
    check(&Case {
        name: "eight slabs with an object free each are on the node's list",
        machine: one_node,
        presets: &["slub@3.2,max_order=0,cpu_partial=4", "slub@6.1,max_order=0,cpu_partial=4"],
        spec: CacheSpec::of_size(2048),
        steps: &[Alloc(0, 20), FreeEvery(0, 2), Mark, Alloc(1, 1)],
        expected: &[Counted(AllocFromPartial, 1), Counted(CpuPartialNode, 3)],
    });
}
