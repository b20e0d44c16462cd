//! Completions and man pages, as shells and man read them.

use crate::common::{self, folder, text};
use std::process::Command;

fn printed(args: &[&str]) -> String {
    let output = common::slablab(&[], args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The verbs that `--help` lists.
fn verbs() -> Vec<String> {
    let help = printed(&["--help"]);
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verb = |line: &str| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')).map(String::from);
    let first = |line: String| line.split(' ').next().unwrap_or_default().to_string();
    listed.filter_map(verb).map(first).filter(|verb| verb != "help").collect()
}

#[test]
fn each_verb_has_completions_and_a_page() {
    let verbs = verbs();
    assert!(verbs.len() > 20, "{verbs:?}");
    let shells = ["bash", "zsh", "fish"].map(|shell| (shell, printed(&["completions", shell])));
    let at = folder("man");
    printed(&["man", "--all", at.to_str().expect("UTF-8")]);
    for verb in &verbs {
        for (shell, said) in &shells {
            assert!(said.contains(verb.as_str()), "{shell} does not complete {verb}");
        }
        let name = format!("slablab-{verb}.1");
        let page = std::fs::read_to_string(at.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(&format!(".TH slablab-{verb} 1")), "{page}");
    }
    let page = printed(&["man", "replay"]);
    assert_eq!(page, std::fs::read_to_string(at.join("slablab-replay.1")).expect("a page"));
    for words in ["slablab replay", "\\-\\-engine", "\\-\\-format"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    // Verbs of verbs have pages, too; words that are hidden from --help have none.
    assert!(at.join("slablab-pressure-run.1").exists() && at.join("slablab.1").exists());
    let bench = std::fs::read_to_string(at.join("slablab-bench.1")).expect("a page");
    assert!(
        bench.contains(".SH EXAMPLES\n.nf\n  slablab bench\n") && !bench.contains("memory\\-of"),
        "{bench}"
    );
}

/// bash is where CI is; what it completes is asked of bash itself.
#[test]
fn bash_completes() {
    let script = printed(&["completions", "bash"]);
    let complete = |words: &[&str]| {
        let asked = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _slablab slablab '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2]
        );
        let output = Command::new("bash").args(["-c", &asked]).output().expect("bash runs");
        text(&output.stdout).split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["slablab", "rep"]), ["replay", "reproduce", "report"]);
    assert_eq!(complete(&["slablab", "replay", "--eng"]), ["--engine"]);
    assert_eq!(complete(&["slablab", "replay", "--format", ""]), ["table", "json", "csv"]);
}

#[test]
fn what_they_do_not_take() {
    common::check_error(&["completions"], &["tcsh"], &["invalid value 'tcsh'", "bash"]);
    common::check_error(&["man"], &["replays"], &["no verb replays: expected one of doctor, import"]);
    common::check_error(&["man"], &["--all", "/nonexistent/man1"], &["/nonexistent"]);
}
