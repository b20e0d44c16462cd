//! The verbs of the laboratory: recordings, models, experiments, allocators side by side. The verbs outside
//! of it answer from dumps of machines.

mod bench;
mod calibrate;
pub(crate) mod check;
mod choice;
mod compare;
mod engines;
mod explain;
mod form;
mod generated;
mod import;
mod installed;
mod leak;
mod linux;
mod list;
mod listed;
mod logs;
mod machines;
mod own;
mod pressure;
mod pulse;
mod record;
mod recording;
mod replay;
mod report;
mod reproduce;
mod rules;
mod run;
mod schema;
mod sites;
mod suite;
mod temporary;
pub(crate) mod top;
mod trees;
mod verify;
mod vm;

use crate::outcome::{Done, Failure};
pub use check::Check;
use clap::Subcommand;
pub(crate) use own::{Own, Registered};
pub(crate) use rules::RULES;
use slablab_doctor::measure::rounding::Rounding;
use std::path::Path;

/// Verbs of the laboratory. The program's other verbs have places among them: `program::Verb`.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Find a leak: what grows on this machine, who holds it, which code allocates it, what ends it
    Leak(leak::Args),
    /// Convert a recording to a trace, for replay and for other programs
    Import(import::Args),
    /// Record the kernel's slab allocator while a command runs, or a program's allocation calls
    Record(record::Args),
    /// Replay a recording through slab allocators and compare them
    Replay(replay::Args),
    /// Show the part of each policy in the difference between two allocators on a recording
    Explain(explain::Args),
    /// Show which code allocates: call sites of a recording, of /proc/allocinfo, of SLUB's debugging lists
    Sites(sites::Args),
    /// Compare the model with the real kernel: dumps around a recording, or the kernel's counters
    Verify(verify::Args),
    /// Show what a running process under slablab holds: slabs, objects, sheaves, page faults
    Top(top::Args),
    /// Compare allocators in one process, or as the malloc of any program
    Bench(bench::Args),
    /// Compare results that a verb wrote with --format json: a table for a mail
    Compare(compare::Args),
    /// Measure what this host's parts cost, and write a machine file; run hackbench on this host
    Calibrate(calibrate::Args),
    /// Run an experiment on modelled machines
    Run(run::Args),
    /// Run the experiments of mails: published figures beside modelled ones, with a verdict for each relation
    Reproduce(reproduce::Args),
    /// Compare two engines over every workload, with one correction over the whole table
    Suite(suite::Args),
    /// Memory pressure: run a script of page accesses on a modelled machine, judge it, show records
    Pressure(pressure::Args),
    /// Build the slab allocator of your own kernel tree, to run it as an engine; list and remove such builds
    Linux(linux::Args),
    /// Check an allocator with random programs: a kernel tree's, or an engine of this program's own
    Check(check::Args),
    /// List engines, policies of page replacement, machines, experiments, workloads or schemas
    List(list::Args),
    /// Write man pages, completions of a shell, or JSON Schemas
    Generate(generated::Args),
    // The names of earlier versions.
    /// Join the folders of an experiment's parts: now `slablab run --join`
    #[command(hide = true)]
    Report(run::Joined),
    /// List engines, releases and knobs: now `slablab list engines`
    #[command(hide = true)]
    Engines(engines::Args),
    /// List policies of page replacement: now `slablab list vm`
    #[command(hide = true)]
    Vm(vm::Args),
    /// List machines: now `slablab list machines`
    #[command(hide = true)]
    Machines(machines::Args),
    /// Print completions: now `slablab generate completions`
    #[command(hide = true)]
    Completions(generated::CompletionsArgs),
    /// Print man pages: now `slablab generate man`
    #[command(hide = true)]
    Man(generated::ManArgs),
    /// Print JSON Schemas: now `slablab generate schemas`
    #[command(hide = true)]
    Schema(schema::Args),
}

impl Verb {
    pub(crate) fn run(self, command: clap::Command, registered: &Registered) -> Result<Done, Failure> {
        match self {
            Verb::Leak(args) => leak::run(args),
            Verb::Import(args) => import::run(args),
            Verb::Record(args) => record::run(args),
            Verb::Replay(args) => replay::run(args),
            Verb::Explain(args) => explain::run(args),
            Verb::Sites(args) => sites::run(args),
            Verb::Verify(args) => verify::run(args),
            Verb::Top(args) => top::run(args),
            Verb::Bench(args) => bench::run(args),
            Verb::Compare(args) => compare::run(args),
            Verb::Calibrate(args) => calibrate::run(args),
            Verb::Run(args) => match args.joined() {
                Ok(joined) => report::run(&joined),
                Err(args) => run::run(*args),
            },
            Verb::Reproduce(args) => reproduce::run(args),
            Verb::Suite(args) => suite::run(args),
            Verb::List(args) => list::run(args),
            Verb::Generate(args) => generated::run(&args, command),
            Verb::Report(args) => report::run(&args),
            Verb::Pressure(args) => pressure::run(args),
            Verb::Engines(args) => engines::run(args),
            Verb::Vm(args) => vm::run(&args),
            Verb::Linux(args) => linux::run(args),
            Verb::Check(args) => check::run(&args, &registered.checks),
            Verb::Machines(args) => machines::run(args),
            Verb::Completions(args) => generated::completions(&args, command),
            Verb::Man(args) => generated::man(&args, command),
            Verb::Schema(args) => schema::run(&args),
        }
    }
}

/// What the allocations of a recording lose to the sizes of kmalloc's caches.
pub(crate) fn rounding(path: &Path) -> Result<Rounding, Failure> {
    Ok(Rounding::read(path, &recording::open(path, None)?)?)
}

/// Refuses the answer of a verb that an engine of a kernel tree could not serve.
pub(crate) fn unmet() -> Result<(), Failure> {
    trees::unmet().map_err(Into::into)
}
