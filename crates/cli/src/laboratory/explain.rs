//! `slablab explain RECORDING A B`: the part of each policy in the difference between two presets, on a
//! recording or in an experiment.

use crate::input::{Progress, command_line};
use crate::interrupts::Interrupts;
use crate::laboratory::choice::{Start, costed, preset};
use crate::laboratory::recording::open;
use crate::outcome::{Done, Failure, tell};
use crate::output::{Form, OutputArgs, named};
use slablab_experiment::Pulse;
use slablab_experiment::explain::cells::{CellsExplained, explain_cells};
use slablab_experiment::explain::parameters;
use slablab_experiment::explain::policies::explain_policies;
use slablab_experiment::explain::script;
use slablab_experiment::output::{explain_cells_answer, explain_script_answer};
use slablab_experiment::pressure;
use slablab_experiment::{self as experiment, Change, Experiment, INSTALLED, Size};
use slablab_replay::explain::{EXACT_MOST, EXACT_USUALLY, Question, SAMPLES_USUALLY, explain};
use slablab_replay::output::explain_answer;
use slablab_replay::replay::{Evidence, Options};
use slablab_report::nearest::nearest;
use slablab_slabs::preset::Text;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Explains a difference.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab explain my.perf.data slub@6.1 slub@6.18\n  slablab explain my.perf.data slub@6.1 slub@6.1,max_order=0,cpu_partial=0 --cache dentry\n  slablab explain my.perf.data slqb slub@2.6.32\n  slablab explain 2026 slub@6.18 slub@7.0\n  slablab explain examples/data/vm/scan2.t vm@6.1 vm@6.1,lru_gen\n  slablab explain 004-apps vm@2.4.10 vm@2.4.9-ac14 --metric swapped_in_kib\n  slablab explain 000 part=16 part=16,discard=yes,tmpfs_frees_slot=no --engine slub@2.6.29 --metric growth_4_ppm"
)]
pub(crate) struct Args {
    /// Recording: a trace, or perf.data, trace.dat, text or tidy CSV (plain, gz, zst, xz), which is imported
    /// first; or an experiment: a file (TOML), or a name of `slablab list experiments`; or a script of page
    /// accesses, if A and B are policies of page replacement
    recording: PathBuf,
    /// From this allocator, as `engine[@release][,knob=value]...` (see `slablab list engines`), or this page
    /// replacement (see `slablab list vm`), or in an experiment these values of its workload's parameters, as
    /// `name=value[,name=value]...` (see `slablab run EXPERIMENT --describe`)
    #[arg(value_name = "A")]
    from: String,
    /// To this allocator, page replacement, or these values, written in the same way. A value that A and B
    /// share is that of all runs; a parameter that only one of them names has the experiment's value in the
    /// other
    #[arg(value_name = "B")]
    to: String,
    /// Explain the counters of one cache instead of the sums of all caches
    #[arg(long, value_name = "NAME")]
    cache: Option<String>,
    #[command(flatten)]
    start: Start,
    /// Replay all combinations if at most N policies differ: each further policy doubles the time
    #[arg(long, value_name = "N", default_value_t = EXACT_USUALLY as u64, value_parser = clap::value_parser!(u64).range(0..=EXACT_MOST as u64))]
    exact: u64,
    /// Number of orders to sample if more policies differ, rounded to a multiple of four
    #[arg(long, value_name = "N", default_value_t = SAMPLES_USUALLY as u64, value_parser = clap::value_parser!(u64).range(4..=100_000))]
    samples: u64,
    /// Explain this count of a script, as pswpin; may be repeated. Without it: those that differ most
    #[arg(long = "count", value_name = "NAME")]
    counts: Vec<String>,
    /// Explain this metric of an experiment instead of its main one; may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Slab allocator beside a script (slub@6.1 if left out), and beside page replacement or parameters in an
    /// experiment (its first engine)
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// Runs of each combination of policies in an experiment or under a script
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

/// Forms of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text
    Table,
    /// JSON
    Json,
}

impl Form for Format {}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    if [&args.from, &args.to].iter().any(|name| is_vm(name)) && !is_experiment(&args.recording) {
        return under_a_script(&args);
    }
    if is_experiment(&args.recording) {
        return in_an_experiment(&args);
    }
    args.out.check(named("the recording", [&args.recording]).chain(args.start.files()))?;
    let question = Question {
        from: preset(&args.from, "A")?,
        to: preset(&args.to, "B")?,
        cache: args.cache,
        exact: args.exact as usize,
        samples: args.samples as usize,
    };
    let options = Options { evidence: Evidence::Pages, ..args.start.options(&args.recording)? };
    let reader = open(&args.recording, None)?;
    let progress = Progress::new("explain");
    let _interrupts = Interrupts::new(&progress)?;
    let tick = |done, whole| progress.at(done, whole);
    let explained = explain(&reader, &args.recording, &options, &question, &tick)?;
    drop(progress);
    let answer = explain_answer(&explained);
    args.out.answer(&answer, &command_line(), args.wide)?;
    if args.out.format != Format::Table {
        answer.said().for_each(tell);
    }
    Ok(if explained.replay.metadata.is_incomplete() { Done::Incomplete } else { Done::Complete })
}

/// Whether the name is that of an experiment, and of no file beside it.
pub(crate) fn is_experiment(given: &Path) -> bool {
    let is_installed = INSTALLED.iter().any(|installed| given == Path::new(installed.name));
    (is_installed && !given.exists()) || given.extension().is_some_and(|extension| extension == "toml")
}

/// Whether a choice is one of page replacement.
pub(crate) fn is_vm(name: &str) -> bool {
    Text::split(name).name == "vm"
}

fn vm(text: &str, what: &str) -> Result<pressure::preset::Preset, String> {
    pressure::preset::Preset::parse(text).map_err(|bad| format!("{what} {text}: {bad}"))
}

/// The place of a metric of the experiment's workload.
fn metric(experiment: &Experiment, name: &str) -> Result<usize, String> {
    let metrics = experiment.file.workload.metrics;
    metrics.iter().position(|metric| metric.name == name).ok_or_else(|| {
        let near = nearest(name, metrics.iter().map(|metric| metric.name), 3);
        let workload = experiment.file.workload.name;
        format!("--metric {name}: expected a metric of {workload}; near it: {}", near.join(", "))
    })
}

/// Explains the difference between two policies of page replacement under a script.
fn under_a_script(args: &Args) -> Result<Done, Failure> {
    let no = |option: &str| Err(format!("{option} is of recordings: a script has none").into());
    if args.cache.is_some() {
        return no("--cache");
    }
    if args.out.html.is_some() {
        return no("--html");
    }
    if !args.start.before().is_empty() {
        return no("--before");
    }
    args.out.check(named("the script", [&args.recording]))?;
    let (_, to) = (vm(&args.from, "A")?, vm(&args.to, "B")?);
    let machine = args.start.machine().unwrap_or(Path::new("vm-guest"));
    let engine = args.engine.as_deref().unwrap_or("slub@6.1");
    let options = pressure::run::Options::of(&args.from, engine, machine, &[])?;
    let script = Arc::new(pressure::script::load(&args.recording)?);
    let (path, seeds) = (args.recording.as_path(), u64::from(args.repeats));
    let (counts, pulse) = (args.counts.as_slice(), Pulse::default());
    let progress = Progress::of_runs("explain", &pulse);
    let question = script::Question { path, script: &script, options: &options, to, seeds, counts, pulse };
    let _interrupts = Interrupts::new(&progress)?;
    let answer = script::explain_script(&question, &|done, whole| progress.at(done, whole))?;
    drop(progress);
    let answer = explain_script_answer(&answer, &path.display().to_string());
    args.out.answer(&answer, &command_line(), args.wide)?;
    Ok(Done::Complete)
}

/// Explains the difference in an experiment.
fn in_an_experiment(args: &Args) -> Result<Done, Failure> {
    let no = |option: &str| Err(format!("{option} is of recordings: an experiment has none").into());
    if args.cache.is_some() {
        return no("--cache");
    }
    if args.out.html.is_some() {
        return no("--html");
    }
    if let Some((option, _)) = args.start.files().next() {
        return no(option);
    }
    args.out.check(named("the experiment", [&args.recording]))?;
    let mut experiment = Experiment::find(&args.recording)?;
    let metrics: Vec<usize> =
        args.metrics.iter().map(|name| metric(&experiment, name)).collect::<Result<_, _>>()?;
    if let Some(first) = metrics.first() {
        experiment.file.metric = *first;
    }
    let change = Change { size: Some(Size::Quick), repeats: Some(args.repeats), ..Change::default() };
    let options = experiment::Options { change, ..experiment::Options::default() };
    let progress = Progress::of_runs("explain", &options.pulse);
    let _interrupts = Interrupts::new(&progress)?;
    let answer = explained(args, experiment, &options, &|done, whole| progress.at(done, whole))?;
    drop(progress);
    let others = args.metrics.get(1..).unwrap_or_default();
    args.out.answer(&explain_cells_answer(&answer, others), &command_line(), args.wide)?;
    Ok(Done::Complete)
}

/// What A and B are in an experiment: values of parameters, policies of page replacement, or engines.
fn explained(
    args: &Args,
    mut experiment: Experiment,
    options: &experiment::Options,
    tick: &(dyn Fn(u64, u64) + Sync),
) -> Result<CellsExplained, Failure> {
    let sides = [(&args.from, "A"), (&args.to, "B")];
    let engine = |text: &String, what: &str| Ok::<_, Failure>((text.clone(), costed(text, what)?));
    let is_choice = sides.iter().any(|(text, _)| parameters::is_choice(text));
    if !is_choice && !sides.iter().any(|(text, _)| is_vm(text)) {
        if args.engine.is_some() {
            return Err("--engine stands beside page replacement and parameters: A and B are engines".into());
        }
        let engines = [engine(&args.from, "A")?, engine(&args.to, "B")?];
        return Ok(explain_cells(&experiment, &engines, options, tick)?);
    }
    if let Some(name) = &args.engine {
        experiment.file.engines = vec![engine(name, "--engine")?];
    }
    if !is_choice {
        let [from, to] = [vm(&args.from, "A")?, vm(&args.to, "B")?];
        return Ok(explain_policies(&experiment, [from, to], options, tick)?);
    }
    let workload = experiment.file.workload;
    let choice = |(text, what): (&String, &str)| {
        parameters::choice(workload, text).map_err(|bad| format!("{what} {text}: {bad}"))
    };
    let choices = [choice(sides[0])?, choice(sides[1])?];
    let names = [args.from.clone(), args.to.clone()];
    Ok(parameters::explain_parameters(&experiment, (names, &choices), options, tick)?)
}
