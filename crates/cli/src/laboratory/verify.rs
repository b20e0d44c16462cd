//! `slablab verify`: compares the model with the real kernel.

use crate::input::{Progress, command_line, expect_file};
use crate::laboratory::choice::{Choice, DUMP};
use crate::laboratory::recording::open;
use crate::outcome::{Done, Failure};
use crate::output::{Format, OutputArgs, named};
use slablab_replay::output::verify_answer;
use slablab_replay::recorded::has_start;
use slablab_replay::verify::{Compared, counters::start_of, verify_change, verify_counters};
use std::path::PathBuf;

/// Compares the model with the real kernel.
#[derive(clap::Args)]
#[command(
    after_help = "Three forms:\n  slablab verify RECORDING --before DUMP --after DUMP\n  slablab verify make.recording.tar     of slablab record: the dumps are inside\n  slablab verify COUNTERS-RUN TRACE     a folder with slub_stats.csv, or slabinfo.csv of\n                                        a kernel with SLAB and its statistics; e.g. trace_s1"
)]
pub(crate) struct Args {
    /// Recording, or the folder of a counters run
    input: PathBuf,
    /// Name of the workload in the counters run, such as trace_s1
    workload: Option<String>,
    #[command(flatten)]
    choice: Choice,
    /// State after the recording
    #[arg(long, value_name = "DUMP")]
    after: Option<PathBuf>,
    /// Draws of the start to predict from: the answer is the first, beside it stand median and range
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Rows to show
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    top: usize,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
    /// Exit with 1 if the skill in bytes of slabs is below this
    #[arg(long, value_name = "SKILL")]
    fail_below: Option<f64>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let inputs = named("the input", [&args.input]).chain(named("--after", &args.after));
    args.out.check(inputs.chain(args.choice.start.files()))?;
    args.after.as_deref().map(|path| expect_file("--after", path, DUMP)).transpose()?;
    let mut options = args.choice.options(&args.input)?;
    options.kernel_only = true;
    if options.engines.len() > 1 {
        return Err(format!("expected one --engine, found {}", options.engines.len()).into());
    }
    let progress = Progress::new("verify");
    let tick = |done, whole| progress.at(done, whole);
    // A recording of `slablab record` has both states in it.
    let inside = args.workload.is_none() && args.after.is_none() && has_start(&args.input)?;
    let after = args.after.as_deref().or(inside.then_some(args.input.as_path()));
    let (verified, answer) = match (&args.workload, after) {
        (Some(label), None) => {
            options.before = Some(start_of(&args.input, label)?);
            let reader = open(&args.input, Some(label))?;
            verify_counters(&args.input, label, &reader, (&options, args.seeds), &tick)?
        }
        (None, Some(after)) => {
            let reader = open(&args.input, None)?;
            verify_change(&reader, &args.input, after, (&options, args.seeds), &tick)?
        }
        _ => {
            let input = slablab_report::visible::name(&args.input.display().to_string()).into_owned();
            let file = std::fs::metadata(&args.input).map_err(|error| format!("{input}: {error}"))?;
            let found = if file.is_file() && file.len() == 0 { "the file is empty: " } else { "" };
            return Err(format!(
                "{input}: {found}verify needs either RECORDING --before DUMP --after DUMP, a file of slablab record, or \
                 COUNTERS-RUN TRACE"
            )
            .into());
        }
    };
    drop(progress);
    let skill = match &verified.compared {
        Compared::Changes(_, skill, _) => Some(skill.slabs),
        Compared::Counters(..) => None,
    };
    args.out.answer(&verify_answer(&verified, &answer, args.top), &command_line(), args.wide)?;
    if let (Some(least), Some(skill)) = (args.fail_below, skill)
        && skill < least
    {
        return Ok(Done::OverThreshold);
    }
    Ok(if answer.metadata.is_incomplete() { Done::Incomplete } else { Done::Complete })
}
