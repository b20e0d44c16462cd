//! Parameters that a mail does not tell: pinned on the base engine alone, and fitted in no score.

use slablab_experiment::file::pinned::Pinned;
use slablab_experiment::judge::score::score;
use slablab_experiment::judge::verdict::judge;
use slablab_experiment::workload::{Sample, Value};
use slablab_experiment::{Change, Experiment, ExperimentFile, Plan, Results, Size};
use std::path::Path;

const TEXT: &str = r#"name = "pinned"
title = "two engines and two patterns"
machines = ["laptop"]
engines = ["slub@6.18", "slub@7.1"]
workload = "micro"
[parameters]
pattern = ["pair", "batch"]
bytes = 64
[[pinned]]
parameter = "bytes"
base = { engine = "slub@6.18", pattern = "pair" }
other = { engine = "slub@6.18", pattern = "batch" }
tried = [64, 256]
how = "the nearest"
[[published]]
cell = { engine = "slub@6.18", pattern = "pair" }
value = 10
unit = "ns"
source = "s"
[[published]]
cell = { engine = "slub@6.18", pattern = "batch" }
value = 25
unit = "ns"
source = "s"
"#;

#[test]
fn only_the_base_engine_is_fitted_to() {
    let file = ExperimentFile::parse(TEXT).unwrap_or_else(|bad| panic!("{bad}"));
    let [one] = &file.pinned[..] else { panic!("one parameter is pinned") };
    assert_eq!((one.parameter, one.published, one.value.clone()), ("bytes", 2.5, Value::Number(64)));
    #[track_caller]
    fn check(line: &str, replaced: &str, words: &str) {
        assert!(TEXT.contains(line), "{line}");
        let bad = ExperimentFile::parse(&TEXT.replacen(line, replaced, 1)).err().expect(words);
        assert!(bad.what.contains(words) && bad.line > 5, "{bad}");
    }
    let other = "other = { engine = \"slub@6.18\", pattern = \"batch\" }";
    check(other, "other = { engine = \"slub@7.1\", pattern = \"batch\" }", "expected engine = \"slub@6.18\"");
    check(other, "other = { pattern = \"batch\" }", "expected engine = \"slub@6.18\"");
    check("bytes = 64\n", "bytes = [64, 256]\n", "expected one value of it");
    check("tried = [64, 256]", "tried = [128, 256]", "expected `tried` with 64");
    check("tried = [64, 256]", "tried = [64]", "and another value");
    check("value = 25\n", "value = 0\n", "expected [[published]] rows");
    check("parameter = \"bytes\"", "parameter = \"byts\"", "near it: bytes");
}

/// The relation that netperf's size was pinned on is none of the eleven others.
#[test]
fn a_fitted_relation_is_in_no_score() {
    let experiment = Experiment::find(Path::new("003-netperf")).expect("an installed experiment");
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let name = experiment.file.workload.metrics[experiment.file.metric].name;
    let run = |number: u64| Ok(Sample { metrics: [(name.to_string(), number)].into(), ..Sample::default() });
    let runs = plan.cells.iter().map(|_| Some(vec![run(100), run(101), run(99)])).collect();
    let judged = judge(&Results::of_runs(experiment, plan, runs, "p".into()));
    let fitted: Vec<&str> =
        judged.iter().filter(|row| row.words() == "fitted").map(|row| row.expect.name.as_str()).collect();
    assert_eq!(fitted, ["SLAB: same socket over same CPU"]);
    assert_eq!((judged.len(), score(&judged).rows), (12, 11));
}

/// Of the values that were tried, each pinned one is the nearest: again with each change of the model.
#[test]
fn pinned_values_are_the_nearest() {
    #[track_caller]
    fn check(name: &str, size: Size) {
        let experiment = Experiment::find(Path::new(name)).expect("an installed experiment");
        assert!(!experiment.file.pinned.is_empty(), "{name} pins nothing");
        for one in &experiment.file.pinned {
            let far = |value: &Value| {
                let found = figure(&experiment, one, value, size);
                println!("{} = {value}: {found:.3}, published {:.3}", one.parameter, one.published);
                (found / one.published).ln().abs()
            };
            let nearest = one.tried.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
            assert_eq!(nearest, Some(&one.value), "{name}: {}", one.parameter);
        }
    }
    check("003-netperf", Size::Quick);
    check("003-netio", Size::Quick);
    check("004-apps", Size::Standard);
}

/// The figure, or the ratio, that one run of each cell has with another value of the parameter.
fn figure(experiment: &Experiment, one: &Pinned, value: &Value, size: Size) -> f64 {
    let mut tried = experiment.clone();
    for (name, list) in &mut tried.file.parameters {
        if *name == one.parameter {
            *list = vec![value.clone()];
        }
    }
    let plan = Plan::new(&tried, &Change { size: Some(size), ..Change::default() }).expect("a plan");
    let workload = tried.file.workload;
    let metric = &workload.metrics[one.metric];
    let mean = |select| {
        let cell = &plan.cells[plan.selected(&tried, select)[0]];
        let sample =
            workload.run(&plan.setup(&tried, cell, 0), &cell.values, plan.seed_of(0)).expect("a run");
        metric.shown(sample.metrics[metric.name])
    };
    one.other.as_ref().map_or(mean(&one.base), |other| mean(other) / mean(&one.base))
}
