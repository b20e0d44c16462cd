//! `slablab calibrate`: what this host's parts cost; and a native hackbench.

use crate::input::Progress;
use crate::outcome::{Done, Failure};
use crate::output::{Form, write_out};
use signal_hook::consts::{SIGINT, SIGTERM};
use slablab_bench::predicted;
use slablab_calibrate::rig::{self, Watcher};
use slablab_calibrate::{file, hackbench, output};
use slablab_report::{AtomicFile, visible};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

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
    /// Format of the answer
    #[arg(long, value_enum, default_value = Format::DEFAULT)]
    format: Format,
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
    /// Format of the answer
    #[arg(long, value_enum, default_value = Format::DEFAULT)]
    format: Format,
}

/// Forms of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

impl Form for Format {}

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
        let signal = Arc::new(AtomicUsize::new(0));
        for one in [SIGINT, SIGTERM] {
            // The second one ends the program at once.
            let seen = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register_conditional_default(one, seen.clone())?;
            signal_hook::flag::register(one, seen)?;
            signal_hook::flag::register_usize(one, signal.clone(), one as usize)?;
        }
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
    if let Some(path) = file {
        // A minute of measuring is not lost at the end.
        drop(AtomicFile::create(path)?);
    }
    let options = if args.quick { rig::Options::QUICK } else { rig::Options::FULL };
    let watch = Watch::new("calibrate")?;
    let Some(run) = rig::run(options, &watch)? else { return Ok(watch.ended()) };
    let ended = watch.ended();
    drop(watch);
    let text = match args.format {
        Format::Table => output::text(&run),
        Format::Json => crate::output::document(output::json(&run)),
    };
    if let Some(path) = file {
        write_out(&file::toml(&run), Some(path))?;
    }
    write_out(&text, None)?;
    Ok(ended)
}

fn run_hackbench(args: &Hackbench) -> Result<Done, Failure> {
    let options = hackbench::Options {
        groups: args.groups as usize,
        loops: args.loops as usize,
        threads: args.threads,
        pipes: args.pipes,
    };
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
    let text = match args.format {
        Format::Table => output::hackbench_text(options, &seconds),
        Format::Json => crate::output::document(output::hackbench_json(options, &seconds)),
    };
    write_out(&text, None)?;
    Ok(ended)
}

fn run_native(args: &Native) -> Result<Done, Failure> {
    let file = slablab_machines::find(&args.machine)?;
    let machine = file.machine().map_err(|error| format!("{}: {error}", visible::path(&args.machine)))?;
    let watch = Watch::new("native")?;
    let rows = predicted::rows(&machine, args.repeats, |done, whole| watch.at(done, whole))?;
    let ended = watch.ended();
    drop(watch);
    let Some(rows) = rows else { return Ok(ended) };
    let text = match args.format {
        Format::Table => predicted::text(&rows),
        Format::Json => crate::output::document(predicted::json(&rows)),
    };
    write_out(&text, None)?;
    Ok(ended)
}
