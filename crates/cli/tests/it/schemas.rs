//! The JSON Schemas that the program prints, beside what it writes, and the table of docs/json.md.

use crate::common::{self, bundled, folder, text};
use serde_json::Value;
use std::collections::BTreeSet;

const RECORDING: &str = "examples/data/hackbench-6.18.perf.data.xz";
const START: &str = "examples/data/hackbench-6.18.slabinfo-start.txt";
const END: &str = "examples/data/hackbench-6.18.slabinfo-end.txt";
const DUMP: &str = "examples/dumps/ppc64_smp160.after.tar.xz";
const BEFORE: &str = "examples/dumps/ppc64_smp160.before.tar.xz";
const LOST: &str = "crates/readers/testdata/lost.perf.data.xz";
const COUNTERS: &str = "crates/replay/testdata/slub_smp4_numa4";
const SCRIPT: &str = "examples/data/vm/scan2.t";

/// Checks a document by the schema that it names. Returns the name.
#[track_caller]
pub(crate) fn check_document(of: &[&str], document: &Value) -> String {
    let name = document["schema"].as_str().unwrap_or_else(|| panic!("{of:?} names no schema")).to_string();
    let printed = common::slablab(&["generate", "schemas"], &[&name]);
    assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
    let schema: Value = serde_json::from_slice(&printed.stdout).expect("a schema is JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let wrong: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()).chars().take(300).collect())
        .take(5)
        .collect();
    assert!(wrong.is_empty(), "{of:?}: {name}:\n{}", wrong.join("\n"));
    name
}

/// Runs a command with `--format json`, expects `code`, and checks the document. Returns it.
#[track_caller]
fn check(code: i32, args: &[&str]) -> Value {
    let output = common::slablab(&[], &[args, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    let document = serde_json::from_slice(&output.stdout).expect("JSON");
    check_document(args, &document);
    document
}

#[test]
fn recordings() {
    let at = folder("schemas-recordings");
    let trace = at.join("t.parquet");
    let trace = trace.to_str().expect("UTF-8");
    check(0, &["import", RECORDING, "-o", trace]);
    check(3, &["import", LOST, "-o", trace]);
    check(0, &["import", COUNTERS, "trace_s1", "-o", trace]);
    check(0, &["import", "crates/readers/testdata/trace_dat/v7_zlib.trace.dat", "-o", trace]);
    let all = ["--engine", "slub@6.18", "--engine", "slob", "--engine", "slqb", "--engine", "slab"];
    check(0, &[&["replay", RECORDING][..], &all].concat());
    check(3, &["replay", LOST, "--engine", "slub@6.18"]);
    let one = ["replay", RECORDING, "--cache", "dentry", "--at", "0.1s", "cpu1=off"];
    check(0, &[&one[..], &["--engine", "slub@7.1,debug=FZPU,quarantine=64K"]].concat());
    let dump = "examples/data/hackbench-6.18.before.tar.xz";
    check(0, &["replay", RECORDING, "--before", dump, "--engine", "slub@6.18"]);
    let around = ["verify", RECORDING, "--before", START, "--after", END];
    check(0, &around);
    check(0, &[&around[..], &["--seeds", "2"]].concat());
    check(0, &["verify", COUNTERS, "trace_s1", "--seeds", "2"]);
    check(0, &["explain", RECORDING, "slub@6.18", "slub@7.0"]);
    let sampled = ["--cache", "dentry", "--exact", "2", "--samples", "8"];
    check(0, &[&["explain", RECORDING, "slub@6.1", "slub@6.18"][..], &sampled].concat());
}

#[test]
fn sites() {
    check(0, &["sites", RECORDING]);
    check(3, &["sites", LOST]);
    check(0, &["sites", "crates/readers/testdata/callchain.perf.data.xz"]);
    let at = folder("schemas-sites");
    let (before, now) = (at.join("before"), at.join("now"));
    let head = "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n  8388608 4737 mm/slub.c:2259 func:new\n";
    std::fs::write(&before, head).expect("a file");
    std::fs::write(&now, format!("{head}  524288 2 drivers/x.c:7 [x] func:leak\n")).expect("a file");
    let [before, now] = [&before, &now].map(|path| path.to_str().expect("UTF-8"));
    check(0, &["sites", before]);
    check(0, &["sites", now, "--since", before]);
    let dentry = at.join("sys/kernel/debug/slab/dentry");
    std::fs::create_dir_all(&dentry).expect("a folder");
    let lists =
        "   12 d_alloc+0x1d/0x1a0 age=250/500/1000 pid=1-345 cpus=0-1 nodes=0\n\t__slab_alloc+0x6d/0x90\n";
    std::fs::write(dentry.join("alloc_traces"), lists).expect("a file");
    std::fs::write(dentry.join("free_traces"), "    3 <not-available> age=4294709 pid=0 cpus=0\n")
        .expect("a file");
    check(0, &["sites", dentry.to_str().expect("UTF-8")]);
}

#[test]
fn machines_and_caches() {
    check(0, &["list", "machines"]);
    for list in ["engines", "vm", "experiments", "workloads", "schemas"] {
        check(0, &["list", list]);
    }
    check(0, &["list", "engines", "slub@7.0"]);
    check(0, &["what", "dentry", "kmalloc-64", ":0000128", ":a-0000192"]);
    check(0, &["what", "--list"]);
    check(0, &["doctor", DUMP]);
    check(0, &["doctor", "examples/dumps/amd64_smp4_debugFZPU.after.tar.xz"]);
    check(3, &["doctor", END, "--since", START]);
    let leak = "crates/doctor/testdata/leak";
    check(0, &["doctor", &format!("{leak}/after.tar.xz"), "--since", &format!("{leak}/before.tar.xz")]);
    check(0, &["doctor", "examples/data/hackbench-6.18.before.tar.xz", "--recording", RECORDING]);
    for pasted in ["dentry", "ebitmap", "memcg", "meminfo", "older", "rocm", "sorted", "unable-new", "unable"]
    {
        check(3, &["doctor", &format!("crates/readers/testdata/pasted/{pasted}.txt")]);
    }
    check(0, &["what", "crates/readers/testdata/pasted/unable.txt"]);
    let changes =
        ["--max-order", "0,1", "--page-size", "64K", "--cpus", "64", "--merge", "off", "--debug", "F"];
    check(0, &[&["whatif", BEFORE, "--policy", "patel-v3"][..], &changes].concat());
    check(0, &["whatif", BEFORE, "--engine", "slub@6.18"]);
    check(3, &["whatif", END, "--max-order", "1", "--input-cpus", "4"]);
    let other = "examples/dumps/ppc64_smp160_maxorder0.before.tar.xz";
    check(0, &["whatif", BEFORE, "--max-order", "0", "--against", other]);
    check(0, &["whatif", "--input", "examples/dumps/ppc64_smp16.before.tar.xz", "--input", BEFORE]);
    check(
        0,
        &["orders", "--policy", "patel-v3", "--against", "clamped", "--page-size", "64K", "--cpus", "16"],
    );
    check(0, &["orders", "--policy", "single"]);
}

#[test]
fn experiments() {
    for name in ["2026", "000", "micro", "placements", "004-make"] {
        check(0, &["run", name, "--describe"]);
    }
    check(0, &["run", "2026", "--quick"]);
    check(0, &["run", "placements", "--quick"]);
    let parts = folder("schemas-experiments").join("parts");
    let parts = parts.to_str().expect("UTF-8");
    check(0, &["run", "micro", "--quick", "--repeats", "2", "--folder", parts]);
    check(0, &["run", "--join", parts]);
    check(0, &["suite", "slub@7.0", "slub@7.1", "--quick", "--workload", "ublk"]);
    check(0, &["reproduce", "2026", "--quick", "--no-ranges"]);
    check(0, &["explain", "2026", "slub@6.18", "slub@7.0", "--repeats", "1"]);
    check(0, &["explain", SCRIPT, "vm@6.1", "vm@6.1,lru_gen"]);
    check(0, &["pressure", "run", SCRIPT]);
    check(0, &["pressure", "judge", "--scenario", "scan2", "--seeds", "1"]);
}

#[test]
fn this_host() {
    let hackbench = ["calibrate", "hackbench", "--groups", "1", "--loops", "10"];
    check(0, &hackbench);
    check(0, &[&hackbench[..], &["--repeats", "1", "--pipes", "--threads"]].concat());
    check(0, &["calibrate", "--quick"]);
    let machine = folder("schemas-host").join("host.toml");
    let machine = machine.to_str().expect("UTF-8");
    let output = common::slablab(&["machines"], &["laptop"]);
    std::fs::write(machine, &output.stdout).expect("a file");
    check(0, &["calibrate", "native", "--machine", machine, "--repeats", "2"]);
    let small = ["bench", "--repeats", "2", "--scale", "0.001", "--memory-mb", "1"];
    let whom = ["--allocators", "slablab,glibc,twin", "--workloads", "single,threads,floors,memory,programs"];
    check(0, &[&small[..], &whom].concat());
}

#[test]
fn comparisons() {
    let at = folder("schemas-compare");
    let commands: [&[&str]; 3] =
        [&["replay", RECORDING, "--engine", "slub@6.18"], &["doctor", DUMP], &["run", "micro", "--quick"]];
    for (number, args) in commands.iter().enumerate() {
        let file = at.join(format!("{number}.json"));
        std::fs::write(&file, check(0, args).to_string()).expect("a file can be written");
        let file = file.to_str().expect("UTF-8");
        check(0, &["compare", file, file]);
    }
}

/// The words of verbs, from the first row of the table on, and their schemas.
fn table() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(bundled("docs/json.md")).expect("a page");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |"));
    rows.map(|row| {
        let (verb, schema) = row.rsplit_once("| `").expect("two columns");
        (verb.split('`').next().expect("a verb").to_string(), schema.to_string())
    })
    .collect()
}

#[test]
fn each_verb_with_json_has_a_schema() {
    // The verbs that have `--format` with json, from the pages for man.
    let at = folder("schemas-man");
    assert_eq!(
        common::slablab(&["generate", "man"], &["--folder", at.to_str().expect("UTF-8")]).status.code(),
        Some(0)
    );
    let mut verbs = BTreeSet::new();
    for file in std::fs::read_dir(&at).expect("a folder").flatten() {
        let page = std::fs::read_to_string(file.path()).expect("a page");
        // The option's paragraph, which the next option's ends.
        let formats = page.split("\n\\fB\\-\\-format\\fR").nth(1).unwrap_or_default();
        let formats = formats.split("\n.TP\n").next().unwrap_or_default();
        let name = file.file_name().to_string_lossy().trim_end_matches(".1").to_string();
        if formats.contains("json") {
            verbs.insert(name.trim_start_matches("slablab-").replace('-', " "));
        }
    }
    let table = table();
    let listed = table.iter().map(|(verb, _)| verb.split(" --").next().expect("a verb").to_string());
    assert_eq!(verbs, listed.collect::<BTreeSet<_>>(), "--help and docs/json.md");

    // The program and the page have the same schemas.
    let said = text(&common::slablab(&["list", "schemas"], &["--format", "csv"]).stdout);
    let printed: BTreeSet<String> =
        said.lines().skip(1).map(|line| line.split(',').next().expect("a name").into()).collect();
    let named: BTreeSet<String> = table.into_iter().map(|(_, schema)| schema).collect();
    assert_eq!(named, printed, "docs/json.md, and slablab list schemas");
}

#[test]
fn the_types_for_python_are_those_of_the_schemas() {
    const FILE: &str = "crates/python/python/slablab/documents.py";
    let printed = common::slablab(&["generate"], &["types"]).stdout;
    let file = std::fs::read(bundled(FILE)).expect("a module of the package");
    assert!(text(&printed) == text(&file), "slablab generate types -o {FILE}");
}

#[test]
fn schemas_are_printed() {
    let all = folder("schemas-all");
    assert_eq!(
        common::slablab(&["generate", "schemas"], &["--folder", all.to_str().expect("UTF-8")]).status.code(),
        Some(0)
    );
    let file = std::fs::read(all.join("slablab.replay.1.json")).expect("a schema");
    for name in ["slablab.replay.1", "replay.1", "replay"] {
        assert_eq!(common::slablab(&["generate", "schemas"], &[name]).stdout, file, "{name}");
    }
    for (asked, near) in
        [("replays", "near it: slablab.replay.1"), ("slablab.whatif.2", "near it: slablab.whatif.1")]
    {
        common::check_error(
            &["generate", "schemas"],
            &[asked],
            &["no schema ", asked, near, "`slablab list schemas`"],
        );
    }
    common::check_error(
        &["generate", "schemas"],
        &["zzz"],
        &["no schema zzz; `slablab list schemas` lists all"],
    );
    common::check_error(&["generate", "schemas"], &["--folder", "/nonexistent/a"], &["/nonexistent"]);
}
