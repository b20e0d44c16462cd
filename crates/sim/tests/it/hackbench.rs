//! hackbench: every message arrives, a run repeats, all engines run.

use crate::machine::setup;
use slablab_sim::process::Kind;
use slablab_sim::tally::{CacheTally, Outcome};
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

/// hackbench of 2 groups and 50 loops on 2 CPUs under 6.18, as it was recorded (docs/theory/kernel.md 7): the
/// share of `sk_buff`s freed on another CPU, the most at a time, the median lifetime in events, messages per
/// switch. The recording's numbers lie within what ten seeds give, whose means are within a factor of 1.5 of
/// them; no number was fitted to it.
#[test]
fn a_recording_of_6_18_lies_within_the_scatter_of_seeds() {
    let hackbench = Hackbench { groups: 2, loops: 50, ..Hackbench::default() };
    let outcomes: Vec<Outcome> = (1..=10).map(|seed| run("slub@6.18", 2, &hackbench, seed)).collect();
    let check = |what: &str, recorded: u64, of: &dyn Fn(&Outcome) -> u64| {
        let found: Vec<u64> = outcomes.iter().map(of).collect();
        let range = found.iter().min().copied()..=found.iter().max().copied();
        assert!(range.contains(&Some(recorded)), "{what}: recorded {recorded}, modelled {found:?}");
        let mean = found.iter().sum::<u64>() / 10;
        let near = recorded * 2 / 3..=recorded * 3 / 2;
        assert!(near.contains(&mean), "{what}: recorded {recorded}, mean {mean}");
    };
    fn heads(outcome: &Outcome) -> &CacheTally {
        outcome.cache("skbuff_head_cache").expect("messages have a head")
    }
    check("freed elsewhere, of 1,000", 502, &|run| heads(run).freed_elsewhere * 1_000 / heads(run).frees);
    check("live at most", 7_750, &|run| heads(run).live_max);
    check("median lifetime", 10_750, &|run| heads(run).lifetimes.quantile(50));
    // A ratio whose seeds differ by more than 10: its mean is that of all messages over all switches.
    check("switches of 10,000 messages", 746, &|run| run.switches * 10_000 / run.messages);
}

#[test]
fn sizes_have_the_messages_of_their_names() {
    #[track_caller]
    fn check(size: &str, messages: Option<u64>) {
        assert_eq!(Hackbench::sized(size).map(|hackbench| hackbench.messages()), messages, "{size}");
    }
    check("quick", Some(16_000));
    check("standard", Some(400_000));
    check("full", Some(32_000_000));
    check("huge", None);
}
