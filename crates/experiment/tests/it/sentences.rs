//! The first sentence of each answer, and the width of its text.

use crate::experiment::folder;
use slablab_experiment::output::{
    Look, description_answer, experiment_answer, joined_answer, reproduce_answer,
};
use slablab_experiment::workload::Sample;
use slablab_experiment::{Change, Experiment, INSTALLED, Plan, Results, Size};
use slablab_report::Answer;
use slablab_sim::tally::Failed;
use std::path::Path;

const HEAD: &str = r#"name = "cells"
title = "five runs of two engines"
machines = ["laptop"]
engines = ["slub@6.18", "slub@7.1"]
workload = "micro"
metric = "wall_ps"
repeats = 5
"#;

/// A relation of the two engines.
fn expect(name: &str, sign: &str) -> String {
    format!(
        "[[expect]]\nname = \"{name}\"\nbase = {{ engine = \"slub@6.18\" }}\nother = {{ engine = \"slub@7.1\" }}\n\
         sign = \"{sign}\"\n"
    )
}

/// Results of [`HEAD`] and `text`, with this time of both engines in nanoseconds; 0 is a run without memory.
fn results(name: &str, text: &str, times: [u64; 2]) -> Results {
    let path = folder(name).join("experiment.toml");
    std::fs::write(&path, format!("{HEAD}{text}")).expect("a file");
    let experiment = Experiment::find(&path).unwrap_or_else(|bad| panic!("{bad}"));
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let run = |time: u64, scatter: u64| match time {
        0 => Err(Failed::OutOfMemory { events: 7, caches: vec![("dentry".into(), 9, 9 << 10)] }),
        time => {
            let metrics = [("wall_ps".to_string(), time * 1_000 + scatter)].into();
            Ok(Sample { metrics, ..Sample::default() })
        }
    };
    let cell = |time: u64| Some((0..5).map(|scatter| run(time, scatter)).collect());
    let runs = times.map(cell).to_vec();
    Results { experiment, plan, runs, computed: 0, program: "p".into() }
}

/// An answer begins with the sentence in all forms, and its text keeps to a terminal.
#[track_caller]
fn check(answer: &Answer, sentence: &str) {
    assert_eq!(answer.sentence(), sentence);
    assert_eq!(answer.json()["answer"], sentence);
    let text = answer.text(false);
    // A single word, such as an engine with its knobs, is not broken.
    let fits = |line: &str| line.chars().count() <= 80 || !line.trim().contains(' ');
    assert!(text.lines().all(fits), "{text}");
    let begin: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(begin.starts_with(sentence), "{text}");
    assert!(answer.markdown().starts_with(sentence));
}

#[test]
fn an_experiment_says_which_engine_is_best() {
    let run = |name: &str, times, sentence: &str| {
        check(&experiment_answer(&results(name, "", times), Look::default()), sentence);
    };
    run("best-none", [20, 20], "No difference in wall_ps between slub@6.18 and slub@7.1 is certain.");
    run(
        "best-base",
        [20, 30],
        "By wall_ps slub@7.1 is worse than slub@6.18, by 50.0 %; runs differ by less than 0.01 %, so nothing is tested.",
    );
    run(
        "best-other",
        [20, 10],
        "By wall_ps slub@7.1 is better than slub@6.18, by 50.0 % (95 % interval 50.0 to 50.0 %).",
    );
    run(
        "best-failed",
        [20, 0],
        "No difference in wall_ps can be tested: out of memory after 7 allocations and frees; 1 of 2 cells ran, not laptop slub@7.1 (out of memory after 7 allocations and frees).",
    );
}

#[test]
fn a_reproduction_says_what_agrees() {
    let run = |name: &str, text: &str, times, sentence: &str| {
        check(&reproduce_answer(&results(name, text, times), Look::default()), sentence);
    };
    let (up, down) = (expect("slower", "higher"), expect("faster", "lower"));
    run(
        "agrees-none",
        "",
        [20, 30],
        "The experiment cells expects no relation of cells: there is nothing to judge.",
    );
    run("agrees-one", &up, [20, 30], "1 of 1 published relation of cells agrees.");
    run(
        "agrees-not",
        &format!("{up}{down}"),
        [20, 30],
        "1 of 2 published relations of cells agrees and 1 does not: faster (sign differs).",
    );
    run(
        "agrees-untold",
        &format!("{up}{down}"),
        [20, 20],
        "0 of 2 published relations of cells agree and 2 do not: slower (no difference can be told) \
         and faster (no difference can be told).",
    );
    run(
        "agrees-failed",
        &up,
        [20, 0],
        "0 of 1 published relation of cells agree and 1 does not: slower (no difference can be told); 1 of 2 cells ran, not laptop slub@7.1 (out of memory after 7 allocations and frees).",
    );
}

#[test]
fn experiments_of_a_mail_say_what_agrees() {
    let all = [
        results("mail-1", &expect("slower", "higher"), [20, 30]),
        results("mail-2", &expect("faster", "lower"), [20, 30]),
    ];
    check(
        &joined_answer("mail", &all, None),
        "1 of 2 published relations of mail agrees and 1 does not, over 2 experiments.",
    );
}

/// Every installed experiment in words of its size.
#[test]
fn a_description_says_what_runs() {
    let of = |name: &str| {
        let experiment = Experiment::find(Path::new(name)).expect(name);
        let plan =
            Plan::new(&experiment, &Change { size: Some(Size::Quick), ..Change::default() }).expect(name);
        description_answer(&experiment, &plan)
    };
    for installed in INSTALLED {
        let answer = of(installed.name);
        check(&answer, answer.sentence());
    }
    let answer = of("2026");
    assert!(
        answer
            .sentence()
            .starts_with("2026 runs ublk on 2 machines under 3 engines: 12 cells, 60 runs, about "),
        "{}",
        answer.sentence()
    );
    let answer = of("004-make");
    assert!(answer.sentence().contains(" under the engine slab@2.4: 12 cells, "), "{}", answer.sentence());
}
