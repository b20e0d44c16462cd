//! The library under programs that know nothing of it.
//!
//! The programs in C and C++ beside this file are built by the system's compilers and run with the library preloaded, once per
//! engine and kind of slots. Whatever builds Rust has one for C; where there is none for C++ that test is left out, unless `SLABLAB_CXX_REQUIRED`
//! is set, as in CI.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ENGINES: &[&str] = &["slub@7.1", "slub@6.1", "slub@2.6.29", "slqb@2009-09", "slab@6.1"];
const SLOTS: [&str; 2] = ["thread", "cpu"];

/// The library as this build made it: beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a program");
    let built = test.parent().expect("target/<profile>/deps").join("libslablab.so");
    assert!(built.exists(), "{} was not built", built.display());
    built
}

/// A program for one test: tests run side by side.
fn built(compiler: &str, source: &str, arguments: &[&str], name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = Command::new(compiler).args(arguments).arg(&source).arg("-o").arg(&program).output();
    let done = done.unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn run(program: &Path, arguments: &[&str], engine: &str, slots: &str) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_PRELOAD", library()).env("SLABLAB_ENGINE", engine);
    command.env("SLABLAB_SLOTS", slots);
    command.output().expect("it runs")
}

fn check(program: &Path, arguments: &[&str], says: &str) {
    for (engine, slots) in ENGINES.iter().flat_map(|engine| SLOTS.map(|slots| (engine, slots))) {
        let done = run(program, arguments, engine, slots);
        let said = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success() && said.contains(says),
            "{engine}, {slots}: {}\n{said}{errors}",
            done.status
        );
        assert_eq!(errors, "", "{engine}, {slots}");
    }
}

#[test]
fn what_c_and_posix_say() {
    let program = built("cc", "api.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "api");
    check(&program, &["40"], "all holds");
}

#[test]
fn what_cplusplus_says() {
    let required = std::env::var_os("SLABLAB_CXX_REQUIRED").is_some();
    if !required && Command::new("c++").arg("--version").output().is_err() {
        return eprintln!("no C++ compiler (c++): left out");
    }
    let program = built("c++", "new.cpp", &["-std=c++17", "-O1", "-Wall", "-pthread"], "new");
    check(&program, &[], "all holds");
}

#[test]
fn settings_are_read_and_wrong_ones_reported() {
    let program = built("cc", "api.c", &["-std=gnu11", "-O1", "-pthread"], "settings");
    let with = |name: &str, value: &str| {
        let mut command = Command::new(&program);
        command.arg("1").env("LD_PRELOAD", library()).env(name, value);
        let done = command.output().expect("it runs");
        assert!(done.status.success());
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let stats = with("SLABLAB_STATS", "1");
    assert!(
        stats.contains("slub@7.1") && stats.contains("<active_objs>") && stats.contains("malloc-"),
        "{stats}"
    );
    let slots = with("SLABLAB_SLOTS", "node");
    assert!(slots.contains("SLABLAB_SLOTS=node: expected thread or cpu"), "{slots}");
    let unknown = with("SLABLAB_ENGIN", "slqb");
    assert!(unknown.contains("SLABLAB_ENGIN: there is no such setting"), "{unknown}");
    let engine = with("SLABLAB_ENGINE", "slurb");
    assert!(engine.contains("SLABLAB_ENGINE=slurb:") && engine.contains("slub"), "{engine}");
    let slob = with("SLABLAB_ENGINE", "slob");
    assert!(slob.contains("SLOB cannot tell the size"), "{slob}");
}

/// Statistics say whose slots are, and why they are not the CPUs'.
#[test]
fn slots_per_cpu_or_why_not() {
    let program = built("cc", "api.c", &["-std=gnu11", "-O1", "-pthread"], "slots");
    let launcher = built("cc", "without.c", &["-std=gnu11", "-O1", "-Wall"], "without");
    let check = |slots: &str, lacks: &str, says: &[&str]| {
        let mut command = Command::new(if lacks == "membarrier" { &launcher } else { &program });
        let tunables = if lacks == "rseq" { "glibc.pthread.rseq=0" } else { "" };
        if lacks == "membarrier" {
            command.arg(&program);
        }
        command.arg("20").env("LD_PRELOAD", library()).env("SLABLAB_STATS", "1").env("SLABLAB_SLOTS", slots);
        let done = command.env("GLIBC_TUNABLES", tunables).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        let holds = done.status.success() && says.iter().any(|says| said.contains(says));
        assert!(holds, "{slots}, no {lacks}: {said}");
    };
    check("thread", "", &["a slot per thread, "]);
    // An older C library or kernel has none.
    check("cpu", "", &["a slot per CPU", "a slot per thread (per CPU: "]);
    check("cpu", "rseq", &["a slot per thread (per CPU: the C library registered no rseq area)"]);
    check("thread", "membarrier", &["a slot per thread, "]);
    // Without both, which comes first does not matter.
    check("cpu", "membarrier", &["a slot per thread (per CPU: the "]);
}

/// Handlers that allocate: safe where slots are CPUs', which a C library or kernel without rseq cannot show.
#[test]
fn signal_handlers_that_allocate() {
    let program = built("cc", "signals.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "signals");
    for engine in ENGINES {
        let mut command = Command::new(&program);
        command.arg("50000").env("LD_PRELOAD", library()).env("SLABLAB_STATS", "1");
        let done =
            command.env("SLABLAB_SLOTS", "cpu").env("SLABLAB_ENGINE", engine).output().expect("it runs");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        if !errors.contains("a slot per CPU") {
            return eprintln!("no slots per CPU: left out");
        }
        assert!(
            done.status.success() && said.contains("all holds, with signals"),
            "{engine}: {}\n{said}{errors}",
            done.status
        );
    }
}

#[test]
fn opened_and_closed() {
    let program = built("cc", "opened.c", &["-std=gnu11", "-O1", "-Wall", "-pthread", "-ldl"], "opened");
    for slots in SLOTS {
        let done =
            Command::new(&program).arg(library()).env("SLABLAB_SLOTS", slots).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success() && said.contains("all holds"),
            "{slots}: {}\n{said}{errors}",
            done.status
        );
    }
}
