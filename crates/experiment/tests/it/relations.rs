//! Relations: two metrics of one run, differences from 0, numbers beside their published figure.

use crate::experiment::folder;
use slablab_experiment::judge::score::{score, sizes_of};
use slablab_experiment::judge::verdict::{Judged, Verdict, judge};
use slablab_experiment::output::{Look, reproduce_answer};
use slablab_experiment::run::results::Results;
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, ExperimentFile, Plan};

const HEAD: &str = r#"name = "relations"
title = "five runs of two engines"
machines = ["laptop"]
engines = ["slub@6.18", "slub@7.1"]
workload = "micro"
repeats = 5
"#;

/// The results of an experiment with a relation: the runs of each cell have these numbers, `wall_ps` and
/// `cpu_ps`.
fn results(name: &str, expect: &str, draws: u32, runs: &[Vec<[u64; 2]>]) -> Results {
    let path = folder(name).join("experiment.toml");
    std::fs::write(&path, format!("{HEAD}[[expect]]\nname = \"one\"\n{expect}\n")).expect("a file");
    let experiment = Experiment::find(&path).expect("an experiment");
    let change = Change { draws: Some(draws), ..Change::default() };
    let plan = Plan::new(&experiment, &change).expect("a plan");
    let run = |[wall, cpu]: &[u64; 2]| {
        let metrics = [("wall_ps".to_string(), *wall), ("cpu_ps".to_string(), *cpu)].into();
        Ok(Sample { metrics, ..Sample::default() })
    };
    let runs = runs.iter().map(|cell| Some(cell.iter().map(run).collect())).collect();
    Results::of_runs(experiment, plan, runs, "p".into())
}

/// Judges a relation of an experiment whose runs have these numbers, `wall_ps` and `cpu_ps` of each engine.
fn judged(name: &str, expect: &str, runs: [[[u64; 2]; 5]; 2]) -> Judged {
    judge(&results(name, expect, 0, &runs.map(Vec::from))).remove(0)
}

const ENGINES: &str =
    "base = { engine = \"slub@6.18\" }\nother = { engine = \"slub@7.1\" }\nmetric = \"wall_ps\"";
const METRICS: &str = "base = { engine = \"slub@7.1\" }\nother = { engine = \"slub@7.1\" }\n\
                       metric = \"wall_ps\"\nbase_metric = \"cpu_ps\"";

#[test]
fn two_numbers_of_a_run_are_a_pair() {
    // From run to run the times double; the other number is 5 % more in each.
    let base = [1_000, 1_250, 1_500, 1_750, 2_000];
    let other = [1_050, 1_315, 1_570, 1_840, 2_100];
    let check = |name: &str, cells: &str, runs, verdict: Verdict| {
        let found = judged(name, &format!("{cells}\nsign = \"higher\""), runs);
        assert_eq!(found.verdict, verdict, "{name}: {:?}", found.compared);
        found.compared[0].interval.expect("five runs")
    };
    let pairs = std::array::from_fn(|run| [other[run], base[run]]);
    let pairs = check("relation-metrics", METRICS, [[[1, 1]; 5], pairs], Verdict::Agrees);
    assert!(pairs.low > 1.04 && pairs.high < 1.06, "{pairs:?}");
    // The same numbers of two cells are two samples that overlap.
    let cells = [base, other].map(|numbers| numbers.map(|number| [number, 1]));
    let means = check("relation-cells", ENGINES, cells, Verdict::NoDifference);
    assert!(means.low < 0.8 && means.high > 1.3, "{means:?}");
}

#[test]
fn a_number_above_zero_is_higher() {
    let none = [[0, 0]; 5];
    let some = [[5, 0], [6, 0], [6, 0], [6, 0], [5, 0]];
    let check = |sign: &str, runs, verdict: Verdict| {
        let found = judged("relation-zero", &format!("{ENGINES}\nsign = \"{sign}\""), runs);
        assert_eq!(found.verdict, verdict, "{sign}: {:?}", found.compared);
    };
    check("higher", [none, some], Verdict::Agrees);
    check("lower", [some, none], Verdict::Agrees);
    check("none", [none, some], Verdict::SignDiffers);
    check("none", [none, none], Verdict::Agrees);
}

/// One number of an engine beside its figure of 100 ns.
const FIGURE: &str = "cell = { engine = \"slub@7.1\" }\nmetric = \"wall_ps\"\nwithin_percent = 15\n\
                      [[published]]\ncell = { engine = \"slub@7.1\" }\nmetric = \"wall_ps\"\nvalue = 100\n\
                      unit = \"ns\"\nsource = \"s\"";

#[test]
fn a_number_is_near_its_figure_or_outside() {
    let check = |name: &str, nanoseconds: f64, spread: f64, drawn: Option<f64>, words: &str, size: &str| {
        let name = format!("relation-figure-{name}");
        let run = |middle: f64, at: f64| [(middle * (1.0 + at * spread / 2.0) * 1e3) as u64, 1];
        let scattered = |middle: f64, n: i32| -> Vec<[u64; 2]> {
            (0..n).map(|at| run(middle, f64::from(at * 2 - n + 1) / f64::from(n - 1))).collect()
        };
        let mut runs = vec![scattered(1.0, 5), scattered(nanoseconds, 5)];
        runs.extend(drawn.map(|middle| scattered(middle, 8)));
        let results = results(&name, FIGURE, if drawn.is_some() { 8 } else { 0 }, &runs);
        let judged = judge(&results);
        assert_eq!(judged[0].words(), words, "{name}: {judged:?}");
        let of = score(&judged);
        let agrees = usize::from(words == "agrees");
        assert_eq!((of.agree, of.rows, of.constant.1), (agrees, 1, 0), "no sign is an answer: {name}");
        assert_eq!(sizes_of(&judged), None, "{name}");
        let answer = reproduce_answer(&results, Look::default());
        let relation = &answer.json()["relations"][0];
        assert_eq!(
            (&relation["within_percent"], &relation["published_figure"]),
            (&15.0.into(), &100.0.into())
        );
        let text = answer.text(true);
        for word in ["within 15 %", words, size] {
            assert!(text.contains(word), "{name}: no {word:?} in {text}");
        }
    };
    check("equal", 100.0, 0.02, None, "agrees", "inside");
    check("near", 88.0, 0.02, None, "agrees", "% above");
    check("low", 72.0, 0.02, None, "outside, 28.0 % too low", "% above");
    check("high", 130.0, 0.02, None, "outside, 30.0 % too high", "% below");
    // 1 / 1.15 is the edge: a number may be as many times too low as too high.
    check("edge", 86.0, 0.001, None, "outside, 14.0 % too low", "% above");
    // The interval over the repeats crosses the edge.
    check("open", 88.0, 0.2, None, "undetermined", "% above");
    check("lost", 88.0, 0.9, None, "not resolvable", "inside");
    // Costs decide, where they are drawn.
    check("drawn-near", 100.0, 0.02, Some(97.0), "agrees", "8 of 8");
    check("drawn-far", 72.0, 0.02, Some(70.0), "outside, 28.0 % too low", "0 of 8");
    check("drawn-open", 88.0, 0.02, Some(87.0), "undetermined", "of 8");
}

#[test]
fn a_figure_is_published_and_predicts_nothing_if_it_is_fitted() {
    let text = format!("{HEAD}[[expect]]\nname = \"one\"\n{FIGURE}\n");
    let check = |from: &str, to: &str, words: &str| {
        let changed = text.replacen(from, to, 1);
        let bad =
            ExperimentFile::parse(&changed).err().unwrap_or_else(|| panic!("{to} was read")).to_string();
        assert!(bad.contains(words), "{to}: no {words:?} in {bad}");
    };
    check("value = 100", "value = 0", "expected a [[published]] row of this cell's wall_ps, above 0");
    check("metric = \"wall_ps\"\nwithin", "metric = \"cpu_ps\"\nwithin", "row of this cell's cpu_ps");
    check("within_percent = 15", "within_percnt = 15", "near it: within_percent");
    check("within_percent = 15", "within_percent = -1", "from 0.1 to 100");
    check("cell = { engine = \"slub@7.1\" }\n", "", "cell is missing");
    check("within_percent = 15", "within_percent = 15\nsign = \"none\"", "sign");
    let fitted = "[fitted]\nparameter = \"bytes\"\ncell = { engine = \"slub@7.1\" }\nhow = \"h\"";
    // The main metric's figure is the fitted one.
    let main = FIGURE.replace("wall_ps", "cpu_ps");
    let numbers = vec![vec![[1, 1]; 5], vec![[1, 100_000]; 5]];
    let found = judge(&results("relation-fitted", &format!("{main}\n{fitted}"), 0, &numbers));
    assert_eq!((found[0].words().as_str(), score(&found).rows), ("fitted", 0), "{found:?}");
}
