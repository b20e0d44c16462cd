//! Programs that repeat one operation: described objects are the counted ones, nothing leaks, runs repeat,
//! tasks that share nothing do not slow each other down, and tasks that share a lock do.

use crate::machine::setup;
use slablab_model::{LockTimes, Timed};
use slablab_platform::{CpuId, Event, rank};
use slablab_sim::era::Era;
use slablab_sim::kernel::with_kernel;
use slablab_sim::process::Kind;
use slablab_sim::programs::aim9::{self, Aim9, Test};
use slablab_sim::programs::repeat::{Described, Length, Repeat};
use slablab_sim::programs::{brk1, mmap1, open_close, page_fault1};
use slablab_sim::setup::Setup;
use slablab_sim::tally::{Failed, Outcome};

use std::cell::Cell;
use std::rc::Rc;

type Run = fn(&Setup, Repeat) -> Result<Outcome, Failed>;
type Describe = fn(Era) -> Vec<Described>;

const REGION: u64 = 1 << 20;

/// Name, run, described objects of each program.
const PROGRAMS: [(&str, Run, Describe); 8] = [
    (
        "mmap1",
        |setup, repeat| mmap1::run(setup, &mmap1::Mmap1 { repeat, nodes: 0 }, 1),
        |era| mmap1::describe(era, &mmap1::Mmap1::default()),
    ),
    (
        "brk1",
        |setup, repeat| brk1::run(setup, &brk1::Brk1 { repeat, nodes: 0 }, 1),
        |era| brk1::describe(era, &brk1::Brk1::default()),
    ),
    (
        "page_fault1",
        |setup, repeat| {
            page_fault1::run(setup, &page_fault1::PageFault1 { repeat, nodes: 0, bytes: REGION }, 1)
        },
        |era| {
            page_fault1::describe(era, &page_fault1::PageFault1 { bytes: REGION, ..Default::default() }, 12)
        },
    ),
    (
        "open_close",
        |setup, repeat| open_close::run(setup, &open_close::OpenClose { repeat }, 1),
        open_close::describe,
    ),
    ("page_test", |setup, repeat| run_aim9(setup, repeat, Test::Page), |era| aim9::describe(era, Test::Page)),
    ("brk_test", |setup, repeat| run_aim9(setup, repeat, Test::Brk), |era| aim9::describe(era, Test::Brk)),
    ("exec_test", |setup, repeat| run_aim9(setup, repeat, Test::Exec), |era| aim9::describe(era, Test::Exec)),
    ("fork_test", |setup, repeat| run_aim9(setup, repeat, Test::Fork), |era| aim9::describe(era, Test::Fork)),
];

fn run_aim9(setup: &Setup, repeat: Repeat, test: Test) -> Result<Outcome, Failed> {
    aim9::run(setup, &Aim9 { repeat, test }, 1)
}

const PRESETS: [&str; 6] =
    ["slab@2.6.29", "slub@2.6.29", "slqb@2009-01", "slub@6.1", "slub@6.18", "slub@7.0"];

/// Allocations of the caches in `described`, and the operations.
fn counts(outcome: &Outcome, described: &[Described]) -> (u64, Vec<u64>) {
    let of = |one: &Described| outcome.cache(one.cache).map_or(0, |cache| cache.allocs);
    (outcome.messages, described.iter().map(of).collect())
}

#[test]
fn described_objects_are_the_counted_ones_and_all_are_freed() {
    for (name, run, describe) in PROGRAMS {
        for preset in PRESETS {
            for kind in [Kind::Process, Kind::Thread] {
                let setup = setup(preset, 2, 1);
                let described: Vec<Described> = describe(Era::of(&setup.preset));
                let described: Vec<_> = described.into_iter().filter(|one| one.cache != "page").collect();
                assert!(!described.is_empty());
                let of = |rounds| {
                    let length = Length::Rounds(rounds);
                    let outcome = run(&setup, Repeat { tasks: 2, kind, length, ..Repeat::default() });
                    outcome.unwrap_or_else(|failed| panic!("{name} {preset} {kind:?}: {failed}"))
                };
                let [(few_operations, few), (operations, many)] =
                    [20, 50].map(|rounds| counts(&of(rounds), &described));
                for (at, one) in described.iter().enumerate() {
                    let counted = (many[at] - few[at]) * one.operations;
                    let expected = (operations - few_operations) * one.count;
                    assert_eq!(counted, expected, "{name} {preset} {kind:?}: {one:?}");
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
    let repeat = Repeat { length: Length::Rounds(40), ..Repeat::default() };
    let outcome = page_fault1::run(&small, &page_fault1::PageFault1 { repeat, nodes: 0, bytes: 4 << 20 }, 1);
    assert_eq!(outcome.expect("one region at a time fits").messages, 40 * 1024);
    let repeat = Repeat { length: Length::Rounds(1), ..Repeat::default() };
    let outcome = page_fault1::run(&small, &page_fault1::PageFault1 { repeat, nodes: 0, bytes: 32 << 20 }, 1);
    assert!(matches!(outcome, Err(Failed::OutOfMemory { .. })), "{outcome:?}");
}

/// Operations of one task and of four, counted for 2 ms.
fn scaling(run: Run, preset: &str, kind: Kind) -> [u64; 2] {
    let length = Length::Window { warm_up: 1_000_000_000, counted: 2_000_000_000 };
    [1, 4].map(|tasks| {
        let outcome = run(&setup(preset, 5, 1), Repeat { tasks, kind, length, ..Repeat::default() });
        outcome.unwrap_or_else(|failed| panic!("{preset} {kind:?}: {failed}")).messages
    })
}

#[test]
fn a_run_repeats() {
    for (name, run, _) in PROGRAMS {
        let repeat = Repeat { tasks: 3, kind: Kind::Thread, length: Length::Rounds(20), ..Repeat::default() };
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
    let repeat = Repeat { length: Length::Rounds(20_000), ..Repeat::default() };
    let outcome = mmap1::run(&setup(preset, 1, 1), &mmap1::Mmap1 { repeat, nodes }, 1);
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
