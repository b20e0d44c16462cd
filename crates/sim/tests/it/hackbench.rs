//! hackbench: every message arrives, a run repeats, all engines run.

use crate::machine::setup;
use slablab_sim::process::Kind;
use slablab_sim::tally::Outcome;
use slablab_sim::workloads::hackbench::{self, Hackbench, Over};

fn run(preset: &str, cpus: u16, hackbench: &Hackbench, seed: u64) -> Outcome {
    let outcome = hackbench::run(&setup(preset, cpus, 1), hackbench, seed);
    outcome.unwrap_or_else(|failed| panic!("{preset}: {failed}"))
}

/// A receiver that misses a message or gets one twice fails the run.
#[test]
fn every_message_arrives_in_every_form() {
    for preset in ["slab@2.6.29", "slub@2.6.29", "slqb@2009-01", "slub@6.1", "slub@6.18", "slub@7.0"] {
        for over in [Over::Sockets, Over::Pipes] {
            for (kind, cpus) in [(Kind::Process, 1), (Kind::Thread, 4)] {
                let hackbench = Hackbench { groups: 2, loops: 5, over, kind, ..Hackbench::default() };
                let outcome = run(preset, cpus, &hackbench, 1);
                assert_eq!(outcome.messages, hackbench.messages(), "{preset} {over:?} {kind:?} {cpus} CPUs");
                for cache in &outcome.caches {
                    let elsewhere = if cpus == 1 { 0 } else { cache.frees };
                    assert!(cache.freed_elsewhere <= elsewhere, "{preset} {over:?}: {cache:?}");
                }
            }
        }
    }
}

#[test]
fn a_seed_gives_one_outcome_and_another_seed_another() {
    let hackbench = Hackbench { groups: 2, loops: 10, ..Hackbench::default() };
    let of = |seed| run("slub@6.18", 4, &hackbench, seed);
    let first = of(1);
    assert_eq!(first, of(1));
    assert_ne!(first.elapsed, of(2).elapsed);
}

/// Each 100 loops more take about the same time, once the queues are full; four times the CPUs take about a
/// quarter of it.
#[test]
fn time_is_linear_in_loops_and_falls_with_cpus() {
    let of = |loops, cpus| {
        run("slub@6.18", cpus, &Hackbench { groups: 2, loops, ..Hackbench::default() }, 1).elapsed
    };
    let [short, middle, long] = [100, 200, 300].map(|loops| of(loops, 2));
    let percent = (long - middle) * 100 / (middle - short);
    assert!((85..115).contains(&percent), "{short}, {middle}, {long} ps: {percent} %");
    let percent = of(300, 8) * 100 / long;
    assert!((22..45).contains(&percent), "8 CPUs take {percent} % of the time of 2");
}
