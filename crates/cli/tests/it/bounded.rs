//! Every argument that is a file: one that does not end, one that nobody writes, and one that is larger than
//! any input are refused, soon and in little memory.

use crate::common::{argument, folder};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RECORDING: &str = "examples/data/hackbench-6.18.perf.data.xz";
const DUMP: &str = "examples/data/hackbench-6.18.before.tar.xz";
const SCRIPT: &str = "examples/data/vm/scan2.t";

/// The file, in a row of the table.
const FILE: &str = "FILE";

/// The most memory of a refusal, in KiB: the largest limit, and what the program has besides.
const MOST_KIB: u64 = 700 << 10;

/// The longest refusal on a machine with much other work.
const LONGEST: Duration = Duration::from_secs(120);

/// Runs a command. Returns its exit code, what it said, and its peak of memory in KiB, as far as it was seen.
fn run(args: &[String]) -> (Option<i32>, String, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let status = format!("/proc/{}/status", child.id());
    let (began, mut peak) = (Instant::now(), 0);
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let seen =
            text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().split(' ').next()?.parse().ok());
        peak = peak.max(seen.unwrap_or(0));
        if child.try_wait().expect("a child").is_some() {
            break;
        }
        if peak > MOST_KIB || began.elapsed() > LONGEST {
            child.kill().expect("it runs");
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("it ended");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), peak)
}

/// The commands; with `true` the message names the limit.
fn commands() -> Vec<(Vec<&'static str>, bool)> {
    vec![
        (vec!["run", FILE], true),
        (vec!["run", FILE, "--describe"], true),
        (vec!["explain", FILE, "slub@6.18", "slub@7.0"], false),
        (vec!["pressure", "run", FILE], true),
        (vec!["pressure", "run", SCRIPT, "--machine", FILE], true),
        (vec!["pressure", "run", SCRIPT, "--beside", FILE], true),
        (vec!["pressure", "show", FILE], true),
        (vec!["pressure", "judge", "--real", FILE], false),
        (vec!["compare", FILE, FILE], true),
        (vec!["what", "dentry", "--data", FILE], true),
        (vec!["what", FILE], false),
        (vec!["sites", FILE], false),
        (vec!["sites", "--since", FILE, FILE], false),
        (vec!["sites", RECORDING, "--kallsyms", FILE], true),
        (vec!["replay", FILE], false),
        (vec!["replay", RECORDING, "--machine", FILE], true),
        (vec!["replay", RECORDING, "--before", FILE], false),
        (vec!["verify", RECORDING, "--before", FILE, "--after", FILE], false),
        (vec!["import", FILE, "-o", "/dev/null"], false),
        (vec!["import", RECORDING, "--formats", FILE, "-o", "/dev/null"], false),
        (vec!["doctor", FILE], false),
        (vec!["doctor", DUMP, "--since", FILE], false),
        (vec!["doctor", DUMP, "--recording", FILE], false),
        (vec!["whatif", FILE, "--max-order", "0"], false),
        (vec!["calibrate", "native", "--machine", FILE], true),
        (vec!["bench", "--trace", FILE], false),
    ]
}

#[test]
fn a_file_that_is_no_input_is_refused_soon() {
    let at = folder("bounded");
    let sparse = at.join("sparse");
    File::create(&sparse).and_then(|file| file.set_len(10 << 30)).expect("a sparse file");
    let fifo = at.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let mut wrong = Vec::new();
    for file in [Path::new("/dev/zero"), &sparse, &fifo] {
        let file = file.to_str().expect("UTF-8");
        for (args, names_limit) in commands() {
            let is_input = |word: &&str| word.contains('/') && !word.starts_with("/dev");
            let of = |word: &&str| match word {
                word if *word == FILE => file.to_string(),
                word if is_input(word) => argument(word),
                word => word.to_string(),
            };
            let args: Vec<String> = args.iter().map(of).collect();
            let began = Instant::now();
            let (code, said, peak) = run(&args);
            eprintln!("{:6.2} s {:6} K {code:?} {args:?} {said}", began.elapsed().as_secs_f64(), peak);
            if code != Some(2) || peak > MOST_KIB {
                wrong.push(format!("{args:?}: {code:?}, {peak} KiB: {said}"));
            }
            if names_limit
                && !file.ends_with("fifo")
                && !(said.contains(" of at most ") && said.contains("MiB"))
            {
                wrong.push(format!("{args:?} names no limit: {said}"));
            }
        }
    }
    std::fs::remove_file(&sparse).expect("it is there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
