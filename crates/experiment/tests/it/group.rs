//! The limit of a memory group, beside a real kernel's: docs/vm.md has the figures.

use slablab_experiment::pressure::run::Options;
use slablab_readers::vmrecord::{Record, State};
use slablab_trace::script::Script;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of the real group's limit, less what the program and the kernel had of it for themselves.
const LIMIT: u64 = 113_246_208 - 370 * 4_096;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/vm")
}

/// The scenario's script in the group, on a machine with memory to spare and that host's read-ahead.
fn run(scenario: &str) -> Record {
    let path = folder().join(format!("{scenario}.t"));
    let text = std::fs::read_to_string(&path).expect("a script");
    let text = format!(
        "set /sys/fs/cgroup/script/memory.max {LIMIT}\nset /sys/block/vda/queue/read_ahead_kb 8192\n{text}"
    );
    let script =
        Script::parse(scenario, &text, &mut |file: &str| Err(format!("no {file}"))).expect("a script");
    let set = ["managed=65536", "free=60000"].map(String::from);
    let options = Options::of("vm@6.18", "slub@6.18", Path::new("vm-guest"), &set).expect("a machine");
    let run = options.run(&Arc::new(script), 1).expect("it ends");
    assert!(run.killed.is_empty(), "{scenario}");
    run.records.into_iter().next().expect("a record").1
}

/// What a record has of a count: `majflt`, `pswpin`, `pswpout`, or pages present of an object.
fn of(record: &Record, phase: &str, count: &str) -> u64 {
    let phase = record.phase(phase).unwrap_or_else(|| panic!("no {phase}"));
    match count.split_once(' ') {
        Some((_, object)) => phase.residency(object).expect("an object").count(State::Present).into(),
        None if count == "majflt" => phase.rusage.majflt as u64,
        None => phase.delta(count) as u64,
    }
}

#[test]
fn a_real_group_keeps_faults_and_swaps_as_modelled() {
    let table = std::fs::read_to_string(folder().join("group-6.18.csv")).expect("the counts");
    let mut modelled: BTreeMap<&str, Record> = BTreeMap::new();
    let mut errors = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [scenario, phase, count, real] = fields[..] else { panic!("{line}") };
        let real: f64 = real.parse().expect("a number");
        let record = modelled.entry(scenario).or_insert_with(|| run(scenario));
        errors.push((of(record, phase, count) as f64 / real - 1.0).abs());
    }
    let page = std::fs::read_to_string(folder().join("../../../docs/vm.md")).expect("the page");
    let within = [0.01, 0.02, 0.05, 0.1].map(|most| errors.iter().filter(|error| **error <= most).count());
    let row = format!("| {} | {} |", errors.len(), within.map(|count| count.to_string()).join(" | "));
    assert!(page.contains(&row), "docs/vm.md lacks\n{row}");
    assert!(within[1] * 5 > errors.len() * 4, "fewer than four of five are within 2 %");
}
