//! `slablab pressure`: records of memory pressure, and scripts on modelled machines.

mod judge;
mod run;
mod views;

use crate::laboratory::form::write_form;
use crate::outcome::{Done, Failure};
use crate::output::{Format, check, named};
use slablab_experiment::output::records_answer;
use slablab_experiment::pressure::runs;
use std::path::PathBuf;

/// Reads records of memory pressure.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Show the phases of records as a table: counters of /proc/vmstat, pages in memory and in swap
    Show(ShowArgs),
    /// Run a script on a modelled machine, and print what its counters say in each phase
    Run(run::Args),
    /// Run every scenario on modelled machines, and count how often they agree with real kernels
    Judge(judge::Args),
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab pressure show rec.xz\n  slablab pressure show compete/61-mglru-r1/rec* --format csv\n\nCounts are pages unless their names say otherwise. docs/pressure.md has the format."
)]
struct ShowArgs {
    /// Records, plain or compressed (gz, zst, xz)
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    /// Write the answer to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    match args.what {
        What::Show(args) => show(&args),
        What::Run(args) => run::run(&args),
        What::Judge(args) => judge::run(&args),
    }
}

fn show(args: &ShowArgs) -> Result<Done, Failure> {
    check(named("the input", &args.records), named("-o", &args.output))?;
    let named = |path: &PathBuf| Ok((path.display().to_string(), runs::read(path)?));
    let records = args.records.iter().map(named).collect::<Result<Vec<_>, Failure>>()?;
    write_form(&records_answer(&records), args.format, args.wide, args.output.as_deref())?;
    let whole = records.iter().all(|(_, record)| record.is_complete);
    Ok(if whole { Done::Complete } else { Done::Incomplete })
}
