//! What cannot be built is refused in a sentence that names it.

use super::folder;
use slablab_linux::build::{Allocator, Request, Store};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The files of a folder that looks like a kernel tree.
const FILES: [&str; 6] =
    ["Kconfig", "mm/slub.c", "include/linux/x", "scripts/kconfig/x", "arch/x86/Kconfig", "Makefile"];

/// Makes what looks like a kernel tree, with changes: a file and its text, or none.
fn made(name: &str, changes: &[(&str, Option<&str>)]) -> PathBuf {
    let tree = folder(name);
    let usual = FILES.map(|path| (path, Some("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\n")));
    for (path, text) in usual.iter().chain(changes) {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        match text {
            Some(text) => fs::write(&path, text).expect("a file"),
            None if path.is_dir() => fs::remove_dir_all(&path).expect("a folder"),
            None => fs::remove_file(&path).expect("a file"),
        }
    }
    tree
}

/// Builds in an empty folder of builds, and expects an error that begins with its path and has these words.
#[track_caller]
fn check(request: &Request, path: &Path, words: &str) {
    let store = Store::at(folder("refused-store"));
    let error = store.build(request, &mut |_| ControlFlow::Continue(())).expect_err("a refusal").to_string();
    let begin = format!("{}: ", path.display());
    assert!(error.starts_with(&begin) && error.contains(words), "{error}\nexpected {begin}.. {words}");
    assert!(!error.contains('\n'), "{error}");
    assert!(store.list().is_empty());
}

#[track_caller]
fn check_tree(tree: &Path, words: &str) {
    check(&Request::of(tree), tree, words);
}

#[test]
fn folders_that_are_no_kernel_tree() {
    check_tree(Path::new("/nonexistent/linux"), "No such file");
    check_tree(Path::new("/etc/passwd"), "expected the folder of a kernel tree, found a file");
    check_tree(&folder("refused-empty"), "found a folder without Makefile");
    for (at, part) in ["Kconfig", "mm", "include/linux", "scripts/kconfig"].into_iter().enumerate() {
        let words = format!("found a folder without {part}");
        check_tree(&made(&format!("refused-part-{at}"), &[(part, None)]), &words);
    }
    let tree = made("refused-makefile", &[("Makefile", Some("all:\n"))]);
    check(&Request::of(&tree), &tree.join("Makefile"), "no VERSION and PATCHLEVEL");
    check_tree(&made("refused-arch", &[("arch/x86/Kconfig", None)]), "expected a kernel tree with arch/x86");
}

#[test]
fn trees_that_kbuild_refuses() {
    check_tree(&made("refused-config", &[(".config", Some(""))]), "was built in place (.config is there)");
    let tree = made("refused-built", &[("include/config/auto.conf", Some(""))]);
    check_tree(&tree, "run `make mrproper`");
    for name in ["refused space", "refused:colon"] {
        let tree = made(name, &[]);
        check_tree(&tree, "expected a path without spaces, colons");
        let link = folder("refused-links").join("link");
        std::os::unix::fs::symlink(&tree, &link).expect("a link");
        check(&Request::of(&link), &tree, "expected a path without spaces, colons");
    }
}

#[test]
fn requests_that_the_tree_cannot_meet() {
    let tree = made("refused-request", &[]);
    let of = |change: fn(&mut Request)| {
        let mut request = Request::of(&tree);
        change(&mut request);
        request
    };
    check(
        &of(|one| one.allocator = Some(Allocator::Slob)),
        &tree,
        "expected a tree with mm/slob.c, found slub",
    );
    check(&of(|one| one.name = Some("a/b".into())), Path::new("--name"), "letters, digits");
    let config = Path::new("/nonexistent/config");
    check(&of(|one| one.config = Some("/nonexistent/config".into())), config, "No such file");
    let config = folder("refused-user").join("config");
    fs::write(&config, "# nothing\n").expect("a file");
    let mut request = Request::of(&tree);
    request.config = Some(config.clone());
    check(&request, &config, "expected a kernel's .config");
    let arm = "#\n# Linux/arm64 6.1.7 Kernel Configuration\n#\nCONFIG_SLUB=y\n";
    fs::write(&config, arm).expect("a file");
    check(&request, &config, "expected a configuration for x86, found one for arm64");
    fs::write(&config, "CONFIG_SLAB=y\n# CONFIG_SLUB is not set\n").expect("a file");
    check(&request, &tree, "expected a tree with mm/slab.c, found slub");
}

#[test]
fn names_that_no_build_has() {
    let store = Store::at(folder("refused-names"));
    let check = |text: &str, words: &str| {
        let error = store.find(text).expect_err("no build").to_string();
        assert!(error.starts_with(&format!("{text}: ")) && error.contains(words), "{error}");
    };
    check("mine", "expected a name of `slablab linux list`, or the path of a kernel tree");
    check("/nonexistent/linux", "No such file");
    let tree = made("refused-unbuilt", &[]);
    check(&tree.display().to_string(), "this tree is not built: `slablab linux build ");
    let error = store.remove(&["mine".into()]).expect_err("no build").to_string();
    assert!(error.contains("expected a name of `slablab linux list`"), "{error}");
    assert_eq!(store.remove_all().expect("nothing to remove"), (Vec::new(), 0));
}
