//! Replays with debugging and hardening around the engines. They balance like others. They report no
//! violation in a right recording, name the rows that free an object twice, and take the memory of their
//! zones.

use super::engines::mixture;
use super::program::trace;
use super::{FOUR_CPUS, PRESETS, check_with, machine, presets, run};
use slablab_replay::output::{remarks, replay_answer};
use slablab_replay::replay::Options;

const AROUND: [&str; 5] = [
    "debug=FZPU",
    "debug=F,quarantine=4K",
    "debug=FZPU,quarantine=16K,harden=random,init=free",
    "init=alloc+free",
    "debug=F,quarantine=4K,harden=random+encode",
];

#[test]
fn every_engine_balances_and_nothing_is_found() {
    let engines: Vec<String> = PRESETS
        .iter()
        .flat_map(|preset| AROUND.iter().map(move |around| format!("{preset},{around}")))
        .collect();
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let reader = trace("6.1.0", &mixture(3000));
    let options = Options { engines: presets(&engines), machine: machine(FOUR_CPUS), ..Options::default() };
    // A replay that does not balance is an error.
    let answer = run(&reader, &options);
    for outcome in &answer.outcomes {
        assert!(outcome.violations.caches.is_empty(), "{}: {:?}", outcome.engine(), outcome.violations);
        assert!(
            outcome.caches.iter().any(|cache| cache.traffic.frees > 100),
            "{}: too little",
            outcome.engine()
        );
    }
    let json = replay_answer(&answer, 0).json();
    assert_eq!(json["engines"][0]["violations"]["reports"], 0);
    assert_eq!(json["engines"][0]["engine"], "slub@2.6.29,debug=FZPU");
}

/// Encoding changes the links in free objects, but no counter.
#[test]
fn encoded_links_change_no_figure() {
    let reader = trace("6.1.0", &mixture(3000));
    let figures = |around: &str| {
        let engines: Vec<String> = PRESETS.iter().map(|preset| format!("{preset}{around}")).collect();
        let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
        let options =
            Options { engines: presets(&engines), machine: machine(FOUR_CPUS), ..Options::default() };
        let json = replay_answer(&run(&reader, &options), 0).json();
        let engines = json["engines"].as_array().expect("a list");
        engines.iter().map(|engine| (engine["total"].clone(), engine["caches"].clone())).collect::<Vec<_>>()
    };
    for ((plain, encoded), preset) in
        figures("").into_iter().zip(figures(",harden=encode")).zip(PRESETS.iter())
    {
        assert_eq!(plain, encoded, "{preset}");
    }
}

#[track_caller]
fn check(engine: &str, program: &str, expected: &str) {
    let options = Options { engines: presets(&[engine]), ..Options::default() };
    check_with(program, "6.1.0", &options, expected);
}

#[test]
fn zones_take_memory() {
    let program = "cache filp 256; 0 alloc filp 0-9; 0 free filp 0-4";
    // 256 + 8 + 8 + 8 + 64 + 8 bytes: 11 in a page instead of 16.
    check(
        "slub@6.1,debug=FZPU",
        program,
        "filp: object_size_bytes=256 slab_size_bytes=352 objs_per_slab=11 slabs=1",
    );
    check("slub@6.1,debug=F", program, "filp: slab_size_bytes=256 objs_per_slab=16 live_objects=5");
    // Held back: 1024 bytes are four objects; the fifth that was freed pushed the first one out.
    check(
        "slub@6.1,quarantine=1K",
        program,
        "filp: frees=5 live_objects=5 quarantined_objects=4 quarantine_hold=5 quarantine_release=1",
    );
}

#[test]
fn rows_that_free_what_is_not_there() {
    let program =
        "cache filp 256; 0 alloc filp 0-2; 0 free filp 0; 0 again filp 0; 0 unseen filp 5; 0 again filp 0";
    let reader = trace("6.1.0", program);
    for (engine, again, unallocated) in [("slub@6.1,debug=F", 2, 1), ("slub@6.1,debug=Z", 0, 0)] {
        let answer = run(&reader, &Options { engines: presets(&[engine]), ..Options::default() });
        let json = replay_answer(&answer, 0).json();
        let found = &json["engines"][0]["violations"];
        assert_eq!(
            (&found["rows_free_again"], &found["rows_free_unallocated"]),
            (&again.into(), &unallocated.into())
        );
        let told = remarks(&answer).join("\n");
        assert_eq!(told.contains("2 rows free an address again (the first: row 6)"), again > 0, "{told}");
    }
    let plain = run(&reader, &Options { engines: presets(&["slub@6.1"]), ..Options::default() });
    assert!(replay_answer(&plain, 0).json()["engines"][0]["violations"].is_null());
}
