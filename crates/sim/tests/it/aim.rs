//! AIM7: every job ends with what it began with, and users run at the same time.

use crate::machine::setup;
use slablab_sim::process::Kind;
use slablab_sim::programs::aim7::{Aim7, Mix};
use slablab_sim::programs::repeat::{self, Length, Repeat};
use slablab_sim::record::Recorder;
use slablab_sim::tally::Outcome;

/// A process that repeats an operation once.
const ONE: Repeat = Repeat { tasks: 1, kind: Kind::Process, outside: 0, length: Length::Rounds(1) };

fn run(preset: &str, tasks: u32, mix: Mix, length: Length) -> Outcome {
    let repeat = Repeat { tasks, length, ..ONE };
    let outcome =
        repeat::run(&setup(preset, 4, 1), &repeat, 1, &Recorder::default(), &[], |_| Aim7::new(mix));
    outcome.unwrap_or_else(|failed| panic!("{preset} {tasks} {mix:?}: {failed}"))
}

#[test]
fn jobs_keep_nothing() {
    for mix in [Mix::Shared, Mix::Compute, Mix::Files] {
        for preset in ["slab@2.6.29", "slub@6.18"] {
            let outcome = run(preset, 3, mix, Length::Rounds(15));
            assert_eq!(outcome.messages, 3 * 15, "{preset} {mix:?}");
            for cache in outcome.caches {
                assert_eq!(cache.allocs, cache.frees, "{preset} {mix:?}: {}", cache.name);
            }
        }
    }
}

#[test]
fn users_run_at_the_same_time() {
    let length = Length::Window { warm_up: 1_000_000_000, counted: 40_000_000_000 };
    let [one, four] = [1, 4].map(|tasks| run("slub@6.18", tasks, Mix::Shared, length).messages);
    assert!(four > 3 * one && four < 5 * one, "{one} jobs of a user, {four} of four");
}
