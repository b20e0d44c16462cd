//! Memory on two of eight nodes, in kernels with and without CONFIG_HAVE_MEMORYLESS_NODES: how often sheaves
//! and barns serve (docs/theory/sheaves.md 8).
//!
//! The machine is that of the report of February 2026: 64 CPUs, node k has CPUs 4k to 4k + 3 and 32 + 4k to
//! 32 + 4k + 3, and nodes 0 and 4 have memory. What these tests cannot show is time.

use super::*;

/// Objects in flight of each pair of CPUs: the queue depth of the report.
const DEPTH: u32 = 128;
/// Objects that each pair allocates and frees before counters count, and while they do.
const WARM_UP: u32 = 512;
const ROUNDS: u32 = 1000;

/// The cache of block requests in direct I/O (`bio-264`): 320 bytes, sheaves of 28 objects in 7.0.
const BIO: CacheSpec = CacheSpec::of_size(320);
/// A cache that asks for sheaves in 6.18.
const ASKS: CacheSpec = CacheSpec { sheaf_capacity: 32, ..CacheSpec::of_size(256) };

/// Which CPU frees the objects that a CPU allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// The CPU itself, all 64 of them.
    Same,
    /// CPU n + 32, of the same node, for CPUs 0 to 31.
    Sibling,
}

impl Traffic {
    fn pairs(self) -> Vec<(u16, u16)> {
        match self {
            Traffic::Same => (0..64).map(|cpu| (cpu, cpu)).collect(),
            Traffic::Sibling => (0..32).map(|cpu| (cpu, cpu + 32)).collect(),
        }
    }

    /// Every pair in turn allocates one object and frees its oldest, `rounds` times.
    fn run(self, heap: &mut Heap, rounds: u32) {
        for _ in 0..rounds {
            for (allocates, frees) in self.pairs() {
                heap.step(Alloc(allocates, 1));
                heap.step(Free(frees, 1));
            }
        }
    }
}

/// Events per thousand allocations, each of which has its free.
#[derive(Debug, PartialEq, Eq)]
struct Shares {
    alloc_fast: u64,
    free_fast: u64,
    /// Full sheaves taken from barns, and put there.
    barn_get: u64,
    barn_put: u64,
    /// Objects that refills of sheaves brought.
    refill: u64,
    /// Times that a `list_lock` was taken.
    list_lock: u64,
}

fn numa8(memoryless_nodes: bool) -> MachineSpec {
    let bytes = |node| if node % 4 == 0 { 256 * MIB } else { 0 };
    let distance = |from: u32, to: u32| match (from, to) {
        _ if from == to => 10,
        _ if from / 4 == to / 4 => 12,
        _ => 32,
    };
    MachineSpec {
        cpu_node: (0..64).map(|cpu| cpu % 32 / 4).collect(),
        nodes: (0..8).map(|node| NodeSpec { bytes: bytes(node) }).collect(),
        distance: (0..8).map(|from| (0..8).map(|to| distance(from, to)).collect()).collect(),
        memoryless_nodes,
        ..MachineSpec::uniform(64, 8, MIB)
    }
}

fn shares(preset: &str, spec: &CacheSpec, memoryless_nodes: bool, traffic: Traffic) -> Shares {
    Machine::new(numa8(memoryless_nodes)).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(preset, spec);
        for (allocates, _) in (0..DEPTH).flat_map(|_| traffic.pairs()) {
            heap.step(Alloc(allocates, 1));
        }
        traffic.run(&mut heap, WARM_UP);
        heap.step(Mark);
        traffic.run(&mut heap, ROUNDS);
        let done = ROUNDS as u64 * traffic.pairs().len() as u64;
        let of = |event: Event| (heap.cache.counted(event) - heap.own.zero[event as usize]) * 1000 / done;
        let found = Shares {
            alloc_fast: of(AllocFastpath),
            free_fast: of(FreeFastpath),
            barn_get: of(BarnGet),
            barn_put: of(BarnPut),
            refill: of(SheafRefill),
            list_lock: of(LockNodeList),
        };
        heap.end();
        found
    })
}

fn check_shares(
    traffic: Traffic,
    preset: &str,
    spec: &CacheSpec,
    memoryless_nodes: bool,
    expected: [u64; 6],
) {
    let [alloc_fast, free_fast, barn_get, barn_put, refill, list_lock] = expected;
    let expected = Shares { alloc_fast, free_fast, barn_get, barn_put, refill, list_lock };
    let found = shares(preset, spec, memoryless_nodes, traffic);
    let flag = if memoryless_nodes { "yes" } else { "no" };
    println!("{traffic:?} {preset}, memoryless_nodes = {flag}: {found:?}");
    assert_eq!(found, expected, "{traffic:?} {preset}, memoryless_nodes = {flag}");
}

/// A CPU on a node without memory has only slow operations in 7.0 where its memory node is its own node. 48
/// of the 64 CPUs are such CPUs. CPU slabs (6.18) do not depend on the memory node.
#[test]
fn one_cpu_allocates_and_frees() {
    let check = |preset, spec, flag, expected| check_shares(Traffic::Same, preset, spec, flag, expected);
    check("slub@7.0", &BIO, false, [250, 250, 0, 0, 0, 779]);
    check("slub@7.0", &BIO, true, [1000, 1000, 0, 0, 0, 0]);
    check("slub@7.1", &BIO, false, [1000, 1000, 0, 0, 0, 0]);
    check("slub@7.1", &BIO, true, [1000, 1000, 0, 0, 0, 0]);
    check("slub@6.18", &BIO, false, [980, 502, 0, 0, 0, 0]);
    check("slub@6.18", &BIO, true, [980, 502, 0, 0, 0, 0]);
    check("slub@6.18", &ASKS, false, [976, 250, 0, 0, 0, 23]);
    check("slub@6.18", &ASKS, true, [1000, 1000, 0, 0, 0, 0]);
}

/// A barn exchanges 36 sheaves of 28 objects per thousand allocations: 1000 / 28. In 7.0 with the option the
/// three nodes without memory of a socket share the barn of the fourth, which overflows and runs empty.
#[test]
fn one_cpu_allocates_and_another_frees() {
    let check = |preset, spec, flag, expected| check_shares(Traffic::Sibling, preset, spec, flag, expected);
    check("slub@7.0", &BIO, false, [250, 250, 9, 8, 0, 779]);
    check("slub@7.0", &BIO, true, [1000, 973, 22, 21, 378, 45]);
    check("slub@7.1", &BIO, false, [1000, 1000, 36, 35, 0, 0]);
    check("slub@7.1", &BIO, true, [1000, 1000, 36, 35, 0, 0]);
    check("slub@6.18", &BIO, false, [980, 0, 0, 0, 0, 25]);
    check("slub@6.18", &BIO, true, [980, 0, 0, 0, 0, 25]);
    check("slub@6.18", &ASKS, false, [976, 250, 8, 8, 0, 29]);
    check("slub@6.18", &ASKS, true, [1000, 1000, 32, 32, 0, 0]);
}
