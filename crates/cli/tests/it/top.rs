//! `SLABLAB_STATS` as JSON and `slablab top`: a program with counts that are known runs under the library.

use crate::common::{check_error, check_narrow, folder, slablab, text};
use crate::schemas::check_document;
use serde_json::Value;
use slablab_malloc::shared::note::LAYOUT;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

#[path = "../../../c/tests/library/mod.rs"]
mod library;

/// The program `counts.c`, which says what it holds.
fn counts() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("counts.c"))
}

/// Builds a program of the C library's tests.
fn built(source: &str) -> PathBuf {
    let name = source.trim_end_matches(".c");
    let program = folder(&format!("top-{name}")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../c/tests").join(source);
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-Wall", "-pthread"]).arg(source).arg("-o").arg(&program).arg("-ldl");
    let done = compiler.output().expect("a machine that builds Rust has a compiler for C");
    assert!(done.status.success(), "{}", text(&done.stderr));
    program
}

/// The program, started under the library; it holds its objects until its standard input is closed.
struct Running(Child);

impl Running {
    fn start(variables: &[(&str, &str)]) -> Running {
        Running::start_program(&mut Command::new(counts()), variables)
    }

    /// Another program that says "ready".
    fn start_program(command: &mut Command, variables: &[(&str, &str)]) -> Running {
        command.env("LD_PRELOAD", library::folder().join("libslablab.so")).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut line = String::new();
        let said = BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line);
        assert_eq!((said.expect("it is read"), line.as_str()), (6, "ready\n"));
        Running(child)
    }

    /// Lets the program end, and returns what it said on standard error.
    fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let done = self.0.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{}: {}", done.status, text(&done.stderr));
        text(&done.stderr)
    }
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("no number {field} in {value}"))
}

/// The cache that serves requests of `bytes` bytes.
fn cache(document: &Value, bytes: u64) -> &Value {
    let caches = document["caches"].as_array().expect("caches");
    let found = caches.iter().filter(|cache| number(cache, "object_bytes") >= bytes);
    found.min_by_key(|cache| number(cache, "object_bytes")).expect("a class of this size")
}

/// What `counts.c` says that it holds.
fn check_counts(document: &Value, engine: &str) {
    check_held(document, engine, 0);
    check_sums(document, engine);
}

/// Freed objects of 700 bytes that a viewer may take for live ones: with slots of CPUs, the system may move a
/// thread between its allocations and its frees, and these then wait on lists that only SLAB and SLQB know
/// (docs/native.md).
fn out_of_sight(engine: &str, slots: &str) -> u64 {
    if slots == "cpu" && (engine.starts_with("slab") || engine.starts_with("slqb")) { 4000 } else { 0 }
}

fn check_held(document: &Value, engine: &str, out_of_sight: u64) {
    // The hardened profile has 8 bytes of its own behind the bytes of a request. Of each class, 4 objects
    // that wait in a ring of each of the two threads count as live; and of the class that 708 bytes are in,
    // the arrays of some sheaves, 4 for each thread.
    let (behind, waiting) = if engine.ends_with("harden=on") { (8, 16) } else { (0, 0) };
    let check_live = |bytes: u64, live: u64, out_of_sight: u64| {
        let cache = cache(document, bytes + behind);
        let found = number(cache, "live_objects");
        let most = live + waiting + out_of_sight;
        assert!((live..=most).contains(&found), "{engine}: {live} live of {cache}");
    };
    check_live(700, 6000 - 4000 + 500 - 200, out_of_sight);
    check_live(24_000, 40, 0);
    let mut caches = document["caches"].as_array().expect("caches").iter();
    let counted = caches.find(|cache| cache["name"] == "counted \"\u{1b}[31m");
    let counted = counted.unwrap_or_else(|| panic!("{engine}: {document}"));
    assert_eq!(["object_bytes", "live_objects"].map(|field| number(counted, field)), [304, 77], "{engine}");
    let (heap, live) = (number(document, "heap_bytes"), number(document, "live_bytes"));
    let held = 3_000_000 + (4 << 20) + 40 * 24_000 + 2300 * 700;
    // With debugging of blocks and in the hardened profile, freed ones are out of reach for a while, and
    // count as live.
    let hides = engine.contains("debug=") || engine.ends_with("harden=on");
    let most = if hides { heap } else { 2 * held };
    assert!((held..=most).contains(&live) && live <= heap, "{engine}: {live} of {heap}");
}

/// The parts of each number.
fn check_sums(document: &Value, engine: &str) {
    for cache in document["caches"].as_array().expect("caches") {
        let [slabs, objects] = ["slabs", "objects"].map(|field| number(cache, field));
        assert_eq!(objects, slabs * number(cache, "objects_per_slab"), "{engine}: {cache}");
        let quarantined =
            cache.get("quarantined_objects").map_or(0, |_| number(cache, "quarantined_objects"));
        let parts = ["live_objects", "parked_objects", "free_objects"].map(|part| number(cache, part));
        assert_eq!(parts.iter().sum::<u64>() + quarantined, objects, "{engine}: {cache}");
        let page = number(document, "page_bytes");
        assert_eq!(
            number(cache, "bytes"),
            slabs * number(cache, "pages_per_slab") * page,
            "{engine}: {cache}"
        );
    }
    assert!(number(document, "minor_faults") > 400, "its objects have 2.5 MB: {document}");
}

#[test]
fn statistics_as_json() {
    for engine in library::ENGINES {
        let said = Running::start(&[("SLABLAB_STATS", "json"), ("SLABLAB_ENGINE", engine)]).end();
        assert_eq!(said.lines().count(), 1, "{engine}: {said}");
        let document: Value = serde_json::from_str(&said).unwrap_or_else(|bad| panic!("{bad}: {said}"));
        assert_eq!(document["schema"], "slablab.malloc.1");
        assert_eq!(document["engine"], *engine);
        check_counts(&document, engine);
    }
}

#[test]
fn statistics_go_to_a_file() {
    let folder = folder("malloc-stats");
    let path = folder.join("a-%p.json");
    let running = Running::start(&[("SLABLAB_STATS", path.to_str().expect("UTF-8"))]);
    let process = running.0.id();
    assert_eq!(running.end(), "");
    let written = std::fs::read(folder.join(format!("a-{process}.json"))).expect("it was written");
    let document: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(number(&document, "pid"), u64::from(process));
    check_counts(&document, "slub@7.1");
    let said = Running::start(&[("SLABLAB_STATS", "/nowhere/at/all.json")]).end();
    assert!(said.contains("/nowhere/at/all.json: No such file or directory"), "{said}");
    let said = Running::start(&[("SLABLAB_STATS", "yes")]).end();
    assert!(said.contains("expected 0, 1, json or a path"), "{said}");
}

/// What `slablab top` says of a process.
fn top(process: u32, arguments: &[&str]) -> Output {
    let mut all = vec![process.to_string(), "--once".to_string()];
    all.extend(arguments.iter().map(ToString::to_string));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    slablab(&["top"], &all)
}

/// Under each engine, and with slots of threads and of CPUs, the viewer sees what the program holds, and then
/// what the program itself counts at its end.
#[test]
fn a_running_process() {
    let engines = library::ENGINES.iter().chain(&["slub@7.1,freelist=map"]);
    for (engine, slots) in engines.flat_map(|engine| [(engine, "thread"), (engine, "cpu")]) {
        let variables = [("SLABLAB_STATS", "json"), ("SLABLAB_ENGINE", engine), ("SLABLAB_SLOTS", slots)];
        let running = Running::start(&variables);
        let output = top(running.0.id(), &["--format", "json"]);
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        check_document(&["top"], &document);
        let at_end: Value = serde_json::from_str(&running.end()).expect("JSON");
        assert_eq!(document["schema"], "slablab.top.1");
        assert_eq!(document["command"], "counts");
        for field in ["version", "pid", "engine", "slots", "page_bytes"] {
            assert_eq!(document[field], at_end[field], "{engine}, {slots}: {field}");
        }
        // What is quarantined counts as live.
        if !engine.contains("quarantine") {
            check_held(&document, engine, out_of_sight(engine, slots));
        }
        check_sums(&document, engine);
        // The program allocates nothing of this size between the look and its end.
        let of = |document: &Value| number(cache(document, 24_000), "slabs");
        assert_eq!(of(&document), of(&at_end), "{engine}, {slots}");
        let grown = number(&at_end, "minor_faults") - number(&document, "minor_faults");
        assert!(grown < 200, "{engine}, {slots}: {grown} page faults from the look to the end");
    }
}

/// A program with sheaves: what a thread freed is in them, although the thread runs.
#[test]
fn sheaves_barns_and_tables() {
    let running = Running::start(&[]);
    let process = running.0.id();
    let said = |arguments: &[&str]| {
        let output = top(process, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let on_no_screen = slablab(&["top"], &[&process.to_string()]);
    assert!(text(&on_no_screen.stderr).contains("no terminal; --once"), "{on_no_screen:?}");
    let document: Value = serde_json::from_str(&said(&["--format", "json"])).expect("JSON");
    let small = cache(&document, 700);
    // A sheaf has 93 objects. Whether the newest full one is a spare or in the barn depends on time.
    assert!(number(small, "sheaf_objects") > 93, "two threads with more than a sheaf: {small}");
    // A barn keeps 128 KiB at least, which are two such sheaves, and more if a thread drew from it. One of
    // them may have become a spare.
    assert!(number(small, "barn_objects") >= 93, "the first thread freed 4,000: {small}");
    assert!(number(small, "parked_objects") > 3 * 93, "three sheaves and more: {small}");
    let csv = said(&["--format", "csv", "-s", "name"]);
    let names: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(names.is_sorted() && names.contains(&small["name"].as_str().expect("a name")), "{csv}");
    let narrow = said(&["--sort", "live"]);
    check_narrow(&narrow);
    let table = said(&["--sort", "live", "--wide"]);
    assert!(!table.contains('\u{1b}') && !csv.contains('\u{1b}'), "{table}{csv}");
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.contains("NAME")).skip(1).collect();
    assert!(rows[0].contains(small["name"].as_str().expect("a name")), "{table}");
    assert_eq!(rows.len(), names.len(), "{table}");
    assert!(
        table.starts_with(&format!("Process {process} (counts) holds "))
            && table.contains("slub@7.1, a slot per thread"),
        "{table}"
    );
    running.end();
}

/// Of 6,000 objects of 700 bytes 2,000 live, and 300 more of another thread: what they pin is told, and is
/// the same in the document, in the table, and in the profile.
#[test]
fn what_pins_memory() {
    let running = Running::start(&[]);
    let profile = folder("top-pins").join("held.pb.gz");
    let path = profile.to_str().expect("a path");
    let process = running.0.id().to_string();
    let said = |arguments: &[&str]| {
        let arguments: Vec<&str> = [process.as_str()].iter().chain(arguments).copied().collect();
        let output = slablab(&["top"], &arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let document: Value = serde_json::from_str(&said(&["--pins", "--format", "json"])).expect("JSON");
    check_document(&["top"], &document);
    let small = cache(&document, 700);
    let [pinned, free, slot] =
        ["pinned_bytes", "free_objects", "slot_bytes"].map(|field| number(small, field));
    let [slabs, sparse, by, theirs] =
        ["slabs", "sparse_slabs", "sparse_objects", "sparse_bytes"].map(|field| number(small, field));
    assert!(pinned <= free * slot && theirs <= pinned && sparse <= slabs, "{small}");
    assert!(by >= sparse && by * 3 * slot <= theirs, "a quarter is in use at most: {small}");
    let caches = document["caches"].as_array().expect("a list");
    let order: Vec<u64> = caches.iter().map(|cache| number(cache, "pinned_bytes")).collect();
    assert!(order.is_sorted_by(|one, next| one >= next), "{order:?}");
    assert!(order[0] > 0, "some object has a free one beside it: {document}");
    let most = caches[0]["name"].as_str().expect("a name");
    let table = said(&["--pins", "--pprof", path]);
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.starts_with("Objects in use keep ") && words.contains(&format!("most in {most} (")),
        "{table}"
    );
    check_narrow(&table);
    assert!(table.contains("PINNED") && table.contains("SPARSE"), "{table}");
    let unpacked = Command::new("gzip").args(["-dc", path]).output().expect("a machine has gzip");
    assert!(unpacked.status.success(), "{}", text(&unpacked.stderr));
    let all = String::from_utf8_lossy(&unpacked.stdout);
    for words in ["inuse_space", "pinned_space", "counts", most, "blocks of page frames"] {
        assert!(all.contains(words), "no {words:?} in the profile");
    }
    check_error(&["top"], &[&process, "--pins", "--purge"], &["--pins", "--purge"]);
    check_error(&["top"], &[&process, "--pprof", "/nowhere/held.pb.gz"], &["/nowhere/held.pb.gz"]);
    running.end();
}

/// The program `purge.c`, started under the library: it freed what it used, and sleeps, or also allocates.
fn swung(what: &str) -> Running {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| built("purge.c"));
    Running::start_program(Command::new(program).arg(what), &[])
}

/// A process gives back what it keeps when it is asked to, if one of its threads allocates. If none does, the
/// answer says so.
#[test]
fn a_process_gives_back_what_it_keeps() {
    let running = swung("asked");
    let output = top(running.0.id(), &["--purge", "--format", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_document(&["top"], &document);
    let [given, before] =
        ["given_back_bytes", "heap_bytes_before"].map(|field| number(&document["purge"], field));
    let after = number(&document, "heap_bytes");
    assert!(
        given > 1 << 20 && before - after > 1 << 20,
        "{before} before, {after} after, {given} given back"
    );
    // The first thread sleeps.
    assert_eq!(number(&document["purge"], "threads"), 1);
    let lines = text(&top(running.0.id(), &["--purge"]).stdout);
    let said = lines.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("(purge) gave ") && said.contains("1 thread keeps"), "{said}");
    running.end();
    let sleeps = swung("sleeps");
    let output = top(sleeps.0.id(), &["--purge"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("is asked to give memory back"), "{said}");
    sleeps.end();
}

#[test]
fn processes_that_cannot_be_looked_at() {
    let check = |arguments: &[&str], words: &[&str]| check_error(&["top"], arguments, words);
    check(&["4194305", "--once"], &["process 4194305", "no such process"]);
    check(&["x"], &["'x'"]);
    check(&["1", "--format", "json"], &["--once"]);
    check(&["4194305"], &["process 4194305", "no such process"]);
    check(&["1", "--once", "-d", "0"], &["from 0.1 to 3600"]);
    check(&["1", "--once", "-s", "age"], &["'age'", "live"]);
    // This test does not run under the library.
    check(&[&std::process::id().to_string(), "--once"], &["does not run under slablab", "LD_PRELOAD"]);
}

/// Memory that begins as a directory does is no directory yet.
#[test]
fn another_process_may_hold_anything() {
    let run = |words: &[u64]| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let mut child = Command::new(counts());
        child.args(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it is read");
        let output = top(child.id(), &[]);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    let magic = u64::from_le_bytes(*b"slablab\x01");
    let said = run(&[magic, 77]);
    assert!(said.contains("layout 77") && said.contains("same version"), "{said}");
    let said = run(&[magic, LAYOUT, 12, u64::MAX]);
    assert!(said.contains("damaged") && said.contains("0xffffffffffffffff"), "{said}");
    // Everything is in its range, and points nowhere.
    let mut words = [4096; 64];
    (words[0], words[1], words[2]) = (magic, LAYOUT, 12);
    let said = run(&words);
    assert!(said.contains("directory is damaged"), "{said}");
    let said = run(&[magic + 1, LAYOUT]);
    assert!(said.contains("does not run under slablab"), "{said}");
}
