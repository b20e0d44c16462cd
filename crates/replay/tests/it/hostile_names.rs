//! Names from an input: no renderer passes on a character that steers a terminal or reorders text, and a CSV
//! cell has an apostrophe in front if it holds such a name that a spreadsheet would compute, never otherwise.

use crate::csv_check::with_apostrophe;
use crate::name_check::{HOSTILE, check_names};
use slablab_replay::explain::{Explained, Question, explain};
use slablab_replay::import::{self, Input};
use slablab_replay::output::{
    cache_csv, cache_json, cache_table, caches_csv, caches_table, explain_json, explain_page, explain_table,
    remarks, replay_json, replay_page, verify_answer,
};
use slablab_replay::replay::before::Before;
use slablab_replay::replay::{Options, Replay, replay};
use slablab_replay::verify::counters::start_of;
use slablab_replay::verify::{Compared, Verified, verify_change, verify_counters};
use slablab_report::json::document;
use slablab_slabs::Preset;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};

fn root(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn open(path: &Path, recording: Option<&str>) -> Reader {
    import::open(Input { path, recording, formats: None }, &mut |_| {}).expect("the recording is right")
}

fn recording() -> PathBuf {
    root("../../examples/data/hackbench-6.18.perf.data.xz")
}

fn replayed() -> Replay {
    let path = recording();
    replay(&open(&path, None), &path, &Options::default(), &|_, _| {}).expect("it can be replayed")
}

fn explained() -> Explained {
    let path = recording();
    let preset = |text| Preset::parse(text).expect("a preset");
    let question = Question::new(preset("slub@6.1"), preset("slub@6.1,max_order=0"));
    explain(&open(&path, None), &path, &Options::default(), &question, &|_, _| {})
        .expect("it can be explained")
}

/// The recording between its two dumps, with the kernel's counters of a run, verified.
fn verified() -> [(Verified, Replay); 2] {
    let path = recording();
    let dump = |end: &str| root(&format!("../../examples/data/hackbench-6.18.slabinfo-{end}.txt"));
    let before = Before::read(&dump("start")).expect("slabinfo is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let change = verify_change(&open(&path, None), &path, &dump("end"), (&options, 1), &|_, _| {});
    let run = root("testdata/slub_smp4_numa4");
    let before = start_of(&run, "trace_s1").expect("the state is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let counters =
        verify_counters(&run, "trace_s1", &open(&run, Some("trace_s1")), (&options, 1), &|_, _| {});
    [change, counters].map(|answer| answer.expect("it can be verified"))
}

/// Gives the recording, its kernel and all caches of a replay the name.
fn rename_replay(replay: &mut Replay, name: &str) {
    let caches = replay.outcomes.iter_mut().flat_map(|outcome| &mut outcome.caches);
    caches.for_each(|cache| cache.name = name.into());
    replay.path = PathBuf::from(name.replace('/', ""));
    replay.metadata.release = Some(name.into());
    replay.metadata.warnings = vec![name.into()];
}

#[test]
fn no_renderer_passes_on_control_characters() {
    let (mut replay, mut verified, mut explained) = (replayed(), verified(), explained());
    for name in HOSTILE {
        rename_replay(&mut replay, name);
        let mut texts: Vec<(&str, String)> = vec![
            ("replay's caches", caches_table(&replay.outcomes[0], 5)),
            ("replay's remarks", remarks(&replay).join("\n")),
            ("replay's JSON", document(&replay_json(&replay))),
            ("replay's page", replay_page(&replay, name, 5)),
            ("one cache", cache_table(&replay, name).expect("every cache has this name")),
            ("one cache as CSV", cache_csv(&replay, name).expect("every cache has this name")),
            ("one cache as JSON", document(&cache_json(&replay, name).expect("every cache has this name"))),
        ];
        for (verified, replay) in &mut verified {
            rename_replay(replay, name);
            rename(&mut verified.compared, name);
            let answer = verify_answer(verified, replay, usize::MAX);
            texts.push(("verify's table", answer.text(true)));
            texts.push(("verify's JSON", document(&answer.json())));
            texts.push(("verify's page", answer.page(name)));
        }
        rename_replay(&mut explained.replay, name);
        explained.cache = Some(name.into());
        texts.push(("explain's table", explain_table(&explained)));
        texts.push(("explain's JSON", document(&explain_json(&explained))));
        texts.push(("explain's page", explain_page(&explained, name)));
        let metadata = explained.replay.metadata.clone();
        let path = explained.replay.path.clone();
        let mut report = import::Report { input: path.clone(), output: path, metadata };
        report.metadata.caches.iter_mut().for_each(|cache| cache.name = name.into());
        texts.push(("import's table", report.text()));
        texts.push(("import's JSON", document(&report.json())));
        for (renderer, text) in &texts {
            // A tab is white space in markup, and no browser acts on it.
            let text = if renderer.ends_with("page") { text.replace('\t', " ") } else { text.clone() };
            check_names(renderer, &text);
        }
    }
}

/// Numbers and the program's own texts are unchanged. A negative number stays a number.
#[test]
fn csv_without_names_has_no_apostrophe() {
    let replay = replayed();
    let mut files = vec![caches_csv(&replay)];
    files.extend(cache_csv(&replay, "filp"));
    files.extend(verified().iter().map(|(verified, replay)| verify_csv(verified, replay)));
    assert_eq!(files.len(), 4);
    for csv in files {
        assert_eq!(with_apostrophe(&csv), Vec::<&str>::new(), "{}", csv.lines().next().unwrap_or(""));
    }
}

/// Every row of each CSV file has the hostile name of its cache, and no other cell with an apostrophe.
#[test]
fn csv_names_are_no_formulas() {
    let [(mut change, first), (mut counters, second)] = verified();
    let mut replay = replayed();
    for name in &HOSTILE[1..] {
        rename_replay(&mut replay, name);
        rename(&mut change.compared, name);
        rename(&mut counters.compared, name);
        for csv in [caches_csv(&replay), verify_csv(&change, &first), verify_csv(&counters, &second)] {
            check_names("CSV", &csv);
            let rows = csv.lines().count() - 1;
            assert_eq!(with_apostrophe(&csv).len(), rows, "{}", csv.lines().next().unwrap_or(""));
        }
    }
}

fn verify_csv(verified: &Verified, replay: &Replay) -> String {
    verify_answer(verified, replay, usize::MAX).csv().expect("rows")
}

fn rename(compared: &mut Compared, name: &str) {
    match compared {
        Compared::Changes(changes, ..) => changes.iter_mut().for_each(|change| change.name = name.into()),
        Compared::Counters(counters, counted) => {
            counters.iter_mut().for_each(|counter| counter.cache = name.into());
            counted.label = name.into();
            counted.caches.iter_mut().for_each(|cache| cache.cache = name.into());
        }
    }
}
