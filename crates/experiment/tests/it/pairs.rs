//! The pairs of engines of a mail, over several experiments.

use crate::experiment::folder;
use slablab_experiment::judge::verdict::Verdict;
use slablab_experiment::output::joined_answer;
use slablab_experiment::source::of_mail;
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, Pairs, Plan, Results};
use slablab_sim::params::Given;
use std::fmt::Write;

/// AVG and STD of SLAB, SLQB and SLUB over 10 runs, as the mail of January 2009 has them: netio and
/// hackbench, where lower is better; tbench and netperf, where higher is.
const LOWER: [[f64; 6]; 9] = [
    [13.19, 0.40, 13.78, 0.24, 14.47, 0.23],
    [1.34, 0.05, 1.31, 0.06, 1.46, 0.07],
    [1.20, 0.09, 1.22, 0.12, 1.21, 0.06],
    [0.84, 0.05, 0.81, 0.10, 0.98, 0.07],
    [0.79, 0.10, 0.76, 0.15, 0.89, 0.08],
    [0.78, 0.08, 0.79, 0.10, 0.86, 0.05],
    [0.86, 0.05, 0.78, 0.06, 0.88, 0.06],
    [1.03, 0.05, 0.90, 0.04, 1.05, 0.06],
    [1.31, 0.19, 1.16, 0.36, 1.29, 0.11],
];
const HIGHER: [[f64; 6]; 8] = [
    [239.25, 31.74, 257.75, 33.89, 223.02, 14.73],
    [649.56, 9.77, 647.77, 7.48, 634.50, 7.66],
    [1294.52, 13.19, 1266.58, 35.71, 1228.31, 48.08],
    [2750.78, 26.67, 2758.90, 18.86, 2685.59, 22.41],
    [2669.11, 58.34, 2671.69, 31.84, 2571.05, 45.39],
    [60.111, 1.59382, 60.167, 0.685347, 58.277, 0.788328],
    [85.938, 0.875794, 93.662, 2.07434, 81.983, 0.864362],
    [78.801, 1.44118, 78.269, 1.10457, 71.334, 1.16809],
];
const ENGINES: [&str; 3] = ["slab@2.6.29", "slqb@2009-01", "slub@2.6.29"];

/// An experiment that has these blocks by a swept parameter, and runs of it whose means are what `modelled`
/// gives for block and engine.
fn results(
    name: &str,
    blocks: &[[f64; 6]],
    (workload, parameter, unit): (&str, &str, &str),
    modelled: &dyn Fn(usize, usize) -> f64,
) -> Results {
    let swept: Vec<String> = (1..=blocks.len()).map(|block| (block * 32).to_string()).collect();
    let mut text = format!(
        "name = \"{name}\"\ntitle = \"blocks\"\nmachines = [\"numa8\"]\nengines = {ENGINES:?}\nrepeats = 3\n\
         workload = \"{workload}\"\n[parameters]\n{parameter} = [{}]\n",
        swept.join(", ")
    );
    for (block, figures) in blocks.iter().enumerate() {
        for (engine, figure) in ENGINES.iter().zip(figures.chunks(2)) {
            let (mean, sd) = (figure[0], figure[1]);
            writeln!(
                text,
                "[[published]]\ncell = {{ engine = \"{engine}\", {parameter} = {} }}\nvalue = {mean}\nsd = {sd}\n\
                 n = 10\nunit = \"{unit}\"\nsource = \"block {}\"",
                swept[block],
                block + 1
            )
            .expect("a string");
        }
    }
    let path = folder(name).join("experiment.toml");
    std::fs::write(&path, text).expect("a file can be written");
    let experiment = Experiment::find(&path).expect("an experiment");
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let metric = &experiment.file.workload.metrics[0];
    let mut runs = Vec::new();
    for cell in &plan.cells {
        let block = cell.values.number(parameter) as usize / 32 - 1;
        let mean = modelled(block, cell.engine) * metric.per_unit;
        let run = |scatter: f64| {
            let mut sample = Sample::default();
            sample.metrics.insert(metric.name.to_string(), (mean * scatter) as u64);
            Ok(sample)
        };
        runs.push(Some([0.999, 1.0, 1.001].map(run).to_vec()));
    }
    Results { experiment, plan, runs, computed: 0, program: "p".into() }
}

/// Both experiments; `modelled` is told the published mean, block and engine.
fn mail(name: &str, modelled: impl Fn(f64, usize, usize) -> f64) -> Vec<Results> {
    let of = |blocks: &'static [[f64; 6]]| {
        let modelled = &modelled;
        move |block: usize, engine: usize| modelled(blocks[block][2 * engine], block, engine)
    };
    vec![
        results(&format!("{name}-lower"), &LOWER, ("micro", "bytes", "ns"), &of(&LOWER)),
        results(&format!("{name}-higher"), &HIGHER, ("ublk", "depth", "M"), &of(&HIGHER)),
    ]
}

#[track_caller]
fn check(results: &[Results], differ: usize, exceptions: usize, alike: usize) -> Pairs {
    let pairs = Pairs::of(results).expect("pairs");
    let counts = [pairs.all.len(), pairs.differ().count(), pairs.exceptions().count(), pairs.alike().count()];
    assert_eq!(counts, [51, 23, 3, 28]);
    assert_eq!(pairs.constant, Some(("slub@2.6.29".to_string(), 20)));
    let agree = |pairs: Vec<&slablab_experiment::judge::pairs::Pair>| {
        pairs.iter().filter(|pair| pair.verdict == Verdict::Agrees).count()
    };
    let found = [pairs.differ().collect(), pairs.exceptions().collect(), pairs.alike().collect()].map(agree);
    assert_eq!(found, [differ, exceptions, alike]);
    pairs
}

/// Of the mail's 51 pairs 23 differ after Holm's correction, and SLUB is the worse one of 20.
#[test]
fn the_mail_of_2009_has_23_pairs_that_differ() {
    let exact = mail("exact", |published, _, _| published);
    let pairs = check(&exact, 23, 3, 28);
    let of = |pair: &slablab_experiment::judge::pairs::Pair| (pair.block.clone(), pair.other.clone());
    let beyond: Vec<(String, String)> = pairs.exceptions().map(of).collect();
    let slqb = |block: &str| (block.to_string(), "slqb@2009-01".to_string());
    assert_eq!(beyond, [slqb("block 1"), slqb("block 8"), slqb("block 7")]);
    let answer = joined_answer("003", &exact, None);
    let said = answer.text(false).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "51 pairs of engines with a published scatter, of which 23 differ",
        "23 of 23 agree",
        "\"slub@2.6.29 is the worse one\", agrees in 20 of 23",
        "which alone show something: 3 of 3 agree",
        "without a difference in the mail: 28 of 28 agree",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    assert!(
        answer
            .markdown()
            .contains("| exact-lower, block 8: slqb@2009-01 over slab@2.6.29 | agrees | 0.874 |")
    );
    let json = answer.json();
    assert_eq!(json["pairs"].as_array().map(Vec::len), Some(51));
    assert_eq!(json["constant"]["explains"], 20);
}

#[test]
fn a_model_is_judged_with_the_scatter_of_the_mail() {
    // A model without differences has none of the 23, and all of the 28.
    check(&mail("equal", |_, block, _| 100.0 + block as f64), 0, 0, 28);
    // SLUB a fifth worse everywhere, and nothing else: what the constant answer says.
    let worse = |block: usize, engine: usize, factor: f64| {
        if engine == 2 { (100.0 + block as f64) * factor } else { 100.0 + block as f64 }
    };
    let constant = vec![
        results("pairs-c1", &LOWER, ("micro", "bytes", "ns"), &|block, engine| worse(block, engine, 1.2)),
        results("pairs-c2", &HIGHER, ("ublk", "depth", "M"), &|block, engine| worse(block, engine, 0.8)),
    ];
    let pairs = Pairs::of(&constant).expect("pairs");
    let agree = pairs.differ().filter(|pair| pair.verdict == Verdict::Agrees).count();
    assert_eq!(agree, 20);
    // Of the 28 it is right only where the mail's scatter hides a fifth, and in the pairs of SLAB and SLQB.
    let agree = pairs.alike().filter(|pair| pair.verdict == Verdict::Agrees).count();
    assert!((14..20).contains(&agree), "{agree}");
    // Opposite signs agree nowhere.
    let mirrored = mail("mirrored", |published, _, _| 1000.0 / published);
    check(&mirrored, 0, 0, 28);
}

#[test]
fn a_name_stands_for_the_experiments_of_a_mail() {
    let of = of_mail("003");
    assert!(of.contains(&"003-hackbench") && of.contains(&"003-netperf"), "{of:?}");
    assert_eq!(of_mail("003-netperf"), ["003-netperf"]);
    assert_eq!(of_mail("2026"), ["2026"]);
    assert!(of_mail("00").is_empty() && of_mail("").is_empty());
}
