//! Running the program, and what holds of everything it says.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file of the project, by its path from the root.
pub(crate) fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The same as an argument.
pub(crate) fn argument(name: &str) -> String {
    bundled(name).to_str().expect("UTF-8").to_string()
}

/// An empty folder of a test's own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder can be made");
    path
}

/// Runs `slablab VERB ARGS` in the root of the project.
pub(crate) fn slablab(verb: &[&str], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.args(verb).args(args).env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8").current_dir(bundled(""));
    command.output().expect("the program runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// `text` with one space for each run of white space: where lines break depends on the lengths of paths.
pub(crate) fn unbroken(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_whitespace() {
            true if folded.ends_with(' ') => {}
            true => folded.push(' '),
            false => folded.push(c),
        }
    }
    folded
}

/// All of `words` are said, in this order, wherever lines break.
#[track_caller]
pub(crate) fn check_order(args: &[&str], said: &str, words: &[&str]) {
    let folded = unbroken(said);
    let mut rest = folded.as_str();
    for word in words {
        let sought = unbroken(word);
        let at =
            rest.find(&sought).unwrap_or_else(|| panic!("{args:?}: no {word:?} (in this order) in {said}"));
        rest = &rest[at + sought.len()..];
    }
}

/// Exit code 2, nothing on standard output, one message that has all of `words`, no panic.
#[track_caller]
pub(crate) fn check_error(verb: &[&str], args: &[&str], words: &[&str]) {
    let output = slablab(verb, args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?} printed {}", text(&output.stdout));
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?} does not say {word:?}: {said}");
    }
}

/// Where there is no terminal, each line fits 80 columns; what cannot be broken, such as a long path,
/// has a line of its own.
#[track_caller]
pub(crate) fn check_narrow(said: &str) {
    let fits = |line: &str| line.chars().count() <= 80 || !line.trim().contains(' ');
    assert!(said.lines().all(fits), "{said}");
}

/// Whether a process has a handler for SIGINT.
pub(crate) fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
    // Signal 2 is the second bit.
    u64::from_str_radix(mask.trim(), 16).expect("hexadecimal") & 2 != 0
}
