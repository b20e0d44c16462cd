//! Programs that repeat one operation: allocated objects are the counted ones, nothing leaks, runs repeat,
//! tasks that share nothing do not slow each other down, and tasks that share a lock do.

use crate::machine::setup;
use slablab_model::{Addr, LockTimes, Timed};
use slablab_platform::{CpuId, Event, rank};
use slablab_sim::era::Era;
use slablab_sim::kernel::with_kernel;
use slablab_sim::objects::Object;
use slablab_sim::process::Kind;
use slablab_sim::programs::aim9::{Aim9, Test};
use slablab_sim::programs::mappings::{Allocated, Change, Mappings, allocated};
use slablab_sim::programs::open_close::OpenClose;
use slablab_sim::programs::repeat::{Length, Repeat, run};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::{Failed, Outcome};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A process that repeats an operation once.
const ONE: Repeat = Repeat { tasks: 1, kind: Kind::Process, outside: 0, length: Length::Rounds(1) };

type Run = fn(&Setup, Repeat) -> Result<Outcome, Failed>;
type Allocates = fn(Era) -> Allocated;

const REGION: u64 = 1 << 20;

/// Name, run, allocated objects of each program. Those of aim9: 20 mappings of a small program; it opens
/// itself and two libraries, and looks for one more.
const PROGRAMS: [(&str, Run, Allocates); 8] = [
    (
        "mmap1",
        |setup, repeat| run_mappings(setup, repeat, Change::Map),
        |era| allocated(era, Change::Map, 0, 12),
    ),
    (
        "brk1",
        |setup, repeat| run_mappings(setup, repeat, Change::Heap),
        |era| allocated(era, Change::Heap, 0, 12),
    ),
    (
        "page_fault1",
        |setup, repeat| run_mappings(setup, repeat, Change::Touch(REGION)),
        |era| allocated(era, Change::Touch(REGION), 0, 12),
    ),
    (
        "open_close",
        |setup, repeat| run(setup, &repeat, 1, &Recorder::default(), &[], |_| OpenClose::default()),
        |_| each(&[(Object::Name, 1), (Object::File, 1), (Object::FileSecurity, 1)]),
    ),
    ("page_test", |setup, repeat| run_aim9(setup, repeat, Test::Page), |_| each(&HEAP)),
    ("brk_test", |setup, repeat| run_aim9(setup, repeat, Test::Brk), |_| each(&HEAP)),
    (
        "exec_test",
        |setup, repeat| run_aim9(setup, repeat, Test::Exec),
        |_| {
            each(&[
                (Object::Task, 1),
                (Object::Mm, 2),
                (Object::Vma, 40),
                (Object::File, 3),
                (Object::Name, 4),
            ])
        },
    ),
    (
        "fork_test",
        |setup, repeat| run_aim9(setup, repeat, Test::Fork),
        |_| each(&[(Object::Task, 1), (Object::Mm, 1), (Object::Vma, 20)]),
    ),
];

const HEAP: [(Object, u64); 3] = [(Object::Vma, 1), (Object::AnonVma, 1), (Object::AnonVmaChain, 1)];

fn each(objects: &[(Object, u64)]) -> Allocated {
    Allocated { operations: 1, objects: objects.to_vec(), pages: 0 }
}

fn run_mappings(setup: &Setup, repeat: Repeat, change: Change) -> Result<Outcome, Failed> {
    run(setup, &repeat, 1, &Recorder::default(), &[], |_| Mappings { change, nodes: 0 })
}

/// Its tasks are processes, whatever the kind.
fn run_aim9(setup: &Setup, repeat: Repeat, test: Test) -> Result<Outcome, Failed> {
    run(setup, &Repeat { kind: Kind::Process, ..repeat }, 1, &Recorder::default(), &[], |_| Aim9::new(test))
}

const PRESETS: [&str; 6] =
    ["slab@2.6.29", "slub@2.6.29", "slqb@2009-01", "slub@6.1", "slub@6.18", "slub@7.0"];

/// Allocations of these caches, and the operations.
fn counts(outcome: &Outcome, caches: &[(&str, u64)]) -> (u64, Vec<u64>) {
    let of = |(name, _): &(&str, u64)| outcome.cache(name).map_or(0, |cache| cache.allocs);
    (outcome.messages, caches.iter().map(of).collect())
}

#[test]
fn allocated_objects_are_the_counted_ones_and_all_are_freed() {
    for (name, run, allocates) in PROGRAMS {
        for preset in PRESETS {
            for kind in [Kind::Process, Kind::Thread] {
                let setup = setup(preset, 2, 1);
                let era = Era::of(&setup.preset);
                let Allocated { operations: each, objects, .. } = allocates(era);
                let row = |(object, count): &(Object, u64)| Some((object.row(era)?.name, *count));
                let caches: Vec<(&str, u64)> = objects.iter().filter_map(row).collect();
                assert!(!caches.is_empty());
                let of = |rounds| {
                    let length = Length::Rounds(rounds);
                    let outcome = run(&setup, Repeat { tasks: 2, kind, length, ..ONE });
                    outcome.unwrap_or_else(|failed| panic!("{name} {preset} {kind:?}: {failed}"))
                };
                let [(few_operations, few), (operations, many)] =
                    [20, 50].map(|rounds| counts(&of(rounds), &caches));
                for (at, (cache, count)) in caches.iter().enumerate() {
                    let counted = (many[at] - few[at]) * each;
                    let expected = (operations - few_operations) * count;
                    assert_eq!(counted, expected, "{name} {preset} {kind:?}: {cache}");
                }
                for cache in of(50).caches {
                    assert_eq!(cache.allocs, cache.frees, "{name} {preset} {kind:?}: {}", cache.name);
                }
            }
        }
    }
}

/// A region's pages and page tables are freed: more regions than fit into memory.
#[test]
fn pages_of_a_region_are_freed() {
    let mut small = setup("slub@6.18", 1, 1);
    small.spec.nodes[0].bytes = 32 << 20;
    let repeat = Repeat { length: Length::Rounds(40), ..ONE };
    let outcome = run_mappings(&small, repeat, Change::Touch(4 << 20));
    assert_eq!(outcome.expect("one region at a time fits").messages, 40 * 1024);
    let repeat = Repeat { length: Length::Rounds(1), ..ONE };
    let outcome = run_mappings(&small, repeat, Change::Touch(32 << 20));
    assert!(matches!(outcome, Err(Failed::OutOfMemory { .. })), "{outcome:?}");
}

/// Operations of one task and of four, counted for 2 ms.
fn scaling(run: Run, preset: &str, kind: Kind) -> [u64; 2] {
    let length = Length::Window { warm_up: 1_000_000_000, counted: 2_000_000_000 };
    [1, 4].map(|tasks| {
        let outcome = run(&setup(preset, 5, 1), Repeat { tasks, kind, length, ..ONE });
        outcome.unwrap_or_else(|failed| panic!("{preset} {kind:?}: {failed}")).messages
    })
}

#[test]
fn a_run_repeats() {
    for (name, run, _) in PROGRAMS {
        let repeat = Repeat { tasks: 3, kind: Kind::Thread, length: Length::Rounds(20), ..ONE };
        let of = || run(&setup("slub@6.18", 4, 1), repeat);
        assert_eq!(of(), of(), "{name}");
    }
}

/// Four processes do at least 3.5 times the work of one; four threads under one lock do less than 1.8 times.
#[test]
fn processes_scale_and_threads_wait_for_their_lock() {
    for (name, run, _) in &PROGRAMS[..2] {
        for preset in ["slab@2.6.29", "slub@6.1", "slub@6.18"] {
            let [one, four] = scaling(*run, preset, Kind::Process);
            assert!(
                four * 10 > one * 35 && four <= one * 41 / 10,
                "{name} {preset}: {one}, {four} operations"
            );
            let [one, four] = scaling(*run, preset, Kind::Thread);
            assert!(four * 10 < one * 18, "{name} {preset} threads: {one}, {four} operations");
        }
    }
}

/// mmap1 of one task for a few grace periods, whose stores take `nodes` nodes: which events a cache counted.
#[track_caller]
fn check_events(preset: &str, nodes: u32, cache: &str, some: &[Event], none: &[Event]) {
    let repeat = Repeat { length: Length::Rounds(20_000), ..ONE };
    let outcome = run(&setup(preset, 1, 1), &repeat, 1, &Recorder::default(), &[], |_| Mappings {
        change: Change::Map,
        nodes,
    });
    let outcome = outcome.unwrap_or_else(|failed| panic!("{preset}: {failed}"));
    let found = outcome.cache(cache).unwrap_or_else(|| panic!("{preset}: no {cache}"));
    assert_eq!(found.allocs, found.frees, "{preset} {cache}");
    let count = |event: &Event| found.events.iter().find(|(other, _)| other == event).map_or(0, |(_, n)| *n);
    some.iter().for_each(|event| assert!(count(event) > 0, "{preset} {nodes} {cache}: {event:?} is 0"));
    none.iter().for_each(|event| assert_eq!(count(event), 0, "{preset} {nodes} {cache}: {event:?}"));
}

/// A refill reads 28 objects that another node's CPU freed, but not while it holds the list's lock: that is
/// held for less than a line takes that moves between the nodes, 150 ns.
#[test]
fn a_refill_reads_no_objects_under_the_lists_lock() {
    let (refills, found) = (Rc::new(Cell::new(LockTimes::default())), Rc::new(Cell::new(0)));
    let (times, objects) = (refills.clone(), found.clone());
    let ended = with_kernel(&setup("slub@7.0,refill_reads=after", 2, 2), 1, |kernel| {
        kernel.start(kernel.new_process(), None, move |task| {
            task.pin(CpuId(0));
            let held: Vec<_> = (0..1024).map(|_| task.alloc_bytes(256)).collect();
            task.pin(CpuId(1));
            held.into_iter().for_each(|held| task.free(held));
            task.pin(CpuId(0));
            let before = Timed::lock_times::<rank::NodeList>();
            let held: Vec<_> = (0..512).map(|_| task.alloc_bytes(256)).collect();
            times.set(Timed::lock_times::<rank::NodeList>() - before);
            objects.set(held.len());
            held.into_iter().for_each(|held| task.free(held));
        });
        kernel.run()
    });
    ended.expect("it ends");
    let LockTimes { taken, hold, .. } = refills.get();
    // A sheaf holds 28 objects.
    assert!(taken >= found.get() as u64 / 28, "{taken} times for {} objects", found.get());
    assert!(hold / taken < 150_000, "{} ps each time", hold / taken);
}

/// A lean refill gives out the same objects in the same order, and takes less time: of new slabs it links
/// what it leaves, and what it leaves of an old one is not walked.
#[test]
fn a_lean_refill_takes_the_same_objects_in_less_time() {
    let run = |preset: &str, frees: bool| {
        let found: Rc<RefCell<(Vec<Addr>, u64)>> = Rc::default();
        let to = found.clone();
        let ended = with_kernel(&setup(preset, 2, 2), 1, |kernel| {
            kernel.start(kernel.new_process(), None, move |task| {
                task.pin(CpuId(0));
                let first: Vec<_> = (0..1024).map(|_| task.alloc_bytes(256)).collect();
                let start = Timed::clock();
                if frees {
                    // A CPU of another node frees to the slabs: 12 of 16 objects of each.
                    task.pin(CpuId(1));
                    first
                        .into_iter()
                        .filter(|held| held.address.0.get() % 4096 >= 1024)
                        .for_each(|held| task.free(held));
                    task.pin(CpuId(0));
                }
                let held: Vec<Addr> = (0..512).map(|_| task.alloc_bytes(256).address).collect();
                *to.borrow_mut() = (held, Timed::clock() - start);
            });
            kernel.run()
        });
        ended.expect("it ends");
        found.take()
    };
    for frees in [false, true] {
        // Which of both rules matters: what is left of a listed slab, or a new slab.
        for (knobs, gains) in [("refill_walks=yes", frees), ("new_links=all", !frees)] {
            let (lean, other) = (run("slub@7.2", frees), run(&format!("slub@7.2,{knobs}"), frees));
            assert_eq!(lean.0, other.0, "the objects, {knobs}, freed before: {frees}");
            let faster = lean.1 < other.1;
            assert_eq!(faster, gains, "{knobs}, freed before: {frees}: {} and {} ps", lean.1, other.1);
        }
    }
}

/// A refill from the node's shared array, which another CPU filled, waits for its lines together as far as
/// the machine can.
#[test]
fn lines_of_a_copied_array_come_together() {
    let refill = |misses_at_once: u32| {
        let found: Rc<RefCell<(Vec<Addr>, u64)>> = Rc::default();
        let to = found.clone();
        let mut setup = setup("slab@2.6.29", 2, 1);
        setup.hardware.costs.misses_at_once = misses_at_once;
        let ended = with_kernel(&setup, 1, |kernel| {
            kernel.start(kernel.new_process(), None, move |task| {
                let alloc = |count: u32| (0..count).map(|_| task.alloc_bytes(256)).collect::<Vec<_>>();
                task.pin(CpuId(1));
                let kept = alloc(200);
                task.pin(CpuId(0));
                alloc(400).into_iter().for_each(|held| task.free(held));
                task.pin(CpuId(1));
                let start = Timed::clock();
                let held = alloc(200).iter().map(|held| held.address).collect();
                *to.borrow_mut() = (held, Timed::clock() - start);
                drop(kept);
            });
            kernel.run()
        });
        ended.expect("it ends");
        found.take()
    };
    let (alone, together) = (refill(1), refill(4));
    assert_eq!(alone.0, together.0, "the objects");
    // 200 entries are on 25 lines or more, each one taken from the other CPU.
    assert!(together.1 < alone.1, "{} ps, line by line {}", together.1, alone.1);
}

#[test]
fn mappings_and_nodes_have_sheaves_from_6_18() {
    use Event::{BarnPut, FreeFrozen, FreeRcuSheaf, SheafAlloc, SheafPrefillFast, SheafPrefillSlow};
    for preset in ["slub@6.18", "slub@7.0"] {
        check_events(preset, 0, "vm_area_struct", &[SheafAlloc], &[FreeRcuSheaf]);
        check_events(
            preset,
            0,
            "maple_node",
            &[FreeRcuSheaf, BarnPut],
            &[SheafPrefillFast, SheafPrefillSlow],
        );
        check_events(preset, 3, "maple_node", &[FreeRcuSheaf, SheafPrefillFast], &[]);
    }
    // Without sheaves a node goes to its slab after its grace period, and a mapping to the CPU's slab.
    for preset in ["slub@6.12", "slub@6.18,sheaves=off"] {
        check_events(preset, 0, "maple_node", &[], &[FreeRcuSheaf, SheafAlloc, SheafPrefillSlow, FreeFrozen]);
        check_events(preset, 0, "vm_area_struct", &[], &[SheafAlloc]);
    }
    // One made for the call, where caches have no sheaves.
    check_events("slub@6.18,sheaves=off", 3, "maple_node", &[Event::SheafPrefillOversize], &[FreeRcuSheaf]);
}
