//! `slablab doctor`: the uses of slab memory, changes that would help, and settings that this kernel has.

use crate::input::{InputArgs, command_line, size};
use crate::instances::dead_instances;
use crate::laboratory;
use crate::outcome::{Done, Failure, tell};
use crate::output::{Form, OutputArgs, named};
use crate::watch;
use slablab_doctor::measure::SortKey;
use slablab_doctor::output::{Shown, doctor_answer, doctor_text};
use slablab_doctor::state::save;
use slablab_doctor::{Options, examine};
use std::path::PathBuf;

/// Prints the uses of slab memory.
#[derive(clap::Args)]
#[group(id = "doctor")]
#[command(
    after_help = "Examples:\n  slablab doctor                             this machine\n  slablab doctor sosreport.tar.xz            another machine, from its support bundle\n  slablab doctor mail.txt                    slabtop, vmstat -m, slabinfo or kernel messages in any text\n  slablab doctor friday.tar --since monday.tar   what grew\n  slablab doctor --fail-over 100M --format prometheus"
)]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// Also write the files read from this machine to FILE (.tar, .tar.gz, .tar.zst or .tar.xz), for use as
    /// INPUT elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "watch", "page_size", "cpus"])]
    save: Option<PathBuf>,
    /// Snapshot of the same machine at another time, for growth; may be repeated. The newest of all snapshots
    /// is examined
    #[arg(long, value_name = "DUMP")]
    since: Vec<PathBuf>,
    /// Compare snapshots of other machines, kernels and boots too
    #[arg(long, requires = "since")]
    force: bool,
    /// Hours between the first snapshot (of --since, or in the text INPUT) and INPUT, if they have no
    /// timestamps
    #[arg(long, value_name = "H")]
    hours: Option<f64>,
    /// Recording of the same machine, of any kind that `slablab import` reads: shows what rounding up to
    /// kmalloc's classes costs
    #[arg(long, value_name = "FILE", hide = cfg!(not(feature = "laboratory")))]
    recording: Option<PathBuf>,
    /// Sort key of the caches: a letter of slabtop (a b c l n o p s u), L for loss, r for growth; with
    /// --watch v too, and t for growth since the start [default: c, with --since r]
    #[arg(short, long, value_name = "KEY")]
    sort: Option<char>,
    /// Sort caches by loss
    #[arg(short = 'L', long, conflicts_with = "sort")]
    loss: bool,
    /// Number of caches to list
    #[arg(short = 'N', long, value_name = "N", default_value_t = 15, allow_negative_numbers = true)]
    lines: usize,
    /// List the other names of merged caches
    #[arg(short, long)]
    aliases: bool,
    /// Print bytes instead of KiB
    #[arg(short = 'B', long)]
    bytes: bool,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
    /// Exit with 1 if the loss exceeds SIZE (bytes, K, M, G); with --since, if the caches grew by more than
    /// SIZE
    #[arg(long, value_name = "SIZE", value_parser = size)]
    fail_over: Option<u64>,
    #[command(flatten)]
    watch: watch::Args,
}

/// Forms of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text
    Table,
    /// JSON
    Json,
    /// CSV, a row per cache
    Csv,
    /// Metrics for Prometheus' textfile collector
    Prometheus,
}

impl Form for Format {}

fn sort_key(letter: char) -> Result<SortKey, Failure> {
    SortKey::of(letter).ok_or_else(|| {
        let known: Vec<String> =
            SortKey::ALL.iter().map(|(_, letter, words)| format!("{letter} {words}")).collect();
        format!("-s {letter}: expected one of: {}", known.join(", ")).into()
    })
}

/// Names what killed recorders left switched on in this machine's kernel.
fn tell_dead_recorders() {
    for path in dead_instances() {
        tell(format_args!(
            "{}: a slablab that was killed left it, and the kernel may still trace: the next `slablab record` of \
             the kernel removes it, as does rmdir",
            path.display()
        ));
    }
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    if args.watch.watch {
        return watch::run(args.watch, args.sort.unwrap_or('c'), args.input.page_size);
    }
    let inputs = named("the input", &args.input.input).chain(named("--since", &args.since));
    let inputs = inputs.chain(named("--recording", &args.recording));
    args.out.check(inputs.chain(named("--save", &args.save)))?;
    let state = match &args.save {
        Some(path) => save(path)?,
        None => args.input.read()?,
    };
    let since = args.since.iter().map(|path| args.input.read_earlier(path.clone()));
    let mut since = since.collect::<Result<Vec<_>, _>>()?;
    // A text may have several snapshots.
    since.extend(state.earlier());
    if args.hours.is_some() && since.is_empty() {
        return Err("--hours: expected an earlier snapshot: --since <DUMP>, or several in the text".into());
    }
    if args.sort == Some('r') && since.is_empty() {
        return Err(
            "-s r: sorts by growth: expected an earlier snapshot: --since <DUMP>, or several in the text"
                .into(),
        );
    }
    let rounding = args.recording.as_deref().map(laboratory::rounding).transpose()?;
    let options = Options {
        since: &since,
        hours: args.hours,
        rounding: rounding.as_ref(),
        force: args.force,
        worth: None,
    };
    let report = examine(&state, &options)?;
    let sort = if args.loss {
        SortKey::Loss
    } else {
        sort_key(args.sort.unwrap_or(if since.is_empty() { 'c' } else { 'r' }))?
    };
    let shown = Shown { sort, lines: args.lines, aliases: args.aliases, bytes: args.bytes };
    let answer = if args.out.format == Format::Table { doctor_text } else { doctor_answer };
    args.out.answer(&answer(&report, &shown), &command_line(), args.wide)?;
    if args.input.input.is_none() {
        tell_dead_recorders();
    }
    let over = |limit: u64| {
        let grown = report.measured.history.as_ref().map(|history| history.total().bytes);
        i128::from(grown.unwrap_or(report.measured.total.loss())) > i128::from(limit)
    };
    if args.fail_over.is_some_and(over) {
        return Ok(Done::OverThreshold);
    }
    Ok(if report.measured.is_incomplete() { Done::Incomplete } else { Done::Complete })
}
