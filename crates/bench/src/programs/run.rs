//! The measurement: a proof for each allocator, then blocks.

use super::allocator::Allocator;
use super::process::{Run, Sample, Start, once};
use super::scratch::Scratch;
use super::served;
use crate::random::Random;
use crate::rig::{Watcher, load};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// At least one; ratios are over the first.
    pub allocators: Vec<Allocator>,
    /// The number of blocks: in each, the program runs once under every allocator.
    pub repeats: usize,
    /// Runs under each allocator that are not counted, beside the proof.
    pub warmup: usize,
    /// The seed of the order, and of the resamples.
    pub seed: u64,
    /// The program's standard input; nothing if `None`.
    pub input: Option<PathBuf>,
    /// Whether runs that end with another exit code than 0 count, too.
    pub fails: bool,
}

/// The samples of one allocator, one for each block.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The allocator.
    pub allocator: Allocator,
    /// Whether it is the first allocator a second time.
    pub is_twin: bool,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The program, and its arguments.
    pub words: Vec<OsString>,
    /// The allocators, and behind them the twin.
    pub lanes: Vec<Lane>,
    /// The number of complete blocks.
    pub blocks: usize,
    /// The number that was asked for.
    pub wanted: usize,
    /// The seed.
    pub seed: u64,
    /// The number of runnable processes on all CPUs before and after, from /proc/loadavg.
    pub load: [f64; 2],
}

/// Measures. An interrupted measurement has the complete blocks.
///
/// # Errors
/// A program that cannot be started, fails, or is served by another allocator.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Measured, String> {
    let twin = options.allocators.first().cloned().map(|first| (first, true));
    let all = options.allocators.iter().cloned().map(|one| (one, false)).chain(twin);
    let lanes = all.map(|(allocator, is_twin)| Lane { allocator, is_twin, samples: Vec::new() });
    let mut measured = Measured {
        words: options.words.clone(),
        lanes: lanes.collect(),
        blocks: 0,
        wanted: options.repeats,
        seed: options.seed,
        load: [load(); 2],
    };
    let is_whole = blocks(&mut measured, options, watcher)?;
    if !is_whole {
        let blocks = measured.blocks;
        measured.lanes.iter_mut().for_each(|lane| lane.samples.truncate(blocks));
    }
    measured.load[1] = load();
    Ok(measured)
}

/// Proofs, warm-ups and blocks; whether all of them ran.
fn blocks(measured: &mut Measured, options: &Options, watcher: &dyn Watcher) -> Result<bool, String> {
    let lanes = measured.lanes.len();
    let before = options.allocators.len() * (1 + options.warmup);
    let whole = (before + lanes * options.repeats) as u64;
    let mut done = 0;
    let mut start = |allocator: &Allocator, extra: &[(&'static str, PathBuf)]| {
        let sample = one(options, allocator, extra, &|| watcher.at(done, whole));
        done += 1;
        sample
    };
    for allocator in &options.allocators {
        let scratch = Scratch::new().map_err(|error| format!("the folder for temporary files: {error}"))?;
        if start(allocator, &served::environment(&scratch))?.is_none() {
            return Ok(false);
        }
        served::prove(&scratch, allocator, &options.words[0].to_string_lossy())?;
        for _ in 0..options.warmup {
            if start(allocator, &[])?.is_none() {
                return Ok(false);
            }
        }
    }
    let mut random = Random::new(options.seed);
    let mut order: Vec<usize> = (0..lanes).collect();
    for _ in 0..options.repeats {
        random.shuffle(&mut order);
        for at in &order {
            let lane = &mut measured.lanes[*at];
            let Some(sample) = start(&lane.allocator, &[])? else { return Ok(false) };
            lane.samples.push(sample);
        }
        measured.blocks += 1;
    }
    Ok(true)
}

/// One run under an allocator; `None` if it was stopped.
fn one(
    options: &Options,
    allocator: &Allocator,
    extra: &[(&'static str, PathBuf)],
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Sample>, String> {
    if !go_on() {
        return Ok(None);
    }
    let own = allocator.environment.iter().map(|(key, value)| (*key, OsString::from(value)));
    let extra = extra.iter().map(|(key, value)| (*key, value.clone().into_os_string()));
    let environment: Vec<(&str, OsString)> =
        own.chain(extra).chain([("LD_PRELOAD", preloaded(&allocator.library))]).collect();
    let start = Start { words: &options.words, input: options.input.as_deref(), environment: &environment };
    let (sample, said) = match once(&start, go_on)? {
        Run::Stopped => return Ok(None),
        Run::Whole(sample, said) => (sample, said),
    };
    if sample.code == Some(0) || options.fails {
        return Ok(Some(sample));
    }
    let ended = sample.code.map_or("a signal ended it".into(), |code| format!("exit code {code}"));
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!(
        "{} under {}: {ended} ({last}): expected 0, or --ignore-failure",
        options.words[0].to_string_lossy(),
        allocator.name
    ))
}

/// The allocator's library, and behind it what the user preloads.
fn preloaded(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}
