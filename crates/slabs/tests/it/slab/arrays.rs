//! Arrays of CPUs and nodes: refill and flush.

use super::*;

#[test]
fn refill_and_flush() {
    // Objects of 256 bytes: an array holds 120, a batch is 60, a shared array holds 480; a slab has 15
    // objects in 2.6.29, and 16 in 6.1.
    let cases = [
        Case {
            name: "the first refill is 16 objects, because the array is unused",
            machine: one_node(),
            presets: &[OLD],
            size: 64,
            steps: &[Alloc(0, 1)],
            expected: &[Counted(Event::SlabAllocMiss, 1), Parked(15), FreeInSlabs(59 - 16)],
        },
        Case {
            name: "the next refill is 60 objects",
            machine: one_node(),
            presets: &[OLD],
            size: 64,
            // 43 objects were left in the first slab. The refill ends when the lists are empty.
            steps: &[Alloc(0, 17)],
            expected: &[Counted(Event::SlabAllocMiss, 2), Parked(42), FreeInSlabs(0)],
        },
        Case {
            name: "a new slab fills the array",
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
            name: "a full array moves its oldest 60 objects to the shared one",
            machine: one_node(),
            presets: &[OLD],
            size: 256,
            // 16 slabs of 15 objects are used up. Objects 0 to 59 are in the shared array, and CPU 0 takes
            // them.
            steps: &[Alloc(0, 240), Free(1, 121), Same(0, 59)],
            expected: &[Counted(Event::SlabFreeMiss, 1), Counted(Event::SlabFreeHit, 120), Live(120)],
        },
        Case {
            name: "the newest objects of the shared array are used first",
            machine: one_node(),
            presets: &[OLD],
            size: 256,
            steps: &[Alloc(0, 240), Free(1, 181), Same(0, 119)],
            expected: &[Counted(Event::SlabFreeMiss, 2), Counted(Event::SlabGrown, 16)],
        },
        Case {
            name: "fresh_slab=listed: a new slab is listed before objects are taken",
            machine: one_node(),
            presets: &["slab@6.1,shared=0,fresh_slab=listed"],
            size: 256,
            steps: &[Alloc(0, 1)],
            // Three locks: the search, the new slab, and the second search.
            expected: &[Counted(Event::LockNodeList, 3), Parked(15)],
        },
        Case {
            name: "fresh_slab=fills-array: objects are taken before the new slab is listed",
            machine: one_node(),
            presets: &["slab@6.1,shared=0"],
            size: 256,
            steps: &[Alloc(0, 1)],
            // One lock, for the list: without free objects a refill searches nothing.
            expected: &[Counted(Event::LockNodeList, 1), Parked(15)],
        },
        Case {
            name: "a refill looks for free and for shared objects without the lock",
            machine: one_node(),
            presets: &["slab@6.1,limit=4,batchcount=4,shared=1"],
            size: 1024,
            // Two new slabs, a lock each. The fifth free moves four objects to the shared array, where CPU 1
            // finds them; its next refill finds nothing and makes a slab. The third takes a slab's objects.
            steps: &[Alloc(0, 8), Free(0, 5), Alloc(1, 5), Alloc(1, 4)],
            expected: &[Counted(Event::LockNodeList, 2 + 1 + 1 + 1 + 1), Counted(Event::SlabGrown, 4)],
        },
        Case {
            name: "arrays are there with the cache: no lock is for making them",
            machine: two_nodes(),
            presets: &[OLD, "slab@6.1,fresh_slab=listed"],
            size: 256,
            // The search, the new slab, and the second search.
            steps: &[Alloc(0, 1), Free(2, 1)],
            expected: &[Counted(Event::LockNodeList, 3), Counted(Event::LockAlien, 1)],
        },
        Case {
            name: "without a shared array a batch goes to its slabs",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0,reap_ms=0"],
            size: 256,
            // 240 objects are 16 slabs of 15. The oldest 60 are all objects of four slabs, which become
            // empty.
            steps: &[Alloc(0, 240), Free(1, 121)],
            expected: &[Counted(Event::SlabFreeMiss, 1), FreeInSlabs(60), PartialSlabs(4), Parked(61)],
        },
        Case {
            name: "a slab that gets an object back goes behind the others",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=1,shared=0,reap_ms=0"],
            size: 256,
            // Two objects return to the first slab and one to the second. The next allocation uses the first.
            steps: &[Alloc(0, 30), Free(0, 2), FreeNewest(0, 2), Alloc(0, 2)],
            expected: &[PartialSlabs(2), FreeInSlabs(2), Parked(0)],
        },
        Case {
            name: "sizes set by knobs",
            machine: one_node(),
            presets: &["slab@6.1,limit=10,batchcount=4,shared=1"],
            size: 256,
            // The array holds 10. Four objects leave at the 11th and at the 15th free; the shared array has
            // room for the first four.
            steps: &[Alloc(0, 32), Free(1, 15)],
            expected: &[Counted(Event::SlabFreeMiss, 2), FreeInSlabs(4), Live(17)],
        },
    ];
    cases.iter().for_each(check);
}

#[test]
fn shrink_and_free_limit_return_slabs() {
    let cases = [
        Case {
            name: "a slab that becomes empty above free_limit is returned at once",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=1,shared=0,reap_ms=0"],
            size: 256,
            // free_limit = (1 + 2 CPUs) * 1 + 15 = 18, so one slab stays. The last freed object is in the
            // array.
            steps: &[Alloc(0, 60), Free(0, 60)],
            expected: &[Slabs(2), Counted(Event::FreeSlab, 2), Parked(1), FreeInSlabs(29)],
        },
        Case {
            name: "or behind the last object, the slab that has been empty longest",
            machine: one_node(),
            presets: &["slab@6.1,limit=1,shared=0,reap_ms=0"],
            size: 1024,
            // free_limit = (1 + 2 CPUs) * 1 + 4 = 7. The first slab is empty, the second lacks one object,
            // and the third one gets an object back: the eighth.
            steps: &[Alloc(0, 12), Free(0, 7), FreeNth(0, 8), FreeNth(0, 9)],
            expected: &[Counted(Event::FreeSlab, 1), FreeInSlabs(4), Parked(1)],
        },
        Case {
            name: "surplus=at-each: an object that empties no slab returns none",
            machine: one_node(),
            presets: &["slab@6.1,limit=1,shared=0,reap_ms=0,surplus=at-each"],
            size: 1024,
            steps: &[Alloc(0, 12), Free(0, 7), FreeNth(0, 8), FreeNth(0, 9)],
            expected: &[Counted(Event::FreeSlab, 0), FreeInSlabs(8), Parked(1)],
        },
        Case {
            name: "surplus=at-last: of three empty slabs the first one goes",
            machine: MachineSpec::uniform(8, 1, 256 * MIB),
            presets: &["slab@6.1,limit=1,shared=0,reap_ms=0"],
            size: 1024,
            // free_limit = 9 + 4 = 13. One object is in the array, and two are in the fourth slab.
            steps: &[Alloc(0, 16), Free(0, 15), Alloc(0, 3), SameSlab(0, 8), Alloc(0, 3), SameSlab(0, 4)],
            expected: &[Counted(Event::FreeSlab, 1)],
        },
        Case {
            name: "a shrink takes a lock for each CPU, for each node, for each slab, and for each alien array",
            machine: two_nodes(),
            presets: &[NEW],
            size: 192,
            steps: &[Shrink, Alloc(0, 1), Shrink, Free(0, 1), Shrink],
            expected: &[
                Counted(Event::LockNodeList, (4 + 2) + 1 + (4 + 2) + (4 + 2 + 1)),
                Counted(Event::LockAlien, 2 + 2 + 2),
            ],
        },
        Case {
            name: "an alien array with objects takes its node's lock, too",
            machine: two_nodes(),
            presets: &["slab@6.1,shared=0"],
            size: 192,
            steps: &[Alloc(0, 2), Free(2, 1), Shrink],
            expected: &[Counted(Event::LockNodeList, 1 + (4 + 2 + 1)), Counted(Event::LockAlien, 1 + 2)],
        },
        Case {
            name: "shrink empties everything",
            machine: one_node(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[Alloc(0, 1000), Free(1, 1000), Shrink],
            expected: &[Slabs(0), Parked(0)],
        },
    ];
    cases.iter().for_each(check);
}

#[test]
fn arrays_of_an_earlier_life() {
    // Objects of 256 bytes: a slab of 6.1 has 16.
    let cases = [
        Case {
            name: "free objects of the node are in the array and the shared array",
            machine: two_nodes(),
            presets: &[NEW],
            size: 256,
            steps: &[Seed(0, 10), Seed(0, 12), Seed(1, 5), SeedArrays(0, 6, 9), SeedArrays(2, 1, 0)],
            expected: &[Parked(16), FreeInSlabs(22 - 15 + 4), Live(6 + 4 + 11), Slabs(3)],
        },
        Case {
            name: "the CPU uses its array first, then a batch of the shared one",
            machine: one_node(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[Seed(0, 12), Seed(0, 12), SeedArrays(0, 6, 9), Alloc(0, 7)],
            expected: &[
                Counted(Event::SlabAllocHit, 6),
                Counted(Event::SlabAllocMiss, 1),
                Parked(8),
                FreeInSlabs(24 - 15),
            ],
        },
        Case {
            name: "no more than the node has, and than fits",
            machine: one_node(),
            presets: &[NEW],
            size: 256,
            steps: &[Seed(0, 3), SeedArrays(0, 2, 500), SeedArrays(1, 500, 0)],
            expected: &[Parked(3), FreeInSlabs(0), Live(13)],
        },
    ];
    cases.iter().for_each(check);
}
