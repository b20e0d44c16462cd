//! Nodes: alien arrays, nodes without memory, and the return of objects to their node.

use super::*;

/// Lee Schermerhorn's table of September 2009: 11,313,754 attempts to grow and 5,652,630 fallbacks in
/// 5,652,978 refills, which is 2.001 and 0.99994 per refill. The excess over 2 is the slabs that fallbacks
/// allocated.
#[test]
fn without_memory_every_refill_grows_twice_and_falls_back_once() {
    for preset in [OLD, "slab@6.1,memoryless=as-asked"] {
        Machine::new(memoryless()).expect("the spec is right").enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(256));
            heap.step(Alloc(0, 1000));
            heap.step(Churn(0, 10_000));
            let counted = |event| heap.cache.counted(event);
            let refills = counted(Event::SlabAllocMiss);
            assert_eq!(refills, 11_000, "{preset}: nothing reaches the array");
            assert_eq!(counted(Event::SlabGrowTry), 2 * refills + counted(Event::SlabGrown), "{preset}");
            assert_eq!(counted(Event::SlabFallback), refills, "{preset}");
            assert_eq!(counted(Event::SlabAllocHit) + counted(Event::SlabFreeHit), 0, "{preset}");
            assert_eq!(counted(Event::SlabNodeFree), 10_000, "{preset}: every free is alien");
            let per_refill = counted(Event::SlabGrowTry) as f64 / refills as f64;
            println!("{preset}: {per_refill:.4} attempts to grow per refill, published 2.001");
            assert!((2.0..2.02).contains(&per_refill), "{preset}: {per_refill}");
            heap.end();
        });
    }
}

#[test]
fn the_nearest_node_with_memory_avoids_fallbacks() {
    check(&Case {
        name: "the nearest node with memory counts as the CPU's node",
        machine: memoryless(),
        presets: &["slab@2.6.29,memoryless=nearest", NEW],
        size: 256,
        steps: &[Churn(0, 10_000)],
        expected: &[
            Counted(Event::SlabFallback, 0),
            Counted(Event::SlabNodeFree, 0),
            Counted(Event::SlabAllocMiss, 1),
            Counted(Event::SlabGrowTry, 1),
            Counted(Event::SlabFreeHit, 10_000),
        ],
    });
}

/// The allocation side alone: arrays are filled, but every free goes through the array for the other node.
#[test]
fn the_nearest_node_for_allocations_alone_leaves_frees_alien() {
    check(&Case {
        name: "the nearest node with memory counts for allocations, the CPU's own for frees",
        machine: memoryless(),
        presets: &["slab@2.6.29,memoryless=alloc-nearest", "slab@6.1,memoryless=alloc-nearest"],
        size: 256,
        steps: &[Churn(0, 10_000)],
        expected: &[
            Counted(Event::SlabFallback, 0),
            Counted(Event::SlabNodeFree, 10_000),
            Counted(Event::SlabFreeHit, 0),
        ],
    });
}

#[test]
fn objects_of_other_nodes_use_alien_arrays() {
    let cases = [
        Case {
            name: "objects stay in the alien array until it is full",
            machine: two_nodes(),
            presets: &[OLD],
            size: 256,
            steps: &[Feed(0, 2, 121)],
            expected: &[
                Counted(Event::SlabNodeFree, 121),
                Counted(Event::SlabNodeOverflow, 1),
                Counted(Event::SlabFreeHit, 0),
                // 120 objects went to the shared array of node 0; one is in the alien array.
                Live(0),
            ],
        },
        Case {
            name: "6.1 has alien arrays of twelve objects",
            machine: two_nodes(),
            presets: &[NEW],
            size: 256,
            steps: &[Feed(0, 2, 121)],
            expected: &[Counted(Event::SlabNodeFree, 121), Counted(Event::SlabNodeOverflow, 10)],
        },
        Case {
            name: "objects beyond the shared array's room go to slabs",
            machine: two_nodes(),
            presets: &["slab@2.6.29,shared=0", "slab@6.1,shared=0,alien_limit=120"],
            size: 256,
            steps: &[Alloc(0, 600), Free(2, 121)],
            expected: &[Counted(Event::SlabNodeOverflow, 1), Live(479)],
        },
        Case {
            name: "the shared array serves the next refill",
            machine: two_nodes(),
            presets: &[OLD],
            size: 256,
            // 120 of the 240 objects are sent to their node; CPU 1 finds them there.
            steps: &[Alloc(0, 240), Free(2, 121), Alloc(1, 1)],
            expected: &[
                Counted(Event::SlabNodeOverflow, 1),
                Counted(Event::SlabGrown, 16),
                FreeInSlabs(0),
                // One object is still in the alien array of node 1, and one is allocated.
                Parked(120),
            ],
        },
        Case {
            name: "noaliencache: objects of other nodes enter the CPU's own array",
            machine: two_nodes(),
            presets: &["slab@2.6.29,alien=no", "slab@6.1,alien=no"],
            size: 256,
            steps: &[Feed(0, 2, 100)],
            expected: &[
                Counted(Event::SlabNodeFree, 0),
                Counted(Event::SlabFreeHit, 100),
                Counted(Event::LockAlien, 0),
            ],
        },
        Case {
            name: "a request for another node bypasses the arrays",
            machine: two_nodes(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[AllocOn(0, 1, 50)],
            expected: &[
                Counted(Event::SlabNodeAlloc, 50),
                Counted(Event::SlabAllocMiss, 0),
                Counted(Event::SlabAllocHit, 0),
                Live(50),
            ],
        },
        Case {
            name: "a request for the own node is served by the array",
            machine: two_nodes(),
            presets: &[OLD, NEW],
            size: 256,
            steps: &[AllocOn(0, 0, 10)],
            expected: &[Counted(Event::SlabNodeAlloc, 0), Counted(Event::SlabAllocHit, 9)],
        },
        Case {
            name: "THISNODE bypasses an array that mixes nodes",
            machine: two_nodes(),
            presets: &["slab@2.6.29,alien=no", "slab@6.1,alien=no"],
            size: 256,
            // CPU 2 frees objects of node 0 into its own array.
            steps: &[Alloc(0, 10), Free(2, 10), Insist(2, 1, 5)],
            expected: &[Counted(Event::SlabNodeAlloc, 5), Live(5)],
        },
        Case {
            name: "THISNODE fails on a node without memory",
            machine: memoryless(),
            presets: &[OLD, "slab@6.1,memoryless=as-asked"],
            size: 256,
            steps: &[Alloc(1, 1), Refused(1, 0), Refused(0, 0), Insist(0, 1, 1)],
            expected: &[Counted(Event::SlabFallback, 0), Live(2)],
        },
        Case {
            name: "a fallback uses free objects of any node before new pages",
            machine: three_nodes(),
            presets: &[OLD, "slab@6.1,memoryless=as-asked"],
            size: 64,
            // Node 1 is nearer and has memory; node 2 has free objects.
            steps: &[Alloc(2, 1), Alloc(0, 1)],
            expected: &[Counted(Event::SlabGrown, 1), Counted(Event::SlabFallback, 1)],
        },
        Case {
            name: "the reaper first visits the array for the node behind the CPU's own",
            machine: three_cpus(),
            presets: &["slab@2.6.29,shared=0", "slab@6.1,shared=0"],
            size: 256,
            // CPUs 1 and 2 used their arrays, so these are not touched.
            steps: &[Feed(1, 0, 5), Feed(2, 0, 7), Wait(1000)],
            expected: &[FreeInSlabs(5), Counted(Event::LockAlien, 12 + 1)],
        },
        Case {
            name: "the next node follows, also if the cache was not used at the first visit",
            machine: three_cpus(),
            presets: &["slab@2.6.29,shared=0", "slab@6.1,shared=0"],
            size: 256,
            steps: &[Wait(1500), Feed(1, 0, 5), Feed(2, 0, 7), Wait(1500)],
            expected: &[FreeInSlabs(7), Counted(Event::LockAlien, 12 + 1)],
        },
        Case {
            name: "then the CPU's own, which has no such array, and the first one again",
            machine: three_cpus(),
            presets: &["slab@2.6.29,shared=0", "slab@6.1,shared=0"],
            size: 256,
            steps: &[Wait(3500), Feed(1, 0, 5), Feed(2, 0, 7), Wait(1500)],
            expected: &[FreeInSlabs(0), Counted(Event::LockAlien, 12)],
        },
        Case {
            name: "an empty array is not locked",
            machine: three_cpus(),
            presets: &["slab@2.6.29,shared=0", "slab@6.1,shared=0"],
            size: 256,
            // Visits at 1, 3, 5 and 7 s.
            steps: &[Feed(1, 0, 5), Feed(2, 0, 7), Wait(7000)],
            expected: &[Counted(Event::LockAlien, 12 + 2)],
        },
    ];
    cases.iter().for_each(check);
}

/// Read off a 6.1.192 with SLAB.
#[test]
fn cpus_that_come_and_go_take_locks() {
    let cases = [
        Case {
            name: "one for a CPU that goes, one for each free slab of its node, three for a CPU that comes",
            machine: two_nodes(),
            presets: &[NEW],
            size: 192,
            steps: &[Alloc(0, 1), Free(0, 1), Down(0), Up(0)],
            expected: &[
                Counted(Event::LockNodeList, 1 + (1 + 1) + 3),
                Counted(Event::FreeSlab, 1),
                Counted(Event::SlabReaped, 0),
            ],
        },
        Case {
            name: "the node's last one: of each alien array, and of the other node if that has objects",
            machine: two_nodes(),
            presets: &[NEW],
            size: 192,
            steps: &[Alloc(0, 2), Free(2, 1), Down(2), Down(3), Up(2), Up(3)],
            expected: &[Counted(Event::LockNodeList, 1 + 1 + (1 + 1) + 6), Counted(Event::LockAlien, 1 + 1)],
        },
    ];
    cases.iter().for_each(check);
}

#[test]
fn the_last_cpu_of_a_node_empties_its_arrays() {
    for (preset, own) in [(OLD, 10), (NEW, 11)] {
        Machine::new(two_nodes()).expect("the spec is right").enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(256));
            // 60 objects are in the shared array of node 1. Five objects of node 0 are in its alien array.
            heap.step(Alloc(2, 121));
            heap.step(Free(2, 121));
            heap.step(Feed(0, 2, 5));
            let waits = |heap: &Heap| heap.cache.usage_on(NodeId(1)).parked;
            heap.step(Down(2));
            assert_eq!(waits(&heap), 60, "{preset}: CPU 3 is up, what both share stays");
            heap.step(Down(3));
            assert_eq!(waits(&heap), 0, "{preset}: the node has no CPU left");
            // The five objects returned to node 0: CPU 0 needs no new slab after its own ten.
            let grown = heap.cache.counted(Event::SlabGrown);
            heap.step(Alloc(0, own + 5));
            assert_eq!(heap.cache.counted(Event::SlabGrown), grown, "{preset}");
            heap.step(Up(2));
            heap.step(Up(3));
            heap.end();
        });
    }
}

/// An attempt on one node neither wakes kswapd nor reclaims, because other nodes are tried next.
#[test]
fn one_node_attempts_do_not_reclaim() {
    for (preset, (major, minor, patch)) in [(OLD, (2, 6, 29)), (NEW, (6, 1, 0))] {
        Machine::new(two_nodes()).expect("the spec is right").enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(256));
            heap.pages = Pages::new(PagesPolicy::for_release(major, minor, patch));
            let greedy = Gfp::ATOMIC | Gfp::MEMALLOC | Gfp::THISNODE;
            let taken = || heap.pages.alloc(greedy, 0, NodeId(0), FrameKind::Allocated);
            let hoard: Vec<_> = std::iter::from_fn(taken).collect();
            let cost = || [Event::KswapdWake, Event::DirectReclaim].map(Model::counted);
            let before = cost();
            heap.step(Alloc(0, 1));
            assert_eq!(cost(), before, "{preset}");
            assert_eq!(heap.cache.usage_on(NodeId(1)).slabs, 1, "{preset}: the other node serves");
            hoard.into_iter().for_each(|pfn| heap.pages.free(pfn));
            heap.end();
        });
    }
}
