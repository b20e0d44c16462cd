//! The front of the program: what it says without a verb, `--help`, names of earlier versions, and a standard
//! output that takes nothing.

use crate::common::{self, argument, check_order, folder, text};
use std::fs::File;
use std::process::{Command, Output, Stdio};

fn printed(args: &[&str]) -> String {
    let output = common::slablab(&[], args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_first_question_has_an_answer() {
    let said = printed(&[]);
    let commands = said.lines().filter(|line| line.starts_with("  slablab "));
    assert_eq!(commands.count(), 5, "{said}");
    check_order(
        &[],
        &said,
        &["slablab doctor", "slablab leak", "slablab record", "slablab replay", "slablab bench", "--help"],
    );
    // Each command's options are there.
    for line in said.lines().filter(|line| line.starts_with("  slablab ")) {
        for command in line.split(';') {
            let words: Vec<&str> = command.split_whitespace().collect();
            let help = printed(&[words[1], "--help"]);
            let is_option = |word: &&&str| word.starts_with('-') && **word != "--";
            for option in words.iter().filter(is_option) {
                assert!(help.contains(option), "{command}: {} has no {option}", words[1]);
            }
        }
    }
}

#[test]
fn help_is_in_groups() {
    let said = printed(&["--help"]);
    let groups = ["This machine:", "A recording:", "What if:", "Speed:", "Results:", "Lists:", "Options:"];
    check_order(&["--help"], &said, &groups);
    check_order(
        &["--help"],
        &said,
        &["\n  doctor ", "\n  import ", "\n  whatif ", "\n  bench ", "\n  list "],
    );
    assert!(said.contains("\n  check ") && !said.contains("\n  engines"), "{said}");
    let widest = said.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?} columns");
    assert_eq!(said, printed(&["help"]), "the verb help");
    check_order(&["-h"], &printed(&["-h"]), &groups);
}

/// Names and options of earlier versions, which no help has, and what they are now.
#[test]
fn old_names_work_as_before() {
    for (old, new) in [
        (&["engines"][..], &["list", "engines"][..]),
        (&["engines", "slub"], &["list", "engines", "slub"]),
        (&["vm"], &["list", "vm"]),
        (&["vm", "vm@6.1,lru_gen"], &["list", "vm", "vm@6.1,lru_gen"]),
        (&["machines"], &["list", "machines"]),
        (&["machines", "numa8"], &["list", "machines", "numa8"]),
        (&["machines", "--format", "csv"], &["list", "machines", "--format", "csv"]),
        (&["run", "--list"], &["list", "experiments"]),
        (&["schema"], &["list", "schemas"]),
        (&["schema", "replay"], &["generate", "schemas", "replay"]),
        (&["man", "replay"], &["generate", "man", "replay"]),
        (&["man"], &["generate", "man"]),
        (&["completions", "bash"], &["generate", "completions", "bash"]),
    ] {
        assert_eq!(printed(old), printed(new), "{old:?} and {new:?}");
    }
    let help = printed(&["--help"]);
    for old in ["engines", "machines", "report", "completions", "schema"] {
        assert!(!help.contains(&format!("\n  {old} ")), "{old} is hidden");
    }
}

#[test]
fn folders_have_their_own_flag() {
    let at = folder("front-folders");
    let path = |name: &str| at.join(name).to_str().expect("UTF-8").to_string();
    let quick = ["run", "micro", "--quick", "--repeats", "2"];
    let mut said = Vec::new();
    for flag in ["--folder", "-d", "--output", "-o"] {
        let to = path(flag.trim_start_matches('-'));
        said.push(printed(&[&quick[..], &[flag, &to]].concat()));
        assert!(
            at.join(&to).join("plan.json").exists() || at.join(&to).read_dir().expect("a folder").count() > 2
        );
    }
    assert!(said.iter().all(|one| *one == said[0]));
    let (parts, whole) = ([path("one"), path("two")], path("whole"));
    for (part, shard) in parts.iter().zip(["1/2", "2/2"]) {
        printed(&[&quick[..], &["--folder", part, "--shard", shard]].concat());
    }
    let joined = printed(&["run", "--join", &parts[0], &parts[1], "--folder", &whole]);
    assert_eq!(joined, said[0]);
    assert_eq!(printed(&["report", &parts[0], &parts[1]]), joined);
    assert_eq!(printed(&["run", "--join", &whole]), joined);
    for wrong in [&["--quick"][..], &["--seed", "1"], &["--cell", "2"], &["--describe"]] {
        common::check_error(&["run"], &[&["--join", &whole][..], wrong].concat(), &["--join"]);
    }
    common::check_error(&["run"], &["--join", &path("none")], &["none", "slablab run --folder FOLDER"]);
    let help = printed(&["run", "--help"]);
    assert!(help.contains("-d, --folder <FOLDER>") && !help.contains("--output"), "{help}");
}

/// Commands that print on standard output.
fn printing() -> Vec<Vec<String>> {
    let dump = argument("examples/data/hackbench-6.18.before.tar.xz");
    let words = |args: &[&str]| args.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let mut all: Vec<Vec<String>> = [
        &[][..],
        &["--help"],
        &["--version"],
        &["help", "run"],
        &["list", "engines"],
        &["list", "workloads", "--format", "json"],
        &["generate", "man"],
        &["generate", "completions", "bash"],
        &["generate", "schemas", "replay"],
        &["what", "dentry"],
        &["what", "--list"],
        &["orders", "--policy", "single"],
        &["doctor", &dump],
        &["doctor", &dump, "--color", "always"],
        &["whatif", &dump, "--max-order", "0"],
        &["run", "2026", "--describe"],
        &["suite", "--list"],
    ]
    .map(words)
    .to_vec();
    let help = printed(&["--help"]);
    let verb = |line: &str| {
        line.strip_prefix("  ").filter(|line| line.starts_with(|c: char| c.is_lowercase())).map(String::from)
    };
    let verbs: Vec<String> =
        help.lines().filter_map(verb).map(|line| line.split(' ').next().expect("a verb").into()).collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    all.extend(verbs.into_iter().map(|verb| vec![verb, "--help".into()]));
    all
}

#[track_caller]
fn check_refused(args: &[String], output: &Output, words: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(said.contains("standard output: ") && said.contains(words), "{args:?}: {said}");
}

#[test]
fn a_full_disk_is_an_error() {
    for args in printing() {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
        let output = command.args(&args).stdout(full).stderr(Stdio::piped()).output().expect("it runs");
        check_refused(&args, &output, "No space left on device");
    }
}

/// Through a shell: the standard library would open /dev/null for a child.
fn with_stdout(args: &[String], redirected: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" \"$@\" {redirected}"), env!("CARGO_BIN_EXE_slablab")]);
    command.args(args).stderr(Stdio::piped()).output().expect("it runs")
}

#[test]
fn a_closed_standard_output_is_an_error() {
    for args in printing() {
        check_refused(&args, &with_stdout(&args, ">&-"), "it is closed");
    }
    let list = ["list", "engines"].map(String::from);
    check_refused(&list, &with_stdout(&list, "1< /dev/null"), "it is closed");
    for takes in ["> /dev/null", "1<> /dev/null", "| true", "| head -n 1"] {
        let output = with_stdout(&list, takes);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{takes}");
    }
    // An answer that goes to a file needs none.
    let file = folder("front-closed").join("list").to_str().expect("UTF-8").to_string();
    let to_file = ["list", "engines", "-o", &file].map(String::from);
    assert_eq!(with_stdout(&to_file, ">&-").status.code(), Some(0));
    assert!(std::fs::read_to_string(&file).expect("the list").contains("slub: releases"));
}
