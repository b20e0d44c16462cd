//! `slablab pressure run SCRIPT`: page accesses under memory pressure on a modelled machine.

use crate::outcome::{Done, Failure, tell};
use slablab_lab::pressure::run::{Options, Run};
use slablab_lab::pressure::{records, rows, script};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs a script.
#[derive(clap::Args)]
#[command(after_help = "docs/vm.md explains policies, records and what is compared.")]
pub(super) struct Args {
    /// Script of page accesses (docs/pressure.md)
    script: PathBuf,
    /// Page replacement, as vm@6.12,lru_gen or vm@6.1,swappiness=200
    #[arg(long, value_name = "VM", default_value = "vm@6.1")]
    vm: String,
    /// Slab allocator
    #[arg(long, value_name = "ENGINE", default_value = "slub@6.1")]
    engine: String,
    /// Machine: a name of `slablab machines`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "vm-guest")]
    machine: PathBuf,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 1)]
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
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table
    Text,
    /// JSON
    Json,
    /// CSV, a row for each counter and seed
    Csv,
}

pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    let script = Arc::new(script::load(&args.script)?);
    let options = Options::of(&args.vm, &args.engine, &args.machine, &args.set)?;
    let mut runs = Vec::new();
    for seed in (0..args.seeds).map(|at| args.seed.wrapping_add(at)) {
        let run = options.run(&script, seed).map_err(|failed| format!("seed {seed}: {failed}"))?;
        tell_killed(&run);
        if let Some(folder) = &args.output {
            write_records(&folder.join(format!("seed-{seed}")), &run)?;
        }
        runs.push(run);
    }
    let real = match &args.beside {
        Some(path) => records::beside(path, &runs[0])?,
        None => Vec::new(),
    };
    let rows = rows::rows(&runs, &real);
    let text = match args.format {
        Format::Text => format!("{}\n\n{}", options.vm, rows::table(&rows)),
        Format::Json => slablab_report::json::document(&rows::json(&rows)),
        Format::Csv => rows::csv(&rows),
    };
    crate::output::write_out(&text, None)?;
    let is_whole = runs.iter().flat_map(|run| &run.records).all(|(_, record)| record.is_complete);
    Ok(if is_whole { Done::Complete } else { Done::Incomplete })
}

fn tell_killed(run: &Run) {
    for killed in &run.killed {
        tell(format!(
            "out of memory at {} ms: a block of order {}, {} pages free; killed {:?}. Pages in frames, in swap, \
             and page tables:",
            killed.at / 1_000_000_000,
            killed.order,
            killed.free,
            killed.name
        ));
        for (name, resident, swapped, tables) in &killed.processes {
            tell(format!("  {name:16} {resident:>10} {swapped:>10} {tables:>10}"));
        }
    }
}

fn write_records(folder: &Path, run: &Run) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (process, record) in &run.records {
        let path = folder.join(records::file_name(process));
        crate::output::write_out(&record.write(), Some(&path))?;
    }
    Ok(())
}
