//! The program: what is registered, words in, an exit code out.

use crate::laboratory::check::{self, Check};
use crate::laboratory::{
    bench, calibrate, compare, engines, explain, generated, import, leak, linux, list, machines, pressure,
    record, replay, report, reproduce, run, schema, sites, suite, top, trees, verify, vm,
};
use crate::outcome::{Done, Failure, tell};
use crate::{beside, colour, doctor, fleet, front, keep, orders, output, what, whatif};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use slablab_bench::own::{self, Benched, Own};
use slablab_engines::register;
use slablab_experiment::Simulated;
use slablab_experiment::pressure::knob::Policy as Replaces;
use slablab_experiment::pressure::registered::Registration as Replacement;
use slablab_replay::engines::Replayed;
use slablab_slabs::Family;
use slablab_slabs::registered::Registration;
use std::marker::PhantomData;
use std::process::ExitCode;

/// The Linux slab allocators outside the kernel, and a laboratory around them.
#[derive(Parser)]
#[command(name = "slablab", version, max_term_width = 100)]
struct Cli {
    /// Colour on a terminal; NO_COLOR turns it off
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, global = true)]
    color: colour::When,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Show where slab memory goes, what would help, and which settings this kernel lets you change
    Doctor(doctor::Args),
    /// Find a leak: what grows on this machine, who holds it, which code allocates it, what ends it
    Leak(leak::Args),
    /// Look at many dumps at once: what stands out, what grows everywhere, what one change would save
    Fleet(fleet::Args),
    /// Keep snapshots of this machine, and tell what climbs over days
    Watch(keep::Args),
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
    /// Show the purpose of a cache, the code that creates it, and how to shrink it
    What(what::Args),
    /// Predict slab memory with another order policy, other boot parameters, pages or CPUs
    Whatif(whatif::Args),
    /// List slab orders by size, and the sizes that two order rules treat differently
    Orders(orders::Args),
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

/// The program with what is its user's own.
///
/// ```no_run
/// # use slablab_slabs::engines::slub::{Slub, SlubPolicy};
/// # use slablab_slabs::Family;
/// # use slablab_platform::Platform;
/// # struct Mine;
/// # impl Family for Mine {
/// #     type Policy = SlubPolicy;
/// #     type On<P: Platform> = Slub<P>;
/// # }
/// fn main() -> std::process::ExitCode {
///     slablab::Program::default().engine::<Mine>().main()
/// }
/// ```
#[derive(Default)]
pub struct Program {
    engines: Vec<&'static Registration>,
    benched: Vec<Own>,
    checks: Vec<check::Entry>,
    replacements: Vec<&'static Replacement>,
}

impl Program {
    /// Adds an engine: every verb that takes one knows it by the name of its policy, and runs it.
    pub fn engine<F: Family>(mut self) -> Program {
        self.engines.push(engine::<F>());
        self
    }

    /// Adds an engine to the allocators of the verb `bench`, as malloc's heap: [`benched!`] gives it a place
    /// in the process. [`Program::engine`] adds it to the other verbs.
    ///
    /// [`benched!`]: crate::benched
    pub fn bench<F: Benched>(mut self) -> Program {
        self.benched.push(Own::of::<F>());
        self
    }

    /// Adds a family of policies of page replacement: every verb that takes a policy knows it by its word, as
    /// in `vm@6.1,WORD`.
    pub fn replacement<T: Replaces>(mut self) -> Program {
        self.replacements.push(replacement::<T>());
        self
    }

    /// Adds checks of an engine by their names. `slablab check` runs them.
    pub fn checks(mut self, engine: &'static str, checks: &[(&'static str, Check)]) -> Program {
        self.checks.extend(checks.iter().map(|(name, check)| check::Entry { engine, name, check: *check }));
        self
    }

    /// Runs the verb that the process's arguments name.
    pub fn main(self) -> ExitCode {
        let command = Cli::command();
        let command = command.mut_subcommand("bench", |verb| {
            verb.mut_arg("engine", |engine| engine.hide(self.benched.is_empty()))
        });
        let command = front::grouped(command);
        let parsed = command.clone().try_get_matches();
        let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
        let (cli, matches) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return front::print(error, command),
        };
        colour::set(cli.color);
        if let Err(idle) = beside::check(&matches, &command) {
            tell(idle);
            return ExitCode::from(2);
        }
        slablab_engines::find_with(("linux", trees::find));
        let registered = register(self.engines)
            .map_err(|refused| refused.to_string())
            .and_then(|()| own::register(self.benched).map_err(|refused| refused.to_string()))
            .and_then(|()| {
                let replacements = slablab_experiment::pressure::preset::register(self.replacements);
                replacements.map_err(|refused| refused.to_string())
            });
        let done = match registered {
            Ok(()) => match cli.verb {
                Some(verb) => verb.run(command, &self.checks),
                None => output::write_out(front::QUESTIONS, None).map(|()| Done::Complete),
            },
            Err(refused) => Err(refused.into()),
        };
        match done.and_then(|done| trees::unmet().map(|()| done).map_err(Into::into)) {
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
}

/// Runs the verb that these words name, as the arguments of a process without the program's name.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn run_words(words: &[String]) -> Result<Done, String> {
    let words = std::iter::once("slablab").chain(words.iter().map(String::as_str));
    // No byte of an input is among the words: a refusal is a defect of the caller.
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let verb = cli.verb.ok_or("no verb is named")?;
    verb.run(Cli::command(), &[]).map_err(|error| error.to_string())
}

/// What the simulated kernel needs of `T`, for [`Program::replacement`].
fn replacement<T: Replaces>() -> &'static Replacement {
    struct Of<T>(PhantomData<T>);
    impl<T: Replaces> Of<T> {
        const ALL: &'static Replacement = &Replacement::new::<T>();
    }
    Of::<T>::ALL
}

/// The functions that the verbs need of `F`, for [`Program::engine`].
fn engine<F: Family>() -> &'static Registration {
    struct Of<F>(PhantomData<F>);
    impl<F: Family> Of<F> {
        const SIMULATED: Simulated = Simulated::of::<F>();
        const REPLAYED: Replayed = Replayed::of::<F>();
        const ALL: &'static Registration = match F::CYCLES {
            Some(_) => &Registration::new::<F::Policy>(&[&Self::SIMULATED, &Self::REPLAYED]),
            // Without prices nothing is modelled: another engine's would say nothing of this one.
            None => &Registration::new::<F::Policy>(&[&Self::REPLAYED]),
        };
    }
    Of::<F>::ALL
}

impl Verb {
    fn run(self, command: clap::Command, checks: &[check::Entry]) -> Result<Done, Failure> {
        match self {
            Verb::Doctor(args) => doctor::run(args),
            Verb::Leak(args) => leak::run(args),
            Verb::Fleet(args) => fleet::run(args),
            Verb::Watch(args) => keep::run(args),
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
            Verb::Check(args) => check::run(&args, checks),
            Verb::Machines(args) => machines::run(args),
            Verb::Completions(args) => generated::completions(&args, command),
            Verb::Man(args) => generated::man(&args, command),
            Verb::Schema(args) => schema::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_options_are_arguments() {
        beside::names_are_known(&Cli::command());
    }

    #[test]
    fn each_verb_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name);
        let (mut shown, mut grouped) = (
            shown.collect::<Vec<_>>(),
            front::GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect::<Vec<_>>(),
        );
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }
}
