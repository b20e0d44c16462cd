//! `slablab pressure run SCRIPT`: page accesses under memory pressure on a modelled machine.

use super::views::Views;
use crate::input::Progress;
use crate::interrupts::Interrupts;
use crate::laboratory::choice::tell_vm_stand_in;
use crate::laboratory::form::write_form;
use crate::outcome::{Done, Failure, tell};
use crate::output::write_out;
use slablab_experiment::Pulse;
use slablab_experiment::output::{Column, killed, run_answer};
use slablab_experiment::pressure::run::{
    Failed, MACHINE_USUALLY, Options, RUN, Run, SEED_USUALLY, VM_USUALLY, usual_engine,
};
use slablab_experiment::pressure::{records, script};
use slablab_report::error::At;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs a script.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab pressure run my.t --vm vm@6.12,lru_gen --vmstat\n  slablab pressure run my.t --vm vm@6.1 --vm vm@6.12 --seeds 5 --format mmtests\n  slablab pressure run my.t --html page.html --perfetto run.perfetto\n\ndocs/pressure.md has the language of scripts. docs/vm.md explains policies, what can be looked at, records and\nwhat is compared."
)]
pub(super) struct Args {
    /// Script of page accesses (docs/pressure.md)
    script: PathBuf,
    /// Page replacement, as vm@6.12,lru_gen or vm@6.1,swappiness=200; may be repeated for views and
    /// --format mmtests
    #[arg(long = "vm", value_name = "VM", default_value = VM_USUALLY)]
    vms: Vec<String>,
    /// Slab allocator, of the VM's era (default: the usual one of the VM's kernel, as slub@6.1)
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// Machine: a name of `slablab list machines`, or a file
    #[arg(long, value_name = "MACHINE", default_value = MACHINE_USUALLY)]
    machine: PathBuf,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = SEED_USUALLY)]
    seed: u64,
    /// Number of runs, each with a seed of its own
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Change a policy or a fact of the machine: a knob of the VM, or free, managed, min_free_kib
    #[arg(long, value_name = "KNOB=VALUE")]
    set: Vec<String>,
    /// Compare with this record of a real kernel: a file, or a run's folder
    #[arg(long, value_name = "REC")]
    beside: Option<PathBuf>,
    /// Write the records to this folder, a folder for each seed
    #[arg(short = 'd', long = "folder", alias = "output", short_alias = 'o', value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Run although the script has more than 1,000,000,000 accesses
    #[arg(long)]
    force: bool,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    views: Views,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table
    #[value(alias = "text")]
    Table,
    /// JSON
    Json,
    /// CSV, a row for each counter and seed
    Csv,
    /// The vmstat rows of mmtests, a column for each VM: whole runs, means over the seeds
    Mmtests,
}

impl Args {
    /// Refuses what does not go together, before anything runs.
    fn check(&self) -> Result<(), Failure> {
        self.views.check(&self.script)?;
        let one_by_one = self.format != Format::Mmtests && !self.views.replace_answer();
        if self.vms.len() > 1 && (one_by_one || self.beside.is_some() || self.folder.is_some()) {
            let what = "several --vm: expected --format mmtests, --vmstat, --meminfo or --ps, and neither --beside \
                        nor --folder";
            return Err(what.into());
        }
        if self.views.replace_answer() && self.format != Format::Table {
            return Err("--vmstat, --meminfo and --ps are text: expected no --format beside them".into());
        }
        Ok(())
    }
}

pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    args.check()?;
    let script = Arc::new(script::load(&args.script)?);
    if !args.force {
        script::affordable(&script)?;
    }
    let of = |vm: &String| {
        let engine = match &args.engine {
            Some(engine) => engine,
            None => usual_engine(vm)?,
        };
        let options = Options::of(vm, engine, &args.machine, &args.set)?;
        tell_vm_stand_in(vm, "--vm");
        options.check_era().map(|()| options)
    };
    let options = args.vms.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let recorders = args.views.recorders(args.format == Format::Mmtests);
    let all = args.seeds * options.len() as u64;
    let pulse = Pulse::default();
    let progress = Progress::of_runs("pressure run", &pulse);
    let interrupts = Interrupts::new(&progress)?;
    let (mut runs, mut recording, mut is_whole) = (Vec::new(), None, true);
    for options in &options {
        let mut of_vm = Vec::new();
        for seed in (0..args.seeds).map(|at| args.seed.wrapping_add(at)) {
            progress.at(RUN * ((runs.len() as u64) * args.seeds + of_vm.len() as u64), RUN * all);
            let recorder = recorders.of(recording.is_none()).with_beat(pulse.run(RUN));
            let run = match options.run_recorded(&script, seed, &recorder) {
                Ok(run) => run,
                Err(bad @ Failed::Machine(_)) => return Err(format!("seed {seed}: {bad}").into()),
                // A result: the other runs go on.
                Err(ended) => {
                    tell(format!("{}, seed {seed}: {ended}", options.vm));
                    is_whole = false;
                    continue;
                }
            };
            recording.get_or_insert_with(|| recorder.take());
            if let Some(folder) = &args.folder {
                let _whole = interrupts.hold();
                write_records(&folder.join(format!("seed-{seed}")), &run)?;
            }
            of_vm.push(run);
        }
        if !of_vm.is_empty() {
            runs.push((options.vm.to_string(), of_vm));
        }
    }
    drop(progress);
    let _whole = interrupts.hold();
    let all = || runs.iter().flat_map(|(_, runs)| runs);
    all().flat_map(killed).for_each(tell);
    if runs.is_empty() {
        return Ok(Done::Incomplete);
    }
    let columns: Vec<Column<'_>> =
        runs.iter().map(|(vm, runs)| (vm.clone(), runs.iter().collect())).collect();
    let real = match &args.beside {
        Some(path) => records::beside(path, &columns[0].1[0].records)?,
        None => Vec::new(),
    };
    let answer = run_answer(&args.script, &columns, &real);
    args.views.write_files(&answer, &recording.unwrap_or_default())?;
    match args.views.replace_answer() {
        true => write_out(&args.views.text(&columns), None)?,
        false => write_form(&answer, args.format, args.wide, None)?,
    }
    is_whole &= all().flat_map(|run| &run.records).all(|(_, record)| record.is_complete);
    Ok(if is_whole { Done::Complete } else { Done::Incomplete })
}

fn write_records(folder: &Path, run: &Run) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).at(folder)?;
    for (process, record) in &run.records {
        let path = folder.join(records::file_name(process));
        write_out(&record.write(), Some(&path))?;
    }
    Ok(())
}
