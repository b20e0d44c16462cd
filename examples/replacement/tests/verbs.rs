//! The verbs know the registered policy.

use std::path::Path;
use std::process::Command;

/// The verb ends with this exit code, and says all of `words`.
#[track_caller]
fn check(arguments: &[&str], code: i32, words: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = env!("CARGO_BIN_EXE_slablab-replacement");
    let done = Command::new(program).args(arguments).current_dir(root).output().expect("the program runs");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert_eq!(done.status.code(), Some(code), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no {word:?} in {said}"));
}

const SCRIPT: &str = "examples/data/vm/hotfile_stream.t";

#[test]
fn the_policy_is_run() {
    check(&["vm"], 0, &["vm@6.1,clock", "a second chance for accessed pages"]);
    check(&["vm", "vm@6.1,clock"], 0, &["second", "priority"]);
    check(&["pressure", "run", SCRIPT, "--vm", "vm@6.1,clock"], 0, &["pgsteal_kswapd", "present hot"]);
    check(&["pressure", "run", SCRIPT, "--vm", "vm@6.1,clock,second=no"], 0, &["present hot"]);
    check(&["explain", SCRIPT, "vm@6.1,clock,second=no", "vm@6.1,clock"], 0, &["second"]);
    check(&["pressure", "run", SCRIPT, "--vm", "vm@6.1,clok"], 2, &["clok", "near it: clock"]);
}
