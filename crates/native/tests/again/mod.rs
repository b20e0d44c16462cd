//! Runs a test again in a process with slots per CPU: what slots belong to is decided once per process.

use std::process::Command;

/// Runs a test of this program with slots per CPU. Where they are not available, the run tests the fallback
/// and prints why.
pub(crate) fn per_cpu(test: &str) {
    let program = std::env::current_exe().expect("this test is a program");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]).env("SLABLAB_SLOTS", "cpu");
    let done = command.output().expect("it runs");
    let output = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{test}: {}\n{output}", done.status);
    assert!(output.contains("1 passed") && output.contains("per CPU"), "{output}");
    println!("{output}");
}
