//! The machine with clocks under attack: calls that share a CPU, change it, panic, or are dropped with their
//! locks; locks taken outside of calls and out of order; where the allocator's own words lie.

use slablab_model::{Access, Costs, Hardware, MachineSpec, NodeSpec, Paths, Ps, Timed, TimedMachine};
use slablab_platform::{CpuId, Field, Frames, Lock, NodeId, PerNode, Pfn, Platform, Rank, Topology, rank};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const GIB: u64 = 1 << 30;
const NS: Ps = 1000;

/// A machine of `cpus` CPUs with a node each, of which node `n` has memory if `memory[n]`.
fn machine_of(memory: &[bool], costs: Costs) -> TimedMachine {
    let each: Vec<u16> = (0..memory.len() as u16).collect();
    let hardware = Hardware { core: each.clone(), llc: each.clone(), socket: each.clone(), costs };
    let nodes = memory.iter().map(|memory| NodeSpec { bytes: if *memory { GIB } else { 0 } }).collect();
    let spec = MachineSpec { cpu_node: each, nodes, ..MachineSpec::uniform(1, 1, GIB) };
    TimedMachine::new(spec, hardware, Paths::default()).expect("the machine is right")
}

/// A machine of `cpus` CPUs on which only what a test charges takes time.
fn free_machine(cpus: u16) -> TimedMachine {
    machine_of(&vec![true; cpus.into()], Costs::default())
}

/// A machine on which only lines from memory take time: 100 ns at home, 300 ns elsewhere.
fn memory_machine(memory: &[bool]) -> TimedMachine {
    let memory_price = vec![(10, 100 * NS), (20, 300 * NS)];
    machine_of(memory, Costs { line_bytes: 64, llc_bytes: 1 << 20, memory: memory_price, ..Costs::default() })
}

type ZoneLock = <Timed as Platform>::Lock<rank::Zone, u64>;
type ListLock = <Timed as Platform>::Lock<rank::NodeList, u64>;

/// What `f` charges the running call.
fn price_of(f: impl FnOnce()) -> Ps {
    let before = Timed::clock();
    f();
    Timed::clock() - before
}

/// Runs `f` in a call on `cpu` and returns its answer.
fn call<T: 'static>(cpu: u16, f: impl FnOnce() -> T + 'static) -> T {
    let answer = Rc::new(Cell::new(None));
    let given = answer.clone();
    Timed::spawn(CpuId(cpu), 0, move || given.set(Some(f())));
    assert_eq!(Timed::run(), []);
    answer.take().expect("the call ended")
}

/// A lock that is tried is taken in the order of clocks too.
#[test]
fn a_try_takes_its_turn() {
    free_machine(2).enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        let tried = lock.clone();
        Timed::spawn(CpuId(0), 0, move || {
            Timed::charge(1_000 * NS);
            assert!(tried.try_lock().is_none(), "CPU 1 holds the lock from 500 to 1,500 ns");
        });
        Timed::spawn(CpuId(1), 500 * NS, move || {
            let _taken = lock.lock();
            assert_eq!(Timed::clock(), 500 * NS);
            Timed::charge(1_000 * NS);
        });
        assert_eq!(Timed::run(), []);
    });
}

/// Outside of calls a lock has no time: it is free unless a call is suspended with it, its times stay, and
/// it is not counted.
#[test]
fn outside_of_calls_locks_take_no_time() {
    free_machine(3).enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        for cpu in 1..3 {
            let lock = lock.clone();
            Timed::spawn(CpuId(cpu), 0, move || {
                let _taken = lock.lock();
                Timed::charge(1_000 * NS);
            });
        }
        Timed::run_until(10 * NS);
        let times = Timed::lock_times::<rank::Zone>();
        // CPU 1 gave the lock back at 1,000 ns, ahead of the others. CPU 2 is promised it. CPU 0's clock
        // is 0.
        assert!(lock.try_lock().is_some());
        drop(lock.lock());
        assert_eq!(Timed::lock_times::<rank::Zone>(), times);
        Timed::run();
        assert_eq!(Timed::clock_of(CpuId(2)), 2_000 * NS);
        drop(lock.lock());
        Timed::spawn(CpuId(0), 500 * NS, move || drop(lock.lock()));
        Timed::run();
        assert_eq!(Timed::clock_of(CpuId(0)), 2_000 * NS, "the lock was held until then");
    });
}

/// Reading the machine outside of calls moves no line.
#[test]
fn outside_of_calls_no_line_moves() {
    memory_machine(&[true, true]).enter(|| {
        let word = Rc::new(<Timed as Frames>::Field::new(0));
        word.get();
        assert_eq!(Timed::lines_moved(), 0);
        let touched = word.clone();
        assert_eq!(call(1, move || price_of(|| touched.set(1))), 300 * NS, "from the memory of CPU 0's node");
        word.get();
        assert_eq!(call(1, move || price_of(|| word.set(2))), 0, "CPU 1 still has the line");
        assert_eq!(Timed::lines_moved(), 1);
    });
}

/// A lock outlives the calls that were dropped while they held it and waited for it.
#[test]
fn dropped_calls_leave_their_locks_free() {
    let mut machine = free_machine(4);
    let lock = machine.enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        for cpu in 0..4 {
            let lock = lock.clone();
            Timed::spawn(CpuId(cpu), 0, move || {
                let _taken = lock.lock();
                Timed::park();
            });
        }
        assert_eq!(Timed::run().len(), 4, "one parks, three wait for its lock");
        lock
    });
    machine.enter(|| {
        drop(lock.lock());
        let again = lock.clone();
        call(3, move || *again.lock() += 1);
        assert_eq!(*lock.lock(), 1);
        // The lock does not outlive its machine's scope.
        drop(lock);
    });
}

/// A call may run a machine of its own: afterwards it can still be suspended.
#[test]
fn a_call_runs_another_machine() {
    free_machine(2).enter(|| {
        let ended = Rc::new(Cell::new(false));
        let end = ended.clone();
        let outer = Timed::spawn(CpuId(0), 0, move || {
            free_machine(2).enter(|| {
                for cpu in 0..2 {
                    Timed::spawn(CpuId(cpu), 0, || Timed::charge(5 * NS));
                }
                Timed::spawn(CpuId(0), 0, Timed::park);
                assert_eq!(Timed::run().len(), 1);
                assert_eq!(Timed::latest(), 5 * NS);
            });
            assert_eq!(Timed::clock(), 0, "this machine's clock");
            Timed::park();
            end.set(true);
        });
        assert_eq!(Timed::run(), [outer]);
        Timed::unpark(outer, CpuId(1), 7 * NS);
        assert_eq!(Timed::run(), []);
        assert!(ended.get());
    });
}

/// A call whose CPU's clock another call moved continues at that clock, after all calls before it.
#[test]
fn a_call_waits_for_its_cpus_clock() {
    free_machine(2).enter(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        for (cpu, at, charged) in [(0, 0, 100), (0, 10, 0), (1, 50, 0)] {
            let order = order.clone();
            Timed::spawn(CpuId(cpu), at * NS, move || {
                order.borrow_mut().push((cpu, Timed::clock() / NS));
                Timed::charge(charged * NS);
            });
        }
        Timed::run_until(99 * NS);
        assert_eq!(*order.borrow(), [(0, 0), (1, 50)]);
        assert_eq!(Timed::run(), []);
        assert_eq!(*order.borrow(), [(0, 0), (1, 50), (0, 100)]);
    });
}

/// A call that moves to another CPU does not go back in time.
#[test]
fn time_does_not_go_back_on_another_cpu() {
    free_machine(2).enter(|| {
        call(0, || {
            Timed::charge(100 * NS);
            Timed::run_on(CpuId(1));
            assert_eq!(Timed::clock(), 100 * NS);
        });
        Timed::run_on(CpuId(0));
        assert_eq!(Timed::clock_of(CpuId(1)), 100 * NS);
    });
}

/// A panic of a call reaches the caller of `run`, gives back the call's locks, and leaves the other calls.
#[test]
fn a_call_that_panics_leaves_the_others() {
    free_machine(2).enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        let (first, second) = (lock.clone(), lock.clone());
        Timed::spawn(CpuId(1), 0, move || {
            let _taken = first.lock();
            Timed::run_on(CpuId(0));
            Timed::charge(10 * NS);
            panic!("on purpose");
        });
        Timed::spawn(CpuId(1), 5 * NS, move || *second.lock() += 1);
        let failed = catch_unwind(AssertUnwindSafe(Timed::run)).expect_err("the panic goes on");
        assert_eq!(failed.downcast_ref::<&str>(), Some(&"on purpose"));
        assert_eq!((Timed::current(), Timed::clock()), (None, 10 * NS));
        assert_eq!(Timed::run(), []);
        assert_eq!(*lock.lock(), 1);
    });
}

/// What a panic inside `enter` says.
fn message_of(f: impl FnOnce()) -> String {
    let failed = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
    failed
        .downcast_ref::<String>()
        .cloned()
        .or(failed.downcast_ref::<&str>().map(|text| text.to_string()))
        .expect("a text")
}

/// Locks taken in two orders are reported where the second one would wait for ever.
#[test]
fn locks_out_of_order_are_reported_before_they_wait() {
    free_machine(2).enter(|| {
        let (list, zone) = (Rc::new(ListLock::new(0)), Rc::new(ZoneLock::new(0)));
        const { assert!(rank::NodeList::LEVEL < rank::Zone::LEVEL) };
        let (first, then) = (zone.clone(), list.clone());
        Timed::spawn(CpuId(0), 0, move || {
            let _zone = first.lock();
            Timed::charge(20 * NS);
            let _list = then.lock();
        });
        Timed::spawn(CpuId(1), 10 * NS, move || {
            let _list = list.lock();
            let _zone = zone.lock();
        });
        let message = message_of(|| drop(Timed::run()));
        assert!(message.contains("taken while holding level"), "{message}");
    });
    free_machine(1).enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        Timed::spawn(CpuId(0), 0, move || {
            let _first = lock.lock();
            let _second = lock.lock();
        });
        let message = message_of(|| drop(Timed::run()));
        assert!(message.contains("taken while holding level"), "{message}");
    });
}

/// More words than a line has: the second line is on the group's node too.
struct Nine([<Timed as Frames>::Field; 9]);

impl Default for Nine {
    fn default() -> Nine {
        Nine(std::array::from_fn(|_| Field::new(0)))
    }
}

type PerNodeNine = <Timed as Platform>::PerNode<Nine>;

/// What each word of node 1's value costs CPU 1, if CPU 0 made them.
fn price_of_words(memory: &[bool]) -> Vec<Ps> {
    memory_machine(memory).enter(|| {
        let nodes = Rc::new(PerNodeNine::new());
        nodes.get(NodeId(1));
        call(1, move || {
            let words = &nodes.get(NodeId(1)).0;
            words.iter().map(|word| price_of(|| word.set(1))).collect()
        })
    })
}

/// A node's words lie in its memory, and a node's without memory in the nearest node's.
#[test]
fn words_lie_on_their_node() {
    let expected = |price: Ps| [price, 0, 0, 0, 0, 0, 0, 0, price];
    assert_eq!(price_of_words(&[true, true]), expected(100 * NS));
    assert_eq!(price_of_words(&[true, false]), expected(300 * NS));
}

/// Pages that belong to no slab can be touched, and links that another frame had cost what the new frame's
/// memory costs.
#[test]
fn lines_belong_to_frames() {
    memory_machine(&[true, true]).enter(|| {
        let (first, second) = (Timed::node_frames(NodeId(0)).0, Timed::node_frames(NodeId(1)).0);
        let touch =
            |pfn: Pfn| call(0, move || price_of(|| Timed::touch(Timed::address(pfn, 0), 8, Access::Write)));
        assert_eq!((touch(first), touch(second)), (100 * NS, 300 * NS), "no slabs");
        Timed::map_slab(first, 0, 512, 1);
        assert_eq!(touch(first), 100 * NS, "first touched");
        assert_eq!(touch(first), 0);
        Timed::unmap_slab(first, 0);
        Timed::map_slab(second, 0, 512, 1);
        assert_eq!(touch(second), 300 * NS, "other memory");
    });
}

/// Event time that a clock cannot show is the end of time.
#[test]
fn the_end_of_time_is_not_the_beginning() {
    free_machine(1).enter(|| {
        Timed::advance_to(u64::MAX);
        assert_eq!(Timed::clock(), Ps::MAX);
    });
}

/// A call that is due on a CPU goes as soon as the CPU's running call takes a turn: a call that computes in
/// turns does not hold up its CPU's timers.
#[test]
fn a_call_that_computes_lets_its_cpus_timers_go() {
    let mut machine = free_machine(2);
    machine.enter(|| {
        let fired = Rc::new(Cell::new(0));
        let found = fired.clone();
        Timed::spawn(CpuId(0), 0, || {
            for _ in 0..100 {
                Timed::charge(10 * NS);
                Timed::turn();
            }
        });
        Timed::spawn(CpuId(0), 55 * NS, move || found.set(Timed::clock()));
        assert_eq!(Timed::run(), []);
        assert_eq!(fired.get(), 60 * NS);
    });
}
