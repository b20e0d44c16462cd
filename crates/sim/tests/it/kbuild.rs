//! A build: its counts are those of its parameters, nothing leaks, and jobs run at the same time.

use crate::machine::setup;
use slablab_sim::programs::kbuild::{self, Params};
use slablab_sim::record::Recorder;
use slablab_sim::tally::Outcome;

fn run(preset: &str, kbuild: Params) -> Outcome {
    let small = Params { heap_mib: 1, user_us: 5_000, flush_ms: 20, ..kbuild };
    let outcome = kbuild::run(&setup(preset, 4, 1), &small, 1, &Recorder::default());
    outcome.unwrap_or_else(|failed| panic!("{preset}: {failed}"))
}

/// Allocations for each object.
#[track_caller]
fn check(preset: &str, expected: &[(&str, u64)]) {
    let of = |objects| run(preset, Params { objects, jobs: 2, ..Params::default() });
    let (few, many) = (of(2), of(5));
    assert_eq!((few.messages, many.messages), (2, 5));
    for (name, each) in expected {
        let [few, many] = [&few, &many].map(|outcome| outcome.cache(name).map_or(0, |cache| cache.allocs));
        assert_eq!(many - few, 3 * each, "{preset}: {name}");
    }
    for cache in many.caches {
        assert_eq!(cache.allocs, cache.frees, "{preset}: {}", cache.name);
    }
}

/// Lookups and opens are the parameters; six execs have 20 mappings each and a heap, a fork copies what its
/// parent has; 150, 35 and 20 KiB are written.
#[test]
fn an_object_allocates_what_its_parameters_say() {
    let mut counts = vec![
        ("names_cache", 450),
        ("filp", 325),
        ("vm_area_struct", 6 * (20 + 1 + 20) + 5),
        ("buffer_head", 52),
    ];
    check("slub@6.18", &counts);
    // ext3 has a handle for each page, three created files, a removal and a rename; times of access are
    // written once in a second.
    counts.push(("task_struct", 6));
    check("slab@2.6.29", &counts);
}

#[test]
fn jobs_run_at_the_same_time() {
    let elapsed = |jobs| run("slub@6.18", Params { objects: 8, jobs, ..Params::default() }).elapsed;
    let (one, four) = (elapsed(1), elapsed(4));
    assert!(one > 3 * four && one < 5 * four, "{one} ps with a job, {four} with four");
}
