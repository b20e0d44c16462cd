//! Progress on a terminal: `script` of util-linux gives the program one.

use crate::common::{bundled, folder, slablab, text};
use std::process::{Command, Stdio};

const BUILDS: &str = r#"name = "builds"
title = "two builds"
machines = ["laptop"]
engines = ["slub@2.6.29"]
workload = "tmpfs-swap"
repeats = 1
[parameters]
part = 8
iterations = 1
"#;

/// A file larger than the memory, read again and again.
const SCAN: &str = "file big 192\nphase scan\nacc x16 big seq s r\n";

/// What the program draws on a terminal, line by line, and what it writes to a file beside.
fn drawn(name: &str, args: &[&str]) -> (Vec<String>, Vec<u8>) {
    let answer = folder(name).join("answer");
    let words: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let line = format!("stty cols 100; '{}' {} > '{}'", program(), words.join(" "), answer.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).current_dir(bundled(""));
    let output = command.env("TERM", "xterm").output().expect("script of util-linux is there");
    let screen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {screen}");
    let lines = screen.split('\r').map(|line| line.replace("\u{1b}[2K", "").trim().to_string()).collect();
    (lines, std::fs::read(answer).expect("an answer"))
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_slablab")
}

/// The percents and the simulated seconds of each line that was drawn within the runs.
fn parts(lines: &[String]) -> Vec<(u64, u64)> {
    let number = |text: Option<&str>| text?.split_whitespace().next_back()?.parse().ok();
    let part = |line: &String| {
        let (before, after) = line.split_once(" % ")?;
        Some((number(Some(before))?, number(after.split(" s simulated").next())?))
    };
    lines.iter().filter_map(part).collect()
}

/// Within one run the bar grows and simulated time goes on from none, and the answer has the bytes of one
/// without a terminal, where nothing is drawn. A fast machine draws few lines of a run, but one of its
/// middle.
#[test]
fn one_long_run_shows_how_far_it_is() {
    let folder = folder("progress");
    let file = |name: &str, what: &str| {
        let path = folder.join(name);
        std::fs::write(&path, what).expect("a file");
        path.to_str().expect("UTF-8").to_string()
    };
    let check = |name: &str, args: &[&str]| {
        let (lines, answer) = drawn(name, args);
        let parts = parts(&lines);
        let within = parts.iter().filter(|(percent, _)| (1..100).contains(percent)).count();
        assert!(within > 0, "{args:?}: no part of a run in {lines:?}");
        let goes_on = parts.is_sorted_by_key(|(_, seconds)| *seconds) && parts[parts.len() - 1].1 > 0;
        assert!(goes_on, "{args:?}: time does not go on in {lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some(""), "{args:?}: the bar is not cleared");
        let plain = slablab(&[], args);
        assert_eq!(text(&plain.stderr), "", "{args:?}: no terminal, no progress");
        assert!(plain.stdout == answer, "{args:?}: another answer without a terminal");
    };
    check("progress-run", &["run", &file("builds.toml", BUILDS), "--threads", "1"]);
    check("progress-pressure", &["pressure", "run", &file("scan.t", SCAN)]);
}
