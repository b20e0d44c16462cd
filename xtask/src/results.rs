//! `cargo xtask results`: the tables of docs/results, made again by the commands that stand above them.
//!
//! A table of a page is between two comments. The first one is the command:
//!
//! ```text
//! <!-- made by: slablab reproduce 2026 --format markdown -->
//! | .. |
//! <!-- end -->
//! ```
//!
//! [`RESULTS`] has a row for each such command. A table that no single command makes says `hand`, and the
//! source of its numbers: `<!-- made by: hand, from slablab run 002 --locks -->`. The tests compare the rows
//! with the pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the pages.
const FOLDER: &str = "docs/results";
/// The program that `slablab` stands for, unless `--program` names another one.
const PROGRAM: &str = "target/release/slablab";

const BEGIN: &str = "<!-- made by: ";
const BEGIN_ENDS: &str = " -->";
const END: &str = "<!-- end -->";

/// A table, or several that follow each other, which one command makes.
pub(crate) struct Made {
    /// The page, without the folder and `.md`.
    page: &'static str,
    /// The name in the page.
    name: &'static str,
    /// Program and arguments, separated by spaces.
    command: &'static str,
    /// How long the command takes, and what it needs.
    takes: &'static str,
    when: When,
}

/// When `cargo xtask results` runs a command.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Always: the command takes less than a minute, and its output is the same on every machine.
    Always,
    /// If its name is given. The output is the same on every machine.
    ByName,
    /// If its name is given. The figures are those of the machine, so they cannot be checked.
    Measured,
}

use When::{Always, ByName, Measured};

/// The result `name` of the page, by the command.
const fn made(
    page: &'static str,
    name: &'static str,
    when: When,
    takes: &'static str,
    command: &'static str,
) -> Made {
    Made { page, name, command, takes, when }
}

/// The duration of a command that was not timed.
const LONG: &str = "not timed";

#[rustfmt::skip]
const RESULTS: &[Made] = &[
    made("bench", "caches", Measured, "minutes; dist with the feature peers",
         "slablab bench --workloads caches"),
    made("bench", "memory", Measured, "minutes; dist with the feature peers",
         "slablab bench --workloads memory"),
    made("bench", "microbenchmarks", Measured, "minutes; dist with the feature peers",
         "slablab bench --workloads single,threads"),
    made("bench", "programs", Measured, "12 minutes on 2 CPUs; packages, which root installs",
         "scripts/programs.py --format markdown"),
    made("bench", "latency", Measured, "minutes; peers as packaged",
         "scripts/services.py latency"),
    made("bench", "redis", Measured, "minutes; peers as packaged, and redis",
         "scripts/services.py redis"),
    made("bench", "services", Measured, "minutes; peers as packaged",
         "scripts/services.py service idle"),
    made("fidelity", "hackbench", Always, "a second",
         "slablab verify examples/data/hackbench-6.18.perf.data.xz --engine slub@6.18 \
          --before examples/data/hackbench-6.18.slabinfo-start.txt \
          --after examples/data/hackbench-6.18.slabinfo-end.txt"),
    made("gallery", "leak", Always, "seconds",
         "slablab doctor crates/doctor/testdata/leaks/timerfd.after.tar.xz --since \
          crates/doctor/testdata/leaks/timerfd.before.tar.xz --lines 3"),
    made("gallery", "message", Always, "seconds",
         "slablab what posix_timers_cache"),
    made("gallery", "orders", Always, "seconds",
         "slablab whatif examples/releases/amd64_6.18.15_smp4.after.tar.xz --max-order 0,1,2"),
    made("gallery", "releases", Always, "seconds",
         "slablab whatif examples/releases/amd64_6.18.15_smp4.after.tar.xz --release 7.0,7.3"),
    made("gallery", "replay", Always, "seconds",
         "slablab replay examples/data/hackbench-6.18.perf.data.xz --engine slub@6.18 --engine slub@7.3"),
    made("gallery", "rule", Always, "seconds",
         "slablab orders --policy single --against clamped --page-size 4K --cpus 8"),
    made("native", "detections", Measured, "needs scudo and the other allocators",
         "scripts/detections.py"),
    made("pressure", "model", ByName, LONG,
         "slablab pressure judge --seeds 3"),
    made("reproduce", "001", ByName, "54 s of CPU time, a development build",
         "slablab reproduce experiments/001.toml --quick --repeats 2 --format markdown"),
    made("reproduce", "001-loops", ByName, LONG,
         "slablab reproduce 001-loops --format markdown"),
    made("reproduce", "001-memory", ByName, "5.3 minutes of CPU time, a development build",
         "slablab reproduce 001-memory --format markdown"),
    made("reproduce", "002", ByName, "36 s of CPU time",
         "slablab reproduce experiments/002.toml --quick --format markdown"),
    made("reproduce", "002-aim", ByName, "24 s of CPU time",
         "slablab reproduce 002-aim --draws 32 --format markdown"),
    made("reproduce", "002-mkfs", ByName, "50 s of CPU time, a development build",
         "slablab reproduce 002-mkfs --quick --format markdown"),
    made("reproduce", "003-kbuild", ByName, "16 s of CPU time",
         "slablab reproduce 003-kbuild --format markdown"),
    made("reproduce", "003-netio", Always, "42 s, a development build",
         "slablab reproduce 003-netio --format markdown"),
    made("reproduce", "003-netperf", ByName, "10 s of CPU time",
         "slablab reproduce 003-netperf --format markdown"),
    made("reproduce", "003-oltp", ByName, "14 s of CPU time",
         "slablab reproduce 003-oltp --format markdown"),
    made("reproduce", "003-tbench", ByName, "15 s of CPU time",
         "slablab reproduce 003-tbench --no-ranges --format markdown"),
    made("reproduce", "2026", Always, "15 s, a development build",
         "slablab reproduce 2026 --format markdown"),
    made("reproduce", "brouer", Always, "4 s, a development build",
         "slablab reproduce brouer --format markdown"),
    made("reproduce", "cpu-partial", ByName, "49 s of CPU time",
         "slablab reproduce cpu-partial --quick --format markdown"),
    made("reproduce", "fork-exec-7.0", ByName, "39 s of CPU time",
         "slablab reproduce experiments/fork-exec-7.0.toml --no-ranges --format markdown"),
    made("reproduce", "fork-exec-7.0-arm64", ByName, "12 s of CPU time",
         "slablab reproduce fork-exec-7.0-arm64 --no-ranges --format markdown"),
    made("reproduce", "joonsoo-4.7", ByName, "17 s of CPU time",
         "slablab reproduce joonsoo-4.7 --quick --format markdown"),
    made("reproduce", "lkp-remote-refill", ByName, "79 s of CPU time",
         "slablab reproduce lkp-remote-refill --no-ranges --repeats 4 --format markdown"),
    made("reproduce", "maple-6.18", ByName, "4.6 minutes of CPU time, a development build",
         "slablab reproduce maple-6.18 --draws 8 --format markdown"),
    made("reproduce", "min-objects-2008", ByName, LONG,
         "slablab reproduce min-objects-2008 --format markdown"),
    made("reproduce", "mmap-stress", Always, "13 s, a development build",
         "slablab reproduce mmap-stress --format markdown"),
    made("reproduce", "mmap1-spr", ByName, "60 s of CPU time",
         "slablab reproduce mmap1-spr --no-ranges --format markdown"),
    made("reproduce", "netio-min-partial", Always, "25 s, a development build",
         "slablab reproduce netio-min-partial --format markdown"),
    made("reproduce", "orders-5.11", ByName, "17 s of CPU time",
         "slablab reproduce orders-5.11 --quick --format markdown"),
    made("reproduce", "sheaves-micro", ByName, LONG,
         "slablab reproduce sheaves-micro --format markdown"),
    made("reproduce", "turin512-brk1", ByName, "66 s of CPU time",
         "slablab reproduce experiments/turin512-brk1.toml --no-ranges --repeats 3 --format markdown"),
    made("reproduce", "turin512-brk1-threads", Always, "5 s, a development build",
         "slablab reproduce turin512-brk1-threads --format markdown"),
    made("reproduce", "turin512-mmap1", ByName, "31 s of CPU time",
         "slablab reproduce experiments/turin512-mmap1.toml --no-ranges --repeats 3 --format markdown"),
    made("reproduce", "turin512-mmap1-threads", Always, "3 s, a development build",
         "slablab reproduce turin512-mmap1-threads --format markdown"),
    made("whatif", "range", ByName, "a release build",
         "cargo run --release -p slablab-doctor --example whatif_errors -- table examples/cpus examples/dumps"),
    made("whatif", "releases", ByName, "a release build",
         "cargo run --release -p slablab-doctor --example whatif_errors -- releases examples/releases"),
    made("whatif", "tables", ByName, "a release build",
         "cargo run --release -p slablab-doctor --example whatif_errors -- tables examples/dumps"),
];

/// What the command line asks for.
#[derive(Default)]
pub(crate) struct Options {
    /// Names of pages and results; empty: all that take less than a minute.
    names: Vec<String>,
    check: bool,
    list: bool,
    program: Option<PathBuf>,
}

/// Reads the arguments of `cargo xtask results`.
pub(crate) fn parse<'a>(mut arguments: impl Iterator<Item = &'a str>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        match argument {
            "--check" => options.check = true,
            "--list" => options.list = true,
            "--program" => {
                options.program = Some(arguments.next().ok_or("--program expects a path")?.into());
            }
            name if !name.starts_with('-') => options.names.push(name.to_owned()),
            other => return Err(format!("unknown argument {other:?} of results")),
        }
    }
    Ok(options)
}

/// Makes the tables. With `--check` it only compares them with the pages, and returns the names of the stale
/// ones.
pub(crate) fn make(root: &Path, options: &Options) -> Result<Vec<String>, String> {
    if options.list {
        RESULTS.iter().for_each(|one| println!("{}", one.line()));
        return Ok(Vec::new());
    }
    let chosen = chosen(&options.names)?;
    let program = root.join(options.program.as_deref().unwrap_or(Path::new(PROGRAM)));
    if chosen.iter().any(|one| one.command.starts_with("slablab ")) && !program.exists() {
        return Err(format!("no program {}; cargo build --release, or --program PATH", program.display()));
    }
    let mut stale = Vec::new();
    for one in chosen {
        if options.check && one.when == Measured {
            println!("{}: not checked, the figures are those of a machine", one.full_name());
            continue;
        }
        println!("{}: {}", one.full_name(), one.command);
        let text = block(one.command, &output(root, &program, one.command)?);
        let path = root.join(FOLDER).join(format!("{}.md", one.page));
        let page = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let renewed =
            renewed(&page, one.command, &text).map_err(|what| format!("{}: {what}", path.display()))?;
        if renewed != page {
            if options.check {
                stale.push(one.full_name());
            } else {
                fs::write(&path, renewed).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(stale)
}

impl Made {
    fn full_name(&self) -> String {
        format!("{}/{}", self.page, self.name)
    }

    /// The line of `--list`.
    fn line(&self) -> String {
        let when = match self.when {
            Always => "always",
            ByName => "by name",
            Measured => "by name, figures of the machine",
        };
        format!("{}\n    {}\n    {}; {when}", self.full_name(), self.command, self.takes)
    }
}

/// The results that the names choose: a result by its full name, or those of a page that take less than a
/// minute.
fn chosen(names: &[String]) -> Result<Vec<&'static Made>, String> {
    if names.is_empty() {
        return Ok(RESULTS.iter().filter(|one| one.when == Always).collect());
    }
    let mut all = Vec::new();
    for name in names {
        let of_page: Vec<&Made> = RESULTS.iter().filter(|one| one.page == name).collect();
        if of_page.is_empty() {
            let one = RESULTS.iter().find(|one| one.full_name() == *name);
            all.push(one.ok_or_else(|| format!("unknown result {name:?}; cargo xtask results --list"))?);
            continue;
        }
        let before = all.len();
        all.extend(of_page.iter().filter(|one| one.when == Always));
        if all.len() == before {
            let lines: Vec<String> = of_page.iter().map(|one| one.line()).collect();
            return Err(format!("every result of {name} runs only by its own name:\n{}", lines.join("\n")));
        }
    }
    Ok(all)
}

/// What the command writes to standard output. Exit code 3, an incomplete answer, is an error like any other.
fn output(root: &Path, program: &Path, command: &str) -> Result<String, String> {
    let mut words = command.split_whitespace();
    let first = words.next().unwrap_or_default();
    let first = if first == "slablab" { program.to_path_buf() } else { PathBuf::from(first) };
    let done = Command::new(&first)
        .args(words)
        .current_dir(root)
        .output()
        .map_err(|error| format!("{}: {error}", first.display()))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{command}: {}\n{}", done.status, said.trim_end()));
    }
    String::from_utf8(done.stdout).map_err(|_| format!("{command}: its output is not text"))
}

/// The output as a part of a page: text in a fence; Markdown as it is, but with headings in bold, because the
/// page has its own.
fn block(command: &str, output: &str) -> String {
    let output = output.trim_matches('\n');
    let is_markdown = command.contains("markdown") || output.lines().all(|line| line.starts_with('|'));
    if !is_markdown {
        return format!("```text\n{output}\n```");
    }
    let lines = output.lines().map(|line| match line.trim_start_matches('#') {
        heading if heading.len() < line.len() => format!("**{}**", heading.trim()),
        _ => line.trim_end().to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The page with `text` between the comments of `command`.
fn renewed(page: &str, command: &str, text: &str) -> Result<String, String> {
    let begin = format!("{BEGIN}{command}{BEGIN_ENDS}");
    let (before, rest) = page.split_once(&begin).ok_or_else(|| format!("no line {begin}"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("no {END} after {begin}"))?;
    Ok(format!("{before}{begin}\n\n{text}\n\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        crate::run::root()
    }

    /// The pages with their names.
    fn pages() -> Vec<(String, String)> {
        let entries = fs::read_dir(root().join(FOLDER)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .map(|path| {
                let name = path.file_stem().and_then(|name| name.to_str()).expect("a plain name").to_owned();
                (name, fs::read_to_string(&path).expect("a page"))
            })
            .filter(|(name, _)| name != "README")
            .collect()
    }

    #[test]
    fn output_becomes_a_part_of_a_page() {
        for (command, output, expected) in [
            ("slablab x --format markdown", "# A\n\n| a |\n|---|\n", "**A**\n\n| a |\n|---|"),
            ("slablab x", "\n a  b\n 1  2\n\n", "```text\n a  b\n 1  2\n```"),
            ("detections.py", "| a |\n|---|\n", "| a |\n|---|"),
        ] {
            assert_eq!(block(command, output), expected, "{command}");
        }
    }

    #[test]
    fn only_the_part_of_the_command_is_renewed() {
        let part = |command: &str, text: &str| format!("{BEGIN}{command}{BEGIN_ENDS}\n\n{text}\n\n{END}\n");
        let page = |x: &str, xy: &str| format!("a\n{}b\n{}", part("x", x), part("xy", xy));
        for (command, expected) in [
            ("x", Ok(page("new", "2"))),
            ("xy", Ok(page("1", "new"))),
            ("y", Err("no line <!-- made by: y -->".to_owned())),
        ] {
            assert_eq!(renewed(&page("1", "2"), command, "new"), expected, "{command}");
        }
    }

    #[test]
    fn names_choose_results() {
        let quick = RESULTS.iter().filter(|one| one.when == Always);
        for (names, expected) in [
            (&[][..], quick.clone().map(Made::full_name).collect::<Vec<_>>()),
            (&["reproduce"], quick.filter(|one| one.page == "reproduce").map(Made::full_name).collect()),
            (&["bench/memory"], vec!["bench/memory".to_owned()]),
        ] {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let found = chosen(&names).map(|all| all.iter().map(|one| one.full_name()).collect::<Vec<_>>());
            assert_eq!(found, Ok(expected), "{names:?}");
        }
        for wrong in ["bench", "nothing", "bench/nothing"] {
            assert!(chosen(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    /// Every table of a page is between the comments of a command. Each command but `hand` has its row, and
    /// each row its comments.
    #[test]
    #[cfg_attr(miri, ignore = "reads files")]
    fn pages_and_rows_name_the_same_commands() {
        let mut found = Vec::new();
        for (name, page) in pages() {
            assert!(page.starts_with("# Results: "), "{name}: the heading");
            let (mut open, mut in_code) = (None, false);
            for (number, line) in page.lines().enumerate() {
                let place = || format!("{FOLDER}/{name}.md:{}", number + 1);
                in_code ^= line.trim_start().starts_with("```");
                if let Some(command) = line.trim_start().strip_prefix(BEGIN) {
                    assert_eq!(open, None, "{}: the comments before have no end", place());
                    open = Some(command.strip_suffix(BEGIN_ENDS).expect("the comment ends in its line"));
                } else if line.trim() == END {
                    let command = open.take().unwrap_or_else(|| panic!("{}: an end of nothing", place()));
                    if command != "hand" && !command.starts_with("hand, from ") {
                        found.push(format!("{name}: {command}"));
                    }
                } else if line.trim_start().starts_with('|') && !in_code {
                    assert!(open.is_some(), "{}: a table that no command or hand has made", place());
                }
            }
            assert_eq!(open, None, "{name}: the last comments have no end");
        }
        let mut rows: Vec<String> =
            RESULTS.iter().map(|one| format!("{}: {}", one.page, one.command)).collect();
        rows.sort();
        found.sort();
        assert_eq!(found, rows);
    }
}
