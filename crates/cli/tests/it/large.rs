//! Inputs far larger than a real machine's: work must grow with the lines, not with their square.
//!
//! What is measured is not the clock but the CPU time that the kernel charges to the program (RLIMIT_CPU),
//! which other programs do not change. A run over these inputs takes 1 to 4 s; each of the searches that this
//! test was written for, over all lines for each line, took 100 s to 10 minutes.

use crate::common::folder;
use std::fmt::Write;
use std::process::Command;

/// As many lines as the largest slabinfo that is read at all has.
const LINES: usize = 470_000;
/// Seconds of CPU time after which the kernel ends the program.
const SECONDS: u32 = 40;

fn slabinfo() -> String {
    let mut text = String::from("slabinfo - version: 2.1\n# name <active_objs>\n");
    for at in 0..LINES {
        let (active, slabs) = (at % 97, at % 97 / 16 + 1);
        let total = active + 3;
        writeln!(text, "c{at} {active} {total} 256 16 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0")
            .expect("a string");
    }
    text
}

/// Runs the program with a limit of CPU time; it ends with 3: done, and a slabinfo alone is not all there is.
#[track_caller]
fn check(arguments: &[&str]) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -t {SECONDS} && exec \"$0\" \"$@\"")]);
    let output = command.arg(env!("CARGO_BIN_EXE_slablab")).args(arguments).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}; {said}", output.status);
    assert!(!output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn a_slabinfo_of_470_000_lines_is_read_in_linear_time() {
    let folder = folder("large");
    let states = folder.join("states");
    std::fs::create_dir(&states).expect("a folder");
    std::fs::write(states.join("1"), slabinfo()).expect("a file");
    let (file, states) = (states.join("1").display().to_string(), states.display().to_string());
    check(&["doctor", &file, "--page-size", "4K", "--cpus", "4"]);
    check(&["doctor", "--watch", "--once", "--from", &states, "--page-size", "4K"]);
    let input = ["whatif", &file, "--input-page-size", "4K", "--input-cpus", "4"];
    check(
        &[&input[..], &["--max-order", "0", "--page-size", "4K", "--cpus", "4", "--against", &file]].concat(),
    );
    std::fs::remove_dir_all(folder).expect("the folder");
}
