//! The machine with clocks: what lines, pages, links and hand-overs of locks cost.

use slablab_model::{Access, Addr, Costs, Handover, Hardware, MachineSpec, Paths, Ps, Timed, TimedMachine};
use slablab_platform::{CpuId, Field, Frames, Lock, Memory, NodeId, PerNode, Pfn, Platform, Topology, rank};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const GIB: u64 = 1 << 30;
const NS: Ps = 1000;
/// A line from memory, one between CPUs of a last-level cache, one between two of these caches.
const MEMORY: Ps = 100 * NS;
const NEAR: Ps = 40 * NS;
const FAR: Ps = 200 * NS;

/// A machine of eight CPUs under two last-level caches. Hits and instructions cost nothing.
fn machine(change: impl FnOnce(&mut Costs, &mut Paths)) -> TimedMachine {
    let mut costs = Costs {
        line_bytes: 64,
        l1_bytes: 1 << 20,
        l2_bytes: 1 << 20,
        llc_bytes: 1 << 20,
        transfer_llc: NEAR,
        transfer: vec![(10, FAR)],
        memory: vec![(10, MEMORY)],
        ..Costs::default()
    };
    let mut paths = Paths::default();
    change(&mut costs, &mut paths);
    let llc = (0..8).map(|cpu| cpu / 4).collect();
    let hardware = Hardware { core: (0..8).collect(), llc, socket: vec![0; 8], costs };
    TimedMachine::new(MachineSpec::uniform(8, 1, GIB), hardware, paths).expect("the machine is right")
}

/// What `f` costs a call on `cpu`.
fn price_on(cpu: u16, f: impl FnOnce() + 'static) -> Ps {
    let price = Rc::new(Cell::new(0));
    let found = price.clone();
    Timed::spawn(CpuId(cpu), 0, move || {
        let before = Timed::clock();
        f();
        found.set(Timed::clock() - before);
    });
    assert_eq!(Timed::run(), []);
    price.get()
}

/// Frame `index` of the machine's memory.
fn frame(index: u32) -> Pfn {
    Timed::node_frames(NodeId(0)).0.plus(index)
}

fn touch(cpu: u16, at: Addr, bytes: u32, access: Access) -> Ps {
    price_on(cpu, move || Timed::touch(at, bytes, access))
}

type ZoneLock = <Timed as Platform>::Lock<rank::Zone, u64>;

/// CPU 0 holds a lock until 1,000 ns; `waiters` come in this order. Who gets it, and when, ns.
fn handed_over(handover: Handover, waiters: &[u16]) -> Vec<(u16, Ps)> {
    machine(|costs, _| {
        costs.handover = handover;
        costs.memory.clear();
    })
    .enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        let order = Rc::new(RefCell::new(Vec::new()));
        let held = lock.clone();
        Timed::spawn(CpuId(0), 0, move || {
            let _taken = held.lock();
            Timed::charge(1_000 * NS);
        });
        for (place, cpu) in waiters.iter().enumerate() {
            let (lock, order, cpu) = (lock.clone(), order.clone(), *cpu);
            Timed::spawn(CpuId(cpu), (place as Ps + 1) * NS, move || {
                let taken = lock.lock();
                order.borrow_mut().push((cpu, Timed::clock() / NS));
                drop(taken);
            });
        }
        assert_eq!(Timed::run(), []);
        order.take()
    })
}

/// A hand-over to the only waiter, and to the first of several, and then the line of the lock's data.
#[test]
fn hand_overs_cost_by_kind_and_waiters() {
    let check = |handover: Handover, waiters: &[u16], transfers: Ps| {
        let (_, at) = handed_over(handover, waiters)[0];
        assert_eq!(at, 1_000 + (transfers + 1) * NEAR / NS, "{handover:?}, waiters {waiters:?}");
    };
    for waiters in [&[1][..], &[1, 2, 3], &[1, 4, 5, 6, 7]] {
        check(Handover::Queued, waiters, 1);
        check(Handover::Ticket, waiters, (waiters.len() as Ps).div_ceil(2));
        check(Handover::TestAndSet, waiters, 1 + (waiters.len() as Ps).div_ceil(2));
    }
}

/// Queued and ticket locks serve the first waiter; test-and-set locks a nearest one.
#[test]
fn test_and_set_is_unfair() {
    let order = |handover, waiters: &[u16]| -> Vec<u16> {
        handed_over(handover, waiters).into_iter().map(|(cpu, _)| cpu).collect()
    };
    let waiters = [4, 1, 5, 2, 6, 3];
    assert_eq!(order(Handover::Queued, &waiters), waiters);
    assert_eq!(order(Handover::Ticket, &waiters), waiters);
    let found = order(Handover::TestAndSet, &waiters);
    let mut halves = [found[..3].to_vec(), found[3..].to_vec()];
    halves.iter_mut().for_each(|half| half.sort_unstable());
    assert_eq!(halves, [[1, 2, 3], [4, 5, 6]], "CPU 0 is under the cache of CPUs 1 to 3: {found:?}");
    assert_eq!(order(Handover::TestAndSet, &waiters), found, "the same run draws the same waiters");
}

/// A free lock costs a CPU that did not hold it last two lines: the lock's, and that of what it protects.
#[test]
fn a_lock_moves_its_data() {
    machine(|_, _| ()).enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        let take = |cpu: u16| {
            let lock = lock.clone();
            price_on(cpu, move || drop(lock.lock()))
        };
        assert_eq!([take(0), take(0)], [2 * MEMORY, 0]);
        assert_eq!(take(4), 2 * MEMORY + 2 * FAR, "the lock is free when CPU 0 has given it back");
        let times = Timed::lock_times::<rank::Zone>();
        assert_eq!((times.taken, times.hold), (3, MEMORY + FAR), "the data arrives while the lock is held");
    });
}

/// Zeros cost what the machine says for a KiB, or less if the lines are in a cache.
#[test]
fn zeros_need_no_lines() {
    machine(|costs, _| costs.zero_kib = 20 * NS).enter(|| {
        let page = |index| Timed::address(frame(index), 0);
        assert_eq!(touch(0, page(0), 4096, Access::Write), MEMORY + 63 * (MEMORY / 4));
        assert_eq!(touch(0, page(1), 4096, Access::Zero), 80 * NS);
        assert_eq!(touch(0, page(1), 4096, Access::Zero), 0, "in the cache");
        Timed::map_slab(frame(2), 0, 4096, 1);
        Timed::map_slab(frame(3), 0, 4096, 1);
        let fill = |index, value| price_on(0, move || Timed::fill(page(index), 4096, value));
        assert_eq!((fill(2, 0), fill(3, 0x6b)), (80 * NS, MEMORY + 63 * (MEMORY / 4)));
    });
}

/// A table of four entries holds four pages of 2 MiB, and eight pages in turn miss each time.
#[test]
fn pages_beyond_the_tlbs_reach_cost() {
    machine(|costs, _| {
        (costs.tlb_miss, costs.tlb_entries) = (10 * NS, 5);
        costs.memory.clear();
    })
    .enter(|| {
        let walk = |cpu: u16, pages: u32| -> Ps {
            (0..pages).map(|page| touch(cpu, Timed::address(frame(page * 512), 0), 8, Access::Read)).sum()
        };
        assert_eq!([walk(0, 4), walk(0, 4)], [40 * NS, 0]);
        assert_eq!([walk(0, 8), walk(0, 8)], [40 * NS, 80 * NS]);
        assert_eq!(touch(0, Timed::address(frame(7 * 512 + 511), 4088), 8, Access::Read), 0, "one page");
        // Each CPU has its own; the lines come from CPU 0.
        assert_eq!(walk(1, 1), 10 * NS + NEAR);
    });
    machine(|costs, _| {
        (costs.tlb_miss, costs.tlb_entries, costs.tlb_page_bytes) = (10 * NS, 4, GIB);
        costs.memory.clear();
    })
    .enter(|| {
        touch(0, Timed::address(frame(0), 0), 8, Access::Read);
        assert_eq!(touch(0, Timed::address(frame(100_000), 0), 8, Access::Read), 0, "pages of 1 GiB");
    });
}

/// Seventeen words in a group.
struct Words([<Timed as Frames>::Field; 17]);

impl Default for Words {
    fn default() -> Words {
        Words(std::array::from_fn(|_| Field::new(0)))
    }
}

/// Which words of a group start a line.
fn starts(line_bytes: u32) -> Vec<usize> {
    machine(|costs, _| costs.line_bytes = line_bytes).enter(|| {
        let nodes = Rc::new(<Timed as Platform>::PerNode::<Words>::new());
        let price = |at: usize| {
            let nodes = nodes.clone();
            price_on(0, move || nodes.get(NodeId(0)).0[at].set(1))
        };
        (0..17).filter(|at| price(*at) > 0).collect()
    })
}

/// Lines are as long as the machine says, for words and for objects.
#[test]
fn lines_have_the_machines_length() {
    assert_eq!(starts(64), [0, 8, 16]);
    assert_eq!(starts(128), [0, 16]);
    for (line_bytes, second) in [(64, MEMORY), (128, 0)] {
        machine(|costs, _| costs.line_bytes = line_bytes).enter(|| {
            Timed::map_slab(frame(0), 0, 64, 1);
            let write = |offset| touch(0, Timed::address(frame(0), offset), 8, Access::Write);
            assert_eq!([write(0), write(64)], [MEMORY, second], "objects of 64 bytes");
            assert_eq!(write(32), 0, "a line is that of its first object");
        });
    }
}

/// With links in the descriptor a free object is not touched, and two objects' links are on one line.
#[test]
fn links_in_the_descriptor_leave_objects_alone() {
    let prices = |links_in_descriptor| {
        machine(|_, paths| paths.links_in_descriptor = links_in_descriptor).enter(|| {
            Timed::map_slab(frame(4), 1, 256, 1);
            // The second object is in the slab's other page.
            let [first, second] = [0, 4096].map(|offset| Timed::address(frame(4), offset));
            let link = |object| price_on(0, move || Timed::set_link(object, 0, None));
            [link(first), link(second), touch(0, first, 8, Access::Read)]
        })
    };
    assert_eq!(prices(false), [MEMORY, MEMORY, 0]);
    assert_eq!(prices(true), [MEMORY, 0, MEMORY]);
}
