//! Test modules of the kernel: each object is counted, goes the way of its release, and comes back.

use crate::machine::setup;
use slablab_sim::programs::modules::{Areas, Frees, KfreeRcu, Vmalloc};
use slablab_sim::programs::program::{Program, Sample};
use slablab_sim::record::Recorder;

fn frees(preset: &str, params: Frees) -> Sample {
    KfreeRcu::run(&setup(preset, 4, 1), &params, 1, &Recorder::default()).expect("it runs").sample
}

fn counter(sample: &Sample, name: &str) -> u64 {
    sample.counters.get(name).copied().unwrap_or(0)
}

#[test]
fn bursts_go_by_sheaves_where_there_are_some() {
    let params = Frees { tasks: 4, objects: 500, rounds: 3, mult: 1 };
    let check = |preset: &str, by_sheaf: u64| {
        let sample = frees(preset, params);
        let allocs = counter(&sample, "alloc_fastpath") + counter(&sample, "alloc_slowpath");
        assert!(allocs >= 6_000, "{preset}: {allocs} allocations");
        // What boots and starts the tasks frees a few as well.
        let found = counter(&sample, "free_rcu_sheaf");
        assert!((by_sheaf..=by_sheaf + by_sheaf / 100).contains(&found), "{preset}: {found} by sheaves");
        assert!(sample.metrics["operation_ps"] > 0, "{preset}");
    };
    check("slub@6.1", 0);
    check("slub@6.18", 0);
    check("slub@7.0", 6_000);
    check("slub@7.3", 6_000);
}

/// Objects that wait for a grace period are memory: more of them, or larger ones, take more.
#[test]
fn what_waits_takes_memory() {
    let bytes = |objects, mult| {
        let params = Frees { tasks: 4, objects, rounds: 3, mult };
        frees("slub@7.3", params).metrics["slab_bytes_max"]
    };
    let least = bytes(500, 1);
    assert!(bytes(2_000, 1) > least && bytes(500, 8) > least, "{least} bytes");
}

/// Freed areas wait, and at the end nothing is left.
#[test]
fn areas_come_back() {
    for pages in [1, 512] {
        let params = Areas { tasks: 4, pages, outside_ns: 0, warm_up_us: 10, window_us: 4_000 };
        let sample = Vmalloc::run(&setup("slub@6.1", 4, 1), &params, 1, &Recorder::default());
        let sample = sample.expect("it runs").sample;
        let sum = |names: [&str; 2]| names.map(|name| counter(&sample, name)).iter().sum::<u64>();
        let allocs = sum(["alloc_fastpath", "alloc_slowpath"]);
        let frees = sum(["free_fastpath", "free_slowpath"]);
        assert!(allocs > 0 && frees >= allocs, "{pages} pages: {allocs} allocations, {frees} frees");
    }
}
