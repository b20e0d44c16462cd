//! Orders of merit: what agrees at all swept values, what turns round, and the null answer.

use crate::experiment::folder;
use slablab_experiment::judge::merit::{Open, Ordered, merits};
use slablab_experiment::output::{Look, reproduce_answer};
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, Plan, Results};
use slablab_sim::params::Given;

const ORDER: &str = r#"name = "order"
title = "four kernels"
machines = ["kulesa-2001"]
engines = ["slab@2.4"]
workload = "apps"
metric = "swapped_in_kib"
repeats = 2
noise_percent = 3
[parameters]
vm = ["vm@2.4.8", "vm@2.4.10", "vm@2.4.9-ac14", "vm@2.4.9-ac14+aging"]
pixel_bytes = [3, 4]
[[merit]]
name = "in"
parameter = "vm"
"#;

/// The experiment with the mail's swap-ins, and runs whose mean `modelled` gives for a kernel and a pixel.
fn results(name: &str, modelled: impl Fn(&str, u64) -> Option<u64>) -> Results {
    drawn(name, "", |vm, pixel, _| modelled(vm, pixel))
}

/// The experiment with these ranges and 16 draws; `modelled` is told what the user waits, too.
fn drawn(name: &str, ranges: &str, modelled: impl Fn(&str, u64, u64) -> Option<u64>) -> Results {
    let figures =
        [("2.4.8", 29_638), ("2.4.10", 22_308), ("2.4.9-ac14", 12_900), ("2.4.9-ac14+aging", 12_900)];
    let row = |(vm, value): (&str, u64)| {
        format!(
            "[[published]]\ncell = {{ vm = \"vm@{vm}\" }}\nvalue = {value}\nunit = \"kB\"\nsource = \"s\"\n"
        )
    };
    let path = folder(name).join("experiment.toml");
    let text = ORDER.to_string() + &figures.map(row).concat() + ranges;
    std::fs::write(&path, text).expect("a file can be written");
    let experiment = Experiment::find(&path).expect("an experiment");
    let change = Change { draws: (!ranges.is_empty()).then_some(16), ..Change::default() };
    let plan = Plan::new(&experiment, &change).expect("a plan");
    let failed = slablab_sim::tally::Failed::Livelock { seconds: 60, tasks: vec!["task 0".into()] };
    let of = |cell: &slablab_experiment::plan::Cell| {
        let run = |run: u32| {
            let values = plan.values(&experiment, cell, run);
            let [pixel, pause] = ["pixel_bytes", "pause_s"].map(|name| values.number(name));
            let number = modelled(&values.word("vm")[3..], pixel, pause).ok_or(failed.clone())?;
            Ok(Sample { metrics: [("swapped_in_kib".to_string(), number)].into(), ..Sample::default() })
        };
        Some((0..plan.runs_most(cell)).map(run).collect())
    };
    let runs = plan.cells.iter().map(of).collect();
    Results { experiment, plan, runs, computed: 0, program: "p".into() }
}

fn only(results: &Results) -> Ordered {
    let [one] = merits(results).try_into().expect("one order");
    one
}

/// A column in the published order, and one in which two kernels changed places.
#[test]
fn pairs_agree_differ_or_depend() {
    let of = |vm: &str, pixel: u64| {
        Some(match (vm, pixel) {
            ("2.4.8", _) => 400,
            ("2.4.10", 3) => 300,
            ("2.4.10", _) => 50,
            // Within the noise.
            ("2.4.9-ac14", _) => 100,
            _ => 102,
        })
    };
    let results = results("merit-turns", of);
    let one = only(&results);
    let taus: Vec<f64> = one.columns.iter().map(|column| column.kendall.expect("four kernels").tau).collect();
    assert_eq!((taus[0], taus[1] < taus[0], one.columns.len()), (1.0, true, 2));
    // 2.4.10 against ac14 and against ac14+aging: one order at 3 bytes, another at 4.
    assert_eq!((one.pairs, one.null), ([4, 2, 0], 1));
    let answer = reproduce_answer(&results, Look::default());
    let said = answer.text(false);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["2.4.9-ac14 = 2.4.9-ac14+aging < 2.4.10 < 2.4.8", "4 agree, 2 are undetermined", "4 of 6 pairs"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(answer.markdown().contains("4 agree, 2 are undetermined"));
    assert_eq!(answer.json()["merit"][0]["undetermined"], 2);
}

/// After a long pause two kernels change places at 4 bytes, and one has no number at 3 bytes, which says
/// nothing. A draw has one of three pauses.
#[test]
fn a_pause_leaves_an_order_open() {
    let of = |vm: &str, pixel: u64, pause: u64| match (vm, pixel, pause) {
        ("2.4.8", 4, 30) => Some(200),
        ("2.4.8", 3, 30) => None,
        ("2.4.8", ..) => Some(400),
        ("2.4.10", ..) => Some(300),
        ("2.4.9-ac14", ..) => Some(100),
        _ => Some(102),
    };
    let ranges = "[ranges]\ncosts = \"none\"\n[ranges.vary]\npause_s = [5, 30]\n";
    let results = drawn("merit-open", ranges, of);
    assert_eq!(results.plan.cells.len(), 2 * 8);
    let one = only(&results);
    let cell = results.plan.cells.iter().find(|cell| cell.drawn).expect("a drawn cell");
    let pause = |run: &u32| results.plan.values(&results.experiment, cell, *run).number("pause_s");
    let short = (0..16).filter(|run| pause(run) < 30).count();
    assert!((8..14).contains(&short), "two of three draws: {short}");
    let values = ["vm@2.4.8", "vm@2.4.10"].map(String::from);
    let part = short as f64 / 16.0;
    assert_eq!(one.open, [Open { values, label: "pixel_bytes=4".into(), part, draws: 16 }]);
    assert_eq!((one.pairs, one.columns.len()), ([5, 1, 0], 2));
    let said = reproduce_answer(&results, Look::default()).text(false);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let words =
        format!("vm@2.4.8 and vm@2.4.10: {:.0} % of 16 draws have the order of pixel_bytes=4.", part * 100.0);
    assert!(said.contains(&words), "{said}");
}

/// A kernel that ended in a livelock has no place: its pairs are undetermined, the others are judged, and the
/// tasks are told.
#[test]
fn a_livelock_does_not_lose_the_others() {
    let of = |vm: &str, _| match vm {
        "2.4.8" => None,
        "2.4.10" => Some(50),
        _ => Some(100),
    };
    let results = results("merit-livelock", of);
    let one = only(&results);
    assert_eq!((one.pairs, one.null), ([1, 3, 2], 1));
    assert_eq!(one.columns[0].modelled[0], None);
    let said = reproduce_answer(&results, Look::default()).text(false);
    assert!(
        said.contains("livelock: reclaim freed no page for 60 seconds") && said.contains("  task 0"),
        "{said}"
    );
}
