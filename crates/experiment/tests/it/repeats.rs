//! How often cells run: until an interval is narrow, in several placements.

use crate::experiment::{files, folder, options};
use slablab_experiment::output::{Look, experiment_answer};
use slablab_experiment::{Change, Experiment, ExperimentFile, Folder, Options, Plan, Results, Shard};
use slablab_experiment::{join, run};
use std::collections::BTreeMap;
use std::path::Path;

const UNTIL: &str = r#"name = "until"
title = "hackbench until its interval is narrow"
machines = ["laptop"]
engines = ["slub@6.18", "slub@7.1"]
workload = "hackbench"
repeats = 3
repeats_most = 12
precision_percent = 4
[parameters]
groups = [1, 2]
pairs = 4
loops = 6
"#;

fn experiment(name: &str, text: &str) -> Experiment {
    let path = folder(name).join("experiment.toml");
    std::fs::write(&path, text).expect("a file can be written");
    Experiment::find(&path).expect("an experiment")
}

fn counts(results: &Results) -> Vec<usize> {
    results.runs.iter().map(|runs| runs.as_ref().map_or(0, Vec::len)).collect()
}

/// A cell's own runs, in their order, decide how many it has: not threads, parts, or an earlier interruption.
#[test]
fn a_cell_stops_at_its_interval_or_its_limit() {
    let experiment = experiment("until", UNTIL);
    let at = experiment.path.parent().expect("a folder").to_path_buf();
    let into = |name: &str, options: Options| {
        run(&experiment, &options, Some(&Folder::open(&at.join(name)).expect("a folder")), &|_, _| {})
            .expect("results")
    };
    let one = into("one", options("p", 1));
    let found = counts(&one);
    assert!(found.iter().all(|count| [3, 6, 12].contains(count)), "{found:?}");
    assert!(found.iter().any(|count| *count < 12) && found.iter().any(|count| *count > 3), "{found:?}");
    let whole = files(&at.join("one"));
    assert_eq!(counts(&into("eight", options("p", 8))), found);
    assert_eq!(files(&at.join("eight")), whole);
    // As after a SIGKILL: two of the four cells are whole.
    for cell in std::fs::read_dir(at.join("eight/cells")).expect("cells").take(2) {
        std::fs::remove_file(cell.expect("a cell").path()).expect("a file can be removed");
    }
    std::fs::remove_file(at.join("eight/summary.json")).expect("a file can be removed");
    assert_eq!(into("eight", options("p", 3)).computed, 2);
    assert_eq!(files(&at.join("eight")), whole);
    let parts = [0, 1].map(|part| {
        into(&format!("part{part}"), Options { shard: Some(Shard { part, of: 2 }), ..options("p", 2) });
        at.join(format!("part{part}"))
    });
    let joined = join(&parts).expect("two parts");
    joined.write_whole(&Folder::open(&at.join("joined")).expect("a folder")).expect("joined parts");
    assert_eq!(files(&at.join("joined")), whole);
    // More of a cell does not change what its first runs were.
    let fixed = Change { repeats: Some(3), ..Change::default() };
    let short = run(&experiment, &Options { change: fixed, ..options("p", 2) }, None, &|_, _| {});
    let short = short.expect("results");
    assert_eq!(counts(&short), [3; 4]);
    for (few, all) in short.runs.iter().flatten().zip(one.runs.iter().flatten()) {
        assert_eq!(few[..], all[..3]);
    }
    let said = experiment_answer(&one, Look::default()).text(false);
    assert!(said.contains("3 to 12 runs each, until an interval of 4 %"), "{said}");
    assert_eq!(said.contains("ended at 12 repeats"), found.contains(&12), "{said}");
}

#[test]
fn repeats_that_contradict_each_other_are_refused() {
    let check = |from: &str, to: &str, words: &[&str]| {
        assert!(UNTIL.contains(from), "{from}");
        let bad = ExperimentFile::parse(&UNTIL.replacen(from, to, 1)).err();
        let said = bad.unwrap_or_else(|| panic!("{to} was read")).to_string();
        words.iter().for_each(|word| assert!(said.contains(word), "{to}: no {word:?} in {said}"));
    };
    check("repeats_most = 12", "repeats_most = 2", &["line 7", "repeats, 3, or more"]);
    check("precision_percent = 4\n", "", &["line 7", "expected precision_percent"]);
    check("precision_percent = 4", "precision_percent = 0", &["line 8", "from 0.01 to 100"]);
    check("repeats = 3", "repeats = 2", &["line 8", "repeats = 3 or more"]);
    check("repeats = 3", "repeats = 1\nplacements = 3", &["line 7", "repeats = 2 or more"]);
    check("repeats = 3", "placements = 0", &["line 6", "from 1 to"]);
}

const PLACED: &str = r#"name = "placed"
title = "hackbench in two placements"
machines = ["barcelona"]
engines = ["slab@2.6.29", "slub@2.6.29"]
workload = "hackbench"
repeats = 2
[parameters]
groups = 1
pairs = 4
loops = 5
"#;

/// One placement is a machine as it is made: the file's word for it changes no byte of the results.
#[test]
fn one_placement_is_none() {
    let of = |name: &str, text: &str| {
        let experiment = experiment(name, text);
        let at = experiment.path.with_file_name("results");
        run(&experiment, &options("p", 2), Some(&Folder::open(&at).expect("a folder")), &|_, _| {})
            .expect("results");
        let mut found = files(&at);
        found.remove(Path::new("experiment.toml")).expect("the experiment is kept");
        found
    };
    let plain = of("placed-none", PLACED);
    assert_eq!(of("placed-one", &PLACED.replace("repeats = 2", "repeats = 2\nplacements = 1")), plain);
    // Nor does it appear in them: they are those of a program that knows no placements.
    for name in ["plan.json", "summary.json"] {
        let text = String::from_utf8_lossy(&plain[Path::new(name)]).into_owned();
        assert!(!text.contains("\"placements\"") && !text.contains("\"precision"), "{text}");
    }
    let two = of("placed-two", &PLACED.replace("repeats = 2", "repeats = 2\nplacements = 2"));
    assert_eq!(two.keys().filter(|name| name.starts_with("cells")).count(), 2);
    assert!(two.keys().all(|name| !name.starts_with("cells") || !plain.contains_key(name)));
}

/// Runs of a placement begin in one state: with one seed for all runs they would be equal. Placements differ.
#[test]
fn a_placement_is_a_starting_state() {
    let experiment = experiment("placed", &PLACED.replace("repeats = 2", "repeats = 2\nplacements = 2"));
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let [first, second, again] = [0, 1, 2].map(|run| plan.setup(&experiment, &plan.cells[1], run));
    assert_eq!(first.placement, again.placement);
    assert_ne!(first.placement, second.placement);
    let workload = experiment.file.workload;
    let elapsed =
        |setup, seed| workload.run(setup, &plan.cells[1].values, seed).expect("a run").metrics["elapsed_ps"];
    assert_eq!(elapsed(&first, 7), elapsed(&first, 7));
    assert_ne!(elapsed(&first, 7), elapsed(&second, 7));
}

/// A workload of known variances stands in for the model: 200 placements whose means scatter by 30, runs that
/// scatter by 10 around them. 90 % of the variance lies between placements.
#[test]
fn the_variance_within_and_between_placements_is_found() {
    let text = PLACED.replace("repeats = 2", "repeats = 4\nplacements = 200");
    let experiment = experiment("placed-known", &text);
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let metric = &experiment.file.workload.metrics[0];
    let mut stream = 9u64;
    // The sum of 12 uniform numbers: mean 0, variance 1.
    let mut normal = || {
        let mut uniform = || {
            stream = stream.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (stream >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    };
    let mut results = Results { experiment, plan, runs: Vec::new(), computed: 2, program: "p".into() };
    for share in [30.0, 0.0] {
        let placements: Vec<f64> = (0..200).map(|_| 1000.0 + share * normal()).collect();
        let value = |run: usize, noise: f64| {
            let number = ((placements[run % 200] + 10.0 * noise) * metric.per_unit / 1000.0) as u64;
            let metrics = BTreeMap::from([(metric.name.to_string(), number)]);
            Ok(slablab_experiment::workload::Sample { metrics, ..Default::default() })
        };
        results.runs.push(Some((0..800).map(|run| value(run, normal())).collect()));
    }
    let answer = experiment_answer(&results, Look { seen: Some(&[]), ..Look::default() });
    let json = answer.json();
    let of = |cell: usize, name: &str| {
        let number = &json["cells"][cell]["metrics"][metric.name]["placements"][name];
        number.as_f64().unwrap_or_else(|| panic!("no {name} in {json}"))
    };
    let unit = metric.per_unit / 1000.0;
    let near =
        |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.15, "{found}, not {wanted}");
    near(of(0, "sd_within") / unit, 10.0);
    near(of(0, "sd_between") / unit, 30.0);
    near(of(0, "share_between"), 0.9);
    near(of(1, "sd_within") / unit, 10.0);
    assert!(of(0, "p") < 1e-6 && of(1, "p") > 0.01 && of(1, "share_between") < 0.1);
    // The interval of a mean is that of 200 independent values, not of 800.
    let ends = |name: &str| json["cells"][0]["metrics"][metric.name][name].as_f64().expect("a number");
    let width = (ends("mean_high_95") - ends("mean_low_95")) / unit;
    near(width, 2.0 * 1.972 * (900.0f64 + 25.0).sqrt() / 200f64.sqrt());
    let table = answer.text(false);
    assert!(table.contains("4 runs each in each of 200 placements"), "{table}");
    assert!(table.contains("sd between"), "{table}");
    assert!(answer.page("slablab").contains("Within and between placements"));
}
