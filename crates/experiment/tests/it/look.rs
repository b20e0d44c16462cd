//! Experiments to look at: the page, and recordings of a cell.

use crate::name_check::{HOSTILE, check_names};
use crate::page_check::check_page;
use crate::trace_decode::{Read, Shown, read};
use slablab_experiment::output::{Look, experiment_answer, write_perfetto};
use slablab_experiment::run::observe;
use slablab_experiment::run::observe::Seen;
use slablab_experiment::workload::Sample;
use slablab_experiment::workloads::WORKLOADS;
use slablab_experiment::{Change, Experiment, Options, Plan, Results, run};
use slablab_model::Spent;
use slablab_platform::Event;
use slablab_sim::record::{LOCK_WAITS, Limits, Recorder};
use slablab_sim::tally::Failed;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const HACKBENCH: &str = r#"name = "small"
title = "messages"
machines = ["numa8", "numa8-full"]
engines = ["slub@6.18", "slub@7.0"]
workload = "hackbench"
repeats = 2
[parameters]
groups = 3
pairs = 5
loops = 8
"#;

const UBLK: &str = r#"name = "small"
title = "block I/O"
machines = ["numa8"]
engines = ["slub@6.18", "slub@7.0"]
workload = "ublk"
size = "quick"
repeats = 2
"#;

const MICRO: &str = r#"name = "small"
title = "pairs"
machines = ["numa8"]
engines = ["slub@6.18"]
workload = "micro"
repeats = 1
[parameters]
pattern = "concurrent"
cpus = 4
batch = 1000
objects = 1000
"#;

/// Three tasks: one allocates two objects, the others free one each.
const EVENTS: &str = "\
   a-11  [000]  1.000010: kmem_cache_alloc: call_site=ffffffff81150f33 ptr=ffff888100000040 bytes_req=192 bytes_alloc=192 gfp_flags=GFP_KERNEL
   a-11  [000]  1.000020: kmalloc: call_site=ffffffff81150f33 ptr=ffff888100000140 bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL
   b-12  [001]  1.000030: kmem_cache_free: call_site=ffffffff81150f33 ptr=ffff888100000040
   c-13  [001]  1.000040: kfree: call_site=ffffffff81150f33 ptr=ffff888100000140
";

fn experiment(name: &str, text: &str) -> Experiment {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("look");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join(format!("{name}.toml"));
    fs::write(&path, text).expect("a file can be written");
    Experiment::find(&path).unwrap_or_else(|bad| panic!("{bad}"))
}

fn results(experiment: &Experiment) -> Results {
    run(experiment, &Options::default(), None, &|_, _| {}).unwrap_or_else(|bad| panic!("{bad}"))
}

const EXPECTS: &str = r#"
bytes = [64, 256]
[[expect]]
name = "a mail says"
ratio = 0.123
base = { bytes = 64 }
other = { bytes = 256 }
"#;

/// An experiment with a recording of [`EVENTS`].
fn recorded() -> String {
    experiment("beside", UBLK);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("look");
    fs::write(folder.join("events.txt"), EVENTS).expect("a file can be written");
    let text = UBLK.replace("\"ublk\"", "\"recording\"");
    format!("{text}[parameters]\nfile = \"events.txt\"\n")
}

/// The page of an experiment.
fn page_of(results: &Results, seen: &[Option<Seen>]) -> String {
    experiment_answer(results, Look { seen: Some(seen), ..Look::default() }).page(COMMAND)
}

const COMMAND: &str = "slablab run 'a & b' --html page.html";

#[test]
fn experiments_are_pages() {
    let check = |name: &str, text: &str, words: &[&str]| {
        let results = results(&experiment(name, text));
        let page = || {
            let seen = observe::seen(&results.experiment, &results.plan, Some(2));
            page_of(&results, &seen)
        };
        let found = page();
        check_page(&found, COMMAND);
        for words in words {
            assert!(found.contains(words), "{name}: no {words:?}");
        }
        assert_eq!(found, page(), "same input, same bytes");
    };
    let words = [
        "slub@7.0",
        "numa8-full",
        "elapsed_ps",
        "lines from other caches",
        "wait: ",
        "idle",
        "CPU 0",
        "Memory over time",
    ];
    check("page-hackbench", HACKBENCH, &words);
    check(
        "page-ublk",
        UBLK,
        &["iops", "wait: ", "Waits for locks by CPU", "Every metric", "Memory over time"],
    );
    let expects = format!("{MICRO}{EXPECTS}");
    check("page-relations", &expects, &["Published beside modelled", "a mail says", "0.123"]);
    check("page-micro", MICRO, &["cpu_ps", "compute", "wait: list_lock"]);
}

/// Names of machines and engines, titles and reasons of failures are those of files.
#[test]
fn a_page_passes_on_no_hostile_name() {
    let mut results = results(&experiment("hostile", HACKBENCH));
    let seen = observe::seen(&results.experiment, &results.plan, None);
    results.runs[3] = Some(vec![Err(Failed::Broken("OWNED".into()))]);
    for name in HOSTILE {
        results.experiment.file.name = name.into();
        results.experiment.file.title = name.into();
        results.experiment.file.engines.iter_mut().for_each(|engine| engine.0 = name.into());
        results.experiment.machines.iter_mut().for_each(|machine| machine.name = name.into());
        results.runs[2] = Some(vec![Err(Failed::Machine(name.into()))]);
        let page = page_of(&results, &seen);
        check_page(&page, COMMAND);
        // A tab is white space in markup, and no browser acts on it.
        check_names("the page of an experiment", &page.replace('\t', " "));
    }
    let name = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>";
    results.experiment.machines.iter_mut().for_each(|machine| machine.name = name.into());
    let page = page_of(&results, &seen);
    check_page(&page, COMMAND);
    assert!(!page.contains("<script>alert"), "a name is markup");
}

/// The slices of a CPU follow each other; those of slow paths lie inside the slice of their task.
#[test]
fn a_cell_is_recorded_for_a_viewer() {
    let check = |name: &str, text: &str, cell: usize, of_a_task: &str| {
        let experiment = experiment(name, text);
        let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
        let recording = observe::record(&experiment, &plan, cell).unwrap_or_else(|bad| panic!("{bad}"));
        let read = read(&write_perfetto(&recording, Vec::new()).expect("writing to memory"));
        let mut cpus: BTreeMap<&str, &Vec<Shown>> = BTreeMap::new();
        for (track, events) in read.tracks.iter().filter(|(track, _)| track.starts_with("CPUs/")) {
            assert!(cpus.insert(track, events).is_none(), "{name}: slices of {track} overlap");
        }
        let (mut names, mut slices) = (Vec::new(), 0);
        for (track, events) in cpus {
            let mut end = 0;
            for event in events {
                let (depth, of, from, to) = match event {
                    Shown::Slice(depth, of, from, to) => (depth, of, from, to),
                    Shown::Instant(of, _) => {
                        assert!(of == "preempted" || of.starts_with("wakes "), "{name}: {track}: {of}");
                        continue;
                    }
                    Shown::Value(..) => panic!("{name}: {track}: {event:?}"),
                };
                names.push(of.as_str());
                if *depth == 0 {
                    assert!(end <= *from && from <= to, "{name}: {track}: {from} to {to} after {end}");
                    (end, slices) = (*to, slices + 1);
                }
            }
        }
        assert!(slices > 100, "{name}: {slices} slices");
        let has = |part: &str| names.iter().any(|of| of.starts_with(part));
        assert!(has(of_a_task) && has("alloc_slowpath"), "{name}: {:?}", &names[..20]);
        let waits = read.tracks.iter().filter(|(track, _)| track.starts_with(&format!("{LOCK_WAITS}/")));
        assert!(waits.flat_map(|(_, events)| events).count() > 0, "{name}: no wait for a lock");
        let memory = read.tracks.iter().find(|(track, _)| track == "Memory/slabs").expect("memory");
        assert!(memory.1.iter().all(|value| matches!(value, Shown::Value(_, bytes) if *bytes > 0)));
        check_flows(name, &read);
    };
    check("trace-hackbench", HACKBENCH, 1, "sender 1.4");
    check("trace-ublk", UBLK, 1, "submit");
    let micro = experiment("trace-micro", MICRO);
    let plan = Plan::new(&micro, &Change::default()).expect("a plan");
    let said = |cell| observe::record(&micro, &plan, cell).expect_err("no recording").to_string();
    assert!(said(1).contains("--cell 2: expected 1 to 1"), "{}", said(1));
}

/// An arrow leads from each wake-up to the slice of the task that was woken, which begins later.
fn check_flows(name: &str, read: &Read) {
    let (ends, begins): (Vec<_>, Vec<_>) = read.flows.iter().partition(|flow| flow.1);
    let begins: BTreeMap<u64, (&str, u64)> =
        begins.into_iter().map(|(flow, _, of, at)| (*flow, (of.as_str(), *at))).collect();
    for (flow, _, of, at) in &ends {
        // The wake-up itself may be left out: it was before the counted part.
        let Some((wakes, from)) = begins.get(flow) else { continue };
        assert!(*wakes == format!("wakes {of}") && from <= at, "{name}: {wakes} at {from}, {of} at {at}");
    }
    assert_eq!(ends.len() > 10, name == "trace-hackbench", "{name}: {} of {}", ends.len(), begins.len());
    assert!(ends.len() * 2 >= begins.len(), "{name}: {} of {}", ends.len(), begins.len());
}

/// Threads of one process wait for the lock of their address space.
const REPEAT: &str = r#"name = "small"
title = "operations"
machines = ["numa8"]
engines = ["slub@6.18", "slub@7.0"]
workload = "mmap1"
size = "quick"
repeats = 1
[parameters]
tasks = 4
kind = "thread"
"#;

/// The shares of fast operations are those of the counters.
fn check_shares(name: &str, sample: &Sample) {
    let count = |event: Event| sample.counters.get(event.name()).copied().unwrap_or(0);
    for (metric, fast, slow) in [
        ("fast_allocs_ppm", Event::AllocFastpath, Event::AllocSlowpath),
        ("fast_frees_ppm", Event::FreeFastpath, Event::FreeSlowpath),
    ] {
        let (fast, all) = (count(fast), count(fast) + count(slow));
        if let Some(share) = sample.metrics.get(metric).filter(|_| all > 0) {
            assert_eq!(*share, fast * 1_000_000 / all, "{name}: {metric}");
        }
    }
}

/// A recorder changes no number of a run, and the waits by lock are all waits. Every workload records, those
/// that are not named here with their defaults.
#[test]
fn a_recorder_changes_nothing() {
    for workload in WORKLOADS {
        let name = workload.name;
        let text = match name {
            "hackbench" => HACKBENCH.to_string(),
            "recording" => recorded(),
            "micro" => MICRO.replace("[\"slub@6.18\"]", "[\"slub@6.18\", \"slub@7.0\"]"),
            "mmap1" | "brk1" | "page_fault1" => REPEAT.replace("mmap1", name),
            _ => UBLK.replace("\"ublk\"", &format!("{name:?}")),
        };
        let experiment = experiment(&format!("same-{name}"), &text);
        let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
        let cell = &plan.cells[1];
        let seed = plan.seed_of(0);
        let setup = experiment.setup(cell, seed);
        let run = |recorder: &Recorder| (workload.observe)(&setup, &cell.values, seed, recorder);
        let recorder = Recorder::new(Limits::default());
        let (off, on) = (run(&Recorder::default()), run(&recorder));
        assert_eq!(off, on, "{name}");
        assert!(!recorder.take().slices.is_empty(), "{name}: nothing is recorded");
        let plain = workload.run(&setup, &cell.values, seed);
        let observed = on.unwrap_or_else(|bad| panic!("{name}: {bad}"));
        assert_eq!(plain.as_ref(), Ok(&observed.sample), "{name}");
        check_shares(name, &observed.sample);
        let profile = observed.profile.expect("it tells where the time went");
        let waits: u64 = profile.waits.iter().flat_map(|(_, waits)| waits).sum();
        assert_eq!(waits, profile.sum(Spent::LockWait), "{name}");
        let has_waits = ["hackbench", "ublk", "mmap1", "brk1"].contains(&name);
        assert!(waits > 0 || !has_waits, "{name}: no wait");
    }
}
