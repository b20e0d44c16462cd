//! hackbench: every message arrives, a run repeats, all engines run.

use crate::machine::setup;
use slablab_sim::params::{Params as _, Size};
use slablab_sim::process::Kind;
use slablab_sim::programs::hackbench::{self, Over, Params};
use slablab_sim::record::Recorder;
use slablab_sim::tally::{CacheTally, Outcome};

fn run(preset: &str, cpus: u16, hackbench: &Params, seed: u64) -> Outcome {
    let outcome = hackbench::run(&setup(preset, cpus, 1), hackbench, seed, &Recorder::default());
    outcome.unwrap_or_else(|failed| panic!("{preset}: {failed}"))
}

/// A receiver that misses a message or gets one twice fails the run.
#[test]
fn every_message_arrives_in_every_form() {
    for preset in ["slab@2.6.29", "slub@2.6.29", "slqb@2009-01", "slub@6.1", "slub@6.18", "slub@7.0"] {
        for over in [Over::Sockets, Over::Pipes] {
            for (kind, cpus) in [(Kind::Process, 1), (Kind::Thread, 4)] {
                let hackbench = Params { groups: 2, loops: 5, over, kind, ..Params::default() };
                let outcome = run(preset, cpus, &hackbench, 1);
                assert_eq!(
                    outcome.messages,
                    hackbench.all_messages(),
                    "{preset} {over:?} {kind:?} {cpus} CPUs"
                );
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
    let hackbench = Params { groups: 2, loops: 10, ..Params::default() };
    let of = |seed| run("slub@6.18", 4, &hackbench, seed);
    let first = of(1);
    assert_eq!(first, of(1));
    assert_ne!(first.elapsed, of(2).elapsed);
}

/// Each 100 loops more take about the same time, once the queues are full; four times the CPUs take about a
/// quarter of it.
#[test]
fn time_is_linear_in_loops_and_falls_with_cpus() {
    // The rise of one run scatters by a fifth, that of the sum of twelve by a 17th.
    let of = |loops, cpus| -> u64 {
        let hackbench = Params { groups: 2, loops, ..Params::default() };
        (1..=12).map(|seed| run("slub@6.18", cpus, &hackbench, seed).elapsed).sum()
    };
    let [short, middle, long] = [100, 200, 300].map(|loops| of(loops, 2));
    let percent = (long - middle) * 100 / (middle - short);
    assert!((85..115).contains(&percent), "{short}, {middle}, {long} ps: {percent} %");
    let percent = of(300, 8) * 100 / long;
    assert!((22..45).contains(&percent), "8 CPUs take {percent} % of the time of 2");
}

/// Whether a recorded number can be one more run of the model: whether it lies in the prediction interval of
/// the runs' logarithms, Student's with 38 degrees of freedom. Of six numbers of a right model one or more
/// lie outside of theirs in at most 5 % of all recordings: each interval has 1 - 5 % / 6 (Bonferroni).
#[track_caller]
fn check_recorded(what: &str, recorded: u64, runs: &[u64]) {
    const RUNS: usize = 39;
    /// Student's t of 38 degrees of freedom at 1 - 5 % / 12.
    const T: f64 = 2.783;
    assert_eq!(runs.len(), RUNS);
    let logs: Vec<f64> = runs.iter().map(|run| (*run.max(&1) as f64).ln()).collect();
    let mean = logs.iter().sum::<f64>() / RUNS as f64;
    let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (RUNS - 1) as f64;
    let half = T * (variance * (1.0 + 1.0 / RUNS as f64)).sqrt();
    let [low, high] = [mean - half, mean + half].map(f64::exp);
    let rank = runs.iter().filter(|run| **run < recorded).count();
    println!("{what}: recorded {recorded}, predicted {low:.0} to {high:.0}; {rank} of {RUNS} runs are below");
    assert!((low..=high).contains(&(recorded as f64)), "{what}: {recorded}, not {low:.0} to {high:.0}");
}

/// hackbench of 2 groups and 50 loops on 2 CPUs under 6.18, as it was recorded (docs/theory/kernel.md 7):
/// what became of its `sk_buff`s, and how often its tasks were switched. No number was fitted to it.
#[test]
fn a_recording_of_6_18_may_be_one_more_run() {
    let hackbench = Params { groups: 2, loops: 50, ..Params::default() };
    let outcomes: Vec<Outcome> = (1..=39).map(|seed| run("slub@6.18", 2, &hackbench, seed)).collect();
    let check = |what: &str, recorded: u64, of: &dyn Fn(&Outcome) -> u64| {
        check_recorded(what, recorded, &outcomes.iter().map(of).collect::<Vec<u64>>());
    };
    fn heads(outcome: &Outcome) -> &CacheTally {
        outcome.cache("skbuff_head_cache").expect("messages have a head")
    }
    check("freed elsewhere, of 1,000", 502, &|run| heads(run).freed_elsewhere * 1_000 / heads(run).frees);
    check("live at most", 7_750, &|run| heads(run).live_max);
    check("lifetime of a tenth", 861, &|run| heads(run).lifetimes.quantile(10));
    check("lifetime of half", 10_750, &|run| heads(run).lifetimes.quantile(50));
    check("lifetime of nine tenths", 30_532, &|run| heads(run).lifetimes.quantile(90));
    check("switches of 10,000 messages", 746, &|run| run.switches * 10_000 / run.messages);
}

#[test]
fn sizes_have_the_messages_of_their_names() {
    #[track_caller]
    fn check(size: Size, messages: u64) {
        assert_eq!(Params::sized(size).all_messages(), messages, "{size:?}");
    }
    check(Size::Quick, 16_000);
    check(Size::Standard, 400_000);
    check(Size::Full, 32_000_000);
}
