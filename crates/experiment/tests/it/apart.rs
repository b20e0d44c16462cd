//! Cells that run one by one and elsewhere give the results of the whole experiment; runs that are cancelled.

use crate::experiment::{files, folder, options};
use slablab_experiment::run::folder::{cell_json, runs_of};
use slablab_experiment::{Cancelled, Pulse};
use slablab_experiment::{Change, Experiment, Folder, Options, Parts, Plan, Results, Size, run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn quick() -> Options {
    let change = Change { size: Some(Size::Quick), repeats: Some(1), ..Change::default() };
    Options { change, ..options("p", 1) }
}

fn micro() -> Experiment {
    Experiment::find(Path::new("micro")).expect("an installed experiment")
}

#[test]
fn cells_that_run_apart_are_the_whole() {
    let path = folder("apart");
    let at = |name: &str| path.join(name);
    let open = |name: &str| Folder::open(&at(name)).expect("a folder");
    run(&micro(), &quick(), Some(&open("whole")), &|_, _| {}).expect("the whole");
    let parts = micro().parts();
    let plan = Plan::new(&micro(), &quick().change).expect("a plan");
    let keys = plan.keys(&micro(), "p");
    // Each cell in a process of its own, as it were: documents are all that comes back.
    let one = |cell: usize| {
        let experiment = Experiment::of_parts(&parts).expect("the parts of an experiment");
        let options = Options { cells: Some(vec![cell]), ..quick() };
        let results = run(&experiment, &options, None, &|_, _| {}).expect("a cell");
        assert_eq!(results.runs.iter().flatten().count(), 1);
        let runs = results.runs[cell].as_ref().expect("the cell ran");
        serde_json::from_str(&cell_json(&keys[cell], runs).to_string()).expect("a document")
    };
    let documents: Vec<serde_json::Value> = (0..keys.len()).rev().map(one).collect();
    let runs = documents.iter().rev().zip(&keys).map(|(document, key)| runs_of(key, document)).collect();
    let results = Results::of_runs(micro(), plan, runs, "p".into());
    results.write_whole(&open("joined")).expect("results");
    assert_eq!(files(&at("whole")), files(&at("joined")));
    assert!(runs_of(&keys[1], documents.last().expect("documents")).is_none(), "another cell's");
}

#[test]
fn another_recording_is_refused() {
    let path = folder("another-recording");
    let copy = |from: &str, to: &str| {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(from);
        std::fs::copy(from, path.join(to)).expect("a file of the examples");
    };
    std::fs::create_dir(path.join("data")).expect("a folder");
    let recording = "data/hackbench-6.18.perf.data.xz";
    copy("recording.toml", "recording.toml");
    copy(recording, recording);
    let parts = Experiment::find(&path.join("recording.toml")).expect("an experiment").parts();
    assert_eq!(Experiment::of_parts(&parts).expect("the same experiment").parts(), parts);
    copy("data/git-grep.trace.parquet", recording);
    let said = Experiment::of_parts(&parts).err().expect("another recording").to_string();
    assert!(said.contains(recording) && said.contains("another recording"), "{said}");
    let gone = Parts { recordings: vec![(path.join("gone"), String::new())], ..parts };
    assert!(Experiment::of_parts(&gone).is_err());
}

#[test]
fn a_cancelled_experiment_ends_and_keeps_whole_cells() {
    let path = folder("cancelled");
    let open = || Folder::open(&path.join("results")).expect("a folder");
    let pulse = Pulse::default();
    let options = Options { pulse: pulse.clone(), ..quick() };
    // After the fifth run the rest is cancelled, in its middle.
    let ended = std::sync::atomic::AtomicUsize::new(0);
    let progress = |done: u64, _| {
        let runs = ended.fetch_add(usize::from(done > 0), std::sync::atomic::Ordering::Relaxed);
        if runs == 4 {
            pulse.cancel();
        }
    };
    let cancelled = catch_unwind(AssertUnwindSafe(|| run(&micro(), &options, Some(&open()), &progress)));
    assert!(cancelled.err().expect("it was cancelled").is::<Cancelled>());
    let kept = std::fs::read_dir(path.join("results/cells")).expect("cells").count();
    let results = run(&micro(), &quick(), Some(&open()), &|_, _| {}).expect("the rest");
    assert_eq!((kept, results.computed), (5, 10));
}
