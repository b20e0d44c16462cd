//! AIM7: every job ends with what it began with, and users run at the same time.

use crate::machine::setup;
use slablab_sim::programs::aim7::{self, Aim7, MIXES};
use slablab_sim::programs::repeat::{Length, Repeat};
use slablab_sim::record::Recorder;
use slablab_sim::tally::Outcome;

fn run(preset: &str, tasks: u32, mix: usize, length: Length) -> Outcome {
    let repeat = Repeat { tasks, length, ..Repeat::default() };
    let outcome = aim7::run_recorded(&setup(preset, 4, 1), &Aim7 { repeat, mix }, 1, &Recorder::default());
    outcome.unwrap_or_else(|failed| panic!("{preset} {tasks} {}: {failed}", MIXES[mix].0))
}

#[test]
fn jobs_keep_nothing() {
    for (mix, _) in MIXES.iter().enumerate() {
        for preset in ["slab@2.6.29", "slub@6.18"] {
            let outcome = run(preset, 3, mix, Length::Rounds(15));
            assert_eq!(outcome.messages, 3 * 15, "{preset} {}", MIXES[mix].0);
            for cache in outcome.caches {
                assert_eq!(cache.allocs, cache.frees, "{preset} {}: {}", MIXES[mix].0, cache.name);
            }
        }
    }
}

#[test]
fn users_run_at_the_same_time() {
    let length = Length::Window { warm_up: 1_000_000_000, counted: 40_000_000_000 };
    let [one, four] = [1, 4].map(|tasks| run("slub@6.18", tasks, 0, length).messages);
    assert!(four > 3 * one && four < 5 * one, "{one} jobs of a user, {four} of four");
}
