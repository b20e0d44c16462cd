//! A test once more, in a process whose slots are CPUs': whose they are is decided once per process.

use std::process::Command;

/// Runs a test of this program with slots per CPU. Where there are none the run says so, and shows the fallback.
pub(crate) fn per_cpu(test: &str) {
    let program = std::env::current_exe().expect("this test is a program");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]).env("SLABLAB_SLOTS", "cpu");
    let done = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{test}: {}\n{said}", done.status);
    assert!(said.contains("1 passed") && said.contains("per CPU"), "{said}");
    println!("{said}");
}
