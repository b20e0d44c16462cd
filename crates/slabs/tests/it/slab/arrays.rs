//! Arrays: refill, flush, and what is shared.

use super::*;

#[test]
fn refill_and_flush() {
    // 256 bytes: 120 in an array, 60 at once, 480 shared; 15 objects in a slab of 2.6.29, 16 in one of 6.1.
    let cases = [
        Case {
            name: "the first refill is of 16, as nobody touched the array",
            machine: one_node(),
            presets: &[OLD],
            size: 64,
            steps: &[Alloc(0, 1)],
            expected: &[Counted(Event::SlabAllocMiss, 1), Parked(15), FreeInSlabs(59 - 16)],
        },
        Case {
            name: "the next is of 60",
            machine: one_node(),
            presets: &[OLD],
            size: 64,
            // 43 were left in the first slab; the loop over slabs ends with what is there.
            steps: &[Alloc(0, 17)],
            expected: &[Counted(Event::SlabAllocMiss, 2), Parked(42), FreeInSlabs(0)],
        },
        Case {
            name: "a fresh slab fills the array",
            machine: one_node(),
            presets: &[NEW],
            size: 256,
            steps: &[Alloc(0, 1)],
            expected: &[Parked(15), FreeInSlabs(0), Slabs(1), PartialSlabs(0)],
        },
        Case {
            name: "the array is last in, first out",
            machine: one_node(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[Churn(0, 1000)],
            expected: &[
                Counted(Event::SlabAllocHit, 999),
                Counted(Event::SlabFreeHit, 1000),
                Counted(Event::AllocSlowpath, 1),
                Counted(Event::FreeSlowpath, 0),
            ],
        },
        Case {
            name: "a full array hands its oldest 60 to the shared one",
            machine: one_node(),
            presets: &[OLD],
            size: 256,
            // 16 slabs of 15 are used up. 0 to 59 are shared, and the first CPU takes them.
            steps: &[Alloc(0, 240), Free(1, 121), Same(0, 59)],
            expected: &[Counted(Event::SlabFreeMiss, 1), Counted(Event::SlabFreeHit, 120), Live(120)],
        },
        Case {
            name: "the newest of the shared array come back first",
            machine: one_node(),
            presets: &[OLD],
            size: 256,
            steps: &[Alloc(0, 240), Free(1, 181), Same(0, 119)],
            expected: &[Counted(Event::SlabFreeMiss, 2), Counted(Event::SlabGrown, 16)],
        },
        Case {
            name: "a slab is published, then taken from",
            machine: one_node(),
            presets: &["slab@6.1,shared=0,fresh_slab=listed"],
            size: 256,
            steps: &[Alloc(0, 1)],
            // The look, the slab, and the look again.
            expected: &[Counted(Event::LockNodeList, 3), Parked(15)],
        },
        Case {
            name: "or taken from before it is published",
            machine: one_node(),
            presets: &["slab@6.1,shared=0"],
            size: 256,
            steps: &[Alloc(0, 1)],
            expected: &[Counted(Event::LockNodeList, 2), Parked(15)],
        },
        Case {
            name: "without a shared array they go to their slabs",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0,reap_ms=0"],
            size: 256,
            // 240 objects are 16 slabs of 15; the oldest 60 are the first four, which are emptied.
            steps: &[Alloc(0, 240), Free(1, 121)],
            expected: &[Counted(Event::SlabFreeMiss, 1), FreeInSlabs(60), PartialSlabs(4), Parked(61)],
        },
        Case {
            name: "a slab that gets an object back goes behind the others",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=1,shared=0,reap_ms=0"],
            size: 256,
            // Two objects return to the first slab, one to the second, and the next allocation is from the first.
            steps: &[Alloc(0, 30), Free(0, 2), FreeNewest(0, 2), Alloc(0, 2)],
            expected: &[PartialSlabs(2), FreeInSlabs(2), Parked(0)],
        },
        Case {
            name: "the knobs",
            machine: one_node(),
            presets: &["slab@6.1,limit=10,batchcount=4,shared=1"],
            size: 256,
            // 10 in the array, 4 leave at the 11th and the 15th; the shared array has room for the first.
            steps: &[Alloc(0, 32), Free(1, 15)],
            expected: &[Counted(Event::SlabFreeMiss, 2), FreeInSlabs(4), Live(17)],
        },
    ];
    cases.iter().for_each(check);
}

#[test]
fn what_stays() {
    let cases = [
        Case {
            name: "a slab that empties above free_limit goes at once",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=1,shared=0,reap_ms=0"],
            size: 256,
            // free_limit = (1 + 2 CPUs) * 1 + 15 = 18: one slab stays; the last object freed is in the array.
            steps: &[Alloc(0, 60), Free(0, 60)],
            expected: &[Slabs(2), Counted(Event::FreeSlab, 2), Parked(1), FreeInSlabs(29)],
        },
        Case {
            name: "shrink empties all",
            machine: one_node(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[Alloc(0, 1000), Free(1, 1000), Shrink],
            expected: &[Slabs(0), Parked(0)],
        },
    ];
    cases.iter().for_each(check);
}
