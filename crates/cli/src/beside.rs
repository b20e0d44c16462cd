//! Options that would change nothing beside others, in one table: the program refuses them, so that no answer
//! lacks silently what was asked for. What depends on a file's contents is refused by the verb that reads it.

use crate::laboratory::explain;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::path::Path;

/// What was given on the command line, to a verb.
pub(crate) struct Given<'a>(&'a ArgMatches);

impl Given<'_> {
    /// Whether an argument was given, by its name in the verb's `Args`.
    fn has(&self, id: &str) -> bool {
        self.0.try_contains_id(id).is_ok() && self.0.value_source(id) == Some(ValueSource::CommandLine)
    }

    fn has_any(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.has(id))
    }

    /// The first word that was given for an argument.
    pub(crate) fn word(&self, id: &str) -> Option<String> {
        let mut words = self.0.try_get_raw(id).ok().flatten()?;
        words.next().map(|word| word.to_string_lossy().into_owned())
    }

    /// How many words were given for an argument, of a list each.
    fn words(&self, id: &str) -> usize {
        self.0.try_get_raw(id).ok().flatten().map_or(0, Iterator::count)
    }

    fn is(&self, id: &str, words: &[&str]) -> bool {
        self.word(id).is_some_and(|word| words.contains(&word.as_str()))
    }
}

/// Options that a verb refuses.
struct Rule {
    /// The verb, and the verb below it.
    verbs: &'static [&'static str],
    /// When.
    when: fn(&Given) -> bool,
    /// The options, by their names in the verb's `Args`.
    options: &'static [&'static str],
    /// Why, and what is expected.
    why: &'static str,
}

const fn rule(
    verbs: &'static [&'static str],
    when: fn(&Given) -> bool,
    options: &'static [&'static str],
    why: &'static str,
) -> Rule {
    Rule { verbs, when, options, why }
}

/// How an experiment is run, and what is written beside its answer.
const RUNS: [&str; 12] = [
    "folder", "shard", "threads", "force", "html", "perfetto", "trace", "cell", "vmstat", "meminfo", "ps",
    "locks",
];
/// Both tables of cells.
const OF_CELLS: &[&str] = &["locks", "functions"];

/// The table.
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
        &["sites"],
        |given| given.is("format", &["folded"]),
        &["top", "sort", "wide"],
        "folded stacks have every call path: expected no such option beside --format folded",
    ),
    rule(
        &["sites"],
        |given| !given.is("format", &["folded"]) && !given.has("html"),
        &["weight"],
        "it is the width of frames: expected --format folded or --html beside it",
    ),
    rule(
        &["sites"],
        |given| !given.has("kallsyms"),
        &["force"],
        "it takes the names of --kallsyms: expected that, too",
    ),
    rule(
        &["record"],
        |given| !given.has("malloc"),
        &["limit"],
        "it is of a program's calls: expected --malloc beside it",
    ),
    rule(
        &["record"],
        |given| given.has("recover"),
        &["limit"],
        "what is recovered was recorded already: expected no --limit beside --recover",
    ),
    rule(&["explain"], is_of_recording, &["counts"], "it is of scripts: a recording has none"),
    rule(
        &["explain"],
        is_of_recording,
        &["metrics", "engine", "repeats"],
        "it is of experiments: a recording has none",
    ),
    rule(
        &["explain"],
        |given| !is_of_recording(given),
        &["release", "force", "exact", "samples"],
        "it is of recordings: an experiment or a script has none",
    ),
    rule(&["explain"], is_of_experiment, &["counts"], "it is of scripts: expected --metric of an experiment"),
    rule(
        &["explain"],
        |given| !is_of_recording(given) && !is_of_experiment(given),
        &["metrics"],
        "it is of experiments: expected --count of a script",
    ),
    rule(
        &["verify"],
        |given| given.has("workload"),
        &["before", "fail_below"],
        "it is of dumps around a recording: a counters run has its own start, and no skill",
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
    rule(&["run"], |given| given.has("describe"), &RUNS, DESCRIBED),
    rule(&["run"], |given| given.has("describe"), &["functions"], DESCRIBED),
    rule(
        &["run"],
        |given| given.has_any(&["vmstat", "meminfo", "ps"]),
        &["wrap", "wide", "functions", "threads", "repeats"],
        "--vmstat, --meminfo and --ps print one repeat of a cell: expected no such option beside them",
    ),
    rule(&["run"], has_rows, &["wrap"], UNWRAPPED),
    rule(&["suite"], has_rows, &["wrap"], UNWRAPPED),
    rule(&["reproduce"], has_rows, &["wrap"], UNWRAPPED),
    rule(&["report"], has_rows, &["wrap"], UNWRAPPED),
    rule(&["linux", "commits"], has_rows, &["wrap"], UNWRAPPED),
    rule(&["linux", "patch"], has_rows, &["wrap"], UNWRAPPED),
    rule(&["run"], has_no_functions, &["functions"], NO_FUNCTIONS),
    rule(&["reproduce"], has_no_functions, &["functions"], NO_FUNCTIONS),
    rule(&["linux", "patch"], has_no_functions, &["functions"], NO_FUNCTIONS),
    rule(
        &["suite"],
        |given| given.has("list"),
        &[
            "base",
            "other",
            "workload",
            "folder",
            "quick",
            "full",
            "repeats",
            "seed",
            "threads",
            "force",
            "shard",
            "locks",
            "functions",
            "html",
        ],
        "--list runs nothing: expected it alone, or with --format, --wrap or --wide",
    ),
    rule(&["suite"], |_| true, OF_CELLS, OF_SUITE),
    rule(
        &["linux", "patch"],
        |given| given.has("replay"),
        OF_CELLS,
        "it is of experiments, whose machine has clocks: expected --run instead of --replay",
    ),
    rule(&["linux", "patch"], |given| !given.has("run"), OF_CELLS, OF_SUITE),
    rule(
        &["linux", "commits"],
        |_| true,
        OF_CELLS,
        "a series compares numbers of commits: `slablab linux patch --run EXPERIMENT` shows those of one step",
    ),
    rule(
        &["bench"],
        |given| given.has("list"),
        &["workloads", "allocators", "repeats", "scale", "trace", "memory_mb", "seed"],
        "--list runs nothing: expected no such option beside it",
    ),
    rule(
        &["pressure", "run"],
        |given| given.has_any(&["vmstat", "meminfo", "ps"]) || given.is("format", &["mmtests"]),
        &["wide"],
        "these forms have all columns: expected no --wide beside --vmstat, --meminfo, --ps or --format mmtests",
    ),
];

const DESCRIBED: &str = "--describe runs nothing: expected no such option beside it";
const UNWRAPPED: &str =
    "lines of this form are not wrapped: expected --format table, mmtests or avgstd beside it";
const NO_FUNCTIONS: &str = "this form has no functions: expected --format table, markdown or json beside it";
const OF_SUITE: &str = "it is of an experiment's cells, and a suite has many experiments: expected `slablab run`, \
or --run of `slablab linux patch`";

fn has_rows(given: &Given) -> bool {
    given.is("format", &["json", "csv", "markdown"])
}

fn has_no_functions(given: &Given) -> bool {
    given.is("format", &["csv", "mmtests", "avgstd"])
}

fn is_of_experiment(given: &Given) -> bool {
    given.word("recording").is_some_and(|path| explain::is_experiment(Path::new(&path)))
}

fn is_of_recording(given: &Given) -> bool {
    let has_vm = ["from", "to"].iter().any(|id| given.word(id).is_some_and(|name| explain::is_vm(&name)));
    !has_vm && !is_of_experiment(given)
}

/// Refuses the first option that would change nothing.
///
/// # Errors
/// The option, why, and what is expected.
pub(crate) fn check(matches: &ArgMatches, command: &Command) -> Result<(), String> {
    let (mut verbs, mut matches, mut command) = (Vec::new(), matches, command);
    while let Some((name, below)) = matches.subcommand() {
        verbs.push(name);
        let Some(found) = command.find_subcommand(name) else { return Ok(()) };
        (matches, command) = (below, found);
    }
    let given = Given(matches);
    for rule in RULES.iter().filter(|rule| rule.verbs == verbs && (rule.when)(&given)) {
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
pub(crate) fn names_are_known(program: &Command) {
    for rule in RULES {
        let verb = rule.verbs.iter().fold(program, |command, name| {
            command.find_subcommand(name).unwrap_or_else(|| panic!("no verb {name}"))
        });
        for id in rule.options {
            let is_there = verb.get_arguments().any(|argument| argument.get_id() == id);
            assert!(is_there, "{} has no argument {id}", rule.verbs.join(" "));
        }
    }
}
