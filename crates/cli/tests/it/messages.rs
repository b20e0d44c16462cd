//! The messages about an input that the program cannot use: the file, the expected form, and the next step.

use crate::common::{argument, check_error, folder};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn recording() -> String {
    argument("examples/data/hackbench-6.18.perf.data.xz")
}

fn dump() -> String {
    argument("examples/data/hackbench-6.18.before.tar.xz")
}

fn write(folder: &Path, name: &str, content: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, content).expect("a file can be written");
    path.display().to_string()
}

/// The first `length` bytes of a file of the project.
fn start_of(folder: &Path, name: &str, source: &str, length: usize) -> String {
    let whole = fs::read(source).expect("bundled");
    write(folder, name, &whole[..length])
}

#[test]
fn standard_input_is_refused_where_a_file_is_read() {
    let (recording, dump) = (recording(), dump());
    let expected = "standard input is not read for this option: expected";
    for (verb, args, flag) in [
        ("replay", &[&recording, "--before", "-"][..], "--before -"),
        ("replay", &[&recording, "--machine", "-"], "--machine -"),
        ("explain", &[&recording, "slub@6.1", "slub@6.18", "--before", "-"], "--before -"),
        ("explain", &[&recording, "slub@6.1", "slub@6.18", "--machine", "-"], "--machine -"),
        ("verify", &[&recording, "--before", "-", "--after", &dump], "--before -"),
        ("verify", &[&recording, "--before", &dump, "--after", "-"], "--after -"),
        ("verify", &[&recording, "--machine", "-", "--before", &dump, "--after", &dump], "--machine -"),
        ("what", &["dentry", "--data", "-"], "--data -"),
    ] {
        check_error(&[verb], args, &[flag, expected]);
    }
}

#[test]
fn standard_input_is_one_input() {
    let dump = dump();
    let twice = "standard input can be read once: expected a file for one of them";
    for (verb, args, both) in [
        ("doctor", &["-", "--since", "-"][..], ["the input", "--since"]),
        ("doctor", &["--since", "-", "--since", "-", &dump], ["--since", "--since"]),
        ("doctor", &["-", "--recording", "-"], ["the input", "--recording"]),
        ("whatif", &["-", "--max-order", "0", "--against", "-"], ["the input", "--against"]),
        ("whatif", &["-", "--max-order", "0", "--after", "-"], ["the input", "--after"]),
    ] {
        check_error(&[verb], args, &[both[0], both[1], twice]);
    }
    check_error(&["replay"], &["-"], &["standard input: the file is empty"]);
}

#[test]
fn an_empty_file_is_no_choice() {
    let empty = write(&folder("empty_choice"), "empty.toml", b" \n");
    let machine = "the file is empty: expected a machine file (TOML), for example `cpus = 4`";
    check_error(&["replay"], &[&recording(), "--machine", &empty], &[&empty, machine]);
    let data = "the file is empty: expected entries as docs/caches.md describes them";
    check_error(&["what"], &["dentry", "--data", &empty], &[&empty, data]);
}

#[test]
fn a_binary_file_is_no_choice() {
    let recording = recording();
    let data = "expected entries as docs/caches.md describes them: TOML text in UTF-8";
    check_error(&["what"], &["dentry", "--data", &recording], &[&recording, data]);
    let machine = "expected a machine file: TOML text";
    check_error(&["replay"], &[&recording, "--machine", &recording], &[&recording, machine]);
}

#[test]
fn a_truncated_file_is_called_so() {
    let folder = folder("truncated");
    let (whole, dump) = (recording(), dump());
    let cut = start_of(&folder, "cut.perf.data.xz", &whole, 300_000);
    let said = format!("{cut}: cut off after ");
    let out = folder.join("out.parquet").display().to_string();
    check_error(&["replay"], &[&cut], &[&said]);
    check_error(&["import"], &[&cut, "-o", &out], &[&said]);
    check_error(&["doctor"], &[&dump, "--recording", &cut], &[&said]);
    let tar = start_of(&folder, "cut.tar.xz", &dump, 3_000);
    let said = format!("{tar}: the compressed data ends early at byte 3000: was it copied whole?");
    check_error(&["doctor"], &[&tar], &[&said]);
    check_error(&["replay"], &[&whole, "--before", &tar], &[&said]);
    check_error(&["verify"], &[&whole, "--before", &tar, "--after", &dump], &[&said]);
    let plain = write(&folder, "cut.tar", &[0; 700]);
    check_error(&["replay"], &[&whole, "--before", &plain], &[&plain, "expected"]);
}

#[test]
fn a_recording_is_no_dump() {
    let folder = folder("recording_as_dump");
    let (whole, dump) = (recording(), dump());
    let cut = start_of(&folder, "cut.perf.data.xz", &whole, 300_000);
    let expected = "expected a tar of the kernel's files";
    for input in [&whole, &cut] {
        let found = format!("{input}: a perf.data: {expected}");
        check_error(&["verify"], &[&whole, "--before", input, "--after", &dump], &[&found]);
        check_error(&["verify"], &[&whole, "--before", &dump, "--after", input], &[&found]);
        check_error(&["replay"], &[&whole, "--before", input], &[&found]);
        check_error(&["doctor"], &[input], &[&found]);
    }
}

/// A directory is an input with all files that the verb reads in it.
#[test]
fn a_file_of_an_input_directory_is_no_output() {
    let folder = folder("inside");
    fs::create_dir_all(folder.join("dump/proc")).expect("a folder");
    let slabinfo = "slabinfo - version: 2.1\nloose 1 1 2000 1 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    write(&folder, "dump/proc/slabinfo", slabinfo.as_bytes());
    fs::create_dir_all(folder.join("run")).expect("a folder");
    write(&folder, "run/a.events.csv", b"t_us,cpu\n");
    write(&folder, "run/machine.json", b"{}");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
        let output = command.args(args).current_dir(&folder).stdin(Stdio::null()).output();
        let output = output.expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (args, named) in [
        (&["doctor", "dump", "-o", "dump/proc/slabinfo"][..], "-o dump/proc/slabinfo"),
        (&["doctor", "dump", "--html", "dump/proc/meminfo"], "--html dump/proc/meminfo"),
        (
            &["doctor", "dump/proc/..", "-o", "./dump/../dump/proc/slabinfo"],
            "-o ./dump/../dump/proc/slabinfo",
        ),
        (&["whatif", "dump", "--max-order", "0", "-o", "dump/proc/slabinfo"], "-o dump/proc/slabinfo"),
        (&["import", "run", "a", "-o", "run/a.events.csv"], "-o run/a.events.csv"),
        (&["import", "run", "a", "-o", "run/machine.json"], "-o run/machine.json"),
    ] {
        let (code, said) = run(args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(named) && said.contains("one of the files of the input"), "{args:?}: {said}");
    }
    assert_eq!(fs::read_to_string(folder.join("dump/proc/slabinfo")).expect("unharmed"), slabinfo);
    // Other files in the directory are no inputs.
    let (code, said) = run(&["doctor", "dump", "--page-size", "4K", "-o", "dump/report.txt"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(folder.join("dump/report.txt").exists());
}

/// One wrong argument for each verb: the message names the argument, the given value and the expected form.
#[test]
fn wrong_arguments_of_every_verb() {
    let (recording, dump, folder) = (recording(), dump(), folder("wrong_arguments"));
    let nothing = folder.display().to_string();
    let new = folder.join("new.parquet").display().to_string();
    for (verb, args, words) in [
        ("doctor", &[&dump, "-s", "z"][..], &["-s z", "expected one of", "c cache size"][..]),
        ("doctor", &[&dump, "--fail-over", "10X"], &["--fail-over", "10X", "K, M, G or T"]),
        ("doctor", &[&dump, "--page-size", "3"], &["--page-size", "\"3\"", "4K, 8K"]),
        ("doctor", &[&dump, "--hours", "3"], &["--since <DUMP>"]),
        ("doctor", &[&dump, "-o", &nothing], &[&nothing, "is a directory: expected the name of a file"]),
        ("doctor", &[&dump, "--html", "-"], &["--html", "expected its name, found -"]),
        ("import", &[&recording], &["--output <FILE>"]),
        ("import", &[&recording, "x", "-o", &new], &["names a recording of a folder"]),
        ("import", &[&recording, "-o", &nothing], &[&nothing, "expected the name of a file"]),
        ("replay", &[&recording, "--format", "xml"], &["'xml'", "table, json, csv"]),
        ("replay", &[&recording, "--top", "x"], &["--top", "'x'"]),
        ("explain", &[&recording, "slub@6.1"], &["<B>"]),
        ("explain", &[&recording, "slubb", "slub"], &["A slubb", "no engine is called", "slub"]),
        ("explain", &[&recording, "slub", "slub", "--samples", "1"], &["--samples", "4..=100000"]),
        ("verify", &[&recording], &["RECORDING --before DUMP --after DUMP", "COUNTERS-RUN TRACE"]),
        (
            "verify",
            &[&recording, "--before", &dump, "--after", &dump, "--engine", "slub", "--engine", "slqb"],
            &["expected one --engine, found 2"],
        ),
        ("verify", &[&nothing, "trace_s1"], &[&nothing, "expected the folder of a counters run"]),
        ("what", &["dentry", "--format", "csv"], &["'csv'", "text, json"]),
        ("what", &[], &["expected the name of a cache", "--list"]),
        ("whatif", &[&dump, "--policy", "x"], &["--policy", "expected one of", "clamped"]),
        ("whatif", &[&dump, "--max-order", "99"], &["--max-order", "99", "0 to 10"]),
        ("whatif", &[&dump, "--merge", "maybe"], &["--merge", "maybe", "on or off"]),
        (
            "whatif",
            &[&dump, "--debug", "Q"],
            &["'Q' for '--debug <LETTERS>': expected letters of FZPU, or off"],
        ),
        ("whatif", &[&dump, "--cpus", "0"], &["--cpus", "0", "expected a number of CPUs"]),
        ("whatif", &[&dump, "--cpus", "1000000"], &["--cpus", "1000000", "up to 8192"]),
        ("doctor", &["--json"], &["unexpected argument '--json'", "use '--format json'"]),
        ("whatif", &[&dump, "--after", &dump], &["--after", "--format mail"]),
        ("orders", &[], &["--policy <RULE>"]),
        ("orders", &["--policy", "x"], &["--policy", "expected one of", "clamped"]),
        ("orders", &["--policy", "clamped", "--sizes", "9..1"], &["--sizes", "9..1", "8..65536"]),
        ("orders", &["--policy", "clamped", "--cpus", "0"], &["--cpus", "\"0\"", "all"]),
        ("bench", &["--workloads", "x"], &["--workloads x", "expected some of", "pair64"]),
        ("bench", &["--allocators", "x"], &["--allocators x", "expected some of", "glibc"]),
        ("bench", &["--repeats", "0"], &["--repeats", "1..=10000"]),
        ("bench", &["--scale", "x"], &["--scale", "0.0001 to 1000", "\"x\""]),
        ("engines", &["x"], &["`x`", "slub"]),
    ] {
        check_error(&[verb], args, words);
    }
}

/// A pipe can end early, too; then there is no file to name.
#[test]
fn a_truncated_pipe_is_called_so() {
    let whole = fs::read(dump()).expect("bundled");
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.args(["doctor", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let sent = child.stdin.take().expect("a pipe").write_all(&whole[..2_000]);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    sent.expect("two kilobytes fit into a pipe");
    let expected = "standard input: the compressed data ends early at byte 2000: was it copied whole?";
    assert!(output.status.code() == Some(2) && said.contains(expected), "{said}");
}
