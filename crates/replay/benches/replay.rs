//! The replay speed of each engine, compared with the others.
//!
//! ```text
//! cargo bench -p slablab-replay --bench replay -- [RECORDING]... [--rounds N]        times
//! cargo bench -p slablab-replay --bench replay -- [RECORDING]... --instructions      counted by callgrind
//! ```
//!
//! A machine that does other things meanwhile is slow for minutes and fast for minutes. So every round runs
//! every engine once, in a random order, and compares with [`BASE`] of the same round. Times are of the pass
//! over the rows, decoding them included; looking the recording through and setting the model up are left
//! out. Instructions are of the same pass; they hardly change from run to run.

use slablab_replay::import::{self, Input};
use slablab_replay::replay::{Options, replay};
use slablab_slabs::Preset;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the others are compared with: the engine that most kernels run.
const BASE: &str = "slub@6.1";

/// Every engine, in the years that differ most.
const ENGINES: [&str; 10] = [
    BASE,
    "slub@2.6.29",
    "slub@6.18",
    "slub@7.1",
    "slqb@2009-01",
    "slqb@2009-09",
    "slab@2.6.29",
    "slab@6.1",
    "slob@2.6.32",
    "slob@6.1",
];

const BUNDLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/hackbench-6.18.perf.data.xz");

/// What the command line says.
struct Arguments {
    recordings: Vec<PathBuf>,
    rounds: usize,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Times,
    Instructions,
    /// One engine, once, without a word: what callgrind runs.
    Once(&'static str),
}

fn arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments { recordings: Vec::new(), rounds: 21, way: Way::Times };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Cargo says this to every benchmark.
            "--bench" => {}
            "--rounds" => {
                let number = words.next().and_then(|word| word.parse().ok()).filter(|rounds| *rounds > 0);
                arguments.rounds = number.ok_or("--rounds: expected a number from 1")?;
            }
            "--instructions" => arguments.way = Way::Instructions,
            "--once" => {
                let name = words.next();
                let engine = ENGINES.into_iter().find(|engine| Some(*engine) == name.as_deref());
                arguments.way = Way::Once(engine.ok_or(format!("--once: expected one of {ENGINES:?}"))?);
            }
            word if word.starts_with('-') => {
                return Err(format!("{word}: expected --rounds, --instructions or --once"));
            }
            path => arguments.recordings.push(path.into()),
        }
    }
    if arguments.recordings.is_empty() {
        arguments.recordings.push(BUNDLED.into());
    }
    Ok(arguments)
}

fn main() -> Result<(), String> {
    let arguments = arguments()?;
    for path in &arguments.recordings {
        let reader = import::open(Input { path, recording: None, formats: None }, &mut |_| {})
            .map_err(|e| e.to_string())?;
        match arguments.way {
            Way::Times => times(&reader, path, arguments.rounds)?,
            Way::Instructions => instructions(&reader, path)?,
            Way::Once(engine) => drop(run(&reader, path, engine)?),
        }
    }
    Ok(())
}

/// One engine over the rows; nanoseconds for each of them.
fn run(reader: &Reader, path: &Path, engine: &str) -> Result<f64, String> {
    let preset = Preset::parse(engine).map_err(|error| error.to_string())?;
    let options = Options { engines: vec![preset.into()], ..Options::default() };
    let answer = replay(reader, path, &options, &|_, _| {}).map_err(|error| error.to_string())?;
    let outcome = &answer.outcomes[0];
    Ok(outcome.elapsed.as_secs_f64() * 1e9 / outcome.rows as f64)
}

fn times(reader: &Reader, path: &Path, rounds: usize) -> Result<(), String> {
    println!("{}: {} rows, {rounds} rounds", path.display(), reader.rows());
    println!("{:<14}{:>10}{:>10}{:>13}   half between", "", "ns a row", "quickest", "of slub@6.1");
    let mut measured = [const { Vec::new() }; ENGINES.len()];
    let mut random = Random(1);
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..ENGINES.len()).collect();
        (1..order.len()).rev().for_each(|last| order.swap(last, random.below(last + 1)));
        for engine in order {
            measured[engine].push(run(reader, path, ENGINES[engine])?);
        }
    }
    for (engine, times) in ENGINES.iter().zip(&measured) {
        let ratios = sorted(times.iter().zip(&measured[0]).map(|(time, base)| time / base).collect());
        let times = sorted(times.clone());
        let at = |values: &[f64], quarter: usize| values[(values.len() - 1) * quarter / 4];
        println!(
            "{engine:<14}{:>10.1}{:>10.1}{:>13.2}   {:.2} .. {:.2}",
            at(&times, 2),
            times[0],
            at(&ratios, 2),
            at(&ratios, 1),
            at(&ratios, 3)
        );
    }
    Ok(())
}

fn instructions(reader: &Reader, path: &Path) -> Result<(), String> {
    println!("{}: {} rows", path.display(), reader.rows());
    println!("{:<14}{:>18}{:>13}", "", "instructions a row", "of slub@6.1");
    let mut base = None;
    for engine in ENGINES {
        let counted = callgrind(path, engine)? as f64 / reader.rows() as f64;
        let base = *base.get_or_insert(counted);
        println!("{engine:<14}{counted:>18.1}{:>13.2}", counted / base);
    }
    Ok(())
}

/// Instructions of the pass over the rows.
fn callgrind(path: &Path, engine: &str) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*run::Run*::rows*"])
        .arg(this)
        .arg(path)
        .args(["--once", engine])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok()).filter(|count| *count > 0);
    count.ok_or_else(|| format!("valgrind counted nothing of {engine}: {said}"))
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// SplitMix64 (Steele, Lea, Flood 2014), so that the order of the engines is the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}
