//! What a process holds because the library is loaded, before it allocates.

mod library;

use library::ENGINES;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What the program of fixed.c says: it allocates once. Without an engine it runs without the library.
fn said(engine: Option<&str>, arguments: &[&str]) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixed");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixed.c");
        let done = Command::new("cc").args(["-O1", "-Wall", "-o"]).arg(&program).arg(source).status();
        assert!(done.expect("cc runs").success());
        program
    });
    let mut command = Command::new(program);
    if let Some(engine) = engine {
        command.env("LD_PRELOAD", library::folder().join("libslablab.so")).env("SLABLAB_ENGINE", engine);
    }
    String::from_utf8(command.args(arguments).output().expect("it runs").stdout).expect("text")
}

/// The KiB of a line that begins with `name`.
fn kib(line: &str, name: &str) -> Option<u64> {
    line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok()
}

/// Resident KiB that are in no file.
fn anonymous(engine: Option<&str>) -> u64 {
    said(engine, &[]).lines().find_map(|line| kib(line, "Anonymous:")).expect("a number")
}

/// Pages that the library writes at its start: tables, descriptors, the first slab, relocations, the stack.
#[test]
fn a_process_that_allocates_once_writes_few_pages() {
    let without = anonymous(None);
    for engine in ENGINES.iter().filter(|engine| !engine.contains(',')) {
        let kib = anonymous(Some(engine)) - without;
        println!("{engine}: {kib} KiB");
        assert!(kib <= 296, "{engine}: {kib} KiB beside {without} KiB without the library");
    }
}

/// The kernel maps 64 KiB around each page of code that a process touches. The list is in the order of the
/// profile dist, of which 108 KiB are resident. In the dev profile 396 are, 804 without the list, 652 with
/// one that was old. If this fails, functions are missing in the list that run now:
/// scripts/hot_functions.py writes it again.
#[test]
#[cfg_attr(not(ordered_functions), ignore = "build.rs did not order the functions")]
fn little_of_the_code_is_resident() {
    let mappings = said(Some("slub@7.1"), &["mappings"]);
    let mut code =
        mappings.lines().skip_while(|line| !line.contains(" r-xp ") || !line.ends_with("libslablab.so"));
    let kib = code.find_map(|line| kib(line, "Rss:")).expect("the library's code");
    println!("{kib} KiB of code");
    assert!(kib <= 460, "{kib} KiB of the library's code are resident");
}

/// The unwinder, which only a panic needs, is in the library, behind all that runs.
#[test]
#[cfg(target_arch = "x86_64")]
fn no_unwinder_is_loaded() {
    let mappings = said(Some("slub@7.1"), &["mappings"]);
    let gcc = mappings.lines().find(|line| line.contains("libgcc_s"));
    assert!(gcc.is_none(), "{gcc:?}: build.rs found no libgcc_eh.a, or the linker did not take it");
}

/// The functions of `hot-functions` lie together, and most of the list is the name of a function; some names
/// are of other profiles. The linker takes the order from build.rs; scripts/hot_functions.py writes the list.
#[test]
#[cfg_attr(not(ordered_functions), ignore = "build.rs did not order the functions")]
fn functions_that_programs_run_lie_together() {
    let list = include_str!("../hot-functions");
    let names = Command::new("nm").arg("-S").arg(library::folder().join("libslablab.so")).output();
    let names = String::from_utf8(names.expect("nm runs").stdout).expect("text");
    let (mut found, mut bytes, mut first, mut last) = (HashSet::new(), 0, u64::MAX, 0);
    for line in names.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [at, size, "t" | "T", symbol] = fields[..] else { continue };
        let Some(start) = list.lines().find(|start| has_start(symbol, start)) else { continue };
        let number = |digits| u64::from_str_radix(digits, 16).expect("a number");
        let (at, size) = (number(at), number(size));
        found.insert(start);
        (bytes, first, last) = (bytes + size, first.min(at), last.max(at + size));
    }
    println!(
        "{} of {} names; {bytes} bytes, spread over {}",
        found.len(),
        list.lines().count(),
        last - first
    );
    let lost: Vec<&str> = list.lines().filter(|start| !found.contains(start)).collect();
    assert!(lost.len() * 10 <= list.lines().count() * 3, "no function's name starts with {lost:#?}");
    // Functions are aligned to 64 bytes.
    assert!(last - first <= bytes + bytes / 4, "{bytes} bytes, spread over {}", last - first);
}

/// Whether a symbol begins with `start`, in which each `*` stands for one hash.
fn has_start<'s>(symbol: &'s str, start: &str) -> bool {
    let mut parts = start.split('*');
    let first = parts.next().unwrap_or_default();
    let behind = |rest: &'s str, part: &str| {
        let at = rest.find(part).filter(|at| *at < 16)?;
        Some(&rest[at + part.len()..])
    };
    symbol.strip_prefix(first).and_then(|rest| parts.try_fold(rest, behind)).is_some()
}
