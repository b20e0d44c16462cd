//! The verbs know the registered engine, and its checks run.

use std::path::Path;
use std::process::Command;

/// Runs the program. Returns its exit code and what it printed, standard output first.
fn run(arguments: &[&str]) -> (i32, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let done = Command::new(env!("CARGO_BIN_EXE_slablab-engine")).args(arguments).current_dir(root).output();
    let done = done.expect("the program runs");
    let said = [done.stdout, done.stderr].concat();
    (done.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

/// The verb ends well, and says all of `words`.
#[track_caller]
fn check(arguments: &[&str], words: &[&str]) {
    let (code, said) = run(arguments);
    assert_eq!(code, 0, "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no {word:?} in {said}"));
}

const RECORDING: &str = "examples/data/git-grep.trace.parquet";

#[test]
fn replay_and_explain() {
    check(&["replay", RECORDING, "--engine", "pile,keep=3"], &["pile@7.1,keep=3", "failed allocations"]);
    check(
        &["replay", RECORDING, "--engine", "pile,harden=random+encode,debug=FZPU"],
        &["pile@7.1,debug=FZPU"],
    );
    // Without --engine, every engine is run.
    check(&["replay", RECORDING], &["slub@6.18", "pile@7.1"]);
    check(&["explain", RECORDING, "pile", "slub@6.18"], &["2 policies differ", "engine"]);
    check(&["explain", RECORDING, "pile", "pile,keep=9,max_order=3"], &["keep", "max_order"]);
    let before = "examples/data/hackbench-6.18.before.tar.xz";
    let after = "examples/data/hackbench-6.18.slabinfo-end.txt";
    let recording = "examples/data/hackbench-6.18.perf.data.xz";
    let arguments = ["verify", recording, "--before", before, "--after", after, "--engine", "pile"];
    check(&arguments, &["pile@7.1"]);
}

#[test]
fn modelled_machines() {
    check(
        &["suite", "slub@6.18", "pile", "--quick", "--workload", "micro"],
        &["pile against slub@6.18", "gain %"],
    );
    check(&["engines", "pile"], &["pile: releases 7.1", "keep", "0..65536", "default: 1"]);
}

#[test]
fn bench_beside_other_allocators() {
    let short = ["bench", "--repeats", "2", "--scale", "0.01", "--memory-mb", "2"];
    let both = ["--allocators", "pile,glibc", "--workloads"];
    let run = |more: &[&str], words: &[&str]| check(&[&short[..], &both, more].concat(), words);
    run(&["pair64", "--engine", "pile,keep=9"], &["pair64", "pile", "glibc", "pile is pile@7.1,keep=9"]);
    run(&["memory"], &["memory of a process", "pile"]);
    run(&["cfrac-like", "--trace", RECORDING], &["cfrac-like", "pile", "git-grep: ", "pile"]);
    check(&["bench", "--list"], &["pile", "the cache number at the address is this heap's"]);
}

#[test]
fn wrong_names() {
    for engines in [["pile", "slub@6.1"], ["pile", "pile,keep=9"]] {
        let words = match engines[1] {
            "slub@6.1" => "slub@6.1: expected an engine that this program adds to the bench: pile",
            _ => "pile@7.1,keep=9: an engine has one heap in the bench: expected one choice",
        };
        let (code, said) = run(&["bench", "--engine", engines[0], "--engine", engines[1]]);
        assert!(code == 2 && said.contains(words), "{engines:?}: {said}");
    }
    for (arguments, words) in [
        (["replay", RECORDING, "--engine", "pil"], "near it: pile"),
        (["replay", RECORDING, "--engine", "pile,kep=1"], "near it: keep"),
        (["replay", RECORDING, "--engine", "pile@7.0"], "no release that has a preset"),
        (["whatif", "examples/dumps/amd64_smp4.after.tar.xz", "--engine", "pile"], "`replay` runs it"),
        (["check", "pile", "speed", "--effort=1"], "expected one of pile oracle, pile loom, pile shuttle"),
    ] {
        let (code, said) = run(&arguments);
        assert!(code == 2 && said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn its_checks_pass() {
    check(&["check", "pile,keep=0,max_order=1"], &["ok    pile oracle", "3 passed, 0 failed"]);
    check(&["check", "loom"], &["ok    pile loom", "1 passed, 0 failed"]);
    let (_, said) = run(&["check", "pile,kep=0"]);
    assert!(said.contains("near it: keep"), "{said}");
    check(&["check"], &["ok    pile oracle", "ok    pile loom", "ok    pile shuttle", "3 passed, 0 failed"]);
}
