//! `slablab linux`: what it refuses, and an empty list. Builds of a real tree are tests of `slablab-linux`.

use crate::common::{folder, text, unbroken};
use crate::schemas::check_document;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the verb with builds in `cache`.
fn linux(cache: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command
        .arg("linux")
        .args(args)
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C.UTF-8")
        .env("XDG_CACHE_HOME", cache);
    command.output().expect("the program runs")
}

#[test]
fn nothing_is_built_yet() {
    let cache = folder("linux-empty");
    let output = linux(&cache, &["list"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = "No allocator of a kernel tree is built: `slablab linux build PATH` builds one.\n";
    assert_eq!(unbroken(&text(&output.stdout)), unbroken(said));
    for args in [["list", "--format", "json"].as_slice(), &["remove", "--all", "--format", "json"]] {
        let output = linux(&cache, args);
        let document = serde_json::from_slice(&output.stdout).expect("JSON");
        check_document(args, &document);
    }
}

#[test]
fn wrong_words_are_refused() {
    let cache = folder("linux-refused");
    std::fs::write(cache.join("file"), "").expect("a file");
    let file = cache.join("file");
    let file = file.to_str().expect("UTF-8");
    let check = |args: &[&str], words: &str| {
        let output = linux(&cache, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = unbroken(&text(&output.stderr));
        assert!(said.contains(words), "{args:?}: {said}");
        assert!(output.stdout.is_empty());
    };
    check(&["build", "/nonexistent/linux"], "/nonexistent/linux: No such file");
    check(&["build", file], "expected the folder of a kernel tree, found a file");
    check(&["build", cache.to_str().expect("UTF-8")], "found a folder without Makefile");
    check(&["build", file, "--name", "a/b"], "expected a letter or digit");
    check(&["build", file, "--allocator", "slqb"], "expected slub, slab or slob");
    check(&["build", file, "--jobs", "0"], "--jobs");
    check(&["remove", "mine"], "mine: expected a name of `slablab linux list`");
    check(&["remove"], "required");
    check(&["remove", "mine", "--all"], "cannot be used with");
}
