//! Results that are written here by hand, side by side.

use serde_json::{Value, json};
use slablab_compare::output::comparison_answer;
use slablab_compare::{Comparison, Document, Options, compare};
use std::path::Path;

fn document(name: &str, value: &Value) -> Document {
    Document::parse(name, Path::new(name), value.to_string().as_bytes()).expect("a result")
}

fn compared(values: &[Value], options: Options) -> Result<Comparison, String> {
    let names = ["base", "patched", "third"];
    let documents: Vec<Document> =
        names.iter().zip(values).map(|(name, value)| document(name, value)).collect();
    compare(&documents, options).map_err(|error| error.to_string())
}

/// All of `words` are in the text, in this order; no line is wider than 80 columns, none ends with a blank.
#[track_caller]
fn check(values: &[Value], options: Options, words: &[&str]) -> String {
    let text = comparison_answer(&compared(values, options).expect("a comparison")).text(false);
    let mut rest = &text[..];
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("no {word:?} (in this order) in\n{text}"));
        rest = &rest[at + word.len()..];
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && line == line.trim_end(), "{line:?} in\n{text}");
    }
    text
}

#[track_caller]
fn check_error(values: &[Value], words: &[&str]) {
    let error = compared(values, Options::default()).expect_err("an error");
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error}");
    }
}

/// A replay of `engines`, each with its slab memory at the end in KiB.
fn replay(fingerprint: &str, engines: &[(&str, u64)]) -> Value {
    let engine = |(name, kib): &(&str, u64)| {
        json!({
            "engine": name,
            "rows": 1000,
            "total": {
                "slab_end_bytes": kib * 1024,
                "allocs_fast_percent": 87.5,
                "allocs": 500,
            },
            "caches": [
                { "cache": "dentry", "slab_bytes": kib * 512 },
                { "cache": "a_cache_with_a_very_long_name_indeed", "slab_bytes": kib * 256 },
                { "cache": "filp", "slab_bytes": 4096 },
            ],
        })
    };
    json!({
        "schema": "slablab.replay.1",
        "recording": "a.perf.data",
        "recording_fingerprint": fingerprint,
        "release": "6.18.1",
        "events_lost": 0,
        "machine": { "cpus": 2, "page_size_bytes": 4096, "seed": 1 },
        "engines": engines.iter().map(engine).collect::<Vec<_>>(),
    })
}

/// An experiment of one engine: mean and standard deviation of 5 runs of two metrics, in each of two cells.
fn experiment(engine: &str, means: [[f64; 2]; 2], sd: f64) -> Value {
    let metric = |mean: f64| json!({ "n": 5, "mean": mean, "sd": sd });
    let cell = |(groups, [iops, io]): (u64, [f64; 2])| {
        json!({
            "machine": "numa8",
            "engine": engine,
            "costs": "",
            "parameters": { "groups": groups, "over": "sockets" },
            "failed": [],
            "metrics": { "iops": metric(iops), "io_ps": metric(io) },
        })
    };
    json!({
        "schema": "slablab.experiment.1",
        "program": { "name": "slablab", "version": "0.1.0" },
        "name": "2026",
        "workload": "ublk",
        "size": "quick",
        "metric": "iops",
        "metrics": [
            { "name": "iops", "unit": "M", "per_unit": 1e6, "decimals": 2, "better": "higher" },
            { "name": "io_ps", "unit": "ns", "per_unit": 1e3, "decimals": 1, "better": "lower" },
        ],
        "cells": (1..).zip(means).map(cell).collect::<Vec<_>>(),
    })
}

/// A bench: times of slablab, of its twin and of glibc, and of a floor.
fn bench(ours: f64, glibc: f64, floor: f64) -> Value {
    let times = |ns: f64| (0..9).map(|block| ns * (1.0 + 0.001 * f64::from(block))).collect::<Vec<_>>();
    let cell =
        |name: &str, role: &str, ns: f64| json!({ "name": name, "role": role, "samples_ns": times(ns) });
    json!({
        "schema": "slablab.bench.1",
        "blocks": 9,
        "scale": 1.0,
        "cpus": 4,
        "load_before": 0.25,
        "load_after": 1.0,
        "no_verdict": [],
        "host": { "name": "here", "kernel": "6.18.1", "cpu": "a CPU" },
        "workloads": [
            {
                "name": "pair64",
                "group": "single",
                "ops": 1000,
                "cells": [cell("slablab", "ours", ours), cell("glibc", "peer", glibc), cell("twin", "twin", 50.0)],
            },
            { "name": "harness", "group": "floors", "ops": 1000, "cells": [cell("harness", "floor", floor)] },
        ],
    })
}

#[test]
fn replays_in_full() {
    let base = replay("0f", &[("slub@7.1", 2000)]);
    let other = replay("0f", &[("slub@7.1,max_order=0", 1900)]);
    let expected = "patched is better than base in 1 of 2 rows, worse in 0; the largest difference:
slab end, KiB: 5.0 % better.
Results of slablab replay: patched against base.

What differs
engine
    base: slub@7.1
    patched: slub@7.1,max_order=0

Result
                            base          patched
 slab end, KiB   2000 (   0.00%)  1900 (   5.00%)
 fast allocs, %  87.5 (   0.00%)  87.5 (   0.00%)
One value each, so no test: a replay gives the same numbers each time: a
  difference is one of the engines on this recording. A percentage above 0 is
  better.

What differs most: caches, KiB of slabs
                                                  base         patched
 dentry                                1000 (   0.00%)  950 (   5.00%)
 a_cache_with_a_very_long_name_indeed   500 (   0.00%)  475 (   5.00%)
A percentage above 0 is better.

The same in all results: recording, rows 1,000; recording, fingerprint 0f; start
  the recording's own; recorded kernel 6.18.1; CPUs 2; page size 4096; seed 1;
  hotplug none; file a.perf.data.
No result says: slablab, bytes of nodes, node of each CPU.
";
    assert_eq!(check(&[base.clone(), other.clone()], Options::default(), &[]), expected);
    let one = Options { details: 1, ..Options::default() };
    check(&[base, other], one, &["dentry", "1 more row differs less (--top)"]);
}

#[test]
fn engines_are_matched_by_name() {
    let base = replay("0f", &[("slub@6.18", 2000), ("slqb", 1000)]);
    let common = replay("0f", &[("slub@6.18", 2000), ("slab", 3000), ("slob", 4000)]);
    let words = ["Result: slub@6.18\n", "(   0.00%)", "only base has slqb", "only patched has slab, slob"];
    check(&[base.clone(), common.clone()], Options::default(), &words);
    // One engine is left on each side: they stand for each other.
    let paired = replay("0f", &[("slub@6.18", 2000), ("slob", 1500)]);
    let words =
        ["engine\n    base: slqb\n    patched: slob", "Result: slqb and slob\n", "1000", "1500 ( -50.00%)"];
    check(&[base.clone(), paired], Options::default(), &words);
    let none = replay("0f", &[("slab", 1), ("slob", 1)]);
    check_error(&[base, none], &["patched: nothing in common with base: only base has slub@6.18, slqb"]);
}

#[test]
fn three_results_stand_beside_the_base() {
    let values = [2000, 1900, 2200].map(|kib| replay("0f", &[("slub@7.1", kib)]));
    let words = ["patched, third against base.", "patched\n", "   5.00%", "third\n", " -10.00%"];
    check(&values, Options::default(), &words);
}

#[test]
fn other_inputs_are_refused() {
    let engines: [(&str, u64); 1] = [("slub@7.1", 2000)];
    let (one, other) = (replay("0f", &engines), replay("f0", &engines));
    let said =
        "patched: not the input of base: recording, fingerprint: 0f and f0; expected results of one input";
    check_error(&[one.clone(), other.clone()], &[said, "--force"]);
    let force = Options { force: true, ..Options::default() };
    let words = ["caution: the results are of different inputs (recording, fingerprint)", "What differs"];
    check(&[one.clone(), other], force, &words);
    // A result from before there were fingerprints has rows only.
    let mut old = one.clone();
    old.as_object_mut().expect("an object").remove("recording_fingerprint");
    check(&[one, old], Options::default(), &["fingerprint 0f", "(not", "all results)"]);
    let scaled = |scale: f64| {
        let mut bench = bench(5.0, 9.0, 1.0);
        bench["scale"] = scale.into();
        bench
    };
    check_error(&[scaled(1.0), scaled(0.5)], &["scale: 1.0 and 0.5"]);
}

#[test]
fn other_documents_are_refused_by_name() {
    let parse = |text: &str| Document::parse("x", Path::new("x.json"), text.as_bytes());
    for (text, words) in [
        ("{", "x.json: no JSON: EOF while parsing an object at line 1 column 1; expected what a verb writes"),
        ("[1]", "no key `schema`: expected what one of replay, run, suite, bench, doctor, verify writes"),
        (r#"{"schema":"slablab.what.1"}"#, "x.json: schema slablab.what.1: its results have no table"),
        (
            r#"{"schema":"slablab.replay.9"}"#,
            "x.json: schema slablab.replay.9, of another version of slablab",
        ),
        (r#"{"schema":"slablab.replays.1"}"#, "did you mean slablab.replay.1?"),
        (
            r#"{"schema":"slablab.replay.1"}"#,
            "x.json: no list `engines`; expected what slablab replay writes",
        ),
        (r#"{"schema":"slablab.experiment.1"}"#, "x.json: no list `metrics`"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    let replay = replay("0f", &[("slub@7.1", 2000)]);
    let said =
        "patched: the result of slablab bench, but base is that of slablab replay; expected results of";
    check_error(&[replay.clone(), bench(5.0, 9.0, 1.0)], &[said]);
    check_error(&[replay], &["base: one result: expected another one"]);
}

/// Of an experiment the main metric of all cells is a table with one correction, the others are another one.
#[test]
fn repeats_are_tested_over_the_table() {
    let base = experiment("slub@6.18", [[30e6, 500e3], [20e6, 500e3]], 1e5);
    let other = experiment("slub@7.0", [[15e6, 500e3], [20.01e6, 500e3]], 1e5);
    let words = [
        "Result: iops, M\n",
        " numa8 groups=1 ",
        "30.00 (   0.00%)  15.00 * -50.00%*",
        " numa8 groups=2 ",
        "20.00 (   0.00%)  20.01 (   0.05%)",
        "0 better, 1 worse (stars), in 1",
        "Welch's t-test",
        "correction over 2",
        "parameters over=sockets",
    ];
    let text = check(&[base.clone(), other.clone()], Options::default(), &words);
    assert!(!text.contains("io, ns"), "what does not differ is no detail: {text}");
    let json =
        comparison_answer(&compared(&[base.clone(), other.clone()], Options::default()).expect("both"))
            .json();
    assert_eq!((&json["tables"][0]["comparisons"], &json["of"]), (&2.into(), &"slablab.experiment.1".into()));
    let row = &json["tables"][0]["rows"][0];
    assert_eq!(
        (&row["verdict"], &row["base_n"], &row["other_value"]),
        (&"worse".into(), &5.into(), &15.0.into())
    );
    assert_eq!(json["differs"]["engine"], json!(["slub@6.18", "slub@7.0"]));
    let mut later = other.clone();
    later["program"]["version"] = "0.2.0".into();
    check(&[base, later], Options::default(), &["caution: the results are of different versions"]);
    // Each of the two differs alone with p = 0.045, not after the correction.
    let mean = |mean: f64| experiment("slub@6.18", [[mean, 5e5], [mean, 5e5]], 1e6);
    check(&[mean(20e6), mean(21.9e6)], Options::default(), &["2 better", "correction over 2"]);
    check(&[mean(20e6), mean(21.5e6)], Options::default(), &["0 better, 0 worse", "correction over 2"]);
}

#[test]
fn a_bench_needs_quiet_controls() {
    let base = bench(5.0, 9.0, 1.0);
    let words = [
        "caution: the blocks of a run share a layout",
        "pair64 slablab, ns",
        "4.02 (   0.00%)",
        "4.42 *",
        "Medians;",
        "Mann-Whitney's test",
        "correction over 1",
        "Controls: not slablab's code",
        "harness, ns",
    ];
    let text = check(&[bench(4.0, 9.0, 1.0), bench(4.4, 9.0, 1.0)], Options::default(), &words);
    assert!(!text.contains("twin") && !text.contains("controls, which"), "{text}");
    // glibc, which did not change, is 10 % slower: 8 % of slablab's are the machine's, 40 % are not.
    for (ours, told) in [(5.4, false), (7.0, true)] {
        let comparison = compared(&[base.clone(), bench(ours, 9.9, 1.0)], Options::default()).expect("both");
        let json = comparison_answer(&comparison).json();
        assert_eq!(json["tables"][0]["rows"][0]["verdict"] == "worse", told, "{json:#}");
        let said = json["cautions"][1].as_str().expect("a caution");
        assert!(
            said.starts_with("1 of 2 controls, which are not slablab's code, differ, by up to 10.0 %"),
            "{said}"
        );
        assert_eq!(comparison.is_worse_by(5.0), told);
    }
    let mut busy = bench(50.0, 9.0, 1.0);
    busy["no_verdict"] = json!(["12 other threads wanted to run, on 4 CPUs"]);
    let words = [
        "patched: no verdict from this run: 12 other threads",
        "(-900.00%)",
        "0 better, 0 worse",
        "1 verdict is withheld",
    ];
    check(&[base, busy], Options::default(), &words);
}

/// Two runs of one program, ours and hyperfine's: blocks of a real machine, tested by ranks.
#[test]
fn programs_under_allocators_and_commands() {
    let values = |middle: f64| (0..9).map(move |block| middle * (1.0 + 0.001 * f64::from(block)));
    let program = |cpu_s: f64| {
        let row = |allocator: &str, cpu_s: f64, is_twin: bool| {
            let block = |cpu: f64| json!({ "cpu_s": cpu, "wall_s": 1.0, "peak_bytes": 5e6 });
            let samples: Vec<Value> = values(cpu_s).map(block).collect();
            json!({ "allocator": allocator, "is_twin": is_twin, "samples": samples })
        };
        json!({
            "schema": "slablab.bench-program.1",
            "command": "sort words",
            "blocks": 9,
            "no_verdict": [],
            "host": { "name": "here" },
            "rows": [row("glibc", 0.5, false), row("slablab", cpu_s, false), row("glibc", 9.0, true)],
        })
    };
    let text =
        check(&[program(0.4), program(0.5)], Options::default(), &["slablab, CPU ms", "401.60", "1 worse"]);
    assert!(!text.contains("9000"), "the twin is not compared: {text}");
    let hyperfine = |seconds: f64, parameters: Value| {
        let times: Vec<f64> = values(seconds).collect();
        json!({ "results": [
            { "command": "sort words", "mean": seconds, "times": times, "parameters": parameters },
        ] })
    };
    let under = |allocator: &str| json!({ "allocator": allocator });
    // The program as it is, of ours and of hyperfine; and under an allocator.
    let ours = hyperfine(2.0, under("glibc"));
    check(&[ours.clone(), hyperfine(1.0, Value::Null)], Options::default(), &["sort words, s", "1 better"]);
    let under_slablab = [hyperfine(2.0, under("slablab")), hyperfine(1.0, under("slablab"))];
    check(&under_slablab, Options::default(), &["sort words, slablab, s", "1 better"]);
    check_error(&[ours.clone(), hyperfine(1.0, under("slablab"))], &["nothing in common"]);
    let without = json!({ "results": [{ "command": "ls" }] }).to_string();
    let error =
        Document::parse("x", Path::new("x.json"), without.as_bytes()).expect_err("no times").to_string();
    assert!(error.contains("no list of numbers `times` of ls; expected what hyperfine"), "{error}");
    check_error(&[ours, program(0.5)], &["the result of slablab bench -- PROGRAM"]);
}

#[test]
fn a_threshold_counts_what_is_worse() {
    let of = |kib| replay("0f", &[("slub@7.1", kib)]);
    for (kib, percent, over) in
        [(2100, 4.0, true), (2100, 5.0, false), (1000, 0.0, false), (2000, 0.0, false)]
    {
        let comparison = compared(&[of(2000), of(kib)], Options::default()).expect("both");
        assert_eq!(comparison.is_worse_by(percent), over, "{kib} KiB, {percent} %");
    }
    // The scatter is as large as the difference: it is not counted.
    let mean = |mean: f64| experiment("slub@6.18", [[mean, 5e5], [mean, 5e5]], 2e6);
    assert!(!compared(&[mean(20e6), mean(19e6)], Options::default()).expect("both").is_worse_by(1.0));
    assert!(compared(&[mean(20e6), mean(9e6)], Options::default()).expect("both").is_worse_by(50.0));
}

#[test]
fn programs_and_browsers_read_it() {
    let values = [replay("0f", &[("slub@7.1", 2000)]), replay("0f", &[("slub@7.0", 1900)])];
    let comparison = compared(&values, Options::default()).expect("both");
    let answer = comparison_answer(&comparison);
    let csv = answer.csv().expect("rows");
    let lines: Vec<&str> = csv.lines().collect();
    let heads = "table,group,row,better,base,base_n,base_value,base_sd,other,other_n,other_value,other_sd,";
    assert!(lines[0].starts_with(heads), "{csv}");
    assert!(
        lines[1].starts_with("answer,,\"slab end, KiB\",lower,base,1,2000,0,patched,1,1900,0,5,"),
        "{csv}"
    );
    assert_eq!(lines.len(), 5, "{csv}");
    let page = answer.page("slablab compare a.json b.json");
    for words in ["What differs", "slub@7.0", "slab end, KiB", "CPUs 2;", "No result says: slablab"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
}

/// Dumps of different machines are compared with a warning that names both.
#[test]
fn dumps_of_different_machines_are_told() {
    let dump = |host: Option<&str>, release: &str, page: u64, cpus: u64| {
        json!({
            "schema": "slablab.doctor.1",
            "host": host,
            "release": release,
            "page_size_bytes": page,
            "cpus_online": cpus,
            "nodes": 1,
            "total": { "slab_bytes": 1 << 20 },
            "caches": [{ "cache": "dentry", "slab_bytes": 4096 }],
        })
    };
    let check = |other: Value, expected: &[&str]| {
        let base = dump(Some("one"), "6.1.0", 4096, 4);
        let text = comparison_answer(&compared(&[base, other], Options::default()).expect("a comparison"))
            .markdown();
        assert_eq!(text.contains("different machines or kernels"), !expected.is_empty(), "{text}");
        expected.iter().for_each(|words| assert!(text.contains(words), "no {words:?} in {text}"));
    };
    check(dump(Some("one"), "6.1.0", 4096, 4), &[]);
    check(dump(None, "6.1.0", 4096, 4), &[]);
    check(dump(Some("two"), "6.1.0", 4096, 4), &["base (host one) and patched (host two)"]);
    check(dump(None, "6.12.1", 4096, 4), &["base (kernel 6.1.0) and patched (kernel 6.12.1)"]);
    check(
        dump(Some("one"), "6.1.0", 65536, 16),
        &["base (CPUs 4, page size 4096) and patched (CPUs 16, page size 65536)"],
    );
}

/// Percentages that are too long for two decimals have fewer.
#[test]
fn large_percentages_fit() {
    let mut rows = [2000, 21_990, 10_000_000, 40_000_000_000].into_iter();
    let base = replay("0f", &[("slub@7.1", rows.next().expect("the base"))]);
    for (kib, percent) in rows.zip(["(-999.50%)", "(-499900%)", "(   -2e9%)"]) {
        let other = replay("0f", &[("slub@7.1", kib)]);
        check(&[base.clone(), other], Options::default(), &[percent]);
    }
}

/// What is asked, in one sentence, in each situation.
#[test]
fn the_answer_is_one_sentence() {
    let check = |values: &[Value], expected: &str| {
        let answer = comparison_answer(&compared(values, Options::default()).expect("a comparison"));
        assert_eq!(answer.sentence(), expected);
        assert_eq!(answer.json()["answer"], answer.sentence());
    };
    let of = |kib| replay("0f", &[("slub@7.1", kib)]);
    let (base, less, more) = (of(2000), of(1900), of(2200));
    check(&[base.clone(), base.clone()], "patched and base have the same numbers in all 2 rows.");
    check(
        &[base.clone(), less.clone()],
        "patched is better than base in 1 of 2 rows, worse in 0; the largest difference: slab end, KiB: 5.0 % \
         better.",
    );
    check(
        &[base, less, more],
        "patched, third are better than base in 1 of 4 comparisons, worse in 1; the largest difference: slab \
         end, KiB: 10.0 % worse.",
    );
    let mean = |mean: f64| experiment("slub@6.18", [[mean, 5e5], [mean, 5e5]], 1e6);
    check(
        &[mean(20e6), mean(21.5e6)],
        "None of 2 rows tells patched from base, beyond the scatter of the runs.",
    );
    check(
        &[mean(20e6), mean(21.9e6)],
        "patched is better than base in 2 of 2 rows, worse in 0, beyond the scatter of the runs; the largest \
         difference: numa8 groups=2: iops, M: 9.5 % better.",
    );
    let mut busy = bench(50.0, 9.0, 1.0);
    busy["no_verdict"] = json!(["12 other threads wanted to run, on 4 CPUs"]);
    check(&[bench(5.0, 9.0, 1.0), busy], "None of 1 row tells patched from base: 1 verdict is withheld.");
}
