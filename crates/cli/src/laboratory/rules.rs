//! Options of the laboratory's verbs that would change nothing beside others: see [`crate::beside`].

use super::explain;
use crate::beside::{Given, Rule, rule};
use std::path::Path;

impl Given<'_> {
    fn has_any(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.has(id))
    }

    /// The first word that was given for an argument.
    fn word(&self, id: &str) -> Option<String> {
        let mut words = self.0.try_get_raw(id).ok().flatten()?;
        words.next().map(|word| word.to_string_lossy().into_owned())
    }

    fn is(&self, id: &str, words: &[&str]) -> bool {
        self.word(id).is_some_and(|word| words.contains(&word.as_str()))
    }
}

/// How an experiment is run, and what is written beside its answer.
const RUNS: [&str; 12] = [
    "folder", "shard", "threads", "force", "html", "perfetto", "trace", "cell", "vmstat", "meminfo", "ps",
    "locks",
];
/// Both tables of cells.
const OF_CELLS: &[&str] = &["locks", "functions"];

/// The table.
pub(crate) const RULES: &[Rule] = &[
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
