//! The reaper: the objects and slabs that it takes, those that it leaves, and its times.

use super::*;

/// A batch of four is a slab of four objects of 1024 bytes; 16 free objects may stay. CPU 0 is visited after
/// 1, 3, 5, 7 and 9 s; its node from 4 s on, so at 5 and 9 s.
const FOURS: &str = "slab@2.6.29,limit=4,batchcount=4,shared=0,node_reap_ms=0";
/// Like [`FOURS`], with a shared array of one batch.
const FOURS_SHARED: &str = "slab@2.6.29,limit=4,batchcount=4,shared=1,node_reap_ms=0";

#[test]
fn the_reaper_trims_unused_arrays() {
    let cases = [
        Case {
            name: "the reaper takes a fifth of an unused array",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            // The first visit sees that the array was used. The second takes (120 + 4) / 5 objects.
            steps: &[Alloc(0, 120), Free(0, 120), Reap(2)],
            expected: &[Parked(96), Live(0)],
        },
        Case {
            name: "it takes half of an array with less than a fifth",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0,fresh_slab=fills-array"],
            size: 256,
            steps: &[Alloc(0, 15), Free(0, 11), Reap(2)],
            expected: &[Parked(5), Live(4)],
        },
        Case {
            name: "repeated visits return every object",
            machine: one_node(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[Alloc(0, 2000), Free(1, 2000), Reap(200)],
            expected: &[Slabs(0), Parked(0)],
        },
        Case {
            name: "without a reaper nothing is returned",
            machine: one_node(),
            presets: &["slab@2.6.29,reap_ms=0", "slab@6.1,reap_ms=0"],
            size: 256,
            steps: &[Alloc(0, 100), Free(1, 100), Reap(200)],
            expected: &[Counted(Event::FreeSlab, 0), Live(0)],
        },
        Case {
            name: "a fifth is rounded up, and may be the whole array",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=6,batchcount=6,shared=0"],
            size: 256,
            steps: &[Alloc(0, 6), Free(0, 2), Reap(2)],
            expected: &[Parked(0), FreeInSlabs(9 + 2)],
        },
        Case {
            name: "a hit counts as a use of the array",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            // The first visit clears the mark of the refill. The hit counts at the second visit.
            steps: &[Alloc(0, 1), Reap(1), Alloc(0, 1), Reap(1)],
            expected: &[Parked(13)],
        },
        Case {
            name: "a CPU that only frees is visited too",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            // It never allocates, so each visit takes objects: 24 of 45, then half of 21.
            steps: &[Alloc(0, 45), Free(1, 45), Reap(2)],
            expected: &[Counted(Event::SlabFreeMiss, 0), Parked(10)],
        },
        Case {
            name: "a CPU is visited first a second after the start",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            steps: &[Alloc(1, 45), Free(0, 45), Wait(999)],
            expected: &[Parked(45)],
        },
        Case {
            name: "and again two seconds later",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            steps: &[Alloc(1, 45), Free(0, 45), Wait(2999)],
            expected: &[Parked(45 - 24)],
        },
        Case {
            name: "the second of two CPUs is visited 12 ms before the first",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            steps: &[Alloc(0, 45), Free(1, 45), Wait(988)],
            expected: &[Parked(45 - 24)],
        },
        Case {
            name: "a CPU that was offline is visited a second after it came, rounded, and not when it was due before",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            steps: &[Alloc(0, 45), Free(1, 5), Wait(500), Down(1), Up(1), Free(1, 40), Wait(1487)],
            expected: &[Parked(40)],
        },
        Case {
            name: "then it is",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            steps: &[Alloc(0, 45), Free(1, 5), Wait(500), Down(1), Up(1), Free(1, 40), Wait(1488)],
            expected: &[Parked(40 - 24)],
        },
        Case {
            name: "no earlier",
            machine: one_node(),
            presets: &["slab@2.6.29,shared=0"],
            size: 256,
            steps: &[Alloc(0, 45), Free(1, 45), Wait(987)],
            expected: &[Parked(45)],
        },
    ];
    cases.iter().for_each(check);
}

#[test]
fn the_reaper_trims_shared_arrays_and_free_slabs() {
    let cases = [
        Case {
            name: "a used shared array is left alone at one visit",
            machine: one_node(),
            presets: &["slab@2.6.29,node_reap_ms=0"],
            size: 256,
            // 59 objects at CPU 0, 61 at CPU 1, 60 shared. CPU 0 loses 24 twice, CPU 1, which never
            // allocated, 24, 24 and half of 13.
            steps: &[Alloc(0, 240), Free(1, 181), Alloc(0, 1), Reap(3)],
            expected: &[Parked(59 - 48 + 61 - 55 + 60), FreeInSlabs(48 + 55)],
        },
        Case {
            name: "also if it was empty between the visits",
            machine: one_node(),
            presets: &[FOURS_SHARED],
            size: 1024,
            // A refill empties the shared array, and the visit at 5 s finds it empty. Then it is filled. The
            // visit at 9 s leaves it alone, because it was used. The CPU's array has one object at 5 s, two
            // after the frees, and none at 9 s.
            steps: &[Alloc(0, 8), Free(0, 5), Alloc(0, 2), Reap(3), Free(0, 5), Reap(2)],
            expected: &[Parked(4)],
        },
        Case {
            name: "an unused shared array loses a fifth",
            machine: one_node(),
            presets: &[FOURS_SHARED],
            size: 1024,
            // The shared array loses one of four objects at 5 s and at 9 s; the CPU's array loses one at each
            // visit but the first. Locks: of two refills with a new slab and of a flush, of the CPU's array,
            // of the shared one, and of the slab that is returned at 9 s.
            steps: &[Alloc(0, 8), Free(0, 8), Reap(5)],
            expected: &[
                Parked(2),
                Counted(Event::LockNodeList, 2 * 3 + 1 + 4 + 2 + 1),
                Counted(Event::SlabReaped, 1),
            ],
        },
        Case {
            name: "a node is visited first after four seconds, and a part of four more that caches differ in",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=4,batchcount=4,shared=1"],
            size: 1024,
            // 2304 ms for the cache with the number 3: at the visit of 7 s.
            steps: &[Alloc(0, 8), Free(0, 8), Wait(6999)],
            expected: &[Parked(2 + 4)],
        },
        Case {
            name: "then it is visited",
            machine: one_node(),
            presets: &["slab@2.6.29,limit=4,batchcount=4,shared=1"],
            size: 1024,
            steps: &[Alloc(0, 8), Free(0, 8), Wait(7000)],
            expected: &[Parked(1 + 3)],
        },
        Case {
            name: "free slabs are left alone at one visit after an allocation searched them",
            machine: one_node(),
            presets: &[FOURS],
            size: 1024,
            // The visit at 5 s clears the mark of the free list. At 7 s it is too early for the node's next
            // visit.
            steps: &[Alloc(0, 12), Free(0, 12), Reap(4)],
            expected: &[Slabs(3), Counted(Event::SlabReaped, 0)],
        },
        Case {
            name: "a fifth of free_limit is returned, beginning with the slab that was emptied first",
            machine: one_node(),
            presets: &[FOURS],
            size: 1024,
            // At 9 s the last object of the array goes back to the third slab, and the first slab is
            // returned.
            steps: &[Alloc(0, 12), Free(0, 12), Reap(5), Alloc(0, 4), SameSlab(0, 4)],
            expected: &[Slabs(2), Counted(Event::SlabReaped, 1)],
        },
    ];
    cases.iter().for_each(check);
}

/// A CPU that comes online takes its node's lock three times, and does not scan the other CPUs. A replay
/// brings up 65,535 CPUs for each cache: half a millisecond here, but 12 s with a scan for each CPU.
#[test]
fn cpu_up_does_not_scan_other_cpus() {
    const CPUS: u16 = u16::MAX;
    Machine::new(MachineSpec::uniform(CPUS, 1, 256 * MIB)).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(NEW, &CacheSpec::of_size(256));
        heap.step(Alloc(0, 1));
        let locks = heap.cache.counted(Event::LockNodeList);
        let start = std::time::Instant::now();
        heap.with(|cache, backing| (0..CPUS).for_each(|cpu| cache.cpu_up(backing, CpuId(cpu))));
        let took = start.elapsed();
        assert_eq!(heap.cache.counted(Event::LockNodeList) - locks, 3 * CPUS as u64);
        assert!(took.as_secs() < 1, "{CPUS} CPUs went up in {took:?}");
        heap.end();
    });
}
