//! Each example runs, and says what its page says.

use std::path::Path;
use std::process::Command;

/// Runs a program, and looks at what it printed; answers that.
fn check(name: &str, program: &str, says: &[&str]) -> String {
    let done = Command::new(program).env_remove("SLABLAB_ENGINE").output().expect("it runs");
    let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{name}: {}\n{said}{errors}", done.status);
    for line in says {
        assert!(said.contains(line), "{name}: {line:?} is not in\n{said}");
    }
    said.into_owned()
}

#[test]
fn model() {
    let program = env!("CARGO_BIN_EXE_model");
    let said = check("model", program, &["slub@6.1: alloc_fastpath", "slqb: alloc 10000"]);
    assert_eq!(said, check("model", program, &[]), "the same figures every time");
    assert_eq!(said.matches("    0 page frames").count(), 3, "{said}");
}

#[test]
fn check_world() {
    check(
        "check",
        env!("CARGO_BIN_EXE_check"),
        &[" orders, all well\n", "with a fault planted: Causality violation"],
    );
}

#[test]
fn native() {
    check("native", env!("CARGO_BIN_EXE_native"), &[" 24000 of\n", " 16000 a\n", " 16000 holds\n"]);
}

#[test]
fn the_table_names_every_example() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = std::fs::read_to_string(examples.join("README.md")).expect("examples/README.md");
    for name in [
        "worlds/src/bin/model.rs",
        "worlds/src/bin/check.rs",
        "worlds/src/bin/native.rs",
        "c/words.c",
        "embedded",
        "kernel",
    ] {
        assert!(examples.join(name).exists() && table.contains(&format!("]({name})")), "{name}");
    }
}
