//! `slablab replay RECORDING`: the project's main job.

use crate::input::{Choice, Progress, command_line, open};
use crate::outcome::{Done, Failure, tell};
use crate::output::{Format, OutputArgs, named};
use slablab_lab::output::replay_page;
use slablab_lab::output::{
    cache_csv, cache_json, cache_table, caches_csv, caches_table, engines_table, remarks, replay_json,
};
use slablab_lab::replay::hotplug::Command;
use slablab_lab::replay::{Evidence, Replay, replay};
use std::fmt::Write;
use std::path::PathBuf;

/// Replays a recording.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recording: a trace, or perf.data, trace.dat, text or tidy CSV (plain, gz, zst, xz), which is imported
    /// first
    recording: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// Take CPUs or a node offline or online at TIME after the recording's start, for example
    /// `--at 1.5s cpu3=off --at 2s node1=on`; may be repeated
    #[arg(long, num_args = 2, value_names = ["TIME", "CPUS"])]
    at: Vec<String>,
    /// Show every counter of one cache
    #[arg(long, value_name = "NAME")]
    cache: Option<String>,
    /// Number of caches to list for each engine
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,
    /// Print each engine's replay speed and the memory of its model on standard error
    #[arg(long)]
    timing: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    args.out.check(named("the recording", [&args.recording]).chain(args.choice.start.files()))?;
    let mut options = args.choice.options()?;
    options.evidence = Evidence::Pages;
    options.hotplug =
        args.at.chunks_exact(2).map(|pair| command(&pair[0], &pair[1])).collect::<Result<_, _>>()?;
    let reader = open(&args.recording, None)?;
    let progress = Progress::new("replay");
    let answer = replay(&reader, &args.recording, &options, &|done, whole| progress.at(done, whole))?;
    drop(progress);
    let missing = || {
        format!("{}: no cache is called {}", args.recording.display(), args.cache.as_deref().unwrap_or(""))
    };
    let text = match (args.out.format, &args.cache) {
        (Format::Json, None) => slablab_report::json::document(&replay_json(&answer)),
        (Format::Json, Some(name)) => {
            slablab_report::json::document(&cache_json(&answer, name).ok_or_else(missing)?)
        }
        (Format::Csv, None) => caches_csv(&answer),
        (Format::Csv, Some(name)) => cache_csv(&answer, name).ok_or_else(missing)?,
        (Format::Table, Some(name)) => cache_table(&answer, name).ok_or_else(missing)?,
        (Format::Table, None) => tables(&answer, &args)?,
    };
    args.out.write_html(|| replay_page(&answer, &command_line(), args.top))?;
    args.out.write(&text)?;
    for outcome in answer.outcomes.iter().filter(|_| args.timing) {
        let seconds = outcome.elapsed.as_secs_f64();
        tell(format_args!(
            "{}: {} rows in {seconds:.3} s, {:.1} million/s, {:.1} ns each; model tables {} K",
            outcome.engine(),
            outcome.rows,
            outcome.rows as f64 / seconds / 1e6,
            seconds * 1e9 / outcome.rows as f64,
            outcome.model_bytes / 1024
        ));
    }
    if args.out.format != Format::Table {
        remarks(&answer).iter().for_each(tell);
    }
    Ok(if answer.metadata.losses.records > 0 { Done::Incomplete } else { Done::Complete })
}

fn command(time: &str, what: &str) -> Result<Command, Failure> {
    Command::parse(time, what).map_err(|bad| format!("--at {time} {what}: {bad}").into())
}

fn tables(answer: &Replay, args: &Args) -> Result<String, Failure> {
    let mut text = String::new();
    let said = remarks(answer);
    let (warnings, remarks) = said.split_at(answer.warnings.len());
    writeln!(text, "{}", title(answer))?;
    warnings.iter().try_for_each(|warning| writeln!(text, "{warning}"))?;
    text.push('\n');
    text.push_str(&engines_table(answer));
    for outcome in &answer.outcomes {
        writeln!(text, "\n{}", outcome.engine())?;
        text.push_str(&caches_table(outcome, args.top));
        if outcome.caches.len() > args.top {
            writeln!(text, "... and {} more caches (--top)", outcome.caches.len() - args.top)?;
        }
    }
    text.push('\n');
    remarks.iter().try_for_each(|remark| writeln!(text, "{remark}"))?;
    Ok(text)
}

/// The first line of a text: the recording, and the machine that it was replayed on.
pub(crate) fn title(replay: &Replay) -> String {
    let kernel = replay.metadata.release.as_deref().unwrap_or("an unknown kernel");
    let machine = &replay.machine.spec;
    format!(
        "{}: {} rows, recorded on {kernel}; machine: {}, {}, {} K pages",
        replay.path.display(),
        replay.metadata.statistics.rows,
        counted(machine.cpu_node.len(), "CPU"),
        counted(machine.nodes.len(), "node"),
        (1u64 << machine.page_shift) / 1024
    )
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
