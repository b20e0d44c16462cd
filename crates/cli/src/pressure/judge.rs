//! `slablab pressure judge`: every scenario on modelled machines, beside the records of real kernels.

use crate::outcome::{Done, Failure, tell};
use crate::output::write_out;
use slablab_lab::output::{judgement_csv, judgement_pages_csv, judgement_summary};
use slablab_lab::pressure::judge::judge;
use slablab_lab::pressure::runs::Runs;
use slablab_lab::pressure::suite::model;
use slablab_lab::pressure::tally::{null_tallies, repeat_tallies};
use std::path::PathBuf;

/// Judges the model.
#[derive(clap::Args)]
#[command(after_help = "docs/pressure.md says what is judged and how.")]
pub(super) struct Args {
    /// Folder with a script for each scenario
    scripts: PathBuf,
    /// Records of real kernels: a folder or an archive; those that come with the program if not given
    #[arg(long, value_name = "RECORDS")]
    real: Option<PathBuf>,
    /// Machine: a name of `slablab machines`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "vm-guest")]
    machine: PathBuf,
    /// Number of runs of each scenario and kernel
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Also write every compared count and map to this folder: cells.csv, pages.csv
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    let real = args.real.as_deref().map_or_else(|| Ok(Runs::bundled()), Runs::open)?;
    let modelled = model(&real, &args.scripts, &args.machine, args.seeds)?;
    modelled.failed.iter().for_each(tell);
    let judgement = judge(&real, &modelled.runs);
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        write_out(&judgement_csv(&judgement), Some(&folder.join("cells.csv")))?;
        write_out(&judgement_pages_csv(&judgement), Some(&folder.join("pages.csv")))?;
    }
    write_out(&judgement_summary(&judgement, &null_tallies(&real), &repeat_tallies(&real)), None)?;
    Ok(if modelled.failed.is_empty() { Done::Complete } else { Done::Incomplete })
}
