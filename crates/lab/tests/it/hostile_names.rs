//! Names from an input: no renderer passes on a character that steers a terminal or reorders text, and a CSV
//! cell has an apostrophe in front if it holds such a name that a spreadsheet would compute, never otherwise.

use crate::name_check::{HOSTILE, check_names, with_apostrophe};
use slablab_lab::import::{self, Input};
use slablab_lab::output::{cache_csv, caches_csv, verify_csv};
use slablab_lab::replay::before::Before;
use slablab_lab::replay::{Options, Replay, replay};
use slablab_lab::verify::counters::start_of;
use slablab_lab::verify::{Compared, Verified, verify_change, verify_counters};
use slablab_workloads::Reader;
use std::path::{Path, PathBuf};

fn root(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn open(path: &Path, recording: Option<&str>) -> Reader {
    import::open(Input { path, recording }, &mut |_| {}).expect("the recording is right")
}

fn recording() -> PathBuf {
    root("../../examples/data/hackbench-6.18.perf.data.xz")
}

fn replayed() -> Replay {
    let path = recording();
    replay(&open(&path, None), &path, &Options::default(), &|_, _| {}).expect("it can be replayed")
}

/// The recording between its two dumps, with the kernel's counters of a run, verified.
fn verified() -> [(Verified, Replay); 2] {
    let path = recording();
    let dump = |end: &str| root(&format!("../../examples/data/hackbench-6.18.slabinfo-{end}.txt"));
    let before = Before::read(&dump("start")).expect("slabinfo is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let change = verify_change(&open(&path, None), &path, &dump("end"), &options, &|_, _| {});
    let run = root("testdata/slub_smp4_numa4");
    let before = start_of(&run, "trace_s1").expect("the state is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let counters = verify_counters(&run, "trace_s1", &open(&run, Some("trace_s1")), &options, &|_, _| {});
    [change, counters].map(|answer| answer.expect("it can be verified"))
}

/// Numbers and texts of our own are as they are; a number below zero stays a number.
#[test]
fn csv_without_names_has_no_apostrophe() {
    let replay = replayed();
    let mut files = vec![caches_csv(&replay)];
    files.extend(cache_csv(&replay, "filp"));
    files.extend(verified().iter().map(|(verified, _)| verify_csv(verified)));
    assert_eq!(files.len(), 4);
    for csv in files {
        assert_eq!(with_apostrophe(&csv), Vec::<&str>::new(), "{}", csv.lines().next().unwrap_or(""));
    }
}

/// Every row of each CSV file has the hostile name of its cache, and no other cell with an apostrophe.
#[test]
fn csv_names_are_no_formulas() {
    let [(mut change, _), (mut counters, _)] = verified();
    let mut replay = replayed();
    for name in &HOSTILE[1..] {
        let caches = replay.outcomes.iter_mut().flat_map(|outcome| &mut outcome.caches);
        caches.for_each(|cache| cache.name = name.to_string());
        rename(&mut change.compared, name);
        rename(&mut counters.compared, name);
        for csv in [caches_csv(&replay), verify_csv(&change), verify_csv(&counters)] {
            check_names("CSV", &csv);
            let rows = csv.lines().count() - 1;
            assert_eq!(with_apostrophe(&csv).len(), rows, "{}", csv.lines().next().unwrap_or(""));
        }
    }
}

fn rename(compared: &mut Compared, name: &str) {
    match compared {
        Compared::Changes(changes, _) => changes.iter_mut().for_each(|change| change.name = name.into()),
        Compared::Counters(counters) => counters.iter_mut().for_each(|counter| counter.cache = name.into()),
    }
}
