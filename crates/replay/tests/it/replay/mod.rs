//! Replay of programs small enough to count by hand, and what must hold of every replay.
//!
//! A program is text, an expectation is text ([`check`]); real recordings are in `real.rs`.

mod debugged;
mod dumps;
mod engines;
mod hostile;
mod hotplug;
mod machines;
mod program;
mod rows;
mod sizes;
mod start;

use program::trace;
use slablab_engines::ByCache;
use slablab_machines::MachineFile;
use slablab_replay::output::replay_answer;
use slablab_replay::replay::{Options, Replay, replay};
use slablab_slabs::preset::Choice;
use slablab_slabs::preset::Preset;
use slablab_trace::Reader;
use std::path::Path;
use std::sync::LazyLock;

/// What holds of every engine is tested on every preset there is.
static PRESETS: LazyLock<Vec<&str>> =
    LazyLock::new(|| Preset::all().map(|preset| &*preset.to_string().leak()).collect());

const FOUR_CPUS: &str = "cpus = 4\n[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = \"1G\"";

fn presets(texts: &[&str]) -> Vec<ByCache> {
    texts.iter().map(|text| Choice::parse(text).expect("a preset").into()).collect()
}

fn machine(toml: &str) -> MachineFile {
    MachineFile::parse(toml).expect("a machine file")
}

fn run(reader: &Reader, options: &Options) -> Replay {
    replay(reader, Path::new("program"), options, &|_, _| {}).expect("a program can be replayed")
}

/// Replays `program` with `options` and compares: `expected` has lines of a cache's name, or `total`, or
/// `pages`, with the keys of the JSON answer and of its counters. A counter that is not there is 0.
#[track_caller]
fn check_with(program: &str, release: &str, options: &Options, expected: &str) {
    let answer = replay_answer(&run(&trace(release, program), options), 0).json();
    let engine = &answer["engines"][0];
    for line in expected.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let (place, figures) = line.split_once(": ").expect("place: key=number");
        let caches = engine["caches"].as_array().expect("a list");
        let object = match place {
            "total" | "pages" => &engine[place],
            name => caches
                .iter()
                .find(|cache| cache["cache"] == name)
                .unwrap_or_else(|| panic!("no cache {name} in {caches:#?}")),
        };
        let found = figures.split_whitespace().map(|figure| {
            let (key, _) = figure.split_once('=').expect("key=number");
            let value = object.get(key).or_else(|| object["counters"].get(key));
            format!("{key}={}", value.map_or("0".into(), |value| value.to_string()))
        });
        let found: Vec<String> = found.collect();
        assert_eq!(
            found,
            figures.split_whitespace().collect::<Vec<_>>(),
            "{place} of {}; all of it: {object:#}",
            engine["engine"]
        );
    }
}

/// Under slub@6.1, on the machine of the recording.
#[track_caller]
fn check(program: &str, expected: &str) {
    let options = Options { engines: presets(&["slub@6.1"]), ..Options::default() };
    check_with(program, "6.1.0", &options, expected);
}
