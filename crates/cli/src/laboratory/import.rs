//! `slablab import`: a recording becomes a trace.

use crate::input::style;
use crate::outcome::{Done, Failure, say};
use crate::output::{check, named, write_out};
use indicatif::ProgressBar;
use slablab_replay::import::{Input, import};
use slablab_replay::output::import_answer;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Makes a trace of a recording.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  perf record -e 'kmem:*' -a -o - sleep 10 | slablab import - -o load.trace.parquet
  slablab import perf.data.xz -o load.trace.parquet
  slablab import trace.dat -o load.trace.parquet             of trace-cmd record -e kmem
  slablab import - -o load.trace.parquet < /sys/kernel/tracing/trace
  slablab import COUNTERS-RUN trace_s1 -o s1.trace.parquet   a folder with trace_s1.events.csv.gz and machine.json

The trace opens in pandas, polars and DuckDB; docs/trace-format.md describes it.")]
pub(crate) struct Args {
    /// Recording: perf.data, trace.dat, text of tracefs, trace-cmd report or perf script, or CSV of events,
    /// plain, gz, zst or xz; a folder of recordings; - for standard input
    input: PathBuf,
    /// Name of the recording, if INPUT is a folder of recordings
    recording: Option<String>,
    /// For a perf.data that was cut off, and so lacks the formats of its events: a perf.data of the same
    /// kernel, or the folder /sys/kernel/tracing/events/kmem of it
    #[arg(long, value_name = "FROM")]
    formats: Option<PathBuf>,
    /// Trace to write; the file appears when it is complete, and not at all after an error
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Form of the report: a table on standard error, or JSON on standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let report = match args.format {
        Format::Json => Some(("the report on", Path::new("-"))),
        Format::Table => None,
    };
    let inputs = named("the input", [&args.input]).chain(named("--formats", &args.formats));
    check(inputs, named("-o", [&args.output]).chain(report))?;
    let input =
        Input { path: &args.input, recording: args.recording.as_deref(), formats: args.formats.as_deref() };
    // How many events there will be is known when the last has been read.
    let progress =
        if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    progress.set_style(style("import {spinner} {human_pos} events, {rate}"));
    let result = import(input, &args.output, &mut |events| progress.set_position(events));
    progress.finish_and_clear();
    let report = result?;
    let answer = import_answer(&report);
    match args.format {
        Format::Table => say(&answer.text(args.wide)),
        Format::Json => write_out(&slablab_report::json::document(&answer.json()), None)?,
    }
    Ok(if report.incomplete() { Done::Incomplete } else { Done::Complete })
}
