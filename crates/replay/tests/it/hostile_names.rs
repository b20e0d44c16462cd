//! Names from an input: no renderer passes on a character that steers a terminal or reorders text, and a CSV
//! cell has an apostrophe in front if it holds such a name that a spreadsheet would compute, never otherwise.

use crate::csv_check::with_apostrophe;
use crate::name_check::{HOSTILE, check_names};
use slablab_replay::explain::{Explained, Question, explain};
use slablab_replay::import::{self, Input};
use slablab_replay::output::{
    Weight, cache_answer, caches_frame, explain_answer, import_answer, replay_answer, sites_answer,
    verify_answer,
};
use slablab_replay::replay::before::Before;
use slablab_replay::replay::{Options, Replay, replay};
use slablab_replay::sites::{self, Recorded, Sites};
use slablab_replay::verify::counters::start_of;
use slablab_replay::verify::{Compared, Verified, verify_change, verify_counters};
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

fn sites() -> Recorded {
    let path = recording();
    Recorded::of(&open(&path, None), &path, &sites::Options::default(), &|_, _| {}).expect("it has sites")
}

/// Gives the recording, its kernel and all call sites the name.
fn rename_sites(sites: &mut Recorded, name: &str) {
    sites.path = PathBuf::from(name.replace('/', ""));
    sites.metadata.release = Some(name.into());
    sites.notes = vec![name.into()];
    for site in &mut sites.sites {
        (site.name, site.cache) = (name.into(), name.into());
        (site.tasks, site.freed_by) = (vec![(name.into(), 1)], vec![(name.into(), 1)]);
    }
}

#[test]
fn no_renderer_passes_on_control_characters() {
    let (mut replay, mut verified, mut explained) = (replayed(), verified(), explained());
    let mut sites = sites();
    for name in HOSTILE {
        rename_replay(&mut replay, name);
        let mut answers = vec![
            ("replay", replay_answer(&replay, 5)),
            ("replay of a cache", cache_answer(&replay, name, 5).expect("every cache has this name")),
        ];
        for (verified, replay) in &mut verified {
            rename_replay(replay, name);
            rename(&mut verified.compared, name);
            answers.push(("verify", verify_answer(verified, replay, usize::MAX)));
        }
        rename_replay(&mut explained.replay, name);
        explained.cache = Some(name.into());
        answers.push(("explain", explain_answer(&explained)));
        let metadata = explained.replay.metadata.clone();
        let path = explained.replay.path.clone();
        let mut report = import::Report { input: path.clone(), output: path, metadata };
        report.metadata.caches.iter_mut().for_each(|cache| cache.name = name.into());
        answers.push(("import", import_answer(&report)));
        rename_sites(&mut sites, name);
        answers.push(("sites", sites_answer(&Sites::Recorded(Box::new(sites.clone())), 5, Weight::Live)));
        for (verb, answer) in &answers {
            for form in ["table", "json", "csv", "folded"] {
                let text = answer.text_of(form, true);
                text.into_iter().for_each(|text| check_names(&format!("{form} of {verb}"), &text));
            }
            // A tab is white space in markup, and no browser acts on it.
            check_names(&format!("page of {verb}"), &answer.page(name).replace('\t', " "));
        }
    }
}

/// Numbers and the program's own texts are unchanged. A negative number stays a number.
#[test]
fn csv_without_names_has_no_apostrophe() {
    let replay = replayed();
    let mut files = vec![caches_frame(&replay).csv()];
    files.extend(cache_answer(&replay, "filp", 5).and_then(|answer| answer.csv()));
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
        for csv in [caches_frame(&replay).csv(), verify_csv(&change, &first), verify_csv(&counters, &second)]
        {
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
