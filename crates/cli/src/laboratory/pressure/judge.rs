//! `slablab pressure judge`: every scenario on modelled machines, beside the records of real kernels.

use crate::input::{Progress, command_line};
use crate::interrupts::Interrupts;
use crate::laboratory::form::write_form;
use crate::outcome::{Done, Failure, tell};
use crate::output::write_out;
use slablab_experiment::Pulse;
use slablab_experiment::output::judgement_answer;
use slablab_experiment::pressure::judge::judge;
use slablab_experiment::pressure::lacks::lacks;
use slablab_experiment::pressure::runs::Runs;
use slablab_experiment::pressure::suite::{Wanted, choose, folders, model};
use slablab_experiment::pressure::tally::{null_tallies, repeat_tallies};
use slablab_report::error::At;
use std::path::PathBuf;

/// Judges the model.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab pressure judge\n  slablab pressure judge truth/vm --seeds 8\n  slablab pressure judge --scenario uniswap --vm vm@6.1,lru_gen --seeds 1\n  slablab pressure judge --format html > judge.html\n\ndocs/pressure.md says what is judged and how."
)]
pub(super) struct Args {
    /// Folder with a script for each scenario, or with such a folder called scen beside folders of records
    #[arg(default_value = "examples/data/vm")]
    scripts: PathBuf,
    /// Records of real kernels: a folder or an archive; if not given those beside scen, else those that come
    /// with the program
    #[arg(long, value_name = "RECORDS")]
    real: Option<PathBuf>,
    /// Only this scenario; may be repeated
    #[arg(long = "scenario", value_name = "S")]
    scenarios: Vec<String>,
    /// Only this kernel, as vm@6.1,lru_gen or as the records call it, 61-mglru; may be repeated
    #[arg(long = "vm", value_name = "VM")]
    vms: Vec<String>,
    /// Machine: a name of `slablab list machines`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "vm-guest")]
    machine: PathBuf,
    /// Number of runs of each scenario and kernel; scenarios with two behaviours get at least 8
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Number of threads; as many as this host has CPUs if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Run although a script has more than 1,000,000,000 accesses
    #[arg(long)]
    force: bool,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    /// Also write every compared count and map to this folder: cells.csv, pages.csv
    #[arg(short = 'd', long = "folder", alias = "output", short_alias = 'o', value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// How much agrees, and the judged counts that differ
    #[value(alias = "text")]
    Table,
    /// Every count, map and outcome
    Json,
    /// Every count
    Csv,
    /// A page
    Html,
}

pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    let (scripts, records) = folders(&args.scripts)?;
    let records = args.real.as_deref().or(records);
    let real = records.map_or_else(|| Ok(Runs::bundled()), Runs::open)?;
    // The null answer is a machine's own: it is there whichever machines are judged.
    let real = choose(real, &args.scenarios, &[])?;
    let (null, repeats) = (null_tallies(&real), repeat_tallies(&real));
    let chosen = choose(real.clone(), &[], &args.vms)?;
    let wanted = Wanted {
        scripts: &scripts,
        machine: &args.machine,
        seeds: args.seeds,
        threads: args.threads.map(usize::from),
        force: args.force,
        pulse: Pulse::default(),
    };
    let progress = Progress::of_runs("judge", &wanted.pulse);
    let interrupts = Interrupts::new(&progress)?;
    let modelled = model(&chosen, &wanted, &|done, all| progress.at(done, all))?;
    drop(progress);
    let _whole = interrupts.hold();
    let lacking = lacks(&chosen, &modelled.runs);
    modelled.failed.iter().chain(&lacking).for_each(tell);
    let judgement = judge(&real, &modelled.runs);
    let answer = judgement_answer(&judgement, &null, &repeats);
    if let Some(folder) = &args.folder {
        std::fs::create_dir_all(folder).at(folder)?;
        for (form, name) in [("csv", "cells.csv"), ("pages", "pages.csv")] {
            let rows = answer.text_of(form, false).unwrap_or_default();
            write_out(&rows, Some(&folder.join(name)))?;
        }
    }
    match args.format {
        Format::Html => write_out(&answer.page(&command_line()), None)?,
        format => write_form(&answer, format, args.wide, None)?,
    }
    Ok(if modelled.failed.is_empty() && lacking.is_empty() { Done::Complete } else { Done::Incomplete })
}
