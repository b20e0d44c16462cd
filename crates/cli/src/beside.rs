//! Options that would change nothing beside others, in one table: the program refuses them, so that no answer
//! lacks silently what was asked for. What depends on a file's contents is refused by the verb that reads it.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// What was given on the command line, to a verb.
pub(crate) struct Given<'a>(pub(crate) &'a ArgMatches);

impl Given<'_> {
    /// Whether an argument was given, by its name in the verb's `Args`.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.try_contains_id(id).is_ok() && self.0.value_source(id) == Some(ValueSource::CommandLine)
    }

    /// How many words were given for an argument, of a list each.
    fn words(&self, id: &str) -> usize {
        self.0.try_get_raw(id).ok().flatten().map_or(0, Iterator::count)
    }
}

/// Options that a verb refuses.
pub(crate) struct Rule {
    /// The verb, and the verb below it.
    verbs: &'static [&'static str],
    /// When.
    when: fn(&Given) -> bool,
    /// The options, by their names in the verb's `Args`.
    options: &'static [&'static str],
    /// Why, and what is expected.
    why: &'static str,
}

pub(crate) const fn rule(
    verbs: &'static [&'static str],
    when: fn(&Given) -> bool,
    options: &'static [&'static str],
    why: &'static str,
) -> Rule {
    Rule { verbs, when, options, why }
}

/// The table of the verbs that every program has.
const RULES: &[Rule] = &[
    rule(
        &["doctor"],
        |given| !given.has("watch"),
        &["once", "delay", "from"],
        "it is of the live screen: expected --watch, and no INPUT",
    ),
    rule(
        &["doctor"],
        |given| given.has("watch"),
        &["wide"],
        "the live screen has the columns that fit: expected no --wide beside --watch",
    ),
    rule(
        &["whatif"],
        |given| {
            [
                "policy",
                "max_order",
                "min_order",
                "min_objects",
                "page_size",
                "cpus",
                "engines",
                "merge",
                "debug",
            ]
            .iter()
            .any(|id| given.words(id) > 1)
        },
        &["lines"],
        "a list of changes has a line for each of them: expected one change for a list of caches",
    ),
];

/// Refuses the first option that would change nothing, by the table and by `further` rules.
///
/// # Errors
/// The option, why, and what is expected.
pub(crate) fn check(matches: &ArgMatches, command: &Command, further: &[Rule]) -> Result<(), String> {
    let (mut verbs, mut matches, mut command) = (Vec::new(), matches, command);
    while let Some((name, below)) = matches.subcommand() {
        verbs.push(name);
        let Some(found) = command.find_subcommand(name) else { return Ok(()) };
        (matches, command) = (below, found);
    }
    let given = Given(matches);
    for rule in RULES.iter().chain(further).filter(|rule| rule.verbs == verbs && (rule.when)(&given)) {
        if let Some(id) = rule.options.iter().find(|id| given.has(id)) {
            return Err(format!("{}: {}", shown(command, id), rule.why));
        }
    }
    Ok(())
}

/// An argument as it is typed.
fn shown(command: &Command, id: &str) -> String {
    let argument = command.get_arguments().find(|argument| argument.get_id() == id);
    match argument.map(|argument| (argument.get_long(), argument.get_value_names())) {
        Some((Some(long), _)) => format!("--{long}"),
        Some((None, Some([name, ..]))) => name.to_string(),
        _ => id.to_string(),
    }
}

#[cfg(test)]
pub(crate) fn names_are_known(program: &Command, further: &[Rule]) {
    for rule in RULES.iter().chain(further) {
        let verb = rule.verbs.iter().fold(program, |command, name| {
            command.find_subcommand(name).unwrap_or_else(|| panic!("no verb {name}"))
        });
        for id in rule.options {
            let is_there = verb.get_arguments().any(|argument| argument.get_id() == id);
            assert!(is_there, "{} has no argument {id}", rule.verbs.join(" "));
        }
    }
}
