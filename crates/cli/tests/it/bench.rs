//! `slablab bench` as a user meets it.

use crate::common::{self, check_narrow, check_order, folder, text};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

#[track_caller]
fn check_error(args: &[&str], words: &str) {
    common::check_error(&["bench"], args, &[words]);
}

fn answered(args: &[&str]) -> String {
    let output = common::slablab(&["bench"], args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// A thousandth of the usual size: figures mean nothing, but all is there.
const SMALL: [&str; 6] = ["--repeats", "2", "--scale", "0.001", "--memory-mb", "1"];

#[test]
fn tables_of_all_kinds() {
    let args = [&SMALL[..], &["--workloads", "single,memory", "--allocators", "slablab,glibc,twin"]].concat();
    let said = answered(&args);
    let words = ["2 blocks", "one thread", "slablab", "glibc", "twin", "pair64", "batch4096x64", "best peer"];
    check_order(&args, &said, &words);
    check_order(&args, &said, &["resident memory", "later still", "slablab", "false alarms:", "are proved"]);
    assert!(said.lines().all(|line| line == line.trim_end()), "blanks at line ends: {said}");
    let page = folder("bench").join("page.html");
    let html = ["--html", page.to_str().expect("UTF-8"), "--format", "json"];
    let json: Value = serde_json::from_str(&answered(&[&args[..], &html[..]].concat())).expect("JSON");
    assert_eq!(json["schema"], "slablab.bench.1");
    assert_eq!(json["workloads"].as_array().expect("a list").len(), 9);
    assert_eq!(json["memory"].as_array().expect("a list").len(), 2, "the twin has no process");
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("--workloads single,memory") && page.contains("zeroed256"), "{page}");
    let csv = answered(&[&args[..], &["--format", "csv"]].concat());
    let columns = csv.lines().next().expect("a header").split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
}

#[test]
fn the_list() {
    let said = answered(&["--list"]);
    let words = [
        "single",
        "pair64",
        "threads",
        "oneway64",
        "larson",
        "programs",
        "rptest-like",
        "caches",
        "floors",
        "memory",
        "allocators",
    ];
    check_order(&["--list"], &said, &words);
    check_order(&["--list"], &said, &["slablab", "ours", "proof:", "glibc", "peer", "mallinfo2"]);
    check_order(
        &["--list"],
        &said[..80],
        &["workloads (--workloads) and", "allocators (--allocators) can be named."],
    );
    check_narrow(&said);
    let json: Value = serde_json::from_str(&answered(&["--list", "--format", "json"])).expect("JSON");
    assert_eq!((&json["schema"], &json["list"]), (&"slablab.list.1".into(), &"bench".into()));
    let rows = json["rows"].as_array().expect("rows");
    let of = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).count();
    assert!(of("workload") > 20 && of("allocator") > 5, "{rows:?}");
    let csv = answered(&["--list", "--format", "csv"]);
    assert_eq!((csv.lines().next(), csv.lines().count()), (Some("kind,name,group,about"), rows.len() + 1));
    check_error(&["--list", "--html", "list.html"], "cannot be used with");
}

#[test]
fn what_it_does_not_take() {
    check_error(&["--workloads", "pair65"], "--workloads pair65: expected some of single");
    check_error(&["--allocators", "libc"], "--allocators libc: expected some of slablab");
    check_error(&["--repeats", "0"], "0 is not in 1..=10000");
    check_error(&["--scale", "0"], "expected a number from 0.0001 to 1000, found \"0\"");
    check_error(&["--scale", "NaN"], "expected a number from 0.0001 to 1000");
    check_error(&["--memory-of", "nobody", "1000", "1"], "no allocator is called nobody");
    check_error(
        &["--memory-of", "larson-sized/nobody", "1000", "1"],
        "no contestant of larson-sized is called",
    );
    check_error(&["--memory-of", "glibc", "x", "1"], "--memory-of: expected a number of bytes, found \"x\"");
}

/// Hours of measuring end with nothing if that is found out at the end: it is before.
#[test]
fn an_output_that_cannot_be_written_is_refused_first() {
    let long = ["--scale", "1000", "--repeats", "10000"];
    for option in ["-o", "--html"] {
        check_error(&[&long[..], &[option, "/nonexistent/x.html"]].concat(), "/nonexistent");
    }
}

/// Ctrl-C: what is whole is printed, and the exit code says how it ended.
#[test]
fn a_signal_ends_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.args(["bench", "--workloads", "pair64", "--repeats", "10000", "--allocators", "glibc"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    // Before it has a handler a signal would end it without a word.
    while !common::catches_interrupts(child.id()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("of 10000 blocks are complete"), "{}", text(&output.stdout));
}

/// The calls of a program of three threads, by two allocators.
#[test]
fn a_recorded_program_is_replayed() {
    let trace = common::argument("examples/data/git-grep.trace.parquet");
    let args = ["--trace", &trace, "--repeats", "2", "--allocators", "slablab,glibc,twin,harness"];
    let said = answered(&args);
    check_order(
        &args,
        &said,
        &["programs", "git-grep: ", "calls of 3 threads", "slablab", "glibc", "are proved"],
    );
    let json: Value =
        serde_json::from_str(&answered(&[&args[..], &["--format", "json"]].concat())).expect("JSON");
    let workloads = json["workloads"].as_array().expect("a list");
    assert_eq!(workloads.len(), 1, "no other workload was named");
    let short = [&args[..], &["--scale", "0.1", "--workloads", "pair64"]].concat();
    let said = answered(&short);
    check_order(&short, &said, &["one thread", "pair64", "git-grep: "]);
    check_error(&["--trace", "README.md"], "README.md");
    check_error(&["--trace", "no.trace.parquet"], "slablab: no.trace.parquet: No such file");
}

/// A program under an allocator that is preloaded, in all forms.
#[test]
fn a_program_runs_under_allocators() {
    let program = ["--repeats", "2", "--allocators", "glibc", "--", "perl", "-e", "print 'x' x 300000"];
    let said = answered(&program);
    let words =
        ["No verdict on perl -e", "2 blocks are too few", "CPU ms", "peak MB", "glibc", "glibc again"];
    check_order(&program, &said, &words);
    check_order(
        &program,
        &said,
        &["is proved by the dynamic linker", "the program printed the same in all runs"],
    );
    let json = |form: &str| -> Value {
        let args = [&["--format", form], &program[..]].concat();
        serde_json::from_str(&answered(&args)).expect("JSON")
    };
    let own = json("json");
    assert_eq!((&own["schema"], &own["blocks"]), (&"slablab.bench-program.1".into(), &2.into()));
    assert_eq!(own["rows"][0]["samples"].as_array().map(Vec::len), Some(2));
    let foreign = json("hyperfine");
    assert_eq!(foreign["results"][0]["parameters"]["allocator"], "glibc");
    assert_eq!(foreign["results"][0]["times"].as_array().map(Vec::len), Some(2));
    let csv = answered(&[&["--format", "csv"], &program[..]].concat());
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

#[test]
fn programs_that_are_refused() {
    for (args, words) in [
        (&["--", "/nonexistent/program"][..], "/nonexistent/program: No such file"),
        (&["--", "false"], "false under glibc: exit code 1"),
        (&["--", "sh", "-c", "echo the reason >&2; exit 7"], "exit code 7 (the reason): expected 0"),
        (&["--input", "/nonexistent", "--", "true"], "/nonexistent"),
        (
            &["--allocator", "mine=/nonexistent.so", "--", "true"],
            "--allocator mine: /nonexistent.so: No such file",
        ),
        (&["--workloads", "single", "--", "true"], "cannot be used with"),
        (&["--warmup", "1"], "required"),
    ] {
        check_error(&[&["--repeats", "1"], args].concat(), words);
    }
    check_error(&["--allocators", "jmalloc", "--", "true"], "allocator jmalloc: expected one of glibc");
    check_error(&["--allocators", "glibc", "--format", "hyperfine"], "workloads have no such form");
}
