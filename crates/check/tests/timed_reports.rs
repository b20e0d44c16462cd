//! The machine with clocks: what code that reports itself is charged.

use slablab_model::{Access, Costs, Hardware, MachineSpec, Paths, Ps, Timed, TimedMachine};
use slablab_platform::{
    Charged, CpuId, Frames, Hooks, Lock, NodeId, Pfn, Platform, Site, Step, Topology, Touch, rank,
};
use std::cell::Cell;
use std::rc::Rc;

const NS: Ps = 1000;
/// A line from memory, a transfer between CPUs, the exchanges of 8 and of 16 bytes.
const MEMORY: Ps = 100 * NS;
const TRANSFER: Ps = 40 * NS;
const EXCHANGE: Ps = 5 * NS;
const EXCHANGE16: Ps = 7 * NS;

/// A machine of four CPUs under one cache. Hits cost nothing.
fn machine() -> TimedMachine {
    let costs = Costs {
        cycle: 300,
        line_bytes: 64,
        l1_bytes: 1 << 20,
        l2_bytes: 1 << 20,
        llc_bytes: 1 << 20,
        transfer_llc: TRANSFER,
        transfer: vec![(10, TRANSFER)],
        memory: vec![(10, MEMORY)],
        locked_exchange: EXCHANGE,
        exchange16: EXCHANGE16,
        local_exchange: 2 * NS,
        interrupts: 9 * NS,
        ..Costs::default()
    };
    let hardware = Hardware { core: (0..4).collect(), llc: vec![0; 4], socket: vec![0; 4], costs };
    TimedMachine::new(MachineSpec::uniform(4, 1, 1 << 30), hardware, Paths::default())
        .expect("the machine is right")
}

/// What `f` returns in a call on `cpu`, and how long that took.
fn on<T: Default + 'static>(cpu: u16, f: impl FnOnce() -> T + 'static) -> (T, Ps) {
    let found = Rc::new(Cell::new((T::default(), 0)));
    let result = found.clone();
    Timed::spawn(CpuId(cpu), 0, move || {
        let before = Timed::clock();
        let value = f();
        result.set((value, Timed::clock() - before));
    });
    assert_eq!(Timed::run(), []);
    found.take()
}

/// Frame `index` of the machine's memory.
fn frame(index: u32) -> Pfn {
    Timed::node_frames(NodeId(0)).0.plus(index)
}

/// Touches one after another, each with its price and the lines that it moves.
#[test]
fn a_touch_is_charged_by_its_line() {
    machine().enter(|| {
        Timed::map_slab(frame(3), 0, 64, 1);
        let check = |cpu: u16, site: Site, bytes: u32, touch: Touch, ps: Ps, lines: u64| {
            let (charged, took) = on(cpu, move || Timed::touched(site, bytes, touch));
            assert_eq!((charged, took), (Charged { ps, lines }, ps), "{cpu} {site:?} {bytes} {touch:?}");
        };
        let own = |at: u64| Site::Own(at, NodeId(0));
        check(0, own(0), 8, Touch::Read, MEMORY, 1);
        check(0, own(8), 8, Touch::Write, 0, 0);
        // Another word of the line: false sharing.
        check(1, own(56), 8, Touch::Write, TRANSFER, 1);
        check(0, own(0), 8, Touch::Exchange, TRANSFER + EXCHANGE, 1);
        check(0, own(0), 16, Touch::Exchange, EXCHANGE16, 0);
        check(0, own(60), 8, Touch::Read, MEMORY, 1);
        check(0, own(128), 1, Touch::Read, MEMORY, 1);
        check(0, Site::Descriptor(frame(3)), 8, Touch::Write, MEMORY, 1);
        check(0, Site::Descriptor(frame(4)), 8, Touch::Write, MEMORY, 1);
        check(0, Site::Frame(frame(3), 64), 8, Touch::Write, MEMORY, 1);
        check(0, Site::Frame(frame(3), 72), 8, Touch::Write, 0, 0);
        check(0, Site::Frame(frame(3), 128), 8, Touch::Write, MEMORY, 1);
    });
}

/// The owner of an object and the code that reports touch the same lines.
#[test]
fn objects_have_one_set_of_lines() {
    machine().enter(|| {
        Timed::map_slab(frame(3), 0, 64, 1);
        let object = Timed::address(frame(3), 0);
        let reported = |cpu: u16, offset: u32| {
            on(cpu, move || Timed::touched(Site::Frame(frame(3), offset), 8, Touch::Write)).1
        };
        // From the first report on lines are kept one by one.
        assert_eq!(reported(0, 0), MEMORY);
        assert_eq!(on(1, move || Timed::touch(object, 192, Access::Write)).1, TRANSFER + 2 * (MEMORY / 4));
        assert_eq!([reported(0, 128), reported(0, 0), reported(0, 192)], [TRANSFER, TRANSFER, MEMORY]);
    });
}

#[test]
fn steps_have_prices() {
    machine().enter(|| {
        let check = |step: Step, times: u64, ps: Ps| {
            assert_eq!(on(0, move || Timed::ran(step, times)), (Charged { ps, lines: 0 }, ps), "{step:?}");
        };
        check(Step::Instruction, 30, 3 * NS);
        check(Step::Interrupts, 2, 18 * NS);
        check(Step::LocalExchange, 1, 2 * NS);
        assert_eq!(Timed::ran(Step::Interrupts, 1), Charged::default(), "outside of calls");
        let aside = on(0, || Timed::aside(|| Timed::touched(Site::Own(0, NodeId(0)), 8, Touch::Read)));
        assert_eq!(aside, (Charged::default(), 0));
    });
}

type NodeLock = <Timed as Platform>::Lock<rank::NodeList, ()>;

/// A lock shares its line with what lies beside it.
#[test]
fn a_lock_lies_where_it_is_made() {
    machine().enter(|| {
        let site = Site::Own(64, NodeId(0));
        let lock = Rc::new(Timed::made_at(site, || NodeLock::new(())));
        let take = |cpu: u16| {
            let lock = lock.clone();
            on(cpu, move || drop(lock.lock())).1
        };
        assert_eq!([take(0), take(0)], [MEMORY, 0]);
        assert_eq!(on(0, move || Timed::touched(site, 8, Touch::Write)).1, 0);
        assert_eq!(on(1, move || Timed::touched(site, 8, Touch::Write)).1, TRANSFER);
        // A word that is made afterwards lies elsewhere.
        let other = Rc::new(NodeLock::new(()));
        assert_eq!(on(0, move || drop(other.lock())).1, 2 * MEMORY);
    });
}
