//! The faults of detections.c under the hardened profile: which of them end the process, when, and with which
//! report. docs/results/native.md has the table beside other allocators (scripts/detections.py).

mod library;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// A report that has these words.
    Report(&'static str),
    /// The processor refuses the access.
    Fault,
    /// The fault has no effect, or one that is no use: this verdict.
    Verdict(&'static str),
}
use Ends::*;

/// A fault, the steps up to its end, and the end.
struct Case(&'static str, &'static str, Ends);

const CASES: &[Case] = &[
    Case("double free", "free free", Report("double free of 0x")),
    Case("double free, others between", "free free", Report("double free of 0x")),
    Case("double free after reuse", "free free free", Report("double free of 0x")),
    Case("free of an address inside", "free", Report("not the start of an object: at offset ")),
    Case("free of a static", "free", Report("not allocated here")),
    Case("free of the stack", "free", Report("not allocated here")),
    Case("overflow by 1 byte", "alloc write free", Report("its canary is overwritten, bytes 104 to 104 ")),
    Case("overflow by 8 bytes", "alloc write free", Report("its canary is overwritten, bytes 104 to 109 ")),
    Case("overflow by 16 bytes", "alloc write free", Report("its canary is overwritten, bytes 104 to 109 ")),
    Case("overflow by a zero", "alloc write free", Report("its canary is overwritten, bytes 104 to 104 ")),
    Case(
        "overflow within the rounding",
        "alloc write free",
        Report("written to up to 1 bytes behind its 100: byte 100 is 0x41, expected 0"),
    ),
    Case("underflow by 1 byte", "alloc write free", Report("or a write below the object behind")),
    Case("write after free", "free write alloc", Report("write after free: bytes 40 to 47 ")),
    Case("write after free at the start", "free write alloc", Report("write after free: bytes 0 to 15 ")),
    Case("read after free", "free", Verdict("no old byte")),
    Case("uninitialised read", "free alloc", Verdict("no old byte")),
    Case("large: overflow by 1 byte", "write free", Report("written to up to 1 bytes behind its 200000")),
    Case("large: overflow by 2 pages", "write", Fault),
    Case("large: double free", "free free", Report("(a large block)")),
    Case("large: read after free", "free", Fault),
    Case("overwritten link", "free write alloc", Report("write after free: bytes 0 to ")),
    Case("partly overwritten link", "free write alloc", Report("write after free: bytes 0 to 0 ")),
    Case("sized delete of a wrong size", "free", Report("given 416 bytes, expected 104 (malloc-112)")),
    Case("write after realloc", "realloc write alloc", Report("write after free: bytes 24 to 31 ")),
    Case("order of addresses", "", Verdict("in no order")),
    Case("reuse", "", Verdict("reused later")),
];

/// The profile, which the other tests of this folder run with too.
fn profile() -> &'static str {
    library::ENGINES.iter().find(|engine| engine.ends_with("harden=on")).expect("it is among the engines")
}

fn check(program: &Path, case: &Case, slots: &str) {
    let Case(fault, steps, ends) = case;
    let done = Command::new(program)
        .arg(fault)
        .env("LD_PRELOAD", library::folder().join("libslablab.so"))
        .env("SLABLAB_ENGINE", profile())
        .env("SLABLAB_SLOTS", slots)
        .output()
        .expect("it runs");
    let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let what = format!("{fault}, a slot per {slots}: {}\n{said}{errors}", done.status);
    let words: Vec<&str> = said.lines().collect();
    let (signal, said) = (done.status.signal(), words.join(" "));
    match ends {
        Report(words) => {
            assert_eq!((signal, said.as_str()), (Some(6), *steps), "{what}");
            assert!(errors.starts_with("slablab: ") && errors.contains(words), "no {words:?}: {what}");
            assert_eq!(errors.lines().count(), 1, "{what}");
        }
        Fault => assert_eq!((signal, said.as_str()), (Some(11), *steps), "{what}"),
        Verdict(word) => {
            assert!(done.status.success() && errors.is_empty(), "{what}");
            assert_eq!(said, format!("{steps} {word}").trim(), "{what}");
        }
    }
}

#[test]
fn the_hardened_profile_finds_faults() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/detections.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("detections");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=gnu11", "-O1", "-Wall", "-fno-builtin"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-ldl");
    let done = compiler.output().expect("cc");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let faults = Command::new(&program).output().expect("it runs").stdout;
    let faults = String::from_utf8_lossy(&faults);
    let known: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    assert_eq!(faults.lines().collect::<Vec<_>>(), known, "every fault of detections.c has a case");
    for slots in ["thread", "cpu"] {
        CASES.iter().for_each(|case| check(&program, case, slots));
    }
}
