//! Relations: two metrics of one run, differences from 0.

use crate::experiment::folder;
use slablab_experiment::judge::verdict::{Judged, Verdict, judge};
use slablab_experiment::run::results::Results;
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, Plan};

const HEAD: &str = r#"name = "relations"
title = "five runs of two engines"
machines = ["laptop"]
engines = ["slub@6.18", "slub@7.1"]
workload = "micro"
repeats = 5
"#;

/// Judges a relation of an experiment whose runs have these numbers, `wall_ps` and `cpu_ps` of each engine.
fn judged(name: &str, expect: &str, runs: [[[u64; 2]; 5]; 2]) -> Judged {
    let path = folder(name).join("experiment.toml");
    std::fs::write(&path, format!("{HEAD}[[expect]]\nname = \"one\"\n{expect}\n")).expect("a file");
    let experiment = Experiment::find(&path).expect("an experiment");
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let run = |[wall, cpu]: [u64; 2]| {
        let metrics = [("wall_ps".to_string(), wall), ("cpu_ps".to_string(), cpu)].into();
        Ok(Sample { metrics, ..Sample::default() })
    };
    let runs = runs.map(|cell| Some(cell.map(run).to_vec())).to_vec();
    let results = Results { experiment, plan, runs, computed: 0, program: "p".into() };
    judge(&results).remove(0)
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
