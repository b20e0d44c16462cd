//! What a user says about an input, and what is said back.

use crate::common::{self, bundled, folder};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(args: &[&str], stdin: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.args(args).env("NO_COLOR", "1").stdin(stdin).output().expect("the program runs")
}

/// One cache whose slabs do not tell the page size.
fn loose(folder: &Path) -> String {
    let path = folder.join("slabinfo");
    let text = "slabinfo - version: 2.1\nloose 1 1 2000 1 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    fs::write(&path, text).expect("a file can be written");
    path.display().to_string()
}

#[track_caller]
fn check_error(args: &[&str], words: &str) {
    common::check_error(&[], args, &[words]);
}

#[test]
fn what_the_input_does_not_tell_is_asked_for() {
    let folder = folder("asked");
    let file = loose(&folder);
    check_error(&["doctor", &file], "does not tell the page size; say it with --page-size, as 4K or 64K");
    check_error(&["doctor", &file, "--page-size", "5K"], "expected 4K, 8K, 16K");
    check_error(&["doctor", &file, "--page-size", "4K", "--cpus", "0"], "0 CPUs: expected a number from 1");
    for (size, bytes) in [("4K", 4096), ("65536", 65536)] {
        let output =
            run(&["doctor", &file, "--page-size", size, "--cpus", "4", "--format", "json"], Stdio::null());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["page_size_bytes"], bytes, "{json}");
        // Done, but much was not in the input.
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
fn standard_input_is_an_input() {
    let dump = bundled("crates/readers/testdata/amd64_smp8_numa4_memless/before.tar.xz");
    let of_file = run(&["doctor", &dump.display().to_string(), "--format", "csv"], Stdio::null());
    let of_pipe = run(&["doctor", "-", "--format", "csv"], fs::File::open(&dump).expect("the dump").into());
    assert!(!of_pipe.stdout.is_empty() && of_pipe.stdout == of_file.stdout);
}

#[test]
fn what_doctor_saves_it_reads() {
    let folder = folder("saved");
    let file = folder.join("state.tar.xz").display().to_string();
    check_error(
        &["doctor", "--save", &folder.join("state.zip").display().to_string()],
        "expected a name that ends",
    );
    check_error(&["doctor", &file, "--save", &file], "cannot be used with");
    let saving = run(&["doctor", "--save", &file, "--format", "csv"], Stdio::null());
    // Without the permission there is no input to save, and no file remains.
    if saving.status.code() == Some(2) {
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
        return;
    }
    let again = run(&["doctor", &file, "--format", "csv"], Stdio::null());
    assert!(!again.stdout.is_empty() && again.stdout == saving.stdout);
}
