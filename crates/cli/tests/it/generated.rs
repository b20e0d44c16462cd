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
    let verb = |line: &str| {
        let verb =
            line.strip_prefix("  ").filter(|line| line.starts_with(|char: char| char.is_lowercase()))?;
        Some(verb.split(' ').next().unwrap_or_default().to_string())
    };
    help.lines().filter_map(verb).collect()
}

#[test]
fn each_verb_has_completions_and_a_page() {
    let verbs = verbs();
    assert_eq!(verbs.len(), 25, "{verbs:?}");
    let shells = ["bash", "zsh", "fish"].map(|shell| (shell, printed(&["generate", "completions", shell])));
    let at = folder("man");
    printed(&["generate", "man", "--folder", at.to_str().expect("UTF-8")]);
    for verb in &verbs {
        for (shell, said) in &shells {
            assert!(said.contains(verb.as_str()), "{shell} does not complete {verb}");
        }
        let name = format!("slablab-{verb}.1");
        let page = std::fs::read_to_string(at.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(&format!(".TH slablab-{verb} 1")), "{page}");
    }
    let page = printed(&["generate", "man", "replay"]);
    assert_eq!(page, std::fs::read_to_string(at.join("slablab-replay.1")).expect("a page"));
    for words in ["slablab replay", "\\-\\-engine", "\\-\\-format"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    // Verbs of verbs have pages, too; words that are hidden from --help have none.
    assert!(
        ["slablab-pressure-run.1", "slablab-list-engines.1", "slablab.1"]
            .iter()
            .all(|page| at.join(page).exists())
    );
    let bench = std::fs::read_to_string(at.join("slablab-bench.1")).expect("a page");
    assert!(
        bench.contains(".SH EXAMPLES\n.nf\n  slablab bench\n") && !bench.contains("memory\\-of"),
        "{bench}"
    );
}

/// bash is where CI is; what it completes is asked of bash itself.
#[test]
fn bash_completes() {
    // A file: it is longer than a word of the command line may be.
    let script = common::folder("bash-completes").join("slablab.bash");
    std::fs::write(&script, printed(&["generate", "completions", "bash"])).expect("room");
    let complete = |words: &[&str]| {
        let asked = format!(
            "source '{}'\nCOMP_WORDS=({}); COMP_CWORD={}; _slablab slablab '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2]
        );
        let output = Command::new("bash").args(["-c", &asked]).output().expect("bash runs");
        text(&output.stdout).split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["slablab", "rep"]), ["replay", "reproduce"]);
    assert_eq!(complete(&["slablab", "replay", "--eng"]), ["--engine"]);
    assert_eq!(complete(&["slablab", "replay", "--format", ""]), ["table", "json", "csv"]);
}

#[test]
fn what_they_do_not_take() {
    common::check_error(&["generate", "completions"], &["tcsh"], &["invalid value 'tcsh'", "bash"]);
    common::check_error(
        &["generate", "man"],
        &["replays"],
        &["no verb replays: expected one of doctor, leak"],
    );
    common::check_error(&["generate", "man"], &["--folder", "/nonexistent/man1"], &["/nonexistent"]);
}
