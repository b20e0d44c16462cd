//! Faults committed in a program with the preloaded library, with debugging and hardening around the engine.
//! Tests the report, and whether the program goes on.

mod library;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Engines with equal checks. Not SLUB before 4.7, which has no red zone before an object.
fn engines() -> impl Iterator<Item = &'static str> {
    library::ENGINES.iter().copied().filter(|engine| !engine.contains(',') && *engine != "slub@2.6.29")
}

const SLOTS: [&str; 2] = ["thread", "cpu"];

/// The end of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ends {
    /// It goes on, and prints that.
    Well,
    /// It aborts after a report.
    Aborted,
}
use Ends::*;

/// The wrapper, the fault, the expected text on standard error (`@` is the object's address) or, behind `>`,
/// on standard output, and the end. Without an expected text nothing may be printed.
struct Case(&'static str, &'static str, &'static [&'static str], Ends);

const CASES: &[Case] = &[
    Case("debug=FZPU", "nothing", &[], Well),
    Case(
        "debug=FZPU",
        "behind",
        &[
            "BUG malloc-112: Right Redzone overwritten\nINFO: byte 100 of the object is 0x41 instead of 0xcc\n",
            "INFO: Allocated in taker+0x",
            "INFO: Freed in giver+0x",
            "INFO: Object @, found in giver+0x",
            "INFO: allocated from main+0x",
        ],
        Well,
    ),
    // A handler's stack ends at the function that was interrupted, whose caller may not be found.
    Case(
        "debug=FZPU",
        "behind, from a handler",
        &[
            "INFO: Allocated in taker+0x",
            "INFO: allocated from handler+0x",
            #[cfg(target_arch = "x86_64")]
            "INFO:           from interrupted+0x3 ",
        ],
        Well,
    ),
    Case(
        "debug=Z",
        "behind its class",
        &[
            "BUG malloc-112: Right Redzone overwritten\nINFO: byte 112 of the object is 0x41",
            "INFO: Object @, ",
        ],
        Well,
    ),
    // Without U the requested size is not recorded, so its end is not known.
    Case("debug=FZP", "behind", &[], Well),
    Case("debug=FZPU", "grown", &["BUG malloc-112: Right Redzone overwritten\nINFO: byte 104 "], Well),
    Case(
        "debug=FZPU",
        "before",
        &[
            "BUG malloc-112: Left Redzone overwritten\nINFO: byte -1 of the object is 0x41",
            "INFO: Object @, ",
        ],
        Well,
    ),
    Case(
        "debug=FZPU",
        "after its free",
        &[
            "BUG malloc-112: Poison overwritten\nINFO: byte 5 of the object is 0x41 instead of 0x6b\n",
            "INFO: Allocated in taker+0x",
            "INFO: Freed in giver+0x",
            "INFO: Object @, found in taker+0x",
        ],
        Well,
    ),
    Case(
        "debug=P",
        "after its free",
        &["BUG malloc-112: Poison overwritten", "INFO: Object @, found in ?"],
        Well,
    ),
    Case(
        "debug=P,quarantine=16K",
        "in quarantine",
        &["BUG malloc-112: Poison overwritten", "INFO: Object @, "],
        Well,
    ),
    Case(
        "debug=FZPU",
        "twice",
        &[
            "BUG malloc-112: Object already free\nINFO: Allocated in taker+0x",
            "INFO: Freed in giver+0x",
            "slablab: double free of @ (malloc-112)",
        ],
        Aborted,
    ),
    Case("debug=Z", "twice", &["double free of @ (malloc-112)"], Aborted),
    Case("init=free", "twice", &["double free of @ (malloc-112)"], Aborted),
    Case("harden=random", "twice", &["double free of @ (malloc-112)"], Aborted),
    Case("harden=encode", "twice", &["double free of @ (malloc-112)"], Aborted),
    Case("harden=encode", "nothing", &[], Well),
    Case("harden=encode,debug=FZU", "aligned", &[], Well),
    Case("harden=encode", "links", &["BUG: Freechain corrupt: the link of the object at 0x"], Aborted),
    Case("harden=random+encode", "order", &[">in no order"], Well),
    Case("quarantine=64K", "twice, others between", &["double free of @ (malloc-112)"], Aborted),
    Case(
        "debug=FZPU",
        "inside",
        &["BUG malloc-112: Invalid object pointer", "not the start of an object"],
        Aborted,
    ),
    Case(
        "debug=FZPU",
        "not aligned",
        &["not the start of an object: at offset ", " in a slab of malloc-112"],
        Aborted,
    ),
    Case("debug=FZPU", "elsewhere", &["outside the heap, or in an empty slab"], Aborted),
    Case("debug=FZPU", "large, twice", &["double free of 0x", "(a large block)"], Aborted),
    Case("debug=FZ", "large, twice", &["double free of 0x", "(a large block)"], Aborted),
    Case("debug=FZ", "large, in its last page", &["outside the heap, or in an empty slab"], Aborted),
    Case("debug=FZP", "large, write after its free", &[], Aborted),
    Case("debug=P", "large, read after its free", &[], Aborted),
    Case("debug=FZP", "large, many", &[], Well),
    Case("debug=FZPU", "sized, right", &[], Well),
    Case("debug=FZP", "sized, right", &[], Well),
    Case("init=free", "sized, right", &[], Well),
    Case(
        "debug=FZPU",
        "sized, wrong",
        &["slablab: sized free of @: given 60 bytes, expected 100 (malloc-112)\n"],
        Well,
    ),
    Case(
        "debug=F",
        "sized, wrong",
        &["slablab: sized free of @: given 60 bytes, expected 112 (malloc-112)\n"],
        Well,
    ),
    Case("debug=FZPU", "sized, too large", &["given 500 bytes, expected 100 (malloc-112)\n"], Well),
    Case(
        "debug=FZPU",
        "sized, large",
        &["given 200000 bytes, expected up to 102400 (a large block)\n"],
        Well,
    ),
    Case("debug=FZPU", "alignment", &["sized free of @: given an alignment of 1099511627776 bytes"], Well),
    Case("debug=FZPU", "sizes", &[">100 of 100"], Well),
    Case("debug=FP", "sizes", &[">112 of 100"], Well),
    Case("init=alloc", "zeros", &[">2000 zeros"], Well),
    Case("init=free,debug=P", "aligned", &[], Well),
    Case("debug=FZPU", "aligned", &[], Well),
    Case("init=alloc+free,quarantine=4K", "zeros", &[">2000 zeros"], Well),
    Case("harden=random", "order", &[">in no order"], Well),
    Case("debug=F", "order", &[">in order"], Well),
    Case("debug=FZPUO", "aligned", &[], Well),
];

fn library() -> PathBuf {
    library::folder().join("libslablab.so")
}

fn run(engine: &str, fault: &str, slots: &str) -> Output {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
        let mut compiler = Command::new("cc");
        // Reports take the names of functions from the dynamic symbol table (`-rdynamic`).
        compiler.args([
            "-std=gnu11",
            "-O1",
            "-w",
            "-rdynamic",
            "-fno-builtin",
            "-fno-optimize-sibling-calls",
        ]);
        let done = compiler.arg(source).arg("-o").arg(&program).output().expect("cc");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        program
    });
    let mut command = Command::new(program);
    command.arg(fault).env("LD_PRELOAD", library()).env("SLABLAB_ENGINE", engine).env("SLABLAB_SLOTS", slots);
    command.output().expect("it runs")
}

fn check(case: &Case, engine: &str, slots: &str) {
    let Case(around, fault, says, ends) = case;
    let engine = format!("{engine},{around}");
    let done = run(&engine, fault, slots);
    let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let what = format!("{engine}, a slot per {slots}, {fault}: {}\n{said}{errors}", done.status);
    let ended = if said.ends_with("goes on\n") && done.status.success() { Well } else { Aborted };
    assert_eq!(ended, *ends, "{what}");
    let address = said.lines().next().expect("an address");
    let mut silent = true;
    for line in *says {
        match line.strip_prefix('>') {
            Some(line) => assert!(said.contains(line), "no {line:?}: {what}"),
            None => {
                silent = false;
                let line = line.replace('@', address);
                assert!(errors.contains(&line), "no {line:?}: {what}");
            }
        }
    }
    assert!(!silent || errors.is_empty(), "nothing to say: {what}");
    assert!(errors.matches("BUG ").count() <= 1, "once: {what}");
}

#[test]
fn planted_faults_are_found() {
    for engine in engines() {
        for slots in SLOTS {
            CASES.iter().for_each(|case| check(case, engine, slots));
        }
    }
}

/// A write into a freed block hides a second free from malloc. The engine finds the object twice when it
/// empties its arrays or queues. The process then ends with one line that names the object and the cache, and
/// not with a panic, whose message and backtrace would allocate from the same heap.
#[test]
fn a_damaged_free_list_ends_in_one_line() {
    for engine in ["slub@7.1", "slub@6.1", "slab", "slqb"] {
        for slots in SLOTS {
            let done = run(engine, "damaged list", slots);
            let (said, errors) =
                (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            let what = format!("{engine}, a slot per {slots}: {}\n{said}{errors}", done.status);
            assert_eq!(done.status.signal(), Some(6), "{what}");
            assert_eq!(errors.lines().count(), 1, "{what}");
            assert!(errors.starts_with("slablab: malloc-112: ") && errors.contains(" 0x"), "{what}");
        }
    }
}

/// A heap starts on a small stack, because it is not built on the stack.
#[test]
fn a_small_stack_is_enough_to_start() {
    run("slub", "nothing", "thread");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    for engine in ["slub@7.1", "slub@7.1,debug=FZPU", "slqb,debug=F", "slab,debug=F", "slub,harden=encode"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -s 256 && LD_PRELOAD=$1 exec $2", "sh"]).arg(library()).arg(&program);
        let done = shell.env("SLABLAB_ENGINE", engine).output().expect("it runs");
        assert!(done.status.success(), "{engine}: {}", done.status);
    }
}

#[test]
fn invalid_wrappers_are_refused() {
    for (engine, why) in [
        ("slob,debug=F", "SLOB does not store the size"),
        ("slub,debug=Q", "debug=`Q` is not known; near it: FZPUO"),
        ("slub,harden=rand", "harden=`rand` is not known; near it: random"),
    ] {
        let done = run(engine, "nothing", "thread");
        let errors = String::from_utf8_lossy(&done.stderr);
        let line = format!("slablab: SLABLAB_ENGINE={engine}: {why}");
        assert!(done.status.success() && errors.starts_with(&line), "{engine}: {errors}");
        assert!(errors.ends_with("; slub@7.1 is used\n"), "{engine}: {errors}");
    }
}
