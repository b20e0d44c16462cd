//! `slablab bench`: allocators side by side in one process, or under a program.

mod program;

use crate::input::{Progress, command_line};
use crate::interrupts::polled;
use crate::laboratory::listed;
use crate::outcome::{Done, Failure};
use crate::output::{Form, OutputArgs, named, write_out};
use clap::ValueEnum;
use serde_json::Value;
use slablab_bench::calls::Prepared;
use slablab_bench::child::{self, Child};
use slablab_bench::patterns::trace;
use slablab_bench::rig::{self, Options, Watcher};
use slablab_bench::{output, own, report::Report};
use slablab_engines::parse;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Compares allocators.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab bench\n  slablab bench --workloads pair64,threads --allocators slablab,glibc,mimalloc --repeats 31\n  slablab bench --workloads single --format csv -o single.csv --html single.html\n  slablab bench --trace python3.trace.parquet --allocators slablab,glibc\n  slablab bench -- sort -o /dev/null words.txt\n  slablab bench --allocators glibc,slablab --allocator mine=./libmine.so --format hyperfine -- ./server --once"
)]
pub(crate) struct Args {
    /// Workloads or groups of them (see --list)
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    workloads: Vec<String>,
    /// Allocators and pools (see --list)
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    allocators: Vec<String>,
    /// The policies of an engine of this program's own, as in NAME,knob=value; without it, its newest preset
    #[arg(long, value_name = "ENGINE")]
    engine: Vec<String>,
    /// Number of blocks: each block runs every workload once on every allocator, in random order
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repeats: u64,
    /// Factor on the number of operations of each run
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Replay the calls of a trace (of `slablab record`) on each allocator; other workloads run if named
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Live megabytes of the memory workload
    #[arg(long, value_name = "MB", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    memory_mb: u64,
    /// Seed of orders, sizes and resamples
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// List workloads and allocators
    #[arg(long, conflicts_with = "html")]
    list: bool,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    /// An allocator for PROGRAM beside those of --allocators: its name, and its library
    #[arg(long, value_name = "NAME=PATH", requires = "program")]
    allocator: Vec<String>,
    /// Runs of PROGRAM under each allocator that are not counted, beside the one that proves who serves it
    #[arg(long, value_name = "N", default_value_t = 0, requires = "program",
        value_parser = clap::value_parser!(u64).range(..=1000))]
    warmup: u64,
    /// What PROGRAM reads on standard input
    #[arg(long, value_name = "FILE", requires = "program")]
    input: Option<PathBuf>,
    /// Count runs of PROGRAM that end with another exit code than 0, too
    #[arg(long, requires = "program")]
    ignore_failure: bool,
    /// Run this program under each allocator, which is preloaded, in place of workloads
    #[arg(last = true, value_name = "PROGRAM",
        conflicts_with_all = ["workloads", "engine", "trace", "list", "scale", "memory_mb"])]
    program: Vec<OsString>,
    #[command(flatten)]
    out: OutputArgs<Benched>,
    /// Serve one measurement, as a child process: an allocator's memory, or WORKLOAD/ALLOCATOR and operations
    #[arg(long, hide = true, num_args = 3, value_names = ["NAME", "BYTES", "SEED"])]
    memory_of: Option<Vec<String>>,
    /// The calls of a trace, for a child process
    #[arg(long, hide = true, value_name = "FILE")]
    calls: Option<PathBuf>,
}

/// The forms of these answers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Benched {
    #[value(alias = "text")]
    Table,
    Json,
    Csv,
    /// Of a program: JSON as `hyperfine --export-json` writes it
    Hyperfine,
}

impl Form for Benched {}

/// Shows progress, and stops when a signal says so.
struct Watch {
    progress: Progress,
    signal: Arc<AtomicUsize>,
}

impl Watcher for Watch {
    fn at(&self, done: u64, whole: u64) -> bool {
        self.progress.at(done, whole);
        self.signal.load(Relaxed) == 0
    }
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    for name in &args.engine {
        let preset = parse(name).map_err(|bad| format!("--engine: {bad}"))?;
        own::choose(&preset).map_err(|refused| format!("--engine: {refused}"))?;
    }
    if let Some(of) = &args.memory_of {
        return child(of, args.calls.as_deref());
    }
    if args.list {
        let rows = output::listed();
        let answer = listed::answer("bench", output::list_sentence(&rows), &output::list_columns(), &rows);
        args.out.answer(&output::list_text(answer, &rows), &command_line(), args.wide)?;
        return Ok(Done::Complete);
    }
    if !args.program.is_empty() {
        return program::run(args);
    }
    if args.out.format == Benched::Hyperfine {
        return Err("--format hyperfine: workloads have no such form: expected -- PROGRAM".into());
    }
    args.out.check(named("the trace", &args.trace))?;
    args.out.expect_writable()?;
    let signal = polled()?;
    let prepared = args.trace.as_deref().map(|trace| Prepared::new(trace, args.scale)).transpose()?;
    let mut workloads = args.workloads;
    let mut words = vec!["bench".to_string()];
    words.extend(args.engine.iter().flat_map(|engine| ["--engine".to_string(), engine.clone()]));
    if let Some(prepared) = &prepared {
        let name = trace::choose(prepared);
        workloads.push(name.into());
        words.extend(["--calls".into(), prepared.path().to_string_lossy().into_owned()]);
    }
    words.push("--memory-of".into());
    let child = Child { program: std::env::current_exe()?, args: words, env: Vec::new() };
    let options = Options {
        workloads,
        allocators: args.allocators,
        repeats: args.repeats as usize,
        scale: args.scale,
        seed: args.seed,
        child: Some(child),
        memory_bytes: args.memory_mb * 1_000_000,
    };
    let watch = Watch { progress: Progress::new("bench"), signal: signal.clone() };
    let results = rig::run(&options, &watch);
    drop(watch);
    let ended = ended(&signal);
    let results = match results {
        // A child got the signal too: that is no error of its own.
        Err(_) if !matches!(ended, Done::Complete) => return Ok(ended),
        results => results?,
    };
    let report = Report::new(&results);
    args.out.answer(&output::bench_answer(&report), &command_line(), args.wide)?;
    Ok(ended)
}

/// How a verb ends that looked at `signal`.
fn ended(signal: &AtomicUsize) -> Done {
    match signal.load(Relaxed) {
        0 => Done::Complete,
        signal => Done::Ended { signal: signal as i32 },
    }
}

/// The JSON Schema of a row of the list.
pub(crate) fn row_schema() -> Value {
    output::list_columns().schema(&output::listed()[0])
}

/// A process that serves one measurement.
fn child(of: &[String], calls: Option<&Path>) -> Result<Done, Failure> {
    let [name, bytes, seed] = of else { unreachable!("clap takes three") };
    if let Some(calls) = calls {
        trace::choose_file(calls, name.split('/').next().unwrap_or(name));
    }
    let number = |text: &String, what| {
        text.parse().map_err(|_| Failure::from(format!("--memory-of: expected {what}, found {text:?}")))
    };
    let line = child::serve(name, number(bytes, "a number of bytes")?, number(seed, "a seed")?)?;
    write_out(&(line + "\n"), None)?;
    Ok(Done::Complete)
}

fn scale(text: &str) -> Result<f64, String> {
    let error = || format!("expected a number from 0.0001 to 1000, found {text:?}");
    text.parse().ok().filter(|scale| (0.0001..=1000.0).contains(scale)).ok_or_else(error)
}
