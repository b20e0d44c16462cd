//! `slablab calibrate`: what this host's parts cost; and a native hackbench.

use crate::input::{Progress, command_line};
use crate::interrupts::polled;
use crate::outcome::{Done, Failure};
use crate::output::{Form, Format, OutputArgs, named, write_out};
use slablab_bench::output::native_answer;
use slablab_bench::predicted;
use slablab_calibrate::output::{calibration_answer, hackbench_answer};
use slablab_calibrate::rig::{self, Watcher};
use slablab_calibrate::{file, hackbench};
use slablab_report::{AtomicFile, visible};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Measures this host.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  slablab calibrate -o this-host.toml\n  nice -n -20 slablab calibrate -o this-host.toml\n  slablab calibrate hackbench --groups 10 --loops 1000 --threads\n  slablab calibrate native --machine this-host.toml"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Format of the answer
    #[arg(long, value_enum, default_value = Format::DEFAULT)]
    format: Format,
    /// Write the costs and the topology to FILE as a machine file (TOML), beside the answer
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write a page to FILE: self-contained HTML for any browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    /// Measure for some seconds instead of a minute: the quartiles are wider
    #[arg(long)]
    quick: bool,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Run senders and receivers of messages on this host, as `perf bench sched messaging` does
    Hackbench(Hackbench),
    /// Compare what SLUB and SLQB cost in this process with what the model predicts for this host
    Native(Native),
}

#[derive(clap::Args)]
struct Native {
    /// This host's machine file, as `slablab calibrate -o` writes it
    #[arg(long, value_name = "FILE")]
    machine: PathBuf,
    /// Number of blocks: in each, every pattern runs once on every engine
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repeats: u64,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

#[derive(clap::Args)]
struct Hackbench {
    /// Groups: each has 20 senders and 20 receivers
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    groups: u32,
    /// Messages of each sender to each receiver of its group
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    loops: u32,
    /// Use threads instead of processes
    #[arg(long)]
    threads: bool,
    /// Use pipes instead of socket pairs
    #[arg(long)]
    pipes: bool,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

/// Shows progress, and stops when a signal says so.
struct Watch {
    progress: Progress,
    signal: Arc<AtomicUsize>,
    /// Runs that are over, of all runs, if there are several.
    runs: Option<(u64, u64)>,
}

impl Watcher for Watch {
    fn at(&self, done: u64, whole: u64) -> bool {
        let (done, whole) = self.runs.unwrap_or((done, whole));
        self.progress.at(done, whole);
        self.signal.load(Relaxed) == 0
    }
}

impl Watch {
    fn new(what: &str) -> Result<Watch, Failure> {
        let signal = polled()?;
        Ok(Watch { progress: Progress::new(what), signal, runs: None })
    }

    fn ended(&self) -> Done {
        match self.signal.load(Relaxed) {
            0 => Done::Complete,
            signal => Done::Ended { signal: signal as i32 },
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    match args.verb {
        Some(Verb::Hackbench(args)) => return run_hackbench(&args),
        Some(Verb::Native(args)) => return run_native(&args),
        None => {}
    }
    let file = args.output.as_deref();
    if file == Some(Path::new("-")) {
        return Err("-o writes a machine file: expected its name, found -".into());
    }
    // The answer itself goes to standard output.
    let out = OutputArgs { format: args.format, output: None, html: args.html };
    out.check_with([], named("-o", &args.output))?;
    out.expect_writable()?;
    if let Some(path) = file {
        // A minute of measuring is not lost at the end.
        drop(AtomicFile::create(path)?);
    }
    let options = if args.quick { rig::Options::QUICK } else { rig::Options::FULL };
    let watch = Watch::new("calibrate")?;
    let Some(run) = rig::run(options, &watch)? else { return Ok(watch.ended()) };
    let ended = watch.ended();
    drop(watch);
    if let Some(path) = file {
        write_out(&file::toml(&run), Some(path))?;
    }
    out.answer(&calibration_answer(&run), &command_line(), args.wide)?;
    Ok(ended)
}

fn run_hackbench(args: &Hackbench) -> Result<Done, Failure> {
    let options = hackbench::Options {
        groups: args.groups as usize,
        loops: args.loops as usize,
        threads: args.threads,
        pipes: args.pipes,
    };
    args.out.check([])?;
    args.out.expect_writable()?;
    let mut watch = Watch::new("hackbench")?;
    let mut seconds = Vec::new();
    for done in 0..args.repeats {
        watch.runs = Some((u64::from(done), u64::from(args.repeats)));
        match hackbench::run(options, &watch)? {
            Some(outcome) => seconds.push(outcome.seconds),
            None => break,
        }
    }
    let ended = watch.ended();
    drop(watch);
    if seconds.is_empty() {
        return Ok(ended);
    }
    args.out.answer(&hackbench_answer(options, &seconds), &command_line(), false)?;
    Ok(ended)
}

fn run_native(args: &Native) -> Result<Done, Failure> {
    args.out.check(named("--machine", [&args.machine]))?;
    args.out.expect_writable()?;
    let file = slablab_machines::find(&args.machine)?;
    let machine = file.machine().map_err(|error| format!("{}: {error}", visible::path(&args.machine)))?;
    let watch = Watch::new("native")?;
    let rows = predicted::rows(&machine, args.repeats, |done, whole| watch.at(done, whole))?;
    let ended = watch.ended();
    drop(watch);
    let Some(rows) = rows else { return Ok(ended) };
    args.out.answer(&native_answer(&rows), &command_line(), args.wide)?;
    Ok(ended)
}
