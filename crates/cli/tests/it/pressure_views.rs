//! What `slablab pressure run` shows over time, and how long verbs of pressure are ended.

use crate::common::{argument, catches_interrupts, check_error, check_order, folder, slablab, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Anonymous memory that does not fit.
const SCRIPT: &str = "anon a 120\nphase fill\nacc x1 a seq m w\nphase again\nacc 3000 a uni m r\n";

fn script(folder: &Path) -> String {
    let path = folder.join("small.t");
    std::fs::write(&path, SCRIPT).expect("a file");
    path.to_str().expect("UTF-8").to_string()
}

#[track_caller]
fn answered(args: &[&str]) -> String {
    let said = slablab(&["pressure", "run"], args);
    assert_eq!(said.status.code(), Some(0), "{args:?}: {}", text(&said.stderr));
    text(&said.stdout)
}

#[test]
fn run_has_logs_and_tables_over_time() {
    let small = script(&folder("pressure-views"));
    let log = answered(&[&small, "--vmstat", "0.05"]);
    let heads: Vec<&str> = log.lines().take(2).collect();
    assert_eq!(heads[0], "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----");
    assert_eq!(heads[1], " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st");
    assert!(log.lines().count() > 5, "{log}");
    let meminfo = answered(&[&small, "--meminfo"]);
    check_order(
        &[],
        &meminfo,
        &["s: end of phase fill\nMemTotal:", " kB\n", "PageTables:", "end of phase again"],
    );
    let processes = answered(&[&small, "--ps"]);
    check_order(
        &[],
        &processes,
        &["VSZ-RSS", "fill", "(script)", " 122880 ", "again", "(script)", " 122880 "],
    );
    let table = answered(&[&small, "--vm", "vm@6.1", "--vm", "vm@6.1,lru_gen", "--format", "mmtests"]);
    let words =
        ["vm@6.1 ", "vm@6.1,lru_gen", "Duration Elapsed", "Minor Faults", "Swap Outs", "Kswapd efficiency"];
    check_order(&[], &table, &words);
    let several = answered(&[&small, "--vmstat", "1", "--ps", "--seeds", "2"]);
    check_order(
        &[],
        &several,
        &["vm@6.1, seed 1:\nprocs", "vm@6.1, seed 1:", "VSZ", "vm@6.1, seed 2:\nprocs"],
    );
}

/// The page and the trace are written beside the answer, which they do not change.
#[test]
fn run_writes_a_page_and_a_trace() {
    let folder = folder("pressure-files");
    let small = script(&folder);
    let [html, trace] = ["page.html", "run.perfetto"].map(|name| folder.join(name));
    let [page, recording] = [&html, &trace].map(|path| path.to_str().expect("UTF-8"));
    let plain = answered(&[&small]);
    assert_eq!(answered(&[&small, "--html", page, "--perfetto", recording]), plain);
    let written = std::fs::read_to_string(&html).expect("a page");
    check_order(&[], &written, &["<!DOCTYPE html>", "Memory by use", "Who is paged out"]);
    // A trace is packets: field 1 of the file, each with its length.
    assert_eq!(std::fs::read(&trace).expect("a trace").first(), Some(&0x0a));
    let run = ["pressure", "run"];
    check_error(&run, &[&small, "--html", &small], &["--html", "the script", "lost"]);
    check_error(&run, &[&small, "--perfetto", "-"], &["--perfetto writes a file"]);
    check_error(&run, &[&small, "--vmstat", "0"], &["expected seconds from 0.001"]);
    check_error(&run, &["--vmstat", &small], &["expected seconds from 0.001"]);
    check_error(&run, &[&small, "--ps", "--format", "csv"], &["expected no --format"]);
    check_error(&run, &[&small, "--vm", "vm@6.1", "--vm", "vm@6.12"], &["several --vm", "--format mmtests"]);
}

/// Ends a program by SIGINT once it has a handler and `is_under_way`.
fn interrupted(args: &[&str], is_under_way: impl Fn() -> bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    let child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().expect("the program runs");
    while !(catches_interrupts(child.id()) && is_under_way()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    child.wait_with_output().expect("it ends")
}

/// Ctrl-C: the exit code says so, no answer is printed, and the files that are there are whole.
#[test]
fn a_signal_leaves_whole_files() {
    let folder = folder("pressure-signals");
    let small = script(&folder);
    let records = folder.join("records");
    let [to, page] =
        [&records, &folder.join("page.html")].map(|path| path.to_str().expect("UTF-8").to_string());
    let args = ["pressure", "run", &small, "--seeds", "1000", "-o", &to, "--html", &page];
    let said = interrupted(&args, || records.join("seed-2").join("rec").exists());
    assert_eq!((said.status.code(), said.stdout.len()), (Some(130), 0), "{}", text(&said.stderr));
    assert!(!Path::new(&page).exists(), "a page of runs that have not ended");
    let runs = std::fs::read_dir(&records).expect("a folder").map(|entry| entry.expect("an entry").path());
    let whole: Vec<PathBuf> = runs
        .flat_map(|run| std::fs::read_dir(run).expect("a folder"))
        .map(|file| file.expect("a file").path())
        .collect();
    assert!((2..1_000).contains(&whole.len()), "{} records", whole.len());
    let names: Vec<&str> = whole.iter().map(|path| path.to_str().expect("UTF-8")).collect();
    let shown = slablab(&["pressure", "show", "--format", "csv"], &names);
    assert_eq!(shown.status.code(), Some(0), "{names:?}: {}", text(&shown.stderr));
    let (scripts, cells) = (argument("examples/data/vm"), folder.join("cells"));
    let to = cells.to_str().expect("UTF-8");
    let said =
        interrupted(&["pressure", "judge", &scripts, "--seeds", "1000", "--threads", "1", "-o", to], || true);
    assert_eq!((said.status.code(), said.stdout.len()), (Some(130), 0), "{}", text(&said.stderr));
    assert!(!cells.exists(), "cells of runs that have not ended");
    let results = folder.join("results");
    let to = results.to_str().expect("UTF-8");
    for verb in ["run", "reproduce"] {
        let _ = std::fs::remove_dir_all(&results);
        let said = interrupted(&[verb, "004-apps", "--threads", "1", "-o", to], || results.exists());
        assert_eq!((said.status.code(), said.stdout.len()), (Some(130), 0), "{verb}: {}", text(&said.stderr));
    }
    let said = interrupted(&["explain", &small, "vm@6.1", "vm@6.12", "--repeats", "1000"], || true);
    assert_eq!((said.status.code(), said.stdout.len()), (Some(130), 0), "explain: {}", text(&said.stderr));
}
