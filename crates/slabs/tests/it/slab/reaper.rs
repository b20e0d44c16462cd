//! The reaper: what it takes of arrays and slabs, what it spares, and when it comes.

use super::*;

/// A batch of four is a slab of four objects of 1024 bytes; 16 free objects may stay.
const FOURS: &str = "slab@2.6.29,limit=4,batchcount=4,shared=0";
/// The same with as many shared.
const FOURS_SHARED: &str = "slab@2.6.29,limit=4,batchcount=4,shared=1";

#[test]
fn arrays_that_nobody_used() {
    let cases = [
        Case {
            name: "the reaper takes a fifth of an array nobody used",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            // The first visit sees that it was used; the second takes (120 + 4) / 5.
            steps: &[Alloc(0, 120), Free(0, 120), Reap(2)],
            expected: &[Parked(96), Live(0)],
        },
        Case {
            name: "it takes half of what is less than a fifth",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0,fresh_slab=fills-array"],
            size: 256,
            steps: &[Alloc(0, 15), Free(0, 11), Reap(2)],
            expected: &[Parked(5), Live(4)],
        },
        Case {
            name: "in the end everything is back",
            machine: one_node(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[Alloc(0, 2000), Free(1, 2000), Reap(200)],
            expected: &[Slabs(0), Parked(0)],
        },
        Case {
            name: "without a reaper nothing goes",
            machine: one_node(),
            presets: &["slab@2.6.29,reap_ms=0", "slab@6.1,reap_ms=0"],
            size: 256,
            steps: &[Alloc(0, 100), Free(1, 100), Reap(200)],
            expected: &[Counted(Event::FreeSlab, 0), Live(0)],
        },
        Case {
            name: "a fifth is rounded up, and may be all there is",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=6,batchcount=6,shared=0"],
            size: 256,
            steps: &[Alloc(0, 6), Free(0, 2), Reap(2)],
            expected: &[Parked(0), FreeInSlabs(9 + 2)],
        },
        Case {
            name: "a hit is a use",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            // The refill is forgotten at the first visit; the hit counts at the second.
            steps: &[Alloc(0, 1), Reap(1), Alloc(0, 1), Reap(1)],
            expected: &[Parked(13)],
        },
        Case {
            name: "a CPU that only frees is visited, too",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            // CPU 1 half an interval after CPU 0. It never allocates, so that each visit takes some: 24 of
            // 45, then half of 21.
            steps: &[Alloc(0, 45), Free(1, 45), Reap(2)],
            expected: &[Counted(Event::SlabFreeMiss, 0), Parked(10)],
        },
        Case {
            name: "the second of two CPUs is visited half an interval after the first",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            steps: &[Alloc(0, 45), Free(1, 45), Wait(1000)],
            expected: &[Parked(45 - 24)],
        },
    ];
    cases.iter().for_each(check);
}

#[test]
fn shared_arrays_and_free_slabs() {
    let cases = [
        Case {
            name: "a shared array that was used is spared once",
            machine: one_node(),
            presets: &[OLD],
            size: 256,
            // 59 at CPU 0, 61 at CPU 1, 60 shared. CPU 1 comes first and takes 24 of its own.
            steps: &[Alloc(0, 240), Free(1, 181), Alloc(0, 1), Reap(1)],
            expected: &[Parked(59 + 61 + 60 - 24), FreeInSlabs(24)],
        },
        Case {
            name: "also if it was empty meanwhile",
            machine: one_node(),
            presets: &[FOURS_SHARED],
            size: 1024,
            // A refill empties it; the visit at 2 s finds nothing; then it is filled. The visit at 6 s spares it, while one
            // of four leaves the array at 4 s and one of three at 6 s.
            steps: &[Alloc(0, 8), Free(0, 5), Alloc(0, 2), Reap(1), Free(0, 5), Reap(2)],
            expected: &[Parked(2 + 4)],
        },
        Case {
            name: "one that was not used gives a fifth",
            machine: one_node(),
            presets: &[FOURS_SHARED],
            size: 1024,
            // At 2 s and at 6 s one of four; the array gives one at 4 s and one at 6 s.
            steps: &[Alloc(0, 8), Free(0, 8), Reap(3)],
            expected: &[Parked(2 + 2)],
        },
        Case {
            name: "free slabs are spared once after a look at them",
            machine: one_node(),
            presets: &[FOURS],
            size: 1024,
            // At 2 s the look is forgotten, at 4 s it is too early for the node.
            steps: &[Alloc(0, 12), Free(0, 12), Reap(2)],
            expected: &[Slabs(3), Counted(Event::SlabReaped, 0)],
        },
        Case {
            name: "a fifth of what may stay goes, the slab emptied first",
            machine: one_node(),
            presets: &[FOURS],
            size: 1024,
            // Two are left in the array, two are back in the third slab. A refill takes those, and two of the second.
            steps: &[Alloc(0, 12), Free(0, 12), Reap(3), Alloc(0, 2), Beside(0, 4)],
            expected: &[Slabs(2), Counted(Event::SlabReaped, 1)],
        },
    ];
    cases.iter().for_each(check);
}

/// A CPU that goes up costs one lock of its node, not a look at all CPUs: a replay brings up 65,535 of them for each cache.
/// It takes half a millisecond here; a look at all CPUs for each takes 12 s.
#[test]
fn a_cpu_that_goes_up_looks_at_no_other_cpu() {
    const CPUS: u16 = u16::MAX;
    Machine::new(MachineSpec::uniform(CPUS, 1, 256 * MIB)).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(NEW, &CacheSpec::of_size(256));
        heap.step(Alloc(0, 1));
        let locks = heap.cache.counted(Event::LockNodeList);
        let start = std::time::Instant::now();
        (0..CPUS).for_each(|cpu| heap.cache.cpu_up(CpuId(cpu)));
        let took = start.elapsed();
        assert_eq!(heap.cache.counted(Event::LockNodeList) - locks, CPUS as u64);
        assert!(took.as_secs() < 1, "{CPUS} CPUs went up in {took:?}");
        heap.end();
    });
}
