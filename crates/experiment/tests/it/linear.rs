//! Numbers that grow linearly with a parameter, and lists that differ by size.

use crate::experiment::folder;
use slablab_experiment::judge::linear::{Fit, fits};
use slablab_experiment::judge::verdict::judge;
use slablab_experiment::output::{Look, reproduce_answer};
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, ExperimentFile, Plan, Results, Size};
use slablab_sim::params::Given;

const GROWS: &str = r#"name = "grows"
title = "time in loops"
machines = ["laptop"]
engines = ["slub@6.18"]
workload = "hackbench"
repeats = 2
[parameters]
groups = [1, 2]
loops = [20, 40, 80]
[parameters.full]
groups = [1, 2, 64]
[[linear]]
name = "time"
parameter = "loops"
percent = 2
[[expect]]
name = "more groups"
base = { groups = 1, loops = 20 }
other = { groups = 2, loops = 20 }
sign = "higher"
[[expect]]
name = "many groups"
base = { groups = 1, loops = 20 }
other = { groups = 64, loops = 20 }
sign = "higher"
"#;

/// The experiment, and runs of it whose time `modelled` gives for groups and loops, in milliseconds.
fn results(name: &str, size: Size, modelled: impl Fn(u64, u64) -> f64) -> Results {
    let path = folder(name).join("experiment.toml");
    std::fs::write(&path, GROWS).expect("a file can be written");
    let experiment = Experiment::find(&path).expect("an experiment");
    let plan = Plan::new(&experiment, &Change { size: Some(size), ..Change::default() }).expect("a plan");
    let of = |cell: &slablab_experiment::plan::Cell| {
        let time = modelled(cell.values.number("groups"), cell.values.number("loops"));
        let run = |scatter: f64| {
            let mut sample = Sample::default();
            sample.metrics.insert("elapsed_ps".into(), (time * scatter * 1e9) as u64);
            Ok(sample)
        };
        Some(vec![run(0.999), run(1.001)])
    };
    let runs = plan.cells.iter().map(of).collect();
    Results { experiment, plan, runs, computed: 0, program: "p".into() }
}

#[test]
fn a_line_is_told_from_a_curve() {
    let check = |name: &str, modelled: &dyn Fn(u64, u64) -> f64, expected: &dyn Fn(&Fit) -> bool| {
        let results = results(name, Size::Standard, modelled);
        let found = fits(&results, &results.experiment.file.linear[0]);
        assert_eq!(found.len(), 2, "a line for each number of groups: {found:?}");
        assert!(found.iter().all(expected), "{name}: {found:?}");
        results
    };
    // 3 ms to start, 2 ms each loop.
    let line = check("grows-line", &|_, loops| 3.0 + 2.0 * loops as f64, &|fit| {
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-6;
        fit.is_linear && fit.residual_percent < 1e-4 && near(fit.start, 0.003) && near(fit.slope, 0.002)
    });
    let answer = reproduce_answer(&line, Look::default());
    assert!(answer.text(false).contains("linear"));
    let fits = &answer.json()["linear"][0]["fits"];
    assert_eq!((fits.as_array().map(Vec::len), &fits[0]["is_linear"]), (Some(2), &true.into()));
    // The largest residual of squares, and of a time that falls.
    let curve = |_: u64, loops: u64| (loops * loops) as f64;
    let curve = check("grows-curve", &curve, &|fit| !fit.is_linear && fit.residual_percent > 5.0);
    assert!(reproduce_answer(&curve, Look::default()).text(false).contains("not linear"));
    check("grows-falls", &|_, loops| 200.0 - loops as f64, &|fit| {
        !fit.is_linear && fit.residual_percent < 1e-4
    });
}

#[test]
fn lists_differ_by_size() {
    let time = |groups: u64, loops: u64| (groups * loops) as f64;
    let standard = results("grows-standard", Size::Standard, time);
    assert_eq!(standard.plan.cells.len(), 6);
    assert_eq!(judge(&standard).len(), 1, "a relation of cells of another size is not judged");
    let full = results("grows-full", Size::Full, time);
    assert_eq!(full.plan.cells.len(), 9);
    assert_eq!(judge(&full).len(), 2);
    let check = |from: &str, to: &str, words: &[&str]| {
        let bad = ExperimentFile::parse(&GROWS.replacen(from, to, 1)).err();
        let said = bad.unwrap_or_else(|| panic!("{to} was read")).to_string();
        words.iter().for_each(|word| assert!(said.contains(word), "{to}: no {word:?} in {said}"));
    };
    check("groups = 64,", "groups = 65,", &["line 24", "no cell has groups = 65"]);
    check("[parameters.full]", "[parameters.ful]", &["line 10", "ful", "near it: full"]);
    check("groups = [1, 2, 64]", "grups = [1]", &["line 11", "near it: groups"]);
    check("parameter = \"loops\"", "parameter = \"lops\"", &["line 14", "near it: loops"]);
    check("percent = 2", "percent = -1", &["line 15", "from 0 to 100"]);
}
