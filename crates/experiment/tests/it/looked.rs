//! A script's memory over time: its page, its trace, and its rows.

use crate::page_check::check_page;
use crate::trace_decode::{Shown, read};
use slablab_experiment::output::{Column, Look, experiment_answer, run_answer, vmstat_log, write_perfetto};
use slablab_experiment::pressure::looked::{Recording, recorder};
use slablab_experiment::pressure::run::{Options, Run};
use slablab_experiment::run::observe;
use slablab_experiment::{Change, Experiment, Options as Runs, Plan, run as run_cells};
use slablab_trace::script::Script;
use std::path::Path;
use std::sync::Arc;

const MS: u64 = 1_000_000_000;
const COMMAND: &str = "slablab pressure run mixed.t --html page.html";
/// Anonymous memory and a file that do not fit together.
const MIXED: &str = "seed 7\nanon a 120\nfile f 30\nphase <fill>\nacc x1 a seq m w\nphase file\n\
                     acc x1 f seq s r\nacc 2000 f uni s w\nphase again\nacc 4000 a uni m r\nfsync f\n";

fn run(every: u64) -> (Run, Recording) {
    let options = Options::of("vm@6.1", "slub@6.1", Path::new("vm-guest"), &[]).expect("options");
    let mut load = |path: &str| Err(format!("no {path}"));
    let script = Arc::new(Script::parse("mixed.t", MIXED, &mut load).expect("a script"));
    let recorder = recorder(every, 1_000_000);
    let run = options.run_recorded(&script, 1, &recorder).expect("it ends");
    (run, recorder.take())
}

#[test]
fn a_script_has_a_page_and_a_trace() {
    let (of_script, recording) = run(10 * MS);
    let columns: [Column; 2] =
        [("vm@6.1".into(), vec![&of_script, &of_script]), ("<b>".into(), vec![&of_script])];
    let page = run_answer(Path::new("mixed.t"), &columns, &[]).page(COMMAND);
    check_page(&page, COMMAND);
    let words =
        ["Memory by use", "Faults and swap", "kswapd0", "Queues of the disks", "&lt;fill&gt;", "Swap Outs"];
    for word in words {
        assert!(page.contains(word), "no {word}");
    }
    let shown = read(&write_perfetto(&recording, Vec::new()).expect("writing to memory"));
    let track = |name: &str| {
        let found = shown.tracks.iter().find(|(track, _)| track == name);
        &found.unwrap_or_else(|| panic!("no track {name}: {:?}", shown.tracks.iter().map(|of| &of.0))).1
    };
    let last = of_script.looked.samples.last().expect("samples");
    for name in ["Memory/anonymous", "Memory/swap", "Paging/faults per second", "Disks/swap requests"] {
        let values = track(name).iter().filter(|event| matches!(event, Shown::Value(..))).count();
        assert!(values as u64 >= last.at / (10 * MS), "{name}: {values}");
    }
    let slices = |name: &str| track(name).iter().filter(|event| matches!(event, Shown::Slice(..))).count();
    assert!(slices("Reclaim and writeback/kswapd0") > 0 && slices("CPUs/CPU 0") > 10);
    assert_eq!(slices("Disk requests/vda") as u64, last.disks[1].1[0] + last.disks[1].1[4]);
    assert_eq!(recording.left_out, 0);
}

/// The log and mmtests' rows count what the records count.
#[test]
fn views_agree_with_the_record() {
    let (of_script, _) = run(10 * MS);
    let phases = &of_script.records[0].1.phases;
    let swapped_out: i64 = phases.iter().map(|phase| phase.delta("pswpout")).sum();
    assert!(swapped_out > 1_000, "{swapped_out} pages");
    let columns: [Column; 1] = [("vm@6.1".into(), vec![&of_script])];
    let rows = run_answer(Path::new("mixed.t"), &columns, &[]).text_of("mmtests", false).expect("a form");
    let row = rows.lines().find(|line| line.trim_start().starts_with("Swap Outs")).expect("a row");
    assert_eq!(row.split_whitespace().last(), Some(swapped_out.to_string().as_str()), "{rows}");
    // KiB a second, over whole tenths of a second and one shorter rest.
    let log = vmstat_log(&of_script.looked, 100 * MS);
    let lines: Vec<Vec<u64>> = log
        .lines()
        .skip(2)
        .map(|line| line.split_whitespace().map(|word| word.parse().expect("a number")).collect())
        .collect();
    assert!(lines.iter().all(|line| line.len() == 17), "{log}");
    let end = of_script.looked.samples.last().expect("samples").at;
    assert_eq!(lines.len() as u64, end.div_ceil(100 * MS));
    let whole: u64 = lines[..lines.len() - 1].iter().map(|line| line[7] / 10).sum();
    let rest = lines[lines.len() - 1][7] * (end % (100 * MS)) / (1_000 * MS);
    let kib = 4 * swapped_out as u64;
    assert!((whole + rest).abs_diff(kib) <= lines.len() as u64 + 1, "{whole} and {rest} of {kib} KiB");
    for line in &lines {
        let cpus: u64 = line[12..17].iter().sum();
        assert!((98..=102).contains(&cpus), "{cpus} percent in {line:?}");
    }
}

const STREAMING: &str = r#"name = "streams"
title = "a file larger than memory"
machines = ["kulesa-2001"]
engines = ["slab@2.4"]
workload = "streaming"
size = "quick"
repeats = 1
[parameters]
clients = 0
memory_mib = 32
"#;

/// A workload with page replacement has the same tracks in its page and its recording.
#[test]
fn an_experiment_with_page_replacement_is_sampled() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("streams.toml");
    std::fs::write(&path, STREAMING).expect("a file can be written");
    let experiment = Experiment::find(&path).unwrap_or_else(|bad| panic!("{bad}"));
    let results =
        run_cells(&experiment, &Runs::default(), None, &|_, _| {}).unwrap_or_else(|bad| panic!("{bad}"));
    let seen = observe::seen(&results.experiment, &results.plan, Some(1));
    let look = Look { seen: Some(&seen), ..Look::default() };
    let page = experiment_answer(&results, look).page(COMMAND);
    check_page(&page, COMMAND);
    let words =
        ["Memory over time", "Memory, paging and disks over time", "anonymous", "major faults per second"];
    for word in words {
        assert!(page.contains(word), "no {word}");
    }
    let [Some(seen)] = &seen[..] else { panic!("one cell: {seen:?}") };
    let free = seen.sampled.iter().find(|track| track.name == "free").expect("free memory");
    let (low, high) =
        free.points.iter().fold((u64::MAX, 0), |ends, (_, free)| (ends.0.min(*free), ends.1.max(*free)));
    assert!(free.bytes && low < high && high < 32 << 20, "{low} to {high}");
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let recording = observe::record(&experiment, &plan, 0).unwrap_or_else(|bad| panic!("{bad}"));
    let shown = read(&write_perfetto(&recording, Vec::new()).expect("writing to memory"));
    for name in
        ["Memory/free", "Paging/faults per second", "Reclaim and writeback/kswapd0", "Disk requests/vda"]
    {
        assert!(shown.tracks.iter().any(|(track, events)| track == name && !events.is_empty()), "no {name}");
    }
}
