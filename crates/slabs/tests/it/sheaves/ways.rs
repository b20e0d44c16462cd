//! Paths into and out of sheaves: nodes, RCU frees, lent sheaves, bulk calls, and the sheaves' own memory.

use super::*;
use slablab_platform::Frames;

/// Sheaves serve requests for the CPU's own node only.
#[test]
fn sheaves_serve_the_own_node_only() {
    let case = |name, steps, expected| {
        check(&Case { name, machine: two_nodes, presets: BOTH, spec: SMALL, steps, expected });
    };
    let own = &[Counted(AllocFastpath, 5), Counted(AllocNodeMismatch, 0)];
    case("a request for the own node", &[AllocOn(0, 0, 5)], own);
    let bypassed = &[Counted(AllocSlowpath, 5), Counted(AllocNodeMismatch, 5), Counted(SheafRefill, 0)];
    case("a request for another node", &[AllocOn(0, 1, 5)], bypassed);
    let slow = &[Counted(FreeSlowpath, 5), Counted(FreeFastpath, 0)];
    case("a remote free", &[Alloc(0, 5), Mark, Free(2, 5)], slow);
    case("many at once", &[Alloc(0, 100), Mark, FreeBulk(2, 100)], &[Counted(FreeSlowpath, 100)]);
}

/// The order in which a bulk free puts the CPU's own objects into its sheaf, when objects of another node are
/// among them. Of six objects those of CPU 2, 1 and 4, are of the other node; `Same` is what CPU 0 gets next.
#[test]
fn a_bulk_free_parts_objects_of_other_nodes() {
    let case = |presets, steps| {
        check(&Case { name: "bulk", machine: two_nodes, presets, spec: SMALL, steps, expected: &[] });
    };
    let own = &[Alloc(0, 3), FreeBulk(0, 3), Same(0, 2), Same(0, 1), Same(0, 0)];
    case(&["slub@7.2", "slub@7.3"], own);
    macro_rules! mixed {
        ($($next:expr),*) => {
            &[Alloc(0, 1), Alloc(2, 1), Alloc(0, 2), Alloc(2, 1), Alloc(0, 1), FreeBulk(0, 6), $(Same(0, $next)),*]
        };
    }
    case(&["slub@7.0", "slub@7.2", "slub@7.3,bulk_strangers=batched"], mixed!(3, 2, 5, 0));
    case(&["slub@7.3", "slub@7.2,bulk_strangers=swapped"], mixed!(5, 0, 3, 2));
}

/// With CONFIG_HAVE_MEMORYLESS_NODES, CPUs of a node without memory share the nearest node's barn in 7.0. In
/// 7.1 such a node has a barn of its own, and its sheaves accept objects of the nearest node with memory.
#[test]
fn memoryless_nodes_have_barns_by_release() {
    let case = |presets, steps, expected| {
        check(&Case { name: "with", machine: memoryless, presets, spec: SMALL, steps, expected });
    };
    // Three sheaves of objects; one of them goes to a barn.
    let steps = &[Alloc(2, 180), Free(0, 180), Mark, Alloc(2, 1)];
    case(&["slub@7.0"], steps, &[Counted(BarnGet, 1), Counted(SheafRefill, 0)]);
    case(&["slub@7.1"], steps, &[Counted(BarnGet, 0), Counted(SheafRefill, 60)]);
    let steps = &[Alloc(2, 180), Free(0, 180), Mark, Alloc(1, 1)];
    case(BOTH, steps, &[Counted(BarnGet, 1), Counted(SheafRefill, 0)]);
    // Node 2 is not the nearest node of node 0.
    let steps = &[Alloc(4, 10), Mark, Free(0, 10)];
    case(BOTH, steps, &[Counted(FreeSlowpath, 10)]);
    case(&["slub@7.1,barns=memory-nodes"], steps, &[Counted(FreeSlowpath, 10)]);
    let steps = &[Alloc(2, 10), Mark, Free(0, 10)];
    case(BOTH, steps, &[Counted(FreeFastpath, 10)]);
}

/// Without CONFIG_HAVE_MEMORYLESS_NODES a node without memory has no barn in 7.0: nothing fills the sheaves
/// of its CPUs, and they accept no object. In 7.1 it has a barn, and its CPUs' sheaves accept objects of
/// every node.
#[test]
fn own_memory_nodes_have_barns_since_7_1() {
    let case = |presets, steps, expected| {
        check(&Case { name: "without", machine: own_memory_nodes, presets, spec: SMALL, steps, expected });
    };
    let old = &["slub@7.0", "slub@7.1,barns=memory-nodes"];
    let new = &["slub@7.1", "slub@7.0,barns=online-nodes"];
    let steps = &[Alloc(0, 10), Free(0, 10)];
    let slow = &[
        Counted(AllocSlowpath, 10),
        Counted(SheafRefill, 0),
        Counted(BarnGetFail, 0),
        Counted(FreeSlowpath, 10),
        Parked(0),
    ];
    case(old, steps, slow);
    case(new, steps, &[Counted(AllocFastpath, 10), Counted(SheafRefill, 60), Counted(FreeFastpath, 10)]);
    // The objects of node 2, which is not the nearest of node 0.
    let steps = &[Alloc(4, 10), Mark, Free(0, 10)];
    case(old, steps, &[Counted(FreeSlowpath, 10)]);
    case(new, steps, &[Counted(FreeFastpath, 10), Parked(50 + 10)]);
    case(old, &[Alloc(4, 40), Mark, FreeBulk(0, 40)], &[Counted(FreeSlowpath, 40)]);
    // A request for the CPU's own node looks at the object's node. The objects in the sheaf are of node 2.
    let steps = &[Alloc(4, 10), Free(0, 10), Mark, AllocOn(0, 0, 1)];
    case(new, steps, &[Counted(AllocFastpath, 0), Counted(AllocSlowpath, 1)]);
    // Without a barn there is no sheaf to collect frees through RCU.
    let steps = &[Alloc(2, 60), Mark, FreeRcu(0, 60), Grace];
    case(old, steps, &[Counted(FreeRcuSheafFail, 60), Counted(FreeSlowpath, 60), Live(0)]);
    case(new, steps, &[Counted(FreeRcuSheaf, 60), Counted(BarnPut, 1), Live(0), Parked(60)]);
}

/// Where a node has no barn, a sheaf that was lent becomes the spare, which is used up and not filled again.
/// A second one goes back to its cache.
#[test]
fn sheaves_are_lent_without_a_barn() {
    let case = |steps, expected| {
        let presets = &["slub@7.0"];
        check(&Case { name: "lent", machine: own_memory_nodes, presets, spec: SMALL, steps, expected });
    };
    let lent = &[Lend(0, 20), Return(0), Mark, Alloc(0, 61)];
    case(lent, &[Counted(AllocFastpath, 60), Counted(AllocSlowpath, 1), Counted(SheafRefill, 0)]);
    let two = &[Lend(0, 20), Lend(0, 20), Mark, Return(0), Return(0)];
    let back = &[Counted(SheafReturnFast, 1), Counted(SheafReturnSlow, 1), Counted(SheafFree, 1), Parked(60)];
    case(two, back);
    // The spare, emptied, collects frees through RCU; after the grace period no object is local.
    let rcu = &[Lend(0, 60), Use(60), Return(0), Mark, FreeRcu(0, 60), Grace];
    case(rcu, &[Counted(FreeRcuSheaf, 60), Counted(BarnPut, 0), Live(0), Parked(0), Counted(SheafFree, 1)]);
}

/// Of 14 sheaves whose grace period ends, ten go to the barn. The others find it at its limit without its
/// lock; their empty sheaves do too, once the barn has ten of these.
#[test]
fn a_full_barn_is_not_locked_after_a_grace_period() {
    let case = |steps: &'static [Step], locks: &'static [Expected]| {
        let (machine, spec) = (one_node, CacheSpec::of_size(64));
        check(&Case { name: "rcu burst", machine, presets: BOTH, spec, steps, expected: locks });
    };
    const TEN: Expected = Counted(BarnPut, 10);
    case(&[Alloc(0, 600), FreeRcu(0, 600), Mark, Grace], &[TEN, Counted(LockBarn, 10)]);
    case(&[Alloc(0, 840), FreeRcu(0, 840), Mark, Grace], &[TEN, Counted(LockBarn, 10 + 4)]);
    case(&[Alloc(0, 1440), FreeRcu(0, 1440), Mark, Grace], &[TEN, Counted(LockBarn, 10 + 10)]);
}

#[test]
fn rcu_frees_fill_sheaves() {
    let case = |name, machine, steps, expected| {
        check(&Case { name, machine, presets: BOTH, spec: SMALL, steps, expected });
    };
    let collected = &[Counted(FreeRcuSheaf, 59), Counted(BarnPut, 0), Live(60), Parked(0)];
    case("59 are collected", one_node, &[Alloc(0, 60), Mark, FreeRcu(0, 59), Grace], collected);
    let waits = &[Counted(FreeRcuSheaf, 60), Counted(BarnPut, 0), Live(60), Parked(0)];
    case("60 before their grace period", one_node, &[Alloc(0, 60), Mark, FreeRcu(0, 60)], waits);
    let back = &[Counted(BarnPut, 1), Counted(SheafFlush, 0), Live(0), Parked(60)];
    case("60 after their grace period", one_node, &[Alloc(0, 60), Mark, FreeRcu(0, 60), Grace], back);
    let again = &[Counted(BarnGet, 1), Counted(SheafRefill, 0), Counted(AllocFastpath, 60)];
    case(
        "60 are allocated again",
        one_node,
        &[Alloc(0, 60), FreeRcu(0, 60), Grace, Mark, Alloc(0, 60)],
        again,
    );
    // Eleven sheaves, and a barn for ten.
    let many = &[Counted(BarnPut, 10), Counted(BarnPutFail, 1), Counted(SheafFlush, 60), Parked(600)];
    case("eleven sheaves", one_node, &[Alloc(0, 660), Mark, FreeRcu(0, 660), Grace], many);
    // 22 sheaves: ten go to the barn full, ten go there empty, and the others are freed.
    let kept =
        &[Counted(BarnPut, 10), Counted(BarnPutFail, 12), Counted(SheafFlush, 720), Counted(SheafFree, 2)];
    case("22 sheaves", one_node, &[Alloc(0, 1320), Mark, FreeRcu(0, 1320), Grace], kept);
    // The spare is empty; its array still has the addresses of 60 objects that are now allocated.
    let spare = &[Counted(SheafAlloc, 0), Counted(FreeRcuSheaf, 5), Live(115), Parked(0)];
    case(
        "the spare collects 60 objects, then the CPU goes offline",
        one_node,
        &[Alloc(0, 120), Mark, FreeRcu(0, 5), Down(0), Grace],
        spare,
    );
    // 20 of 60 objects are remote, so nothing goes to the barn.
    let mixed = &[Counted(FreeRcuSheaf, 60), Counted(BarnPut, 0), Counted(SheafFlush, 60), Live(0)];
    case("remote objects", two_nodes, &[Alloc(0, 40), Alloc(2, 20), Mark, FreeRcu(0, 60), Grace], mixed);
    let presets = &["slub@6.18"];
    let (steps, expected) = (&[Alloc(0, 5), FreeRcu(0, 5)], &[Counted(FreeRcuSheafFail, 5), Live(5)]);
    check(&Case { name: "no sheaves", machine: one_node, presets, spec: SMALL, steps, expected });
}

#[test]
fn objects_of_other_nodes_after_a_grace_period() {
    let steps = &[Alloc(0, 40), Alloc(2, 20), Mark, FreeRcu(0, 60), Grace];
    let case = |presets, expected| {
        check(&Case { name: "20 of 60", machine: two_nodes, presets, spec: SMALL, steps, expected });
    };
    case(BOTH, &[Counted(BarnPut, 0), Counted(SheafFlush, 60), Live(0)]);
    let kept = &["slub@7.2", "slub@7.3", "slub@7.1,rcu_strangers=kept"];
    case(kept, &[Counted(BarnPut, 1), Counted(SheafFlush, 0), Parked(60 + 20 + 40)]);
}

/// A sheaf that is detached before it is full does not come back.
#[test]
fn a_sheaf_that_a_flush_detached_is_given_back() {
    let case = |name, steps, freed| {
        let expected = &[Counted(SheafFree, freed), Counted(BarnPut, 0)];
        check(&Case { name, machine: one_node, presets: BOTH, spec: SMALL, steps, expected });
    };
    case("before the grace period", &[Alloc(0, 60), FreeRcu(0, 59), Mark, Down(0)], 0);
    case("after it", &[Alloc(0, 60), FreeRcu(0, 59), Mark, Down(0), Grace], 1);
}

#[test]
fn prefilled_sheaves_are_lent_and_returned() {
    let case = |name, steps, expected| {
        check(&Case { name, machine: one_node, presets: BOTH, spec: SMALL, steps, expected });
    };
    let slow = &[Counted(SheafPrefillSlow, 1), Counted(SheafRefill, 60), Live(60), Parked(0)];
    case("a new sheaf is lent", &[Lend(0, 10)], slow);
    let fast = &[Counted(SheafPrefillFast, 1), Counted(SheafPrefillSlow, 0), Counted(SheafRefill, 0)];
    case("the spare is lent", &[Alloc(0, 120), Free(0, 120), Mark, Lend(0, 60)], fast);
    let from_barn = &[Counted(SheafPrefillFast, 1), Counted(SheafRefill, 0), Live(120), Parked(60)];
    case(
        "a full sheaf of the barn is lent",
        &[Alloc(0, 180), Free(0, 180), Lend(0, 60), Mark, Lend(0, 60)],
        from_barn,
    );
    let oversize = &[Counted(SheafPrefillOversize, 1), Counted(SheafRefill, 100), Live(100)];
    case("beyond the capacity", &[Lend(0, 100), Use(40)], oversize);
    let spare = &[Counted(SheafReturnFast, 1), Counted(SheafRefill, 0), Parked(50), Live(10)];
    case("a returned sheaf becomes the spare", &[Lend(0, 10), Use(10), Mark, Return(0)], spare);
    let used = &[Counted(AllocFastpath, 50), Counted(SheafRefill, 0), Parked(0), Live(60)];
    case("a spare that is not full serves", &[Lend(0, 10), Use(10), Return(0), Mark, Alloc(0, 50)], used);
    let barn = &[Counted(SheafReturnSlow, 1), Counted(SheafRefill, 10), Parked(120 + 60), Live(10)];
    case(
        "a returned sheaf goes to the barn",
        &[Lend(0, 10), Use(10), Alloc(0, 120), Free(0, 120), Mark, Return(0)],
        barn,
    );
    let gone = &[Counted(SheafFlush, 60), Counted(SheafFree, 1), Parked(0), Live(40)];
    case("an oversize sheaf is freed", &[Lend(0, 100), Use(40), Mark, Return(0)], gone);
}

#[test]
fn bulk_calls_use_whole_sheaves() {
    let case = |name, steps, expected| {
        check(&Case { name, machine: one_node, presets: BOTH, spec: SMALL, steps, expected });
    };
    // Objects from sheaves count as fast. The rest comes from slabs at once, 64 per slab, and fills no sheaf.
    let cold = &[Counted(AllocSlowpath, 200), Counted(AllocSlab, 4), Counted(SheafRefill, 0), Parked(0)];
    case("no sheaf", &[Bulk(0, 200)], cold);
    let warm = &[Counted(AllocFastpath, 180), Counted(AllocSlowpath, 20), Counted(BarnGet, 1)];
    case("three sheaves", &[Alloc(0, 180), Free(0, 180), Mark, Bulk(0, 200)], warm);
    // No sheaf is made for them: what the main sheaf has no room for goes to slabs.
    let freed = &[Counted(FreeFastpath, 60), Counted(FreeSlowpath, 140), Counted(BarnPut, 0), Parked(60)];
    case("frees", &[Bulk(0, 200), Mark, FreeBulk(0, 200)], freed);
}

/// Where objects are in a sheaf is seen by who gets them next.
#[test]
fn bulk_calls_keep_the_order_of_sheaves() {
    // A sheaf is filled with a new slab's objects, in their order; one of them is gone.
    let mut machine = Machine::new(one_node()).expect("the spec is right");
    machine.enter(|| {
        let mut heap = Heap::new("slub@7.3", &SMALL);
        for step in [Alloc(0, 1), Bulk(0, 3), Alloc(0, 1)] {
            heap.step(step);
        }
        let places: Vec<u64> = heap.held.iter().map(|object| Model::locate(*object).1.into()).collect();
        let from_first: Vec<u64> = places.iter().map(|place| (places[0] - place) / 64).collect();
        assert_eq!(from_first, [0, 3, 2, 1, 4]);
        heap.end();
    });
    // Numbers 0, 2 and 3 are local. The last object of the call takes the place of the remote one.
    let taken = &[AllocOn(0, 0, 1), AllocOn(0, 1, 1), AllocOn(0, 0, 2), FreeBulk(0, 4)];
    let back = [Same(0, 2), Same(0, 3), Same(0, 0)];
    let steps: Vec<Step> = taken.iter().copied().chain(back).collect();
    let expected = &[Counted(FreeFastpath, 3), Counted(FreeSlowpath, 1)];
    check(&Case {
        name: "an object of another node",
        machine: two_nodes,
        presets: BOTH,
        spec: SMALL,
        steps: &steps,
        expected,
    });
    check(&Case {
        name: "the barn has room and no empty sheaf",
        machine: one_node,
        presets: BOTH,
        spec: SMALL,
        steps: &[Alloc(0, 180), Free(0, 120), Mark, FreeBulk(0, 60)],
        expected: &[Counted(BarnPutFail, 1), Counted(FreeSlowpath, 60), Counted(BarnPut, 0)],
    });
}

/// A kmalloc cache whose sheaves are objects of the same cache: the recursion ends, and every object is
/// counted.
#[test]
fn a_cache_may_hold_its_own_sheaves() {
    let mut machine = Machine::new(one_node()).expect("the spec is right");
    machine.enter(|| {
        let pages = Pages::new(PagesPolicy::for_release(6, 18, 0));
        let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(256), &policy("slub@7.0"));
        let metadata = FromCache(&cache, &pages);
        let backing = Backing { metadata: Some(&metadata), ..Backing::pages(&pages) };
        let alloc = || cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
        for round in 0..20 {
            let held: Vec<Ptr> = (0..100 * (round % 7)).map(|_| alloc()).collect();
            let sheaves = cache.counted(SheafAlloc) - cache.counted(SheafFree);
            assert_eq!(cache.usage().live_objects(), held.len() as u64 + sheaves, "round {round}");
            held.into_iter().for_each(|object| cache.free(&backing, object).expect("the cache's object"));
        }
        assert!(cache.counted(SheafAlloc) > 5 && cache.counted(Slotless) == 0, "sheaves were used");
        let (allocs, frees) = (cache.counted(AllocFastpath) + cache.counted(AllocSlowpath), 6000 - 300);
        assert_eq!(allocs, frees + cache.counted(SheafAlloc));
    });
}
