//! `slablab calibrate` as a user meets it.

use crate::common::{self, check_error, folder, text};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn hackbench_of_each_kind() {
    for kind in [&[][..], &["--threads"], &["--pipes"], &["--threads", "--pipes"]] {
        let size = ["hackbench", "--groups", "1", "--loops", "3", "--repeats", "5"];
        let args = [&size[..], kind].concat();
        let output = common::slablab(&["calibrate"], &args);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        let kind = if kind.contains(&"--threads") { "threads" } else { "processes" };
        assert!(said.starts_with(&format!("40 {kind} exchange 1,200 messages in ")), "{said}");
        assert!(said.contains(&format!("# 20 sender and receiver {kind} per group\n")), "{said}");
        assert!(said.contains("\nTotal time: ") && said.contains("95 % interval"), "{said}");
        let output = common::slablab(&["calibrate"], &[&args[..], &["--format", "json"]].concat());
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&json["messages"], &json["kind"]), (&1200.into(), &kind.into()));
        assert_eq!(json["runs"].as_array().expect("a list").len(), 5);
    }
}

/// Every pattern on both engines, natively and modelled; times are not judged. The model's are in proportion
/// to native ones, of engines that are not optimised here.
#[test]
fn native_beside_predicted() {
    let args = ["native", "--machine", "laptop", "--repeats", "2", "--format", "json"];
    let output = common::slablab(&["calibrate"], &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 10, "five patterns on two engines");
    for row in rows {
        let modelled = row["modelled_ns"].as_f64().expect("a number");
        assert!((1.0..100_000.0).contains(&modelled), "{row}");
        let time = |name: &str| row[name].as_f64().expect("a number");
        assert!(
            time("native_ns_low") <= time("native_ns") && time("native_ns") <= time("native_ns_high"),
            "{row}"
        );
    }
}

#[test]
fn what_it_does_not_take() {
    check_error(&["calibrate"], &["-o", "-"], &["-o writes a machine file: expected its name, found -"]);
    check_error(&["calibrate"], &["-o", "/nonexistent/x.toml"], &["/nonexistent"]);
    check_error(&["calibrate"], &["hackbench", "--groups", "0"], &["0 is not in 1..=10000"]);
    check_error(&["calibrate"], &["--quick", "hackbench"], &["cannot be used with"]);
    check_error(&["calibrate"], &["native", "--machine", "laptob"], &["near it: laptop"]);
}

/// Ctrl-C: no file, no process, and the exit code says how it ended.
#[test]
fn a_signal_ends_it() {
    let file = folder("calibrate").join("host.toml");
    let file = file.to_str().expect("UTF-8");
    for args in [&["-o", file][..], &["hackbench", "--loops", "100000000"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
        command.arg("calibrate").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program runs");
        // A signal before the program has a handler would end it without a word.
        while !common::catches_interrupts(child.id()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(500));
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        // Ends only when no process holds the pipes: no sender or receiver stays.
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{args:?}: {}", text(&output.stderr));
        assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()), "{args:?}");
    }
    assert!(!std::path::Path::new(file).exists(), "no half of a file");
}
