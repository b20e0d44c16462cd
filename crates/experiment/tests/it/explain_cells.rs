//! Explanations of differences in an experiment: parts add up, and 2026's are those of the barns.

use serde_json::Value;
use slablab_experiment::explain::cells::{CellsExplained, explain_cells};
use slablab_experiment::explain::policies::explain_policies;
use slablab_experiment::output::explain_cells_answer;
use slablab_experiment::workload::Value as WorkloadValue;
use slablab_experiment::{Change, Experiment, Options, Size};
use slablab_slabs::Preset;
use slablab_vm::Preset as Vm;
use std::path::Path;

fn explain(engines: [&str; 2], threads: usize) -> Result<CellsExplained, String> {
    let experiment = Experiment::find(Path::new("2026")).expect("an installed experiment");
    let engines = engines.map(|name| (name.to_string(), Preset::parse(name).expect("an engine")));
    let change = Change { size: Some(Size::Quick), repeats: Some(2), ..Change::default() };
    let options = Options { change, threads: Some(threads), ..Options::default() };
    explain_cells(&experiment, &engines, &options, &|_, _| {}).map_err(|bad| bad.to_string())
}

/// A text with its lines as one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number that is written as a fraction.
fn fraction(value: &Value) -> f64 {
    let text = value.as_str().expect("a fraction");
    let (sum, over) = text.split_once('/').unwrap_or((text, "1"));
    sum.parse::<f64>().expect("a number") / over.parse::<f64>().expect("a number")
}

#[test]
fn barns_are_all_of_7_1() {
    let found = explain(["slub@7.0", "slub@7.1"], 2).expect("an answer");
    let answer = explain_cells_answer(&found, &[]);
    let json = answer.json();
    let by_one = explain(["slub@7.0", "slub@7.1"], 1).expect("an answer");
    assert_eq!(json, explain_cells_answer(&by_one, &[]).json(), "threads");
    let sentence = answer.sentence();
    assert!(sentence.starts_with("From slub@7.0 to slub@7.1, iops of numa8 serve_percent="), "{sentence}");
    assert!(sentence.contains(" M; the largest part is of barns, +"), "{sentence}");
    assert!(sentence.ends_with(" (100.0 %); one other difference is taken apart below."), "{sentence}");
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{json}");
    for row in rows {
        assert!(row["row"].as_str().is_some_and(|name| name.starts_with("numa8 ")), "{row}");
        for measure in row["measures"].as_array().expect("measures") {
            let parts = measure["parts"].as_array().expect("parts");
            let repeats = json["repeats"].as_f64().expect("a number");
            let sum: f64 = parts.iter().map(|part| fraction(&part["sum_of_repeats"])).sum::<f64>() / repeats;
            let change = measure["change"].as_f64().zip(measure["per_unit"].as_f64()).expect("numbers");
            assert!((sum - change.0 * change.1).abs() < 1e-3, "{sum} {measure}");
            let effects: Vec<bool> = parts.iter().map(|part| part["has_effect"] == true).collect();
            assert_eq!(effects, [true, false], "barns, not the kernel: {measure}");
        }
    }
    let said = one_line(&answer.text(false));
    for words in ["barns", "100.0", "no effect", "rows in which no difference can be told: numa8-full"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn what_has_no_parts_is_said() {
    let same = explain(["slub@7.1", "slub@7.1"], 2).expect("an answer");
    let nothing = "Nothing differs between slub@7.1 and slub@7.1 in 2026.";
    assert_eq!(explain_cells_answer(&same, &[]).sentence(), nothing);
    assert_eq!((same.groups.len(), same.rows.len()), (0, 0));
    let said = explain(["slub@7.1", "slqb@2009-09"], 2).err().expect("two engines");
    assert!(said.contains("slub and slqb are two engines"), "{said}");
}

/// Slots that are kept after a read from swap are one group of policies between two VMs: its part is the
/// whole change.
#[test]
fn policies_of_an_experiment_are_taken_apart() {
    let mut experiment = Experiment::find(Path::new("004-apps")).expect("an installed experiment");
    experiment.file.parameters.retain(|(name, _)| *name == "vm");
    experiment.file.parameters.push(("memory_mib", vec![WorkloadValue::Number(128)]));
    let change = Change { size: Some(Size::Quick), repeats: Some(1), ..Change::default() };
    let options = Options { change, threads: Some(2), ..Options::default() };
    let vms = ["vm@2.4.10", "vm@2.4.10,slots=until-full"].map(|name| Vm::parse(name).expect("a policy"));
    let found = explain_policies(&experiment, vms, &options, &|_, _| {}).expect("an answer");
    let names: Vec<&str> = found.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!((names, found.rows.len()), (vec!["slots"], 1));
    let measure = &found.rows[0].measures[0];
    assert_eq!(measure.metric, "swapped_in_kib");
    assert!(measure.from != measure.to, "{measure:?}");
    // The runs of all combinations begin and end with the runs of the two policies.
    let mut metrics = experiment.file.workload.metrics.iter();
    let metric = metrics.find(|metric| metric.name == measure.metric).expect("a metric");
    let end = |cell| found.ends.sample(cell, metric).expect("numbers").mean();
    assert_eq!([measure.from, measure.to], [end(0), end(1)]);
    assert_eq!(measure.parts[0].value, measure.to - measure.from);
    let answer = explain_cells_answer(&found, &[]);
    let said = answer.sentence();
    assert!(said.starts_with("From vm@2.4.10 to vm@2.4.10,slots=until-full, swapped_in_kib of "), "{said}");
    assert!(answer.text(false).lines().all(|line| line.chars().count() <= 80), "{}", answer.text(false));
    let micro = Experiment::find(Path::new("micro")).expect("an installed experiment");
    let bad = explain_policies(&micro, vms, &options, &|_, _| {}).err().expect("no page replacement");
    assert!(bad.to_string().contains("the workload micro has no parameter vm"), "{bad}");
}
