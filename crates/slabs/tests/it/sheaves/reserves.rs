//! Objects of pages below the last watermark are for callers that free memory. They are never in a sheaf
//! (docs/theory/sheaves.md 3, 4).

use super::*;

/// Two objects per slab, twelve per sheaf. CPU 0's slab and sheaf are empty when the pages are used up.
#[test]
fn reserves_never_reach_a_sheaf() {
    let case = |name, steps, expected| {
        let presets = &["slub@7.0,max_order=0,min_partial=10", "slub@7.1,max_order=0,min_partial=10"];
        check(&Case { name, machine: one_node, presets, spec: CacheSpec::of_size(2048), steps, expected });
    };
    let slow = &[Counted(AllocSlowpath, 1), Counted(AllocSlab, 1), Counted(SheafRefill, 0), Parked(0)];
    case("one object from a new slab", &[Alloc(0, 12), Exhaust, Mark, AllocReserve(0, 1)], slow);
    let listed = &[Counted(AllocSlowpath, 3), Counted(AllocSlab, 1), Counted(SheafRefill, 0), Live(14)];
    case(
        "the rest of the slab serves only callers that may use the reserves",
        &[Alloc(0, 12), Exhaust, Mark, AllocReserve(0, 1), Fail(0), AllocReserve(0, 1)],
        listed,
    );
    let freed = &[Counted(FreeFastpath, 12), Counted(FreeSlowpath, 3), Parked(12)];
    case(
        "frees of reserve objects go to their slabs",
        &[Alloc(0, 12), Exhaust, AllocReserve(0, 3), Mark, Free(0, 12), Free(0, 1), FreeBulk(0, 2)],
        freed,
    );
    // The empty spare collects six ordinary objects and six of the reserves. The latter must not be in a
    // sheaf, so it is not a full one.
    let waited =
        &[Counted(FreeRcuSheaf, 12), Counted(SheafFlush, 12), Counted(BarnPut, 0), Parked(0), Live(0)];
    case(
        "RCU frees of reserve objects go to their slabs too",
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
