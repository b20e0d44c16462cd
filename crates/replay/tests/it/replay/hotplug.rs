//! CPUs that go offline and online: the effects, and the balance of objects and pages.

use super::engines::{metadata, mixture};
use super::program::trace;
use super::{FOUR_CPUS, PRESETS, check_with, machine, presets, run};
use slablab_platform::Event;
use slablab_replay::output::replay_answer;
use slablab_replay::replay::Options;
use slablab_replay::replay::hotplug::Command;

/// `TIME CPUS; TIME CPUS` as on the command line.
fn commands(text: &str) -> Vec<Command> {
    let parse = |line: &str| {
        let (time, what) = line.trim().split_once(' ').expect("a time and CPUs");
        Command::parse(time, what).expect("a command")
    };
    text.split(';').map(parse).collect()
}

/// A program of `filp`, 16 of which fill a slab, on four CPUs of two nodes.
#[track_caller]
fn check(engine: &str, at: &str, program: &str, expected: &str) {
    let options = Options {
        engines: presets(&[engine]),
        machine: machine(FOUR_CPUS),
        hotplug: commands(at),
        ..Options::default()
    };
    check_with(&format!("cache filp 256; {program}"), "6.1.0", &options, expected);
}

#[test]
fn slub_flushes_and_slqb_keeps() {
    let program = "1 alloc filp 0; wait 1000000; 1 alloc filp 1; wait 1000000; 1 alloc filp 2";
    // CPU 0 finds the slab of CPU 1 on the node's list; CPU 1 has none when it is back.
    let (off, on) = ("500us cpu1=off", "1500us cpu1=on");
    let both = format!("{on}; {off}");
    check("slub@6.1", off, program, "filp: allocs=3 cpuslab_flush=1 alloc_from_partial=1 slabs=1");
    check("slub@6.1", off, program, "total: rows_elsewhere=2");
    check("slub@6.1", &both, program, "filp: allocs=3 cpuslab_flush=1 alloc_from_partial=1 slabs=2");
    check("slub@6.1", &both, program, "total: rows_elsewhere=1");
    // The page is CPU 1's, which takes the next object of it when it is back.
    check("slqb@2009-09", off, program, "filp: allocs=3 alloc_slab_new=2 slabs=2");
    check("slqb@2009-09", &both, program, "filp: allocs=3 alloc_slab_new=2 alloc_slab_fill=1 slabs=2");
}

#[test]
fn rows_run_near_and_are_counted_where_they_run() {
    // CPU 3 frees what CPU 2 allocated for it: one CPU, as 3 is off. With its node off both run on node 0.
    let program =
        "2 alloc filp 0; wait 1000000; 3 alloc filp 1; 2 free filp 0-1; wait 1000000; 3 alloc filp 2";
    check(
        "slub@6.1",
        "100us cpu3=off",
        program,
        "filp: allocs=3 frees=2 frees_other_cpu=0 frees_other_node=0; total: rows_elsewhere=2",
    );
    check(
        "slub@6.1",
        "100us node1=off",
        program,
        "filp: allocs=3 frees=2 frees_other_cpu=1 frees_other_node=1; total: rows_elsewhere=4",
    );
}

#[test]
fn commands_between_and_after_rows_happen() {
    let program = "0 alloc filp 0; 1 alloc filp 1; wait 5000000; mark end filp";
    // No row but a mark follows either of the last two.
    check(
        "slub@6.1",
        "1us cpu2=off; 1ms cpu0=off; 2ms cpu1=off",
        program,
        "filp: cpuslab_flush=2 cpu_slabs=0",
    );
}

/// Whatever goes off and on, objects, counters and pages balance in every engine (else `run` panics), and
/// rows are the rows.
#[test]
fn nothing_is_lost() {
    let reader = trace("6.1.0", &mixture(6000));
    let at = |text: &str| Options {
        engines: presets(&PRESETS),
        machine: machine(FOUR_CPUS),
        hotplug: if text.is_empty() { Vec::new() } else { commands(text) },
        ..Options::default()
    };
    let still = run(&reader, &at(""));
    let end_s = reader.metadata().statistics.last_time_ns / 1_000_000_000;
    assert!(end_s > 8, "{end_s} s are too short for what follows");
    let each = |off: u64, what: [&str; 4]| -> String {
        let state = |second: u64| if second % 2 == off { "off" } else { "on" };
        let command = |second| format!("{second}.5s {}={}", what[second as usize / 2 % 4], state(second));
        (off..end_s / 2 * 2 - 1 + off).map(command).collect::<Vec<_>>().join("; ")
    };
    for text in [
        "0s cpu3=off".to_string(),
        "0s cpu0-2=off".to_string(),
        "0s node1=off; 4500ms node1=on; 6s node0=off".to_string(),
        each(0, ["cpu0", "cpu1", "cpu2", "cpu3"]),
        each(0, ["node0", "cpu0,2", "node1", "cpu1-3"]),
    ] {
        let replay = run(&reader, &at(&text));
        let elsewhere = replay.outcomes[0].elsewhere;
        assert!(elsewhere.rows > 500 && elsewhere.rows_other_node <= elsewhere.rows, "{text}: {elsewhere:?}");
        for (outcome, still) in replay.outcomes.iter().zip(&still.outcomes) {
            let (preset, traffic, total) = (outcome.preset, outcome.traffic(), outcome.total());
            let rows = (still.traffic().allocs, still.traffic().frees);
            assert_eq!((traffic.allocs, traffic.frees), rows, "{preset}, {text}");
            let (made, given_back) = metadata(outcome);
            assert_eq!(
                (total.allocs(), total.frees(), traffic.failed),
                (rows.0 + made, rows.1 + given_back, 0),
                "{preset}, {text}"
            );
            assert_eq!(outcome.elsewhere, elsewhere, "{preset}, {text}");
            let start = outcome.caches.iter().map(|cache| cache.start.slabs).sum::<u64>();
            let kept = start + total.get(Event::AllocSlab) - total.get(Event::FreeSlab);
            assert_eq!(
                kept,
                outcome.caches.iter().map(|cache| cache.end.slabs).sum::<u64>(),
                "{preset}, {text}"
            );
        }
        let json = replay_answer(&replay, 0).json();
        assert_eq!(json["hotplug"].as_array().map(Vec::len), Some(text.split(';').count()));
        assert_eq!(json["engines"][0]["total"]["rows_elsewhere"], elsewhere.rows);
        let remarks = json["remarks"].to_string();
        assert_eq!(remarks.contains("on the nearest node"), elsewhere.rows_other_node > 0, "{remarks}");
        assert_eq!(remarks.contains("keeps its memory"), text.contains("node"), "{remarks}");
    }
}
