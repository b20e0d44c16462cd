//! `slablab list`: what the program has by name, each list as a table, JSON or CSV.

use crate::laboratory::listed::How;
use crate::laboratory::{engines, installed, machines, schema, vm};
use crate::outcome::{Done, Failure};

/// Lists what the program has by name.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab list engines\n  slablab list engines slub@7.0 --format json\n  slablab list vm vm@6.1,lru_gen\n  slablab list machines numa8 > mine.toml\n  slablab list workloads --format csv"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Engines, releases and knobs
    Engines(engines::Args),
    /// Policies of page replacement, or every choice of one
    Vm(vm::Args),
    /// Machines that come with the program, or the file of one
    Machines(machines::Args),
    /// Experiments that come with the program
    Experiments(How),
    /// Workloads of experiments, with parameters and metrics
    Workloads(How),
    /// JSON Schemas of what verbs write with --format json
    Schemas(How),
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    match args.what {
        What::Engines(args) => engines::run(args),
        What::Vm(args) => vm::run(&args),
        What::Machines(args) => machines::run(args),
        What::Experiments(how) => installed::experiments(&how),
        What::Workloads(how) => installed::workloads(&how),
        What::Schemas(how) => schema::list(&how),
    }
}
