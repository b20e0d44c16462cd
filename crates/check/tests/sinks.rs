//! Every byte of the program goes out through `report`'s sink, which lets no control character pass, and
//! every CSV file is written by `report`'s writer of CSV, which quotes.
//!
//! The tests read sources as text. Each rule has the places that do not follow it, with their number: a new
//! place fails the test, and so does a number that is too high, so that the lists only fall.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Macros that print without the sink.
const PRINTS: [&str; 5] = ["println!(", "eprintln!(", "print!(", "eprint!(", "dbg!("];

/// Files with such macros, by their paths in `crates/`, and how often.
const WITH_PRINTS: &[(&str, usize)] = &[("replay/src/replay/occupancy/histories.rs", 1)];

/// Handles of standard output and standard error.
const HANDLES: [&str; 2] = ["stdout()", "stderr()"];

/// Files that have such handles, by their paths in `crates/`: how often, and why.
const WITH_HANDLES: &[(&str, usize, &str)] = &[
    ("cli/src/closed.rs", 1, "asks whether standard output is open"),
    ("cli/src/colour.rs", 2, "asks whether standard output is a terminal"),
    ("cli/src/front.rs", 2, "asks whether the streams are terminals"),
    ("cli/src/laboratory/import.rs", 1, "asks whether standard error is a terminal"),
    ("cli/src/input.rs", 1, "asks whether standard error is a terminal"),
    ("cli/src/outcome.rs", 2, "the sink to standard error"),
    ("cli/src/output.rs", 2, "the sink to standard output, and which file that is"),
    ("cli/src/laboratory/record/kernel/mod.rs", 1, "asks whether standard error is a terminal"),
    ("cli/src/laboratory/record/kernel/session.rs", 1, "asks whether standard error is a terminal"),
    ("cli/src/laboratory/top/mod.rs", 1, "asks whether standard output is a terminal"),
    ("cli/src/watch/mod.rs", 1, "asks whether standard output is a terminal"),
];

/// Files that make text of a path without `report::visible`, by their paths in `crates/`, and how often.
/// Their text reaches the user through the sink, in JSON, or in a `report::Error`.
const WITH_PATHS: &[(&str, usize)] = &[
    ("bench/src/calls.rs", 4),
    ("bench/src/child.rs", 1),
    ("compare/src/document.rs", 1),
    ("cli/src/doctor.rs", 1),
    ("cli/src/instances.rs", 1),
    ("cli/src/laboratory/explain.rs", 1),
    ("cli/src/fuzz/mod.rs", 1),
    ("cli/src/laboratory/pressure.rs", 1),
    ("cli/src/laboratory/record/kernel/mod.rs", 3),
    ("cli/src/laboratory/record/kernel/perf.rs", 1),
    ("cli/src/laboratory/record/kernel/tracefs.rs", 7),
    ("cli/src/laboratory/record/left.rs", 2),
    ("cli/src/laboratory/record/malloc.rs", 4),
    ("cli/src/laboratory/record/summary.rs", 1),
    ("cli/src/laboratory/reproduce.rs", 1),
    ("doctor/src/measure/comparable.rs", 1),
    ("doctor/src/output/doctor/document.rs", 3),
    ("doctor/src/output/fleet/columns.rs", 1),
    ("doctor/src/output/fleet/document.rs", 2),
    ("doctor/src/output/doctor/words.rs", 1),
    ("doctor/src/output/whatif/document.rs", 1),
    ("doctor/src/state/folder.rs", 1),
    ("doctor/src/state/one.rs", 1),
    ("doctor/src/state/pasted.rs", 1),
    ("doctor/src/whatif/percpu/derive.rs", 1),
    ("linux/src/build/answer.rs", 3),
    ("linux/src/build/kbuild.rs", 1),
    ("linux/src/build/objects.rs", 1),
    ("linux/src/build/shim.rs", 3),
    ("linux/src/build/store.rs", 2),
    ("python/src/dump.rs", 1),
    ("python/src/recording.rs", 2),
    ("python/src/replay.rs", 2),
    ("recorder/src/files.rs", 1),
    ("recorder/src/folder.rs", 1),
    ("replay/src/output/leak/document.rs", 1),
    ("replay/src/output/recording.rs", 1),
    ("replay/src/output/replay/document.rs", 1),
    ("replay/src/output/sites/counted.rs", 4),
    ("replay/src/output/sites/tracked.rs", 1),
    ("replay/src/output/verify/document.rs", 1),
    ("replay/src/replay/before.rs", 1),
    ("replay/src/replay/before/totals.rs", 1),
    ("replay/src/replay/differences.rs", 2),
    ("replay/src/replay/suited.rs", 6),
    ("replay/src/sites/names.rs", 2),
    ("replay/src/verify/counters.rs", 1),
    ("trace/src/error.rs", 1),
];

/// Files with a list of words joined by commas, by their paths in `crates/`: how often, and why it is no CSV.
const WITH_COMMAS: &[(&str, usize, &str)] = &[
    ("calibrate/src/host.rs", 1, "a list of CPUs, as 0-3,8"),
    ("experiment/src/explain/parameters.rs", 1, "values of a parameter, as the user gave them"),
    ("replay/src/output/sites/tracked.rs", 1, "a list of CPUs, as 0-3,8"),
    ("page/src/ask.rs", 1, "lists of the command line"),
    ("readers/src/lines.rs", 1, "the header of a file in an error"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The sources of the program and of its libraries, by their paths in `crates/`: no tests, examples, build
/// scripts.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let rooms = fs::read_dir(crates()).expect("the crates").map(|entry| entry.expect("a crate").path());
    let mut folders: Vec<PathBuf> = rooms.map(|room| room.join("src")).filter(|path| path.is_dir()).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("a source").path();
            let name = path.strip_prefix(crates()).expect("inside").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !name.ends_with("/tests.rs") {
                found.push((name, fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    // A folder that was renamed would pass every rule.
    assert!(found.len() > 800, "only {} sources", found.len());
    found.sort();
    found
}

/// The lines of a source without comments and without a module of tests at its end.
fn shipped(source: &str) -> impl Iterator<Item = &str> {
    let tests = source.find("\n#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    source[..tests].lines().map(str::trim_start).filter(|line| !line.starts_with("//"))
}

/// How often `find` finds something in the lines of each source where it does.
fn counted(find: impl Fn(&str) -> usize) -> BTreeMap<String, usize> {
    let count = |source: &str| shipped(source).map(&find).sum::<usize>();
    let all = sources().into_iter().map(|(name, source)| (name, count(&source)));
    all.filter(|(_, count)| *count > 0).collect()
}

/// Compares with a list.
#[track_caller]
fn check(
    found: &BTreeMap<String, usize>,
    listed: impl Iterator<Item = (&'static str, usize)>,
    instead: &str,
) {
    let listed: BTreeMap<String, usize> = listed.map(|(name, count)| (name.to_string(), count)).collect();
    let mut wrong = Vec::new();
    for name in found.keys().chain(listed.keys()).collect::<std::collections::BTreeSet<_>>() {
        let (now, then) = (found.get(name).unwrap_or(&0), listed.get(name).unwrap_or(&0));
        match now.cmp(then) {
            std::cmp::Ordering::Greater => wrong.push(format!("{name}: {now}, listed {then}: {instead}")),
            std::cmp::Ordering::Less => wrong.push(format!("{name}: {now}, listed {then}: lower the list")),
            std::cmp::Ordering::Equal => (),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// How often `word` stands in `line` and is no end of a longer name.
fn words(line: &str, word: &str) -> usize {
    let begins = |at: usize| !line[..at].ends_with(|char: char| char.is_alphanumeric() || char == '_');
    line.match_indices(word).filter(|(at, _)| begins(*at)).count()
}

#[test]
fn no_print_goes_past_the_sink() {
    let found = counted(|line| PRINTS.iter().map(|print| words(line, print)).sum());
    let instead = "expected `output::write_out`, `outcome::tell` or `outcome::say`";
    check(&found, WITH_PRINTS.iter().copied(), instead);
}

#[test]
fn few_files_have_the_standard_streams() {
    let found = counted(|line| HANDLES.iter().map(|handle| words(line, handle)).sum());
    let listed = WITH_HANDLES.iter().map(|(name, count, _)| (*name, *count));
    check(&found, listed, "expected `output::write_out`, `outcome::tell` or `outcome::say`");
}

#[test]
fn paths_are_shown_as_names() {
    let found = counted(|line| match line.contains("visible::name(") {
        true => 0,
        false => line.matches(".display()").count(),
    });
    let instead = "expected `report::Error` (`.at(path)`) or `visible::name`";
    check(&found, WITH_PATHS.iter().copied(), instead);
}

/// A line with two values and a comma between them is a row that nobody quotes.
#[test]
fn csv_is_written_by_its_writer() {
    let found = counted(|line| {
        let is_json = line.contains("\":");
        let values = if is_json { 0 } else { line.matches("},{").count() };
        (values + line.matches("join(\",\")").count()).min(1)
    });
    let listed = WITH_COMMAS.iter().map(|(name, count, _)| (*name, *count));
    check(&found, listed, "expected `report::csv::Csv` or `report::column::Columns`");
}

/// The finder finds.
#[test]
fn a_print_is_found() {
    let source = "fn a() {\n    println!(\"x\");\n    my_print!(\"y\"); // println!(\n}\n\n#[cfg(test)]\nmod tests {\n    println!(\"z\");\n}\n";
    let count = |line: &str| PRINTS.iter().map(|print| words(line, print)).sum::<usize>();
    let lines: Vec<usize> = shipped(source).map(count).collect();
    // A comment behind code counts, too.
    assert_eq!(lines, [0, 1, 1, 0]);
}
