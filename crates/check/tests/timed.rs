//! The machine with clocks: calls, locks, reclaim, and the engines on it.

use slablab_model::{Costs, Handover, Hardware, MachineSpec, Paths, Ps, Timed, TimedMachine};
use slablab_platform::{CpuId, Gfp, Hooks, Lock, NodeId, Platform, Reclaim, ReclaimStep, Reclaimed, rank};
use std::cell::RefCell;
use std::rc::Rc;

const GIB: u64 = 1 << 30;
const NS: Ps = 1000;

/// A machine of `cpus` CPUs on which only what a test charges takes time.
fn free_machine(cpus: u16) -> TimedMachine {
    let each: Vec<u16> = (0..cpus).collect();
    let hardware = Hardware {
        core: each,
        llc: vec![0; cpus.into()],
        socket: vec![0; cpus.into()],
        costs: Costs::default(),
    };
    TimedMachine::new(MachineSpec::uniform(cpus, 1, GIB), hardware, Paths::default())
        .expect("the machine is right")
}

type ZoneLock = <Timed as Platform>::Lock<rank::Zone, u64>;
type ListLock = <Timed as Platform>::Lock<rank::NodeList, u64>;

/// `cpus` CPUs think for `think` and hold one lock for `hold`, `rounds` times each: rounds per second.
fn throughput(handover: Handover, cpus: u16, think: Ps, hold: Ps, rounds: u64) -> f64 {
    let mut machine = free_machine(cpus);
    let _ = handover;
    machine.enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        for cpu in 0..cpus {
            let lock = lock.clone();
            Timed::spawn(CpuId(cpu), 0, move || {
                for _ in 0..rounds {
                    Timed::charge(think);
                    let mut taken = lock.lock();
                    *taken += 1;
                    Timed::charge(hold);
                }
            });
        }
        assert_eq!(Timed::run(), []);
        assert_eq!(*lock.lock(), rounds * cpus as u64);
        (rounds * cpus as u64) as f64 / Timed::latest() as f64 * 1e12
    })
}

/// One lock, first come first served: min(N / (Z + S), 1 / S), within 1 % for N from 1 to 1,024.
#[test]
fn a_fair_lock_serves_as_queueing_theory_says() {
    let (think, hold) = (6_300 * NS, 100 * NS);
    for cpus in [1, 2, 3, 7, 16, 33, 63, 64, 65, 100, 256, 1024] {
        let expected = (cpus as f64 / (think + hold) as f64).min(1.0 / hold as f64) * 1e12;
        let found = throughput(Handover::Queued, cpus, think, hold, 8_000u64.div_ceil(cpus.min(64) as u64));
        let off = found / expected - 1.0;
        println!("{cpus:5} CPUs: {found:.0} a second, expected {expected:.0} ({:+.2} %)", off * 100.0);
        assert!(off.abs() < 0.01, "{cpus} CPUs: {found} a second, expected {expected}");
    }
}

/// A call that waits for one lock and wants another afterwards does not hold up a call that only wants the
/// other.
#[test]
fn waiting_for_one_lock_delays_no_one_at_another() {
    let mut machine = free_machine(3);
    machine.enter(|| {
        let list = Rc::new(ListLock::new(0));
        let zone = Rc::new(ZoneLock::new(0));
        // CPU 0 holds the list for 1,000 ns. CPU 1 comes at 10 ns, waits, then takes the zone at 1,000 ns.
        // CPU 2 wants the zone alone, at 20 ns.
        let first = list.clone();
        Timed::spawn(CpuId(0), 0, move || {
            let _taken = first.lock();
            Timed::charge(1_000 * NS);
        });
        let (second, then) = (list, zone.clone());
        Timed::spawn(CpuId(1), 10 * NS, move || {
            let _taken = second.lock();
            assert_eq!(Timed::clock(), 1_000 * NS, "CPU 1 gets the list when CPU 0 gives it back");
            let _then = then.lock();
            Timed::charge(50 * NS);
        });
        Timed::spawn(CpuId(2), 20 * NS, move || {
            let _taken = zone.lock();
            assert_eq!(Timed::clock(), 20 * NS, "CPU 2 gets the zone at once");
            Timed::charge(5 * NS);
        });
        assert_eq!(Timed::run(), []);
        assert_eq!(Timed::latest(), 1_050 * NS);
        let times = Timed::lock_times::<rank::NodeList>();
        assert_eq!((times.taken, times.waited, times.wait, times.hold), (2, 1, 990 * NS, 1_050 * NS));
    });
}

/// Calls queue for a lock in the order in which they come, also if its holder is suspended at another lock.
#[test]
fn a_lock_is_taken_in_the_order_of_arrival() {
    let mut machine = free_machine(8);
    machine.enter(|| {
        let list = Rc::new(ListLock::new(0));
        let zone = Rc::new(ZoneLock::new(0));
        let order = Rc::new(RefCell::new(Vec::new()));
        let first = zone.clone();
        Timed::spawn(CpuId(7), 0, move || {
            let _taken = first.lock();
            Timed::charge(500 * NS);
        });
        for cpu in 0..7u16 {
            let (list, zone, order) = (list.clone(), zone.clone(), order.clone());
            // CPU 6 comes first.
            let at = (7 - cpu) as Ps * 10 * NS;
            Timed::spawn(CpuId(cpu), at, move || {
                let _taken = list.lock();
                let _then = zone.lock();
                Timed::charge(NS);
                order.borrow_mut().push((cpu, Timed::clock() / NS));
            });
        }
        assert_eq!(Timed::run(), []);
        let expected: Vec<(u16, Ps)> = (0..7).map(|n| (6 - n, 501 + n as Ps)).collect();
        assert_eq!(*order.borrow(), expected);
    });
}

/// 100 tasks in direct reclaim end in the order their pages come back.
#[test]
fn reclaim_ends_as_pages_come_back() {
    let mut machine = free_machine(4);
    machine.enter(|| {
        let waiting = Rc::new(RefCell::new(Vec::new()));
        let ended = Rc::new(RefCell::new(Vec::new()));
        let asked = waiting.clone();
        Timed::set_reclaim(move |ask| {
            let call = Timed::current().expect("a call reclaims");
            asked.borrow_mut().push((call, ask.attempt));
            // It is this call's mark: the other calls run meanwhile.
            assert!(Timed::is_reclaimer());
            Timed::park();
            assert!(Timed::is_reclaimer());
            Reclaimed::ROUND
        });
        for task in 0..100u32 {
            let ended = ended.clone();
            // One after another on each of the four CPUs: a parked call does not occupy its CPU.
            Timed::spawn(CpuId(task as u16 % 4), task as Ps * NS, move || {
                assert!(!Timed::is_reclaimer());
                let gfp = Gfp::KERNEL;
                let node = NodeId(0);
                let step = ReclaimStep::Direct;
                let (class, order, reclaimer) = (1, 0, false);
                let ask = Reclaim { node, class, zone: class, order, gfp, reclaimer, attempt: task, step };
                assert_eq!(Timed::reclaim(ask), Reclaimed::ROUND);
                assert!(!Timed::is_reclaimer());
                ended.borrow_mut().push(task);
            });
        }
        assert_eq!(Timed::run().len(), 100, "all wait");
        // Pages come back in an order of their own.
        let order: Vec<usize> = (0..100).map(|n| n * 37 % 100).collect();
        for (at, index) in order.iter().enumerate() {
            let (call, task) = waiting.borrow()[*index];
            Timed::unpark(call, CpuId(task as u16 % 4), (1_000 + at as Ps) * NS);
        }
        assert_eq!(Timed::run(), []);
        let expected: Vec<u32> = order.iter().map(|index| waiting.borrow()[*index].1).collect();
        assert_eq!(*ended.borrow(), expected);
    });
}

/// Calls that are suspended for ever are ended with the machine's scope, and so are the locks they hold.
#[test]
fn suspended_calls_are_dropped_with_the_scope() {
    let dropped = Rc::new(());
    let mut machine = free_machine(2);
    machine.enter(|| {
        let lock = Rc::new(ZoneLock::new(0));
        for cpu in 0..2 {
            let (lock, held) = (lock.clone(), dropped.clone());
            Timed::spawn(CpuId(cpu), 0, move || {
                let _held = held;
                let _taken = lock.lock();
                Timed::park();
            });
        }
        assert_eq!(Timed::run().len(), 2, "one parks, one waits for its lock");
        assert_eq!(Rc::strong_count(&dropped), 3);
    });
    assert_eq!(Rc::strong_count(&dropped), 1);
}
