//! The program `slablab`: words in, tables out, exit codes.
//!
//! Exit codes: 0 done; 1 done, and over a threshold the user set; 2 usage or input error; 3 done, but the
//! input was incomplete; 128 + n ended by signal n. `slablab record` has the exit code of its program.

mod bench;
mod calibrate;
mod colour;
mod compare;
mod doctor;
mod engines;
mod explain;
mod generated;
mod import;
mod input;
mod interrupts;
mod logs;
mod machines;
mod orders;
mod outcome;
mod output;
mod pressure;
mod record;
mod replay;
mod report;
mod reproduce;
mod run;
mod sites;
mod suite;
mod top;
mod verify;
mod vm;
mod watch;
mod what;
mod whatif;

use clap::{CommandFactory, Parser, Subcommand};
use outcome::{Done, tell};
use std::process::ExitCode;

/// The Linux slab allocators outside the kernel, and a laboratory around them.
#[derive(Parser)]
#[command(name = "slablab", version, max_term_width = 100)]
struct Cli {
    /// Colour on a terminal; NO_COLOR turns it off
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, global = true)]
    color: colour::When,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show where slab memory goes, what would help, and which settings this kernel lets you change
    Doctor(doctor::Args),
    /// Convert a recording to a trace, for replay and for other programs
    Import(import::Args),
    /// Run a program and record its allocation calls as a trace
    Record(record::Args),
    /// Replay a recording through slab allocators and compare them
    Replay(replay::Args),
    /// Show the part of each policy in the difference between two allocators on a recording
    Explain(explain::Args),
    /// Show which code allocates: call sites of a recording, of /proc/allocinfo, of SLUB's debugging lists
    Sites(sites::Args),
    /// Compare the model with the real kernel: dumps around a recording, or the kernel's counters
    Verify(verify::Args),
    /// Show the purpose of a cache, the code that creates it, and how to shrink it
    What(what::Args),
    /// Predict slab memory with another order policy, other boot parameters, pages or CPUs
    Whatif(whatif::Args),
    /// List slab orders by size, and the sizes that two order rules treat differently
    Orders(orders::Args),
    /// Show what a running process under slablab holds: slabs, objects, sheaves, page faults
    Top(top::Args),
    /// Compare allocators in one process: slablab's, glibc's, and others if this program was built with them
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
    /// Join the folders of an experiment's parts, and print its tables
    Report(report::Args),
    /// List engines, releases and knobs
    Engines(engines::Args),
    /// List policies of page replacement, or every choice of one
    Vm(vm::Args),
    /// List the machines that come with this program, or print the file of one
    Machines(machines::Args),
    /// Print completions of this program's words for a shell
    Completions(generated::CompletionsArgs),
    /// Print man pages
    Man(generated::ManArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    colour::set(cli.color);
    let done = match cli.verb {
        Verb::Doctor(args) => doctor::run(args),
        Verb::Import(args) => import::run(args),
        Verb::Record(args) => record::run(args),
        Verb::Replay(args) => replay::run(args),
        Verb::Explain(args) => explain::run(args),
        Verb::Sites(args) => sites::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::What(args) => what::run(args),
        Verb::Whatif(args) => whatif::run(args),
        Verb::Orders(args) => orders::run(args),
        Verb::Top(args) => top::run(args),
        Verb::Bench(args) => bench::run(args),
        Verb::Compare(args) => compare::run(args),
        Verb::Calibrate(args) => calibrate::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Reproduce(args) => reproduce::run(args),
        Verb::Suite(args) => suite::run(args),
        Verb::Report(args) => report::run(args),
        Verb::Pressure(args) => pressure::run(args),
        Verb::Engines(args) => engines::run(args),
        Verb::Vm(args) => vm::run(args),
        Verb::Machines(args) => machines::run(args),
        Verb::Completions(args) => generated::completions(&args, Cli::command()),
        Verb::Man(args) => generated::man(&args, Cli::command()),
    };
    match done {
        Ok(Done::Complete) => ExitCode::SUCCESS,
        Ok(Done::OverThreshold) => ExitCode::from(1),
        Ok(Done::Incomplete) => ExitCode::from(3),
        Ok(Done::Exited { code }) => ExitCode::from(code),
        Ok(Done::Ended { signal }) => ExitCode::from(128 + signal as u8),
        Err(error) => {
            tell(&error);
            ExitCode::from(2)
        }
    }
}
