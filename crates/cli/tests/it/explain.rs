//! `slablab explain` as a user meets it.

use crate::common::{self, argument, check_narrow, check_order, folder, text};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

fn recording() -> String {
    argument("examples/data/hackbench-6.18.perf.data.xz")
}

fn answered(args: &[&str]) -> String {
    let output = common::slablab(&["explain", &recording()], args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{args:?}: no terminal, no progress");
    text(&output.stdout)
}

/// All of `words` are said, in this order.
#[track_caller]
fn check(args: &[&str], words: &[&str]) {
    let said = answered(&[args, &["--wide"]].concat());
    check_order(args, &said.split_whitespace().collect::<Vec<_>>().join(" "), words);
    let narrow = answered(args);
    check_narrow(&narrow);
}

#[track_caller]
fn check_error(args: &[&str], words: &[&str]) {
    common::check_error(&["explain"], args, words);
}

/// The policies that libslablab sets for programs, over a program's trace.
#[test]
fn a_programs_malloc() {
    let trace = argument("examples/data/git-grep.trace.parquet");
    let here = "slub@7.1,elastic=12,freelist=map,max_order=4,refill_reads=locked,new_links=all,link=start";
    let output = common::slablab(&["explain", &trace, "slub@7.1", here], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    check_order(
        &[here],
        &said,
        &[
            "slab memory at the end changes by -428 KiB",
            "elastic carries -1.23 MiB, the other policies together +832 KiB",
            "5 policies differ, all 32 combinations replayed: exact",
        ],
    );
}

#[test]
fn who_carries_what() {
    check(
        &["slub@6.1", "slub@6.1,max_order=0,link=start"],
        &[
            "From slub@6.1 to slub@6.1,max_order=0,link=start slab memory at the end changes by",
            "most of that is carried by max_order",
            "recorded on 6.18.44",
            "2 CPUs, 1 node, 4 K pages",
            "slub@6.1 to slub@6.1,max_order=0,link=start: 2 policies differ, all 4 combinations replayed: exact",
            "policy",
            "max_order",
            "slub_max_order",
            "link",
            "without any effect here: link",
            "from",
            "change",
            "max_order",
            "slab_end_bytes",
            "loss_bytes",
            "alloc_slowpath",
            "0 is exactly zero",
            "assumed: one node of 64 GiB",
        ],
    );
    check(
        &["slqb@2009-01", "slub@2.6.32", "--cache", "skbuff_head_cache"],
        &[
            "cache skbuff_head_cache:",
            "engine",
            "orders",
            "alloc_fastpath",
            "kmalloc classes are the recording's",
        ],
    );
    check(
        &["slub@6.1", "slub@6.1"],
        &["slub@6.1 and slub@6.1 are the same here: nothing differs.", "slub@6.1 to slub@6.1: the same"],
    );
    check(
        &["slub@6.1", "slub@6.1,max_order=1,cpu_partial=6", "--exact", "1", "--samples", "5"],
        &[
            "2 policies differ, 4 combinations replayed along 8 sampled orders: 95 % intervals",
            "slab_end_bytes",
        ],
    );
}

#[test]
fn machines_read_it_too() {
    let output = common::slablab(
        &["explain", &recording()],
        &["slub@6.1", "slub@6.1,max_order=1,cpu_partial=6", "--format", "json"],
    );
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["from"]), (&"slablab.explain.1".into(), &"slub@6.1".into()));
    assert_eq!((&json["method"]["kind"], &json["method"]["replays"]), (&"exact".into(), &4.into()));
    assert!(text(&output.stderr).contains("assumed: "), "remarks are said beside");
    let measures = json["measures"].as_array().expect("a list");
    assert!(measures.len() > 30, "{} measures", measures.len());
    for measure in measures {
        let parts = measure["parts"].as_object().expect("parts by policy").values();
        let sum: f64 = parts.map(|part| part["value"].as_f64().expect("a number")).sum();
        assert_eq!(sum, measure["change"].as_f64().expect("a number"), "{measure}");
    }
}

#[test]
fn what_it_does_not_take() {
    let recording = recording();
    check_error(&[&recording, "slub"], &["<B>"]);
    check_error(&[&recording, "slubb", "slub"], &["A slubb", "near it: slub"]);
    check_error(
        &[&recording, "slub", "slub@6.1,max_ordr=0"],
        &["B slub@6.1,max_ordr=0", "near it: max_order"],
    );
    check_error(&[&recording, "slub", "slqb", "--cache", "nobody"], &["no cache is called nobody"]);
    check_error(&[&recording, "slub", "slqb", "--exact", "17"], &["17 is not in 0..=16"]);
    check_error(&[&recording, "slub", "slqb", "--samples", "3"], &["3 is not in 4..=100000"]);
    check_error(&[&recording, "slub", "slqb", "--html", "-"], &["--html writes a file"]);
    check_error(&["nowhere.perf.data", "slub", "slqb"], &["nowhere.perf.data", "No such file"]);
}

/// A question of thousands of replays ends at once when it is interrupted, and leaves nothing behind.
#[test]
fn interrupted() {
    let folder = folder("explain-interrupted");
    let mut child = Command::new(env!("CARGO_BIN_EXE_slablab"))
        .args(["explain", &recording(), "slub@2.6.29", "slub@6.18", "--samples", "1000", "-o"])
        .arg(folder.join("answer.txt"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    // It catches signals once the recording is read.
    while !common::catches_interrupts(child.id()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // SIGTERM, which ends it as SIGINT does: that one is ignored where the tests themselves run in the
    // background.
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.is_ok_and(|status| status.success()), "it had ended before");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(128 + 15), "as a shell says it of a program that the signal ended");
    assert_eq!(std::fs::read_dir(&folder).expect("readable").count(), 0, "nothing is left behind");
}

#[test]
fn an_experiment_is_explained_too() {
    let said = |args: &[&str], status: i32| {
        let output = common::slablab(&["explain", "2026"], args);
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        said
    };
    let of = |more: &[&'static str]| [&["slub@7.0", "slub@7.1", "--repeats", "2"][..], more].concat();
    let has = |args: &[&str], status: i32, words: &[&str]| {
        let said = said(args, status);
        words.iter().for_each(|word| assert!(said.contains(word), "{args:?}: no {word:?} in {said}"));
    };
    has(&of(&[]), 0, &["2 groups, all 4 combinations", "barns", "100.0", "Left out"]);
    has(&of(&["--format", "json"]), 0, &["barns", "slablab.explain-experiment.1"]);
    has(&of(&["--cache", "dentry"]), 2, &["--cache is of recordings"]);
    has(&of(&["--html", "page.html"]), 2, &["--html is of recordings"]);
    has(&["slub@7.0", "slup@7.1"], 2, &["B slup@7.1", "near it: slub"]);
}

const BUILDS: &str = r#"name = "builds"
title = "two builds"
machines = ["laptop"]
engines = ["slqb@2009-01", "slub@2.6.29"]
workload = "tmpfs-swap"
repeats = 1
[parameters]
part = 32
iterations = 2
jobs = [1, 2]
"#;

/// A file's blocks that are discarded are not read again before they are overwritten; on tmpfs there are none
/// of them, so there the choice alone says nothing.
#[test]
fn values_of_parameters_are_taken_apart() {
    let file = folder("explain-values").join("builds.toml");
    std::fs::write(&file, BUILDS).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let both = ["jobs=2,discard=no,second=loop", "jobs=2,discard=yes,second=tmpfs"];
    let of = |engine: &str, more: &[&str]| {
        let metrics = ["--metric", "swap_ins_garbage", "--metric", "swap_outs"];
        let args = [&both[..], &["--engine", engine, "--repeats", "1"], &metrics, more].concat();
        let output = common::slablab(&["explain", file], &args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{args:?}: no terminal, no progress");
        text(&output.stdout)
    };
    let json = |engine: &str| -> Value {
        serde_json::from_str(&of(engine, &["--format", "json"])).expect("a document")
    };
    let found = json("slub@2.6.29,max_order=0");
    assert_eq!(
        (&found["combinations"], &found["from"], &found["to"]),
        (&4.into(), &both[0].into(), &both[1].into())
    );
    let measure = &found["rows"][0]["measures"][0];
    assert_eq!(measure["metric"], "swap_ins_garbage");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number: {measure}"));
    assert!(number(&measure["from"]) > 100.0 && measure["to"] == 0.0, "{measure}");
    let parts = measure["parts"].as_array().expect("parts");
    let names: Vec<&Value> = parts.iter().map(|part| &part["group"]).collect();
    assert_eq!(names, ["discard", "second"]);
    let sum: f64 = parts.iter().map(|part| number(&part["value"])).sum();
    assert!((sum - number(&measure["change"])).abs() < 1e-6, "{measure}");
    assert!(number(&parts[0]["alone"]) < -100.0 && parts[0]["last"] == 0.0, "{measure}");
    assert_ne!(json("slqb@2009-01")["rows"], found["rows"], "--engine");
    let said = of("slub@2.6.29,max_order=0", &[]);
    let head = format!("From {} to {}, swap_ins_garbage of", both[0], both[1]);
    check_order(
        &both,
        &said.split_whitespace().collect::<Vec<_>>().join(" "),
        &[&head, "laptop jobs=2, swap_outs", "Left out", "jobs=1"],
    );
    let metric = ["--metric", "swap_out"];
    check_error(&[&[file], &both[..], &metric].concat(), &["--metric swap_out", "near it: swap_outs"]);
    check_error(&[file, "discrad=yes", "discard=no"], &["A discrad=yes", "near it: discard"]);
    check_error(&[file, "discard=no", "slub"], &["B slub: slub is no parameter of tmpfs-swap"]);
}
