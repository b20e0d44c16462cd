//! The allocator of a real tree on a machine with clocks.

use super::allocators::{built, policy};
use slablab_linux::build::Allocator;
use slablab_linux::engine::{Linux, LinuxPolicy};
use slablab_model::{Access, Addr, Costs, Hardware, MachineSpec, Paths, Ps, Timed, TimedMachine};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, Gfp, Topology, rank};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const CPUS: u16 = 8;
const NS: Ps = 1000;
/// Objects that each allocating CPU hands to another one.
const OBJECTS: u64 = 4_000;

/// Four nodes, of which so many have memory.
fn machine(with_memory: usize) -> TimedMachine {
    let costs = Costs {
        cycle: 300,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        llc_bytes: 32 << 20,
        l1: NS,
        l2: 4 * NS,
        llc: 12 * NS,
        transfer: vec![(10, 80 * NS), (20, 150 * NS)],
        memory: vec![(10, 90 * NS), (20, 150 * NS)],
        locked_exchange: 5 * NS,
        exchange16: 6 * NS,
        interrupts: 9 * NS,
        ..Costs::default()
    };
    let core: Vec<u16> = (0..CPUS).collect();
    let hardware = Hardware { llc: core.clone(), socket: core.clone(), core, costs };
    let mut spec = MachineSpec::uniform(CPUS, 4, 64 << 30);
    spec.memoryless_nodes = false;
    spec.nodes[with_memory..].iter_mut().for_each(|node| node.bytes = 0);
    TimedMachine::new(spec, hardware, Paths::default()).expect("the machine is right")
}

/// A cache, and objects on their way from each CPU to another one.
struct Load {
    pages: Pages<Timed>,
    cache: Linux<Timed>,
    on_way: Vec<RefCell<Vec<Addr>>>,
}

/// What a run did: counters, clocks, what functions cost.
#[derive(Debug, PartialEq)]
struct Seen {
    counts: Vec<u64>,
    clock: Ps,
    /// Locks that were taken, of lists, of arrays for other nodes' objects, and SLOB's.
    taken: [u64; 3],
    functions: BTreeMap<String, u64>,
}

/// Half of the CPUs allocate, the other half frees, until `last`.
fn run(policy: &LinuxPolicy, with_memory: usize, last: Ps) -> Seen {
    machine(with_memory).enter(|| {
        let load = Rc::new(Load {
            pages: Pages::new(PagesPolicy::for_release(7, 1, 0)),
            cache: Linux::create(CacheId(3), &CacheSpec::of_size(256), policy),
            on_way: (0..CPUS).map(|_| RefCell::default()).collect(),
        });
        let backing = Backing::pages(&load.pages);
        (0..Timed::cpus()).for_each(|cpu| load.cache.cpu_up(&backing, CpuId(cpu)));
        for cpu in 0..CPUS / 2 {
            let (from, to) = (load.clone(), load.clone());
            Timed::spawn(CpuId(cpu), 0, move || {
                for _ in 0..OBJECTS {
                    Timed::turn();
                    let object = from.cache.alloc(&Backing::pages(&from.pages), Gfp::KERNEL, None);
                    let object = object.expect("memory is left");
                    Timed::touch(object, 256, Access::Write);
                    from.on_way[cpu as usize].borrow_mut().push(object);
                }
            });
            Timed::spawn(CpuId(CPUS - 1 - cpu), 0, move || {
                let mut left = OBJECTS;
                while left > 0 {
                    Timed::charge(50 * NS);
                    Timed::turn();
                    let Some(object) = to.on_way[cpu as usize].borrow_mut().pop() else { continue };
                    to.cache.free(&Backing::pages(&to.pages), object).expect("an object of the cache");
                    left -= 1;
                }
            });
        }
        Timed::run_until(last);
        let mut functions = BTreeMap::new();
        load.cache.functions(&mut |name, costs| {
            functions.insert(name.to_string(), costs.ps);
        });
        Seen {
            counts: Event::ALL.iter().map(|event| load.cache.counted(*event)).collect(),
            clock: Timed::latest(),
            taken: [
                Timed::lock_times::<rank::NodeList>().taken,
                Timed::lock_times::<rank::Alien>().taken,
                Timed::lock_times::<rank::Heap>().taken,
            ],
            functions,
        }
    })
}

#[test]
fn code_is_charged_as_it_runs() {
    for allocator in Allocator::ALL {
        let Some(built) = built(allocator) else { continue };
        for with_memory in [4, 1] {
            charged(allocator, &policy(&built), with_memory);
        }
    }
}

fn charged(allocator: Allocator, policy: &LinuxPolicy, with_memory: usize) {
    let seen = run(policy, with_memory, Ps::MAX);
    assert_eq!(run(policy, with_memory, Ps::MAX), seen, "a run can be repeated");
    let count = |event: Event| seen.counts[event as usize];
    let all = u64::from(CPUS / 2) * OBJECTS;
    assert_eq!(count(Event::AllocFastpath) + count(Event::AllocSlowpath), all, "{allocator:?}");
    assert_eq!(count(Event::FreeFastpath) + count(Event::FreeSlowpath), all, "{allocator:?}");
    // A lock of a barn counts by itself, those that a call takes without success not at all.
    let counted = [Event::LockNodeList, Event::LockAlien, Event::LockHeap].map(count);
    // Sheaves are objects of other caches of the tree, which take locks of their own.
    let (own, rest) = (count(Event::SheafAlloc) == 0, counted[1..] == seen.taken[1..]);
    assert!(rest && counted[0] <= seen.taken[0], "{allocator:?}: {counted:?}, {seen:?}");
    assert!(!own || counted[0] == seen.taken[0], "{allocator:?}: {counted:?}, {seen:?}");
    match allocator {
        // This load takes CPUs' slabs alone where there are such.
        Allocator::Slub => assert!(seen.taken[0] > 0 || count(Event::SheafRefill) == 0, "{seen:?}"),
        Allocator::Slab => assert!(seen.taken[0] > 0 && seen.taken[1] > 0, "{seen:?}"),
        Allocator::Slob => assert!(seen.taken[2] >= 2 * all, "{seen:?}"),
    }
    let whole: Ps = seen.functions.values().sum();
    assert!(seen.functions["kmem_cache_free"] > 0 && whole > 2 * all * NS, "{seen:?}");
    assert!(whole < u64::from(CPUS) * seen.clock, "functions cost no more than the CPUs had: {seen:?}");
    // Calls that are suspended in the tree's code end with their machine, wherever that is.
    for part in 1..20 {
        let ended = run(policy, with_memory, seen.clock * part / 20);
        assert!(ended.clock <= seen.clock && ended.counts != seen.counts);
    }
}
