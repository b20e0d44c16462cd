//! How many accesses of pages a modelled kernel serves in a second, by policy of page replacement.
//!
//! ```text
//! cargo bench -p slablab-experiment --bench pressure -- [SCRIPT]... [--rounds N]
//! ```
//!
//! A round runs every script once under every policy. An access that finds its page costs much less than one
//! that does not: beside all accesses the table has those pages that came or went: faults, and pages
//! reclaimed. Times are CPU time of one thread (Linux's `schedstat`) and of the whole run, booting the kernel
//! included: the median of the rounds, each with a seed of its own.

use slablab_experiment::pressure::run::{Options, usual_engine};
use slablab_experiment::pressure::script::load;
use slablab_trace::script::Script;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The policies of the recorded machines.
const POLICIES: [&str; 4] = ["vm@6.1", "vm@6.1,lru_gen", "vm@6.12", "vm@6.12,lru_gen"];
const MACHINE: &str = "vm-guest";
const BUNDLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/vm");

/// A run's accesses, pages that came or went, and seconds.
#[derive(Clone, Copy)]
struct Timed {
    accesses: u64,
    moves: u64,
    seconds: f64,
}

fn main() -> Result<(), String> {
    let (mut scripts, mut rounds) = (Vec::new(), 5);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Cargo says this to every benchmark.
            "--bench" => {}
            "--rounds" => {
                let number = words.next().and_then(|word| word.parse().ok()).filter(|rounds| *rounds > 0);
                rounds = number.ok_or("--rounds: expected a number from 1")?;
            }
            word if word.starts_with('-') => return Err(format!("{word}: expected --rounds")),
            path => scripts.push(PathBuf::from(path)),
        }
    }
    if scripts.is_empty() {
        scripts = bundled()?;
    }
    println!(
        "{:<22}{:<17}{:>12}{:>12}{:>10}{:>14}{:>14}",
        "script", "policy", "accesses", "moves", "ms", "accesses/us", "moves/us"
    );
    for path in &scripts {
        let script = Arc::new(load(path).map_err(|error| error.to_string())?);
        for policy in POLICIES {
            row(path, &script, policy, rounds)?;
        }
    }
    Ok(())
}

/// The scripts of the project that no other one spawns.
fn bundled() -> Result<Vec<PathBuf>, String> {
    let folder = std::fs::read_dir(BUNDLED).map_err(|error| format!("{BUNDLED}: {error}"))?;
    let mut scripts: Vec<PathBuf> = folder.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let is_spawned = |path: &PathBuf| {
        std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(|line| line.trim() == "ready"))
    };
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "t") && !is_spawned(path));
    scripts.sort();
    Ok(scripts)
}

/// CPU time of this thread.
fn cpu_seconds() -> Result<f64, String> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let ns = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    ns.map(|ns| ns / 1e9).ok_or_else(|| format!("{path}: expected a number of nanoseconds, found {text:?}"))
}

/// The median round of a script under a policy.
fn row(path: &Path, script: &Arc<Script>, policy: &str, rounds: usize) -> Result<(), String> {
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let engine = usual_engine(policy).map_err(|error| error.to_string())?;
    let options = Options::of(policy, engine, Path::new(MACHINE), &[]).map_err(|error| error.to_string())?;
    let mut timed = Vec::new();
    for seed in 1..=rounds as u64 {
        let begin = cpu_seconds()?;
        let run = options.run(script, seed).map_err(|error| format!("{name} {policy}: {error}"))?;
        let seconds = cpu_seconds()? - begin;
        let main = &run.records[0].1;
        let counted =
            |counter: &str| main.phases.iter().map(|phase| phase.delta(counter)).sum::<i64>() as u64;
        let moves = counted("pgfault") + counted("pgsteal_kswapd") + counted("pgsteal_direct");
        timed.push(Timed { accesses: run.accesses, moves, seconds });
    }
    timed.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let Timed { accesses, moves, seconds } = timed[timed.len() / 2];
    println!(
        "{name:<22}{policy:<17}{accesses:>12}{moves:>12}{:>10.1}{:>14.1}{:>14.2}",
        seconds * 1e3,
        accesses as f64 / seconds / 1e6,
        moves as f64 / seconds / 1e6
    );
    Ok(())
}
