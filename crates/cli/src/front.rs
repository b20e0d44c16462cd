//! The front of the program: `slablab` alone, `slablab --help`, and the errors of the command line.

use crate::colour;
use crate::outcome::{Failure, complain};
use crate::output::print_styled;
use clap::Command;
use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::error::{ContextKind, ContextValue};
use slablab_report::{text, visible};
use std::fmt::Write;
use std::process::ExitCode;

/// What `slablab` alone prints: questions, each with the commands that answer it.
const QUESTIONS: [(&str, &str); 5] = [
    ("Where does this machine's slab memory go, and what would help?", "slablab doctor"),
    ("What grows, who holds it, which code allocates it? (as root)", "slablab leak --for 60s"),
    (
        "What would another kernel's allocator do with this load? (as root)",
        "slablab record --for 10s -o now.tar; slablab replay now.tar --engine slub@6.12 --engine slub@7.1",
    ),
    ("What would another setting save or cost?", "slablab whatif --max-order 0"),
    ("How fast are these allocators as a program's malloc?", "slablab bench"),
];

/// The verbs by what they are about, in the order of `--help`.
pub(crate) const GROUPS: [(&str, &[&str]); 7] = [
    ("This machine", &["doctor", "leak", "what", "sites", "record", "top", "watch", "fleet"]),
    ("A recording", &["import", "replay", "explain", "verify"]),
    ("What if", &["whatif", "orders", "run", "suite", "reproduce", "pressure"]),
    ("Speed", &["bench", "calibrate"]),
    ("Results", &["compare"]),
    ("Engines of your own", &["linux", "check"]),
    ("Lists", &["list", "generate"]),
];

/// Verbs that every program has, in their places after verbs of the laboratory.
const PLACES: [(&str, &[&str]); 2] =
    [("leak", &["fleet", "watch"]), ("verify", &["what", "whatif", "orders"])];

/// The questions whose verbs `command` has.
pub(crate) fn questions(command: &Command) -> String {
    let has = |line: &str| {
        let mut verbs = line.split("; ").filter_map(|command| command.split(' ').nth(1));
        verbs.all(|verb| command.find_subcommand(verb).is_some())
    };
    let mut text =
        "slablab: the Linux slab allocators outside the kernel, and a laboratory around them\n\n".to_string();
    for (question, line) in QUESTIONS.iter().filter(|(_, line)| has(line)) {
        writeln!(text, "{question}\n  {line}").expect("a string");
    }
    text + "\nslablab --help lists every verb; slablab VERB --help has its options and examples.\n"
}

/// The command with its verbs in the order that man pages and completions have.
pub(crate) fn ordered(command: Command) -> Command {
    let mut verbs: Vec<Command> = command.get_subcommands().cloned().collect();
    for (before, names) in PLACES {
        let (moved, mut rest): (Vec<Command>, Vec<Command>) =
            verbs.into_iter().partition(|verb| names.contains(&verb.get_name()));
        let at = rest.iter().position(|verb| verb.get_name() == before).map_or(rest.len(), |at| at + 1);
        rest.splice(at..at, moved);
        verbs = rest;
    }
    let mut verbs = (0..).zip(verbs).map(|(place, verb)| verb.display_order(place));
    command.mut_subcommands(|verb| verbs.next().unwrap_or(verb))
}

/// The least and the most columns of `--help`.
const COLUMNS: std::ops::RangeInclusive<usize> = 40..=100;

/// `--help` with the verbs in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let columns = colour::columns().unwrap_or(*COLUMNS.end()).clamp(*COLUMNS.start(), *COLUMNS.end());
    let (head, word) = (*Styles::styled().get_header(), *Styles::styled().get_literal());
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let verbs = names.iter().filter_map(|name| command.find_subcommand(name));
        let verbs: Vec<&Command> = verbs.filter(|verb| !verb.is_hide_set()).collect();
        if !verbs.is_empty() {
            write!(groups, "\n{head}{title}:{head:#}\n").expect("a string");
        }
        for verb in verbs {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let about = text::wrapped_within(columns, &about, &" ".repeat(13), &" ".repeat(13));
            let name = verb.get_name();
            write!(groups, "  {word}{name}{word:#}{}", &about[2 + name.len()..]).expect("a string");
        }
    }
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{groups}\n{head}Options:{head:#}\n{{options}}\n\n\
         slablab alone names the first steps; slablab VERB --help has a verb's options and examples."
    ))
}

/// Prints what clap made of the command line: help, a version, or an error.
pub(crate) fn print(error: clap::Error, command: Command) -> ExitCode {
    if !error.use_stderr() {
        let text = if colour::is_automatic(&std::io::stdout()) {
            error.render().ansi().to_string()
        } else {
            error.render().to_string()
        };
        return match print_styled(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        };
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    // The words are read once more as they are shown, so that what is left to style is clap's own.
    let words = std::env::args_os().map(|word| visible::name(&word.to_string_lossy()).into_owned());
    let lacking = lacking(&error, &command);
    let shown = command.try_get_matches_from(words).err().filter(|shown| shown.kind() == error.kind());
    let error = match lacking {
        Some(sentence) => clap::Error::raw(error.kind(), sentence),
        None => advised(shown.unwrap_or(error)),
    };
    complain(&if colour::is_automatic(&std::io::stderr()) {
        error.render().ansi().to_string()
    } else {
        error.render().to_string()
    });
    ExitCode::from(code)
}

/// The sentence for a verb that `command` lacks, and the whole program has.
fn lacking(error: &clap::Error, command: &Command) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let verbs = || GROUPS.iter().flat_map(|(_, verbs)| *verbs);
    let is_here = |verb: &str| command.find_subcommand(verb).is_some();
    if is_here(word) || !verbs().any(|verb| verb == word) {
        return None;
    }
    let here: Vec<&str> = verbs().copied().filter(|verb| is_here(verb)).collect();
    let here = here.join(", ");
    Some(format!("this is the small slablab, with {here}: `{word}` is a verb of the whole slablab\n"))
}

/// An error without the advice to pass an unknown option as a value, which leads to the next error. An option
/// that is a form of the answer gets the option that has it.
fn advised(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let form = ["--json", "--csv"].into_iter().find(|form| option == form);
    let is_wrong = |tip: &ContextValue| tip.to_string().contains("' as a value, use '");
    if let Some(form) = form {
        let tip = StyledStr::from(format!("use '--format {}'", &form[2..]));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    } else if error.get(ContextKind::Suggested).is_some_and(is_wrong) {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// A program that cannot print its help.
fn failed(error: &Failure) -> ExitCode {
    crate::outcome::tell(error);
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with these verbs.
    fn program(verbs: &[&'static str]) -> Command {
        verbs.iter().fold(Command::new("slablab"), |program, verb| program.subcommand(Command::new(*verb)))
    }

    #[test]
    fn a_verb_of_the_whole_program_is_named_as_one() {
        let small = ["doctor", "whatif"];
        let sentence =
            "this is the small slablab, with doctor, whatif: `replay` is a verb of the whole slablab\n";
        for (verbs, word, expected) in [
            (&small[..], "replay", Some(sentence)),
            (&small, "replays", None),
            (&small, "doctr", None),
            (&["doctor", "whatif", "replay"], "replays", None),
        ] {
            let program = program(verbs);
            let error = program.clone().try_get_matches_from(["slablab", word]).expect_err(word);
            assert_eq!(lacking(&error, &program).as_deref(), expected, "{verbs:?}: {word}");
        }
    }

    #[test]
    fn questions_are_those_of_the_verbs_that_are_there() {
        for (verbs, expected) in [
            (&["doctor", "whatif"][..], &["slablab doctor", "slablab whatif --max-order 0"][..]),
            // The third question takes two verbs.
            (&["record", "bench"], &["slablab bench"]),
        ] {
            let said = questions(&program(verbs));
            let lines: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("  ")).collect();
            assert_eq!(lines, expected, "{verbs:?}");
        }
    }
}
