//! SLUB without sheaves: how 2.6, 3.2, 6.1 and 6.8 differ for equal calls (docs/theory/slub.md 3 and 4).

use super::*;

/// 16 objects of 256 bytes in a slab.
const HALF_LINE: CacheSpec = CacheSpec::of_size(256);
const OLD: &[&str] = &["slub@2.6.29,max_order=0", "slub@2.6.32,max_order=0"];
/// Later releases, without CPU partial lists.
const LATER: &[&str] = &[
    "slub@3.2,max_order=0,cpu_partial=0",
    "slub@6.1,max_order=0,cpu_partial=0",
    "slub@6.8,max_order=0,cpu_partial=0",
];

fn case(
    name: &'static str,
    machine: fn() -> MachineSpec,
    presets: &'static [&'static str],
    steps: &'static [Step],
    expected: &'static [Expected],
) {
    check(&Case { name, machine, presets, spec: HALF_LINE, steps, expected });
}

#[test]
fn an_exhausted_cpu_slab_is_replaced() {
    let steps = &[Alloc(0, 17)];
    let looked = &[Counted(AllocRefill, 1), Counted(DeactivateFull, 1), Counted(DeactivateBypass, 0)];
    case("2.6 counts a refill from the CPU slab's own list", one_node, OLD, steps, looked);
    let bypassed = &[Counted(AllocRefill, 0), Counted(DeactivateFull, 0), Counted(DeactivateBypass, 1)];
    case("later releases deactivate the slab in the same step", one_node, LATER, steps, bypassed);
    // Objects that another CPU freed to the slab are found there.
    let steps = &[Alloc(0, 16), Free(1, 3), Mark, Alloc(0, 3)];
    let refilled = &[Counted(AllocRefill, 1), Counted(AllocSlowpath, 1), Counted(AllocFastpath, 2)];
    case("objects freed by another CPU", one_node, OLD, steps, refilled);
    case("objects freed by another CPU", one_node, LATER, steps, refilled);
}

#[test]
fn an_emptied_slab_is_returned_or_listed() {
    // The second slab is the CPU slab. Another CPU empties the first one.
    let steps = &[Alloc(0, 17), Mark, Free(1, 16)];
    let gone = &[Counted(FreeAddPartial, 1), Counted(FreeRemovePartial, 1), Counted(FreeSlab, 1)];
    case("2.6 returns it at once", one_node, OLD, steps, gone);
    let kept = &[Counted(FreeAddPartial, 1), Counted(FreeRemovePartial, 0), Counted(FreeSlab, 0)];
    case("later releases retain up to min_partial slabs", one_node, LATER, steps, kept);
}

/// Full slabs join the list's tail at their first free, so the slab that was freed into first is used first.
#[test]
fn full_slabs_are_used_in_the_order_of_their_first_free() {
    let steps = &[Alloc(0, 49), FreeEvery(1, 16), Same(1, 0), Same(1, 16), Same(1, 32)];
    case("in order", one_node, OLD, steps, &[Counted(FreeAddPartial, 3)]);
    case("in order", one_node, LATER, steps, &[Counted(FreeAddPartial, 3)]);
}

/// A request for another node deactivates the CPU slab. Its destination depends on its free objects.
#[test]
fn a_request_for_another_node_deactivates_the_cpu_slab() {
    let head = &[Counted(AllocNodeMismatch, 1), Counted(DeactivateToHead, 1), Counted(DeactivateToTail, 0)];
    let tail = &[Counted(AllocNodeMismatch, 1), Counted(DeactivateToHead, 0), Counted(DeactivateToTail, 1)];
    let own = &[Alloc(0, 8), Mark, AllocOn(0, 1, 1)];
    case("free objects of the CPU: head of the list", two_nodes, OLD, own, head);
    case("free objects of the CPU: head of the list", two_nodes, LATER, own, head);
    let both = &[Alloc(0, 8), Free(1, 1), Mark, AllocOn(0, 1, 1)];
    case("free objects of the CPU and others: head in 2.6", two_nodes, OLD, both, head);
    case("free objects of the CPU and others: tail later", two_nodes, LATER, both, tail);
    let others = &[Alloc(0, 16), Free(1, 1), Mark, AllocOn(0, 1, 1)];
    case("objects freed by others only: tail", two_nodes, OLD, others, tail);
    case("objects freed by others only: tail", two_nodes, LATER, others, tail);
    let full = &[Alloc(0, 16), Mark, AllocOn(0, 1, 1)];
    case(
        "no free object: on no list",
        two_nodes,
        OLD,
        full,
        &[Counted(DeactivateFull, 1), Counted(LockNodeList, 0)],
    );
    // No object is in use, and the node's list is empty: `min_partial` retains the slab.
    let unused = &[Alloc(0, 1), Free(0, 1), Mark, AllocOn(0, 1, 1)];
    case(
        "only free objects: retained, counted in 2.6",
        two_nodes,
        OLD,
        unused,
        &[Counted(DeactivateEmpty, 1), Counted(FreeSlab, 0)],
    );
    case(
        "only free objects: retained",
        two_nodes,
        LATER,
        unused,
        &[Counted(DeactivateEmpty, 0), Counted(FreeSlab, 0)],
    );
}

/// Node 1 has fourteen slabs with a free object, more than any era's `min_partial`.
#[test]
fn other_nodes_are_searched_by_era() {
    let search = |presets, steps, expected| {
        let (name, spec) = ("two objects in a slab", CacheSpec::of_size(2048));
        check(&Case { name, machine: two_nodes, presets, spec, steps, expected });
    };
    let old = &["slub@2.6.29,max_order=0,defrag_ratio=1024"];
    let later = &["slub@3.2,max_order=0,cpu_partial=0,defrag_ratio=1024"];
    let found = &[Counted(AllocFromPartial, 1), Counted(AllocSlab, 0)];
    let none = &[Counted(AllocFromPartial, 0), Counted(AllocSlab, 1)];
    let asks = &[Alloc(2, 30), FreeEvery(3, 2), Mark, AllocOn(0, 0, 1)];
    search(old, asks, found);
    search(later, asks, none);
    let any = &[Alloc(2, 30), FreeEvery(3, 2), Mark, Alloc(0, 1)];
    search(old, any, found);
    search(later, any, found);
    // Five slabs are what `min_partial` retains on a node.
    let few = &[Alloc(2, 12), FreeEvery(3, 2), Mark, Alloc(0, 1)];
    search(old, few, none);
    search(later, few, none);
    search(
        &["slub@2.6.29,max_order=0,defrag_ratio=0", "slub@3.2,max_order=0,cpu_partial=0,defrag_ratio=0"],
        any,
        none,
    );
    // The ratio allows less than one such search in a thousand.
    let often = &[Alloc(2, 30), FreeEvery(3, 2), Mark, Alloc(0, 8000)];
    search(&["slub@6.1,max_order=0,cpu_partial=0,defrag_ratio=0"], often, &[Counted(AllocSlab, 4000)]);
}

/// A slab of the wrong node on a CPU's partial list: used and deactivated until 6.7, put on its node's list
/// since 6.8.
#[test]
fn a_cpu_partial_slab_of_another_node_is_put_back() {
    let steps = &[Alloc(0, 33), Free(0, 1), Mark, AllocOn(0, 1, 1)];
    let taken = &[Counted(CpuPartialAlloc, 1), Counted(AllocNodeMismatch, 2), Counted(FreeAddPartial, 0)];
    case("taken", two_nodes, &["slub@3.2,max_order=0", "slub@6.1,max_order=0"], steps, taken);
    let put_back = &[Counted(CpuPartialAlloc, 0), Counted(AllocNodeMismatch, 1), Counted(FreeAddPartial, 1)];
    case("put back", two_nodes, &["slub@6.8,max_order=0", "slub@6.18,max_order=0"], steps, put_back);
}

#[test]
fn min_partial_by_size() {
    for (size, old, later) in
        [(8, 5, 5), (64, 6, 5), (256, 8, 5), (1024, 10, 5), (4096, 10, 6), (16384, 10, 7)]
    {
        assert_eq!(policy("slub@2.6.29").min_partial_of(size), old, "{size} bytes");
        assert_eq!(policy("slub@3.2").min_partial_of(size), later, "{size} bytes");
        let bounded = policy("slub@3.2,min_partial_least=2,min_partial_most=3");
        assert_eq!(bounded.min_partial_of(size), (size.ilog2() / 2).clamp(2, 3), "{size} bytes");
    }
}
