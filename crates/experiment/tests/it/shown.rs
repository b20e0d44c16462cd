//! Metrics that `reproduce` shows of every cell, where nothing was published.

use crate::experiment::folder;
use slablab_experiment::output::{Look, reproduce_answer};
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, ExperimentFile, Plan, Results};
use slablab_sim::params::Given;
use slablab_sim::tally::Failed;

const NAMES: &str = r#"name = "names"
title = "names over time"
machines = ["kulesa-2001"]
engines = ["slab@2.4"]
workload = "apps"
repeats = 2
[parameters]
vm = ["vm@2.4.8", "vm@2.4.10"]
pixel_bytes = [3, 4]
[[expect]]
name = "in"
base = { vm = "vm@2.4.8" }
other = { vm = "vm@2.4.10" }
sign = "lower"
[[shown]]
name = "inodes over time"
cell = { pixel_bytes = 4 }
metrics = ["inodes_boot", "inodes_close"]
"#;

/// Each cell that a row selects has a line with the means of its runs; a cell that failed has none.
#[test]
fn metrics_of_selected_cells_are_shown() {
    let path = folder("shown").join("experiment.toml");
    std::fs::write(&path, NAMES).expect("a file can be written");
    let experiment = Experiment::find(&path).expect("an experiment");
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let run = |[inodes_boot, inodes_close]: [u64; 2]| {
        let numbers = [("swapped_in_kib", 5), ("inodes_boot", inodes_boot), ("inodes_close", inodes_close)];
        Sample {
            metrics: numbers.into_iter().map(|(name, number)| (name.into(), number)).collect(),
            ..Sample::default()
        }
    };
    let of = |cell: &slablab_experiment::plan::Cell| match cell.values.word("vm") {
        "vm@2.4.8" => {
            let more = cell.values.number("pixel_bytes") * 1_000;
            Some(vec![Ok(run([more + 10, 70])), Ok(run([more + 30, 90]))])
        }
        _ => Some(vec![Err(Failed::Livelock { seconds: 60, tasks: vec!["task 0".into()] })]),
    };
    let runs = plan.cells.iter().map(of).collect();
    let results = Results { experiment, plan, runs, computed: 0, program: "p".into() };
    let line = "inodes over time (inodes_*): means";
    let answer = reproduce_answer(&results, Look::default());
    for said in [answer.text(false), answer.markdown()] {
        assert!(said.contains(line) && said.contains("4020") && !said.contains("3020"), "{said}");
    }
    let json = &answer.json()["shown"][0];
    assert_eq!((&json["metrics"][1], &json["unit"]), (&"inodes_close".into(), &"1".into()));
    assert_eq!(json["cells"][0]["modelled"], serde_json::json!([4_020.0, 80.0]));
    assert_eq!(json["cells"][1]["modelled"], serde_json::json!([null, null]));
    assert_eq!(json["cells"].as_array().map(Vec::len), Some(2));
}

/// What a row must have, with the line.
#[test]
fn rows_that_show_nothing_are_refused() {
    let refused = |from: &str, to: &str| {
        let bad = ExperimentFile::parse(&NAMES.replace(from, to)).err().expect("refused");
        format!("{}: {}", bad.line, bad.what)
    };
    let metrics = r#"["inodes_boot", "inodes_close"]"#;
    assert_eq!(
        refused(metrics, r#"["inodes_boot", "rotate_ps"]"#),
        "18: rotate_ps is in s: expected 1, as the first of the metrics"
    );
    assert_eq!(refused(metrics, "[]"), "18: metrics is empty: expected metrics = [\"elapsed_ps\"]");
    let said = refused("inodes_close", "inode_close");
    assert!(said.starts_with("18: metric = \"inode_close\" is not measured by apps"), "{said}");
    assert!(said.contains("inodes_close"), "{said}");
}
