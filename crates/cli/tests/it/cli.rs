//! The program as a user meets it: the README's command, and what happens when something is wrong.

use crate::common::{self, bundled, check_narrow, folder, text};
use std::process::Output;

fn slablab(args: &[&str]) -> Output {
    common::slablab(&[], args)
}

#[track_caller]
fn check_error(args: &[&str], words: &[&str]) {
    common::check_error(&[], args, words);
}

fn recording() -> String {
    bundled("examples/data/hackbench-6.18.perf.data.xz").display().to_string()
}

#[test]
fn the_first_command_of_the_readme() {
    let output = slablab(&["replay", &recording()]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for words in [
        "slub@6.18 peaks lowest, at ",
        "slub@7.3 takes fewest slabs,\n1,263.",
        "recorded on 6.18.44",
        "2 CPUs, 1 node, 4 K pages",
        "slub@6.18",
        "slqb@2009-09",
        "skbuff_head_cache",
        "%Fast",
    ] {
        assert!(table.contains(words), "no {words:?} in {table}");
    }
    assert_eq!(text(&output.stderr), "", "no terminal, no progress");
    assert!(table.lines().all(|line| line == line.trim_end()), "blanks at line ends do not survive mail");
    check_narrow(&table);
}

#[test]
fn machines_read_it_too() {
    let output = slablab(&["replay", &recording(), "--engine", "slub@6.1", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], "slablab.replay.1");
    let caches = json["engines"][0]["caches"].as_array().expect("a list");
    let sum = |key: &str| caches.iter().map(|cache| cache[key].as_u64().unwrap_or(0)).sum::<u64>();
    let total = |key: &str| json["engines"][0]["total"][key].as_u64().expect("a number");
    assert_eq!(sum("allocs"), total("allocs"));
    assert_eq!(sum("slab_bytes"), total("slab_end_bytes"));
    let parts = ["live_bytes", "parked_bytes", "free_bytes", "tail_bytes"].map(total).iter().sum::<u64>();
    assert_eq!(parts, total("slab_end_bytes"));
    let csv = slablab(&["replay", &recording(), "--engine", "slub@6.1", "--format", "csv"]);
    let lines = text(&csv.stdout);
    assert_eq!(lines.lines().count(), caches.len() + 1);
    let columns = |line: &str| line.split(',').count();
    let header = columns(lines.lines().next().expect("a header"));
    assert!(lines.lines().all(|line| columns(line) == header), "rows have {header} columns");
}

#[test]
fn one_cache_by_name() {
    let output = slablab(&["replay", &recording(), "--cache", "skbuff_head_cache"]);
    let table = text(&output.stdout);
    assert!(table.starts_with("skbuff_head_cache ends with least slab memory under "), "{table}");
    assert!(table.contains("alloc_fastpath") && table.contains("cpu_partial_free"), "{table}");
    check_error(&["replay", &recording(), "--cache", "nobody"], &["nobody"]);
}

#[test]
fn verify_says_its_skill_and_a_threshold_is_an_exit_code() {
    let (start, end) = (
        bundled("examples/data/hackbench-6.18.slabinfo-start.txt"),
        bundled("examples/data/hackbench-6.18.slabinfo-end.txt"),
    );
    let (start, end) = (start.display().to_string(), end.display().to_string());
    let args = ["verify", &recording(), "--before", &start, "--after", &end];
    let output = slablab(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = text(&output.stdout);
    assert!(answer.starts_with("Between the two dumps slab memory grew by "), "{answer}");
    let words = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in ["skill 0.", "free ones that are parked at CPUs", "Not shown: why (--wide)."] {
        assert!(words.contains(said), "{said}: {answer}");
    }
    check_narrow(&answer);
    let output = slablab(&[&args[..], &["--fail-below", "0.99"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn engines_are_listed() {
    let output = text(&slablab(&["engines"]).stdout);
    for words in [
        "slub: releases 2.6.29 2.6.32 3.2 5.10 5.16 6.1 6.8 6.12 6.18 7.0 7.1",
        "slqb: releases 2009-01 2009-09",
        "slob: releases 2.6.32 6.1",
        "max_order",
        "hiwater",
        "default: halving, since 2.6.32 clamped, since 6.8 single",
        "default: off, since 6.18 opt-in, since 7.0 all",
    ] {
        assert!(output.contains(words), "no {words:?} in {output}");
    }
}

#[test]
fn wrong_words() {
    let recording = recording();
    check_error(&["replay"], &["RECORDING"]);
    check_error(&["replay", &recording, "--enigne", "slub"], &["--engine"]);
    check_error(&["replay", &recording, "--engine", "slubb"], &["slubb", "near", "slub"]);
    check_error(&["replay", &recording, "--engine", "slub@6.1,max_ordr=0"], &["max_ordr", "max_order"]);
    check_error(&["replay", &recording, "--engine", "slub@6.1,max_order=99"], &["max_order", "from 0 to 10"]);
    check_error(&["replay", &recording, "--engine", "slub@1.2"], &["1.2", "slablab list engines"]);
    check_error(&["verify", &recording], &["--before", "--after"]);
}

#[test]
fn cpus_go_off_and_on() {
    let recording = recording();
    let base = ["replay", recording.as_str(), "--engine", "slub@6.1"];
    let at = |args: &[&'static str]| [&base[..], args].concat();
    let output = slablab(&at(&["--at", "1ms", "cpu1=off", "--at", "20ms", "cpu1=on"]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["rows of CPUs that were off", "(1ms cpu1=off, 20ms cpu1=on) ran on the next CPU of their node"]
    {
        assert!(table.contains(words), "no {words:?} in {table}");
    }
    check_error(&at(&["--at", "1ms"]), &["--at <TIME> <CPUS>"]);
    check_error(
        &at(&["--at", "soon", "cpu1=off"]),
        &["--at soon cpu1=off", "expected a time as 1.5s", "\"soon\""],
    );
    check_error(&at(&["--at", "1ms", "cpu1=down"]), &["--at 1ms cpu1=down", "as cpu3=off", "\"cpu1=down\""]);
    check_error(&at(&["--at", "1ms", "cpu2=off"]), &["--at 1ms cpu2=off", "cpu0 to cpu1"]);
    check_error(&at(&["--at", "1ms", "cpu1=on"]), &["--at 1ms cpu1=on", "on already"]);
    check_error(&at(&["--at", "1ms", "node0=off"]), &["--at 1ms node0=off", "expected one to stay"]);
    check_error(&at(&["--at", "1000s", "cpu1=off"]), &["--at 1000s cpu1=off", "where the recording ends"]);
}

#[test]
fn wrong_files() {
    let folder = folder("wrong_files");
    let file = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path.display().to_string()
    };
    let missing = folder.join("missing").display().to_string();
    let empty = file("empty", b"");
    let prose = file("prose.txt", b"this is no recording\n");
    let toml = file("machine.toml", b"cpus = \"many\"\n");
    let recording = recording();
    check_error(&["replay", &missing], &["missing", "No such file"]);
    for reads_nothing in [
        &["replay", &empty] as &[&str],
        &["import", &empty, "-o", &missing],
        &["replay", &recording, "--before", &empty],
        &["doctor", &empty],
        &["whatif", &empty, "--max-order", "0"],
    ] {
        check_error(reads_nothing, &[&empty, "the file is empty"]);
    }
    check_error(&["replay", &prose], &["prose.txt", "expected", "perf.data"]);
    check_error(&["replay", &recording, "--machine", &toml], &["machine.toml", "cpus"]);
    check_error(&["replay", &recording, "--machine", &missing], &["missing", "No such file"]);
    check_error(&["replay", &recording, "--before", &prose], &["prose.txt", "none of the 1 lines is of"]);
    check_error(&["replay", &recording, "--before", &missing], &["missing", "No such file"]);
    let whole = std::fs::read(bundled("examples/data/hackbench-6.18.perf.data.xz")).expect("bundled");
    for length in (100_000..whole.len()).step_by(300_000) {
        let cut = file("cut.perf.data.xz", &whole[..length]);
        check_error(&["replay", &cut], &["cut.perf.data.xz", "cut off after", "--formats"]);
    }
}

#[test]
fn output_appears_whole_or_not_at_all() {
    let folder = folder("output");
    let out = folder.join("out.txt");
    let path = out.display().to_string();
    check_error(&["replay", &recording(), "--cache", "nobody", "-o", &path], &["nobody"]);
    assert_eq!(std::fs::read_dir(&folder).expect("readable").count(), 0, "nothing is left behind");
    assert_eq!(slablab(&["replay", &recording(), "-o", &path]).status.code(), Some(0));
    assert!(std::fs::read_to_string(&out).expect("written").contains("allocations"));
    assert_eq!(std::fs::read_dir(&folder).expect("readable").count(), 1, "nothing else is left behind");
    let nowhere = folder.join("no/such/folder").display().to_string();
    check_error(&["replay", &recording(), "-o", &nowhere], &["no/such/folder"]);
}

#[test]
fn debugging_by_name() {
    let list = slablab(&["engines"]);
    for words in ["around any engine", "debug: ", "letters of FZPUO", "quarantine", "harden", "init: "] {
        assert!(text(&list.stdout).contains(words), "no {words:?} in {}", text(&list.stdout));
    }
    let engine = "slub@6.1,debug=FZPU,quarantine=64K,harden=random,init=free";
    let output = slablab(&["replay", &recording(), "--engine", engine, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["engines"][0]["engine"], engine);
    assert_eq!(json["engines"][0]["violations"]["reports"], 0);
    assert!(text(&output.stderr).contains("free what neither a row allocated nor the start has"));
    check_error(
        &["replay", &recording(), "--engine", "slub@6.1,debug=FX"],
        &["--engine", "debug=`FX`", "FZPUO"],
    );
    // What cannot be put around an engine there is not known there.
    check_error(&["explain", &recording(), "slub@6.1,debug=F", "slub@6.18"], &["debug"]);
}
