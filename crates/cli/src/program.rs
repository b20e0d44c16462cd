//! The program: what is registered, words in, an exit code out.

use crate::outcome::{Done, Failure, tell};
use crate::{beside, colour, doctor, fleet, front, keep, laboratory, orders, output, what, whatif};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
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

/// The verbs. [`front::ordered`] puts them into the order of man pages and completions.
#[derive(Subcommand)]
enum Verb {
    /// Show where slab memory goes, what would help, and which settings this kernel lets you change
    Doctor(doctor::Args),
    /// Look at many dumps at once: what stands out, what grows everywhere, what one change would save
    Fleet(fleet::Args),
    /// Keep snapshots of this machine, and tell what climbs over days
    Watch(keep::Args),
    /// Show the purpose of a cache, the code that creates it, and how to shrink it
    What(what::Args),
    /// Predict slab memory with another order policy, other boot parameters, pages or CPUs
    Whatif(Box<whatif::Args>),
    /// List slab orders by size, and the sizes that two order rules treat differently
    Orders(orders::Args),
    #[command(flatten)]
    Laboratory(Box<laboratory::Verb>),
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
    pub(crate) own: laboratory::Own,
}

impl Program {
    /// Runs the verb that the process's arguments name.
    pub fn main(self) -> ExitCode {
        let command = front::grouped(self.own.shown(front::ordered(Cli::command())));
        let parsed = command.clone().try_get_matches();
        let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
        let (cli, matches) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return front::print(error, command),
        };
        colour::set(cli.color);
        if let Err(idle) = beside::check(&matches, &command, laboratory::RULES) {
            tell(idle);
            return ExitCode::from(2);
        }
        let done = self.own.register().and_then(|registered| match cli.verb {
            Some(verb) => verb.run(command, &registered),
            None => output::write_out(&front::questions(&command), None).map(|()| Done::Complete),
        });
        match done.and_then(|done| laboratory::unmet().map(|()| done)) {
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
#[cfg(all(feature = "laboratory", any(test, feature = "fuzz")))]
pub(crate) fn run_words(words: &[String]) -> Result<Done, String> {
    let words = std::iter::once("slablab").chain(words.iter().map(String::as_str));
    // No byte of an input is among the words: a refusal is a defect of the caller.
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let verb = cli.verb.ok_or("no verb is named")?;
    let registered = laboratory::Registered::default();
    verb.run(Cli::command(), &registered).map_err(|error| error.to_string())
}

impl Verb {
    fn run(self, command: clap::Command, registered: &laboratory::Registered) -> Result<Done, Failure> {
        match self {
            Verb::Doctor(args) => doctor::run(args),
            Verb::Fleet(args) => fleet::run(args),
            Verb::Watch(args) => keep::run(args),
            Verb::What(args) => what::run(args),
            Verb::Whatif(args) => whatif::run(*args),
            Verb::Orders(args) => orders::run(args),
            Verb::Laboratory(verb) => verb.run(command, registered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_options_are_arguments() {
        beside::names_are_known(&Cli::command(), laboratory::RULES);
    }

    /// A verb of the groups that the program lacks is one of the whole program's.
    #[test]
    fn each_verb_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name);
        let grouped = front::GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied();
        let is_here = |name: &&str| cfg!(feature = "laboratory") || command.find_subcommand(name).is_some();
        let (mut shown, mut grouped) =
            (shown.collect::<Vec<_>>(), grouped.filter(is_here).collect::<Vec<_>>());
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }
}
