//! What the slab caches hold before a program starts: a word of the file.

use slablab_experiment::{Change, Experiment, ExperimentFile, Plan};
use std::path::Path;

const TEXT: &str = r#"name = "booted"
title = "a machine that has booted"
machines = ["laptop"]
engines = ["slub@6.1"]
workload = "hackbench"
[parameters]
groups = 1
loops = 1
"#;

fn experiment(text: &str) -> Experiment {
    let file = ExperimentFile::parse(text).unwrap_or_else(|bad| panic!("{bad}"));
    let found = Experiment::find(Path::new("micro")).expect("an installed experiment");
    let machines = found.machines.iter().take(1).cloned().collect();
    Experiment { file, machines, ..found }
}

/// Bytes of slabs before the program and beyond them after it, and the key of the cell.
fn run(text: &str) -> (u64, u64, String) {
    let experiment = experiment(text);
    let plan = Plan::new(&experiment, &Change::default()).unwrap_or_else(|bad| panic!("{bad}"));
    let cell = &plan.cells[0];
    let setup = plan.setup(&experiment, cell, 0);
    let sample = experiment.file.workload.run(&setup, &cell.values, plan.seed_of(0)).expect("a run");
    let of = |name: &str| sample.metrics[name];
    (of("slab_bytes_boot"), of("slab_bytes_left"), plan.keys(&experiment, "p").remove(0))
}

#[test]
fn a_booted_machine_has_slabs_before_the_program() {
    let (empty, left, key) = run(TEXT);
    let (booted, left_booted, key_booted) = run(&format!("boot = \"kernel\"\n{TEXT}"));
    assert_eq!(empty, 0);
    assert!(booted > 10 << 20, "{booted} bytes");
    // Slabs of the boot have room, so less is left behind that was not there.
    assert!(left_booted < left, "{left_booted} of {left} bytes");
    assert_ne!(key, key_booted);
    // The default may be said.
    assert_eq!(run(&format!("boot = \"empty\"\n{TEXT}")), (empty, left, key));
}

#[test]
fn what_is_not_known_is_refused() {
    let old = format!("boot = \"kernel\"\n{}", TEXT.replace("slub@6.1", "slub@5.10"));
    let bad = Plan::new(&experiment(&old), &Change::default()).expect_err("no boot of 5.10 is known");
    assert!(bad.to_string().contains("no boot before 6.1 is known"), "{bad}");
    let bad = ExperimentFile::parse(&format!("boot = \"cold\"\n{TEXT}")).err().expect("a wrong word");
    assert_eq!((bad.line, bad.what.as_str()), (1, "boot = \"cold\": expected \"empty\" or \"kernel\""));
}
