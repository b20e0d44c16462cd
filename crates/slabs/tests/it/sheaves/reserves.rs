//! Objects of pages taken below the last watermark are for who frees memory, and never in a sheaf
//! (docs/theory/sheaves.md 3, 4).

use super::*;

/// Two objects in a slab, twelve in a sheaf; what CPU 0 has of both is empty when pages run out.
#[test]
fn reserves_never_reach_a_sheaf() {
    let case = |name, steps, expected| {
        let presets = &["slub@7.0,max_order=0,min_partial=10", "slub@7.1,max_order=0,min_partial=10"];
        check(&Case { name, machine: one_node, presets, spec: CacheSpec::of_size(2048), steps, expected });
    };
    let slow = &[Counted(AllocSlowpath, 1), Counted(AllocSlab, 1), Counted(SheafRefill, 0), Parked(0)];
    case("a new slab for one", &[Alloc(0, 12), Exhaust, Mark, AllocReserve(0, 1)], slow);
    let listed = &[Counted(AllocSlowpath, 3), Counted(AllocSlab, 1), Counted(SheafRefill, 0), Live(14)];
    case(
        "the rest of it is for the next of these, and for nobody else",
        &[Alloc(0, 12), Exhaust, Mark, AllocReserve(0, 1), Fail(0), AllocReserve(0, 1)],
        listed,
    );
    let freed = &[Counted(FreeFastpath, 12), Counted(FreeSlowpath, 3), Parked(12)];
    case(
        "frees go to their slabs",
        &[Alloc(0, 12), Exhaust, AllocReserve(0, 3), Mark, Free(0, 12), Free(0, 1), FreeBulk(0, 2)],
        freed,
    );
    // The spare is empty and collects six ordinary objects and six of the reserves: not a full sheaf of what may be in one.
    let waited =
        &[Counted(FreeRcuSheaf, 12), Counted(SheafFlush, 12), Counted(BarnPut, 0), Parked(0), Live(0)];
    case(
        "those that waited for readers too",
        &[
            Alloc(0, 24),
            Free(0, 24),
            Alloc(0, 24),
            Exhaust,
            AllocReserve(0, 6),
            Free(1, 18),
            Mark,
            FreeRcu(0, 12),
            Grace,
        ],
        waited,
    );
}
