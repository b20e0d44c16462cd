//! The commits of a made repository: ranges, patches, and what is refused. Nothing is built.

use super::folder;
use slablab_linux::build::Store;
use slablab_linux::history::Repository;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs git, and returns what it prints.
#[track_caller]
fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]).args(words);
    let output =
        command.current_dir(folder).env("GIT_CEILING_DIRECTORIES", folder).output().expect("git runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_string()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// A repository of a base and three commits, and the folder of builds beside it.
fn made(name: &str) -> (PathBuf, Store) {
    let at = folder(name);
    let tree = at.join("tree");
    fs::create_dir_all(&tree).expect("a folder");
    git(&tree, &["init", "-q", "-b", "main"]);
    for (file, text) in [("mm/slub.c", "1\n"), ("mm/slub.c", "2\n"), ("README", "x\n"), ("mm/slub.c", "3\n")]
    {
        write(&tree.join(file), text);
        git(&tree, &["add", "-A"]);
        git(&tree, &["commit", "-q", "-m", &format!("{file}: {}", text.trim())]);
    }
    (tree, Store::at(at.join("store")))
}

/// Every file of a folder, with its bytes.
fn all(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(all(&path)),
            path => found.push((path.clone(), fs::read(&path).expect("a file"))),
        }
    }
    found.sort();
    found
}

#[test]
fn a_range_has_its_commits_in_order() {
    let (tree, store) = made("range");
    let before = all(&tree);
    let repository = Repository::open_in(&tree, store).expect("a repository");
    let range = repository.range("HEAD~3..").expect("a range");
    let shown: Vec<(&str, &[String])> =
        range.commits.iter().map(|commit| (commit.title.as_str(), commit.paths.as_slice())).collect();
    let (slub, readme) = (["mm/slub.c".to_string()], ["README".to_string()]);
    assert_eq!(shown, [("mm/slub.c: 2", &slub[..]), ("README: x", &readme), ("mm/slub.c: 3", &slub)]);
    assert_eq!(range.base.title, "mm/slub.c: 1");
    let check = |range: &str, words: &str| {
        let error = repository.range(range).expect_err("a refusal").to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{range}: {error}");
    };
    check("HEAD", "expected BASE..HEAD; one commit alone is `HEAD~1..HEAD`");
    check("HEAD~3...HEAD", "expected BASE..HEAD");
    check("v9..HEAD", "v9: no commit of");
    check("HEAD~3..nothing", "nothing: no commit of");
    check("--all..HEAD", "--all: no commit of");
    check("HEAD..HEAD", "there is no commit between HEAD and HEAD");
    git(&tree, &["branch", "side", "HEAD~2"]);
    git(&tree, &["-c", "core.hooksPath=/dev/null", "checkout", "-q", "side"]);
    write(&tree.join("README"), "side\n");
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-q", "-m", "side"]);
    check("main..side", "main is not on the way of first parents from side");
    git(&tree, &["checkout", "-q", "main"]);
    git(&tree, &["branch", "-q", "-D", "side"]);
    let names = |files: Vec<(PathBuf, Vec<u8>)>| {
        let kept = files.into_iter().filter(|(path, _)| !path.to_string_lossy().contains("/.git/"));
        kept.collect::<Vec<_>>()
    };
    assert_eq!(names(all(&tree)), names(before));
}

#[test]
fn a_patch_is_applied_in_the_cache() {
    let (tree, store) = made("patched");
    let patch = tree.with_file_name("a.patch");
    let make = |text: &str| {
        write(&tree.join("mm/slub.c"), text);
        fs::write(&patch, git(&tree, &["diff"]) + "\n").expect("a file");
        git(&tree, &["checkout", "-q", "--", "mm/slub.c"]);
    };
    make("4\n");
    git(&tree, &["update-index", "-q", "--refresh"]);
    let before = all(&tree);
    let repository = Repository::open_in(&tree, store).expect("a repository");
    let head = repository.head(&mut || true).expect("git").expect("nothing stops it");
    assert_eq!(head.title, "mm/slub.c: 3");
    let patched = repository.patched(&head, std::slice::from_ref(&patch)).expect("it applies");
    assert_eq!(patched.paths, ["mm/slub.c"]);
    assert!(patched.name.starts_with("a.") && patched.id != head.id, "{patched:?}");
    let again = repository.patched(&head, std::slice::from_ref(&patch)).expect("it applies");
    assert_eq!(again, patched);
    assert_eq!(all(&tree), before, "the repository is only read");
    fs::write(&patch, fs::read_to_string(&patch).expect("a file").replace("-3", "-9")).expect("a file");
    let error = repository.patched(&head, std::slice::from_ref(&patch)).expect_err("a refusal").to_string();
    assert!(error.contains("a.patch: it does not apply to ") && error.contains("mm/slub.c:1"), "{error}");
}

#[test]
fn a_tree_without_commits_is_taken_as_it_is() {
    let (tree, store) = made("plain");
    fs::remove_dir_all(tree.join(".git")).expect("a folder");
    let before = all(&tree);
    let repository = Repository::open_in(&tree, store).expect("a tree");
    let error = repository.range("a..b").expect_err("a refusal").to_string();
    assert!(error.contains("expected a git repository: `-C TREE`"), "{error}");
    let first = repository.head(&mut || true).expect("git").expect("nothing stops it");
    assert_eq!(all(&tree), before, "the tree is only read");
    assert_eq!(repository.head(&mut || true).expect("git"), Some(first.clone()));
    write(&tree.join("mm/slub.c"), "5\n");
    let second = repository.head(&mut || true).expect("git").expect("nothing stops it");
    assert_ne!(first.id, second.id);
    // As in Debian's sources.
    write(&tree.join(".gitignore"), "/*\n!/debian/\n");
    let third = repository.head(&mut || true).expect("git").expect("nothing stops it");
    write(&tree.join("mm/slub.c"), "6\n");
    assert_ne!(repository.head(&mut || true).expect("git").expect("nothing stops it").id, third.id);
}

#[test]
fn a_folder_that_is_no_tree_is_not_read() {
    let (tree, store) = made("other");
    for name in [".git", "mm"] {
        fs::remove_dir_all(tree.join(name)).expect("a folder");
    }
    let error = Repository::open_in(&tree, store).err().expect("a refusal").to_string();
    assert!(error.contains("found a folder without mm"), "{error}");
}
