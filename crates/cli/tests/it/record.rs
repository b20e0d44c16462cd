//! `slablab record` as a user meets it.

use crate::common::{catches_interrupts, check_error, check_order, folder, slablab, text};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Records a command into a folder of the test's own. Returns the exit code, what was said on standard error,
/// and the path of the trace.
fn recorded(name: &str, options: &[&str], program: &[&str]) -> (Option<i32>, String, String) {
    let trace = folder(name).join("one.trace.parquet").to_str().expect("UTF-8").to_string();
    let args = [&["--malloc", "-o", &trace], options, &["--"], program].concat();
    let output = slablab(&["record"], &args);
    (output.status.code(), text(&output.stderr), trace)
}

/// Nothing but the trace is left in its folder.
fn check_alone(trace: &str) {
    let folder = Path::new(trace).parent().expect("a folder");
    let left: Vec<_> =
        std::fs::read_dir(folder).expect("it is there").flatten().map(|one| one.path()).collect();
    assert_eq!(left, [Path::new(trace)]);
}

#[test]
fn a_trace_that_other_verbs_read() {
    let (code, said, trace) = recorded("record", &[], &["ls", "-l", "/"]);
    assert_eq!(code, Some(0), "{said}");
    let words =
        ["rows, ls (process", "calls", "threads", "sizes", "peak", "at the end", "lost        0", "libc"];
    check_order(&["record"], &said, &words);
    check_alone(&trace);
    let replayed = slablab(&["replay"], &[&trace, "--engine", "slub@7.1"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed.stderr));
    let words = ["1 CPU", "slub@7.1", "frees of unknown caches", "malloc-", "a program's malloc"];
    check_order(&["replay"], &text(&replayed.stdout), &words);
}

/// Who allocates, and the profile for pprof.
#[test]
fn a_trace_with_call_chains_has_sites() {
    let (code, said, trace) = recorded("record-chains", &["-g", "--sample", "1"], &["ls", "-l", "/"]);
    assert_eq!(code, Some(0), "{said}");
    check_order(&["record"], &said, &["in memory", "call chains", "every allocation", "slablab sites"]);
    check_alone(&trace);
    let profile = folder("record-pprof").join("ls.pb.gz").to_str().expect("UTF-8").to_string();
    let sites = slablab(&["sites"], &[&trace, "--sort", "peak", "--pprof", &profile]);
    assert_eq!(sites.status.code(), Some(0), "{}", text(&sites.stderr));
    let words = ["ls had at most", "live, ", "all with call chains", "in memory", "peak K", "pins K"];
    check_order(&["sites"], &text(&sites.stdout), &words);
    let head = std::fs::read(&profile).expect("the profile");
    assert!(head.starts_with(&[0x1f, 0x8b]), "gzip");
    let folded = slablab(&["sites"], &[&trace, "--format", "folded", "--weight", "allocs"]);
    assert!(text(&folded.stdout).lines().all(|line| line.contains(';')), "chains");
    check_error(&["sites"], &[&trace, "--cache", "malloc-64"], &["a program's recording", "--cache"]);
}

#[test]
fn the_exit_code_is_the_programs() {
    for (script, expected) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15)] {
        let (code, said, trace) = recorded("record-code", &[], &["bash", "-c", script]);
        assert_eq!(code, Some(expected), "{script}: {said}");
        check_alone(&trace);
    }
}

/// The program that the command executes last, or the one that is named.
#[test]
fn one_process_of_several() {
    let script = "ls / >&2; (exec ls -l / >&2); exec ls -a /";
    let (code, said, _) = recorded("record-several", &[], &["bash", "-c", script]);
    assert_eq!(code, Some(0), "{said}");
    check_order(&[script], &said, &["rows, ls (process", "not in the trace:", "more processes", "bash ("]);
    let (code, said, _) = recorded("record-named", &["--process", "bash"], &["bash", "-c", script]);
    assert_eq!(code, Some(0), "{said}");
    check_order(&[script], &said, &["rows, bash (process", "not in the trace:", "ls ("]);
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let trace = folder("record-errors").join("one.trace.parquet").to_str().expect("UTF-8").to_string();
    let to = ["--malloc", "-o", &trace];
    for (args, words) in [
        (&["--malloc", "--with", "perf", "--", "ls"][..], &["--malloc", "--with"][..]),
        (&["--for", "soon"], &["expected a time such as 500ms"]),
        (&["--process", "ls", "--", "ls"], &["--malloc"]),
        (&[&to[..], &["--", "./no-such-program"]].concat(), &["./no-such-program"]),
        (&["--malloc", "-o", "/no/such/folder/x", "--", "ls"], &["/no/such/folder"]),
        (&[&to[..], &["--limit", "0", "--", "ls"]].concat(), &["--limit"]),
        (&["--malloc"], &["COMMAND"]),
        (&["--malloc", "--sample", "1K", "--", "ls"], &["--call-chains"]),
        (&["--malloc", "-g", "--sample", "0", "--", "ls"], &["expected at least 1"]),
    ] {
        check_error(&["record"], args, words);
    }
}

/// A signal to `slablab record` ends the program, and what was recorded until then is a trace.
#[test]
fn signals_are_the_programs() {
    let trace = folder("record-signal").join("one.trace.parquet");
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.args(["record", "--malloc", "-o"]).arg(&trace).args(["--", "bash", "-c"]);
    command.arg("trap 'exit 9' TERM; echo ready; while true; do read -t 1 < /dev/null; done");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("it says so");
    while !catches_interrupts(child.id()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(9));
    assert!(trace.exists());
}
