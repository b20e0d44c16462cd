//! The numbers of one build: of a replay, or of an experiment's cells.

use super::{Measured, Number};
use crate::run::{Options, run};
use crate::source::Experiment;
use slablab_engines::ByCache;
use slablab_replay::explain::measures::{Unit, of_run};
use slablab_replay::replay::{self, replay};
use slablab_report::Result;
use slablab_slabs::Preset;
use slablab_stats::table::Better;
use slablab_trace::Reader;
use std::path::Path;

/// What a reader looks for first in a replay.
const MAIN: [&str; 7] = [
    "slab_peak_bytes",
    "slab_end_bytes",
    "alloc_slab",
    "free_slab",
    "lock_node_list",
    "alloc_slowpath",
    "free_slowpath",
];

/// How runs of a build ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// With numbers.
    Measured(Measured),
    /// By the build's own fault, and what it said.
    Ended(String),
}

/// Replays a recording on one engine.
///
/// # Errors
/// A recording that cannot be read, or a machine that cannot be modelled.
pub fn of_recording(
    (reader, path): (&Reader, &Path),
    options: &replay::Options,
    engine: ByCache,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Ran> {
    let options = replay::Options { engines: vec![engine], ..options.clone() };
    let replayed = match replay(reader, path, &options, progress) {
        Ok(replayed) => replayed,
        // An engine's own fault is said under its name.
        Err(error) => {
            return match error.what.strip_prefix(&format!("{}: ", engine.choice.preset)) {
                Some(words) => Ok(Ran::Ended(words.to_string())),
                None => Err(error),
            };
        }
    };
    let mut measured = Measured::default();
    for (measure, value) in replayed.outcomes.first().map(of_run).unwrap_or_default() {
        measured.numbers.push(Number {
            is_main: MAIN.contains(&measure.name.as_str()),
            name: measure.name,
            place: String::new(),
            unit: if measure.unit == Unit::Bytes { "bytes" } else { "" }.into(),
            decimals: 0,
            lower_is_better: None,
        });
        measured.values.push(vec![value as f64]);
    }
    Ok(Ran::Measured(measured))
}

/// Runs all cells of an experiment on one engine.
///
/// # Errors
/// An experiment that needs too much of the host.
pub fn of_experiment(
    experiment: &Experiment,
    engine: (String, Preset),
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Ran> {
    let mut one = experiment.clone();
    one.file.engines = vec![engine];
    let file = &mut one.file;
    // What the file says of its own engines is none of this one.
    (file.published, file.expect, file.linear, file.merit) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let results = run(&one, options, None, progress)?;
    let cells: Vec<usize> = results.plain().map(|(cell, _)| cell).collect();
    if let Some(why) = cells.iter().find_map(|cell| results.failure(*cell)) {
        // A series says itself that a run failed: what is left are the words of the tree's code.
        let words = why.strip_prefix("the run failed: ").unwrap_or(&why);
        return Ok(Ran::Ended(words.into()));
    }
    let metrics = experiment.file.workload.metrics;
    let main = &metrics[experiment.file.metric];
    let mut measured = Measured::default();
    for metric in std::iter::once(main).chain(metrics.iter().filter(|metric| metric.name != main.name)) {
        for cell in &cells {
            let Some(sample) = results.independent(*cell, metric) else { continue };
            measured.numbers.push(Number {
                name: metric.name.into(),
                place: if cells.len() > 1 { results.label(*cell) } else { String::new() },
                unit: metric.unit.into(),
                decimals: metric.decimals,
                lower_is_better: metric.better.map(|better| better == Better::Lower),
                is_main: metric.name == main.name,
            });
            measured.values.push(sample.values().iter().map(|value| value / metric.per_unit).collect());
        }
    }
    Ok(Ran::Measured(measured))
}
