//! `slablab import` as a program: what goes where, and exit codes.

use crate::common::bundled;
use std::process::{Command, Output, Stdio};

/// Runs `slablab import INPUT -o OUT ARGUMENTS`; the output file is removed afterwards. `"-"` reads `stdin`.
fn import(input: &str, arguments: &[&str], stdin: Stdio) -> (Output, bool) {
    let number = std::sync::atomic::AtomicU32::fetch_add(&NEXT, 1, std::sync::atomic::Ordering::Relaxed);
    let out = std::env::temp_dir().join(format!("slablab-cli-{}-{number}.trace.parquet", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    let output =
        command.args(["import", input, "-o"]).arg(&out).args(arguments).stdin(stdin).output().unwrap();
    (output, std::fs::remove_file(&out).is_ok())
}

static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

#[track_caller]
fn check(input: &str, arguments: &[&str], stdin: Stdio, code: i32, stdout: &str, stderr: &str) {
    let (output, written) = import(input, arguments, stdin);
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(output.status.code(), Some(code), "{err}");
    assert_eq!(written, code != 2, "the output file");
    assert!(out.contains(stdout) && (!stdout.is_empty() || out.is_empty()), "standard output: {out}");
    assert!(err.contains(stderr) && (!stderr.is_empty() || err.is_empty()), "standard error: {err}");
}

#[test]
fn exit_codes_and_places() {
    let whole = bundled("examples/data/hackbench-6.18.perf.data.xz");
    let lost = bundled("crates/readers/testdata/lost.perf.data.xz");
    let (whole, lost) = (whole.to_str().unwrap(), lost.to_str().unwrap());
    check(whole, &[], Stdio::null(), 0, "", "The trace has 193,094 rows of 0.154 s on 2 CPUs: ");
    check(whole, &["--wide"], Stdio::null(), 0, "", "193,094 rows, 0.154 s, 2 CPUs");
    check(whole, &["--format", "json"], Stdio::null(), 0, "\"schema\": \"slablab.import.1\"", "");
    check(lost, &[], Stdio::null(), 3, "", "INCOMPLETE");
    check("/nowhere", &[], Stdio::null(), 2, "", "/nowhere: ");
    let dump = bundled("examples/dumps/ppc64_smp160.after.tar.xz");
    let dump = dump.to_str().unwrap();
    check(dump, &[], Stdio::null(), 2, "", "found a tar file: `slablab doctor` reads");
    check(whole, &["--format", "yaml"], Stdio::null(), 2, "", "yaml");
    check("-", &[], Stdio::null(), 2, "", "standard input: the file is empty");
}

/// Bulk frees and `kfree_rcu`, which have no events, are in a recording with probes: of maple_node, of whose
/// frees most are of these kinds, three are inferred.
#[test]
fn what_probes_saw() {
    let probed = bundled("examples/data/fork-7.2.recording.tar");
    let probed = probed.to_str().unwrap();
    check(probed, &["--wide"], Stdio::null(), 0, "", "kfree_rcu 1845");
    check(probed, &["--wide"], Stdio::null(), 0, "", "allocation in it and 3 are inferred");
    let verify = Command::new(env!("CARGO_BIN_EXE_slablab")).args(["verify", probed]).output().unwrap();
    let said = String::from_utf8_lossy(&verify.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "skill 1.000 over the caches whose events are traced (1: perfect, 0: what predicting no change \
                    would get); 0.0 % of the bytes that changed are of others, and with them it is 1.000.";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn verify_names_an_empty_file() {
    let verify = Command::new(env!("CARGO_BIN_EXE_slablab")).args(["verify", "/dev/null"]).output().unwrap();
    assert!(String::from_utf8_lossy(&verify.stderr).contains("/dev/null: verify needs either"));
    let path = std::env::temp_dir().join(format!("slablab-cli-{}-empty.tar", std::process::id()));
    std::fs::write(&path, "").unwrap();
    let verify = Command::new(env!("CARGO_BIN_EXE_slablab")).arg("verify").arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = String::from_utf8_lossy(&verify.stderr);
    assert!(
        verify.status.code() == Some(2) && said.contains("the file is empty: verify needs either"),
        "{said}"
    );
}

#[test]
fn standard_input_is_read() {
    for (name, kind) in [
        ("hackbench.events.csv.gz", "csv"),
        ("trace_dat/v7_zstd.trace.dat", "trace.dat"),
        ("trace_dat/v6.trace.dat.xz", "trace.dat"),
        ("trace_dat/report.txt.xz", "ftrace text"),
    ] {
        let file = std::fs::File::open(bundled("crates/readers/testdata").join(name)).unwrap();
        check("-", &["--format", "json"], file.into(), 0, &format!("\"kind\": \"{kind}\""), "");
    }
}

#[test]
fn recordings_of_ftrace_are_told_by_their_content() {
    #[track_caller]
    fn at(name: &str, code: i32, stderr: &str) {
        let path = bundled("crates/readers/testdata").join(name);
        check(path.to_str().unwrap(), &[], Stdio::null(), code, "", stderr);
    }
    at("trace_dat/v7_zlib.trace.dat", 0, "kmalloc of ");
    at("ftrace/trace_plain.txt.xz", 0, "warning: addresses are hashed");
    at("ftrace/trace_overrun.txt.xz", 3, "INCOMPLETE: the recording lost 29987 events");
    at("ftrace/perf_script_lost.txt.xz", 3, "INCOMPLETE: the recording lost 1472 events");
}

#[test]
fn a_replay_opens_them_and_says_what_they_cannot_tell() {
    #[track_caller]
    fn replay(name: &str, hashed: bool) {
        let path = bundled("crates/readers/testdata").join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
        let output = command.arg("replay").arg(path).args(["--engine", "slub@6.18"]).output().unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(out.contains("slub@6.18"), "{out}");
        assert_eq!(out.contains("addresses are hashed"), hashed, "{out}{err}");
    }
    replay("trace_dat/v7_zstd.trace.dat", false);
    replay("trace_dat/report.txt.xz", false);
    replay("ftrace/trace_plain.txt.xz", true);
}
