//! `slablab run`, `report` and `reproduce` as a user meets them.

use crate::common::{self, check_order, folder, text};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SWEEP: &str = r#"name = "sweep"
title = "pairs and batches"
machines = ["numa8-full"]
engines = ["slub@6.18", "slub@7.1"]
workload = "micro"
repeats = 2
[parameters]
pattern = ["pair", "batch"]
bytes = [64, 256, 1024]
objects = 300000
"#;

fn answered(verb: &str, args: &[&str]) -> String {
    let output = common::slablab(&[verb], args);
    assert_eq!(output.status.code(), Some(0), "{verb} {args:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{verb} {args:?}: no terminal, no progress");
    text(&output.stdout)
}

#[track_caller]
fn check(verb: &str, args: &[&str], words: &[&str]) {
    check_order(args, &answered(verb, args), words);
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Every file of a folder of results but the one that says where and how long it ran.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = |folder: &Path| fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path());
    let all = entries(folder).chain(entries(&folder.join("cells")).collect::<Vec<_>>());
    let wanted = all.filter(|path| path.is_file() && !path.ends_with("host.json"));
    wanted.map(|path| (path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap())).collect()
}

#[test]
fn a_description_is_text_or_a_document() {
    check(
        "run",
        &["2026", "--describe"],
        &["machines: numa8", "parameters", "queues = 16", "kernel objects of"],
    );
    let sized = |experiment, size| {
        let json = answered("run", &[experiment, size, "--describe", "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("a document");
        assert_eq!(json["schema"], "slablab.description.1");
        json
    };
    assert_eq!(sized("2026", "--quick")["size"], "quick");
    let whole = sized("000", "--full");
    assert_eq!(whole["size"], "full");
    let parameters = whole["parameters"].as_array().expect("parameters");
    let value = |name: &str| &parameters.iter().find(|one| one["name"] == name).expect(name)["values"];
    assert_eq!((value("part"), value("jobs")), (&serde_json::json!([1]), &serde_json::json!([1])));
    let output = common::slablab(&["run"], &["2026", "--quick", "--full"]);
    assert_eq!(output.status.code(), Some(2));
    let output = common::slablab(&["run"], &["2026", "--describe", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("no such form: expected table, markdown, json"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_suite_has_the_formats_of_a_run() {
    let small = ["slub@6.18", "slub@7.0", "--quick", "--repeats", "2", "--workload", "micro"];
    let with = |more: &[&'static str]| [&small[..], more].concat();
    check("suite", &small, &["slub@7.0 against slub@6.18", "micro laptop pattern=pair", "what else differs"]);
    check(
        "suite",
        &with(&["--format", "mmtests", "--wrap", "72"]),
        &["Modelled by slablab", "not measured", "slub@6.18", "slub@7.0", "Amean", "No row is tested"],
    );
    check("suite", &with(&["--format", "markdown"]), &["|---|---:|", "micro numa8"]);
    check("suite", &with(&["--format", "csv"]), &["workload,machine,parameters,metric", "micro,laptop"]);
    check("suite", &with(&["--format", "json"]), &["differences", "slablab.suite.1"]);
    check("suite", &["--list"], &["workload", "hackbench", "laptop", "micro", "ublk"]);
    let refused = |args: &[&str], words: &str| {
        let output = common::slablab(&["suite"], args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
    };
    refused(&["slup@6.18", "slub@7.0"], "near it: slub");
    refused(&["slub@6.18", "slub@7.0", "--workload", "mirco"], "near it: micro");
    let folder = folder("suite");
    let [parts, page] =
        [folder.join("part"), folder.join("page.html")].map(|path| path.display().to_string());
    let part = ["-o", &parts, "--shard", "1/1", "--html", &page];
    answered("suite", &[&small[..], &part].concat());
    assert!(fs::read_to_string(&page).expect("a page").contains("micro laptop"));
    assert_eq!(
        answered("report", &[&parts, "--format", "csv"]),
        answered("suite", &with(&["--format", "csv"]))
    );
}

#[test]
fn an_experiment_has_the_tables_of_mails() {
    let quick = ["2026", "--quick"];
    let with = |more: &[&'static str]| [&quick[..], more].concat();
    check(
        "run",
        &quick,
        &["2026: ublk", "12 cells of ublk, 3 runs each, size quick, seed 1", "gain %", "worse"],
    );
    check("run", &with(&["--format", "mmtests", "--wrap", "72"]), &["slub@6.18", "slub@7.0", "Hmean", "%*"]);
    check("run", &with(&["--format", "avgstd"]), &["higher better", "slub@7.0 AVG="]);
    check("run", &with(&["--format", "markdown"]), &["|---|---:|", "fast allocs"]);
    check(
        "run",
        &with(&["--format", "csv"]),
        &["machine,engine,parameters,metric,unit,n,mean", "numa8,slub@6.18"],
    );
    let json: serde_json::Value =
        serde_json::from_str(&answered("run", &with(&["--format", "json"]))).expect("JSON");
    assert_eq!(json["schema"], "slablab.experiment.1");
    assert_eq!(json["cells"].as_array().map(Vec::len), Some(12));
    assert_eq!(json["comparison"]["columns"][0], "slub@6.18");
    check("run", &["--list"], &["2026", "micro"]);
    check("run", &["2026", "--describe"], &["bio-264", "assumed", "fitted"]);
    let wide = answered("run", &with(&["--wrap", "72"]));
    assert!(wide.lines().all(|line| line.chars().count() <= 72), "{wide}");
}

/// The page and the recording are written beside the answer, which they do not change.
#[test]
fn an_experiment_can_be_looked_at() {
    let folder = common::folder("run-views");
    let [html, trace] = ["page.html", "cell.perfetto"].map(|name| folder.join(name));
    let args = ["2026", "--quick", "--html", path(&html), "--perfetto", path(&trace), "--cell", "2"];
    assert_eq!(answered("run", &args), answered("run", &["2026", "--quick"]));
    let page = fs::read_to_string(&html).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Where the time went"));
    // A trace is packets: field 1 of the file, each with its length.
    assert_eq!(fs::read(&trace).expect("a trace").first(), Some(&0x0a));
    let html = path(&html);
    common::check_error(&["run"], &["2026", "--html", html, "--perfetto", html], &["--html", "lost"]);
    common::check_error(&["run"], &["2026", "--html", "-"], &["--html writes a file"]);
    common::check_error(&["run"], &["2026", "--cell", "2"], &["--perfetto"]);
    let cell = ["2026", "--perfetto", path(&trace), "--cell", "1000"];
    common::check_error(&["run"], &cell, &["--cell 1000: expected 1 to"]);
}

/// A page of relations, and the page of a folder of results.
#[test]
fn answers_and_folders_have_pages() {
    let folder = common::folder("run-pages");
    let [html, results] = ["page.html", "results"].map(|name| folder.join(name));
    let quick = ["brouer", "--quick", "--no-ranges"];
    let args = [&quick[..], &["-o", path(&results), "--html", path(&html)]].concat();
    assert_eq!(answered("reproduce", &args), answered("reproduce", &quick));
    let page = fs::read_to_string(&html).expect("a page");
    assert!(page.contains("Published beside modelled") && page.contains("SLAB over SLUB, a pair"));
    fs::remove_file(&html).expect("the page");
    let results = results.join("brouer");
    answered("report", &[path(&results), "--html", path(&html)]);
    let page = fs::read_to_string(&html).expect("a page");
    assert!(page.contains("Published beside modelled") && page.contains("Where the time went"));
    common::check_error(
        &["reproduce"],
        &["003", "--html", path(&html)],
        &["--html is the page of one", "003-"],
    );
    common::check_error(&["report"], &[path(&results), "--html", "-"], &["--html writes a file"]);
}

#[test]
fn wrong_arguments_are_explained() {
    common::check_error(&["run"], &["2025"], &["2025", "near it: 2026", "slablab list experiments"]);
    common::check_error(&["run"], &["2026", "--shard", "9/8", "-o", "x"], &["3/8"]);
    common::check_error(&["run"], &["2026", "--repeats", "0"], &["0"]);
    common::check_error(&["run"], &["/nonexistent/x.toml"], &["/nonexistent/x.toml", "No such file"]);
    common::check_error(
        &["report"],
        &["/nonexistent"],
        &["/nonexistent", "plan.json", "slablab run --folder"],
    );
    common::check_error(&["reproduce"], &["micro"], &["micro", "[[expect]]", "slablab run"]);
    common::check_error(&["machines"], &["Cargo.toml"], &["Cargo.toml", "name of an installed machine"]);
    common::check_error(&["machines"], &["laptpo"], &["near it: laptop"]);
    common::check_error(&["reproduce"], &["20026"], &["near it: 2026"]);
    let used = folder("used");
    fs::write(used.join("notes"), "mine").expect("a file can be written");
    common::check_error(&["run"], &["2026", "-o", path(&used)], &["holds other files"]);
}

/// A run that is killed leaves whole cells. The next one into the folder goes on, and the bytes are those of
/// a run that was not killed.
#[test]
fn a_killed_run_goes_on() {
    let at = folder("killed");
    let experiment = at.join("sweep.toml");
    fs::write(&experiment, SWEEP).expect("a file can be written");
    let (killed, whole) = (at.join("results"), at.join("whole"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_slablab"))
        .args(["run", path(&experiment), "-o", path(&killed), "--threads", "1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program runs");
    let cells = |folder: &Path| fs::read_dir(folder.join("cells")).map_or(0, Iterator::count);
    let start = Instant::now();
    while cells(&killed) < 3 {
        assert!(start.elapsed() < Duration::from_secs(120), "no cells after two minutes");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("SIGKILL");
    let status = child.wait().expect("the child ended");
    assert!(!status.success(), "the run ended before it was killed: make the experiment longer");
    let kept = cells(&killed);
    assert!((3..12).contains(&kept), "{kept} cells");
    assert!(!killed.join("summary.json").exists());
    let resumed = answered("run", &[path(&experiment), "-o", path(&killed), "--threads", "2"]);
    let fresh = answered("run", &[path(&experiment), "-o", path(&whole), "--threads", "8"]);
    assert_eq!(resumed, fresh);
    let found = files(&killed);
    assert_eq!(found, files(&whole));
    assert_eq!(found.keys().filter(|name| name.starts_with("cells")).count(), 12);
    let host = fs::read_to_string(killed.join("host.json")).expect("host.json");
    let host: serde_json::Value = serde_json::from_str(&host).expect("JSON");
    assert_eq!(host["cells_kept"], kept);
    assert_eq!(host["cells_computed"], 12 - kept);
}

#[test]
fn parts_are_joined() {
    let at = folder("parts");
    let into = |name: &str| at.join(name).display().to_string();
    let (one, two, whole, joined) = (into("1"), into("2"), into("whole"), into("joined"));
    for (folder, shard) in [(&one, "1/2"), (&two, "2/2")] {
        answered("run", &["2026", "--quick", "-o", folder, "--shard", shard]);
    }
    let said = answered("run", &["2026", "--quick", "-o", &whole]);
    assert_eq!(answered("report", &[&one, &two, "-o", &joined]), said);
    assert_eq!(files(Path::new(&joined)), files(Path::new(&whole)));
    common::check_error(&["report"], &[&one], &["cells are missing"]);
}

/// The loss of 7.0 where most nodes have no memory, on any machine.
#[test]
fn the_report_of_2026_is_reproduced() {
    let said = answered("reproduce", &["2026", "--quick"]);
    let words = [
        "2 of 3 published relations of 2026 agree and 1 does not: 7.1 over",
        "fitted: outside_ns",
        "36.00",
        "13.00",
        "24.00",
        "7.0 over 6.18",
        "0.361",
        "The best constant answer",
    ];
    check_order(&["2026"], &said, &words);
    let json = answered("reproduce", &["2026", "--quick", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let relation = |name: &str| {
        let rows = json["relations"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).expect(name).clone()
    };
    let loss = relation("7.0 over 6.18");
    assert_eq!(loss["verdict"], "agrees");
    for pair in loss["pairs"].as_array().expect("pairs") {
        assert!(pair["drawn"]["ratio_high_95"].as_f64() < Some(0.7), "{pair}");
        assert_eq!(pair["drawn"]["lower_percent"], 100.0, "{pair}");
        assert!(pair["ratio"].as_f64() > Some(0.25), "{pair}");
    }
    assert_eq!(relation("7.1 over 7.0")["verdict"], "agrees");
    assert_eq!(json["best_constant"]["sign"], "lower");
}
