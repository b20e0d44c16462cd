//! `slablab compare`: results that the program itself wrote, side by side.

use crate::common::{self, check_narrow, check_order, folder, text};
use serde_json::Value;
use std::path::Path;

const RECORDING: &str = "examples/data/hackbench-6.18.perf.data.xz";

#[track_caller]
fn run(args: &[&str], code: i32) -> String {
    let output = common::slablab(&[], args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Writes the result of a verb to a file.
fn written(folder: &Path, name: &str, args: &[&str]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, run(&[args, &["--format", "json"]].concat(), 0)).expect("the result is written");
    path.to_str().expect("UTF-8").to_string()
}

/// What the program prints of two results has `words` in this order, in lines of at most 80 columns.
#[track_caller]
fn check(results: [&str; 2], options: &[&str], words: &[&str]) {
    let args = [&["compare"][..], &results, options].concat();
    let said = run(&args, 0);
    check_order(&args, &said, words);
    check_narrow(&said);
    assert!(said.lines().all(|line| line == line.trim_end()), "{said}");
}

#[test]
fn replays_of_two_engines() {
    let at = folder("compare-replay");
    let replay = |name, engine| written(&at, name, &["replay", RECORDING, "--engine", engine]);
    let (base, other) = (replay("base.json", "slub@7.1"), replay("low.json", "slub@7.1,max_order=0"));
    let words = [
        "low is better than base in ",
        "Results of slablab replay: low against base.",
        "What differs\nengine\n    base: slub@7.1\n    low: slub@7.1,max_order=0\n",
        "slab peak, KiB",
        "What differs most",
        "kmalloc-cg-512",
        "recording, rows 193,094",
        "slablab 0.",
    ];
    check([&base, &other], &[], &words);
    check([&base, &other], &["--names", "vanilla,patched"], &["patched against vanilla"]);
    let page = at.join("page.html");
    let page_name = page.to_str().expect("UTF-8");
    let json = run(&["compare", &base, &other, "--format", "json", "--html", page_name], 0);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["schema"], &json["of"]), (&"slablab.compare.1".into(), &"slablab.replay.1".into()));
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("slab peak, KiB") && page.contains("slub@7.1,max_order=0"), "{page}");
    let csv = run(&["compare", &base, &other, "--format", "csv", "--top", "0"], 0);
    assert!(csv.lines().all(|line| line.starts_with("table,") || line.starts_with("answer,")), "{csv}");
    run(&["compare", &base, &other, "--fail-over", "5"], 1);
    run(&["compare", &base, &base, "--fail-over", "0"], 0);

    // A replay that begins with a dump has other slabs whatever its engine is.
    let slabinfo = "examples/data/hackbench-6.18.slabinfo-start.txt";
    let begun = ["replay", RECORDING, "--engine", "slub@7.1", "--before", slabinfo];
    let begun = written(&at, "begun.json", &begun);
    let said = "begun: not the input of base: start: the recording's own and a dump of ";
    common::check_error(&["compare"], &[&base, &begun], &[said, "--force compares them anyway"]);

    // The same recording, from another form of file, has the same fingerprint. A part of it has another one.
    let trace = at.join("trace.parquet");
    let trace = trace.to_str().expect("UTF-8");
    run(&["import", RECORDING, "-o", trace], 0);
    let imported = written(&at, "imported.json", &["replay", trace, "--engine", "slub@7.1"]);
    check(
        [&base, &imported],
        &[],
        &["What differs\nfile\n", "The same in all results: recording, rows 193,094"],
    );
    let other = written(
        &at,
        "other.json",
        &["replay", "examples/data/git-grep.trace.parquet", "--engine", "slub@7.1"],
    );
    let said = "other: not the input of base: recording, rows: 193,094 and ";
    common::check_error(&["compare"], &[&base, &other], &[said, "--force compares them anyway"]);
    check([&base, &other], &["--force"], &["caution: the results are of different inputs"]);
}

#[test]
fn results_of_other_verbs() {
    let at = folder("compare-verbs");
    let dump = "crates/readers/testdata/host_618/before.tar.xz";
    let doctor = written(&at, "doctor.json", &["doctor", dump]);
    let other = written(&at, "ppc.json", &["doctor", "examples/dumps/ppc64_smp160.after.tar.xz"]);
    let words = [
        "caution: the results are of different machines or kernels, doctor (",
        "Results of slablab doctor: ppc against doctor.",
        "What differs\ninput",
        "page size",
        "slabs, KiB",
        "SUnreclaim",
    ];
    check([&doctor, &other], &[], &words);
    let verify = |name, engine| {
        let ends = [
            "examples/data/hackbench-6.18.slabinfo-start.txt",
            "examples/data/hackbench-6.18.slabinfo-end.txt",
        ];
        let args = ["verify", RECORDING, "--engine", engine, "--before", ends[0], "--after", ends[1]];
        written(&at, name, &args)
    };
    let (one, two) = (verify("v1.json", "slub@6.18"), verify("v2.json", "slub@7.1"));
    check(
        [&one, &two],
        &[],
        &["Results of slablab verify: v2 against v1.", "skill, slabs", "caches, KiB off"],
    );
    let bench = ["bench", "--repeats", "2", "--scale", "0.001", "--workloads", "pair64,loop"];
    let allocators = ["--allocators", "slablab,glibc,twin"];
    let bench = |name| written(&at, name, &[&bench[..], &allocators].concat());
    let (one, two) = (bench("b1.json"), bench("b2.json"));
    let words = [
        "b1: no verdict from this run:",
        "2 blocks are",
        "pair64 slablab, ns",
        "Controls",
        "pair64 glibc, ns",
    ];
    check([&one, &two], &[], &words);
    let said = "b1: the result of slablab bench, but doctor is that of slablab doctor";
    common::check_error(&["compare"], &[&doctor, &one], &[said]);
    let what = written(&at, "what.json", &["what", "dentry"]);
    common::check_error(
        &["compare"],
        &[&what, &one],
        &["what.json: schema slablab.what.1", "expected what one of replay"],
    );
}

#[test]
fn experiments_and_suites() {
    let at = folder("compare-runs");
    let run = |name, seed| written(&at, name, &["run", "2026", "--quick", "--seed", seed]);
    let (one, two) = (run("one.json", "1"), run("two.json", "2"));
    let words = [
        "What differs\nseed\n    one: 1\n    two: 2",
        "Result: iops, M",
        "numa8 ",
        "Holm's correction over",
        "parameters",
    ];
    check([&one, &two], &[], &words);
    // A folder of a run is its result.
    let ran = |name: &str, seed| {
        let folder = at.join(name).to_str().expect("UTF-8").to_string();
        common::slablab(&[], &["run", "micro", "--quick", "--seed", seed, "--folder", &folder]);
        folder
    };
    check([&ran("first", "1"), &ran("second", "2")], &[], &["seed\n    first: 1\n    second: 2"]);
    let suite = |name, engine| {
        written(&at, name, &["suite", "slub@7.0", engine, "--quick", "--workload", "hackbench"])
    };
    let (one, two) = (suite("s1.json", "slub@7.1"), suite("s2.json", "slub@7.1,max_order=0"));
    let words = [
        "engine\n    s1: slub@7.1\n    s2: slub@7.1,max_order=0",
        "slub@7.0\n",
        "hackbench numa8, s",
        "Welch's",
    ];
    check([&one, &two], &[], &words);
}

#[test]
fn what_it_does_not_take() {
    let check = |args: &[&str], words: &str| common::check_error(&["compare"], args, &[words]);
    check(
        &["README.md", "README.md"],
        "README.md: no JSON: expected value at line 1 column 1; expected what a verb",
    );
    check(&["one.json"], "2 values required");
    check(&["no.json", "no.json"], "no.json: No such file");
    check(&["docs", "docs"], "docs: a folder without summary.json: expected one of `slablab run --folder`");
    check(&["no.json", "no.json", "--names", "one"], "--names: 1 name for 2 results");
    check(&["no.json", "no.json", "--fail-over=-1"], "expected a number from 0 on");
}
