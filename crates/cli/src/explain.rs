//! `slablab explain RECORDING A B`: the part of each policy in the difference between two presets.

use crate::input::{Progress, Start, command_line, open, preset};
use crate::outcome::{Done, Failure, tell};
use crate::output::{Form, OutputArgs, named};
use crate::replay::title;
use slablab_lab::explain::{
    EXACT_USUALLY, Explained, Question, SAMPLES_USUALLY, explain, shapley::EXACT_MOST,
};
use slablab_lab::output::explain_page;
use slablab_lab::output::{explain_json, explain_table, remarks};
use std::fmt::Write;
use std::path::PathBuf;

/// Explains a difference.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab explain my.perf.data slub@6.1 slub@6.18\n  slablab explain my.perf.data slub@6.1 slub@6.1,max_order=0,cpu_partial=0 --cache dentry\n  slablab explain my.perf.data slqb slub@2.6.32"
)]
pub(crate) struct Args {
    /// Recording: a trace, or perf.data, trace.dat, text or tidy CSV (plain, gz, zst, xz), which is imported
    /// first
    recording: PathBuf,
    /// From this allocator, as `engine[@release][,knob=value]...` (see `slablab engines`)
    #[arg(value_name = "A")]
    from: String,
    /// To this allocator, written in the same way
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
    args.out.check(named("the recording", [&args.recording]).chain(args.start.files()))?;
    let question = Question {
        from: preset(&args.from, "A")?,
        to: preset(&args.to, "B")?,
        cache: args.cache,
        exact: args.exact as usize,
        samples: args.samples as usize,
    };
    let options = args.start.options()?;
    let reader = open(&args.recording, None)?;
    let progress = Progress::new("explain");
    let tick = |done, whole| progress.at(done, whole);
    let answer = explain(&reader, &args.recording, &options, &question, &tick)?;
    drop(progress);
    let text = match args.out.format {
        Format::Json => slablab_report::json::document(&explain_json(&answer)),
        Format::Table => text(&answer)?,
    };
    args.out.write_html(|| explain_page(&answer, &command_line()))?;
    args.out.write(&text)?;
    if args.out.format != Format::Table {
        remarks(&answer.replay).iter().for_each(tell);
    }
    Ok(if answer.replay.metadata.losses.records > 0 { Done::Incomplete } else { Done::Complete })
}

fn text(answer: &Explained) -> Result<String, Failure> {
    let mut text = String::new();
    let replay = &answer.replay;
    writeln!(text, "{}\n", title(replay))?;
    text += &explain_table(answer);
    text.push('\n');
    let remarks = remarks(replay);
    answer.notes.iter().chain(&remarks).try_for_each(|remark| writeln!(text, "{remark}"))?;
    Ok(text)
}
