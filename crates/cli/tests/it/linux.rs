//! `slablab linux`: what it refuses, an empty list, and a made series of commits. Builds of a real tree are
//! tests of `slablab-linux`; the series is made of the tree in `SLABLAB_LINUX_TREE`, and without it tests
//! nothing.

use crate::common::{argument, check_narrow, folder, text, unbroken};
use crate::schemas::check_document;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RECORDING: &str = "examples/data/git-grep.trace.parquet";
const HACKBENCH: &str = "examples/data/hackbench-6.18.perf.data.xz";

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

/// A folder that looks like a kernel tree, and whose Makefile does this for any target.
fn fake_tree(at: &Path, recipe: &str) -> PathBuf {
    let tree = at.join("tree");
    for folder in ["include/linux", "arch/x86", "mm", "scripts/kconfig", "kernel", "lib"] {
        std::fs::create_dir_all(tree.join(folder)).expect("a folder");
    }
    for file in ["Kconfig", "Kbuild", "arch/x86/Kconfig", "mm/slub.c"] {
        std::fs::write(tree.join(file), "").expect("a file");
    }
    let makefile =
        format!("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 1\n.DEFAULT:\n\t{recipe}\nall:\n\t{recipe}\n");
    std::fs::write(tree.join("Makefile"), makefile).expect("a file");
    tree
}

/// What is left of builds in a cache.
fn builds(cache: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cache.join("slablab/linux/builds")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn inputs_of_a_build_are_refused_in_one_line() {
    let at = folder("linux-bad-inputs");
    let tree = fake_tree(&at, "@echo no; exit 1");
    let spaced = at.join("a b");
    std::fs::create_dir_all(&spaced).expect("a folder");
    std::fs::rename(&tree, spaced.join("tree")).expect("a folder");
    let moved = spaced.join("tree");
    let said = |tree: &Path, config: &str, words: &str| {
        let config = (!config.is_empty()).then(|| {
            let path = at.join("config");
            std::fs::write(&path, config).expect("a file");
            path
        });
        let mut args = vec!["build", tree.to_str().expect("UTF-8")];
        args.extend(config.iter().flat_map(|path| ["--config", path.to_str().expect("UTF-8")]));
        let output = linux(&at, &args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{args:?}: {said}");
        assert!(output.stdout.is_empty() && builds(&at).is_empty(), "{args:?}: {:?}", builds(&at));
    };
    said(&moved, "", "expected a path without spaces");
    std::fs::rename(&moved, &tree).expect("a folder");
    said(&tree, "CONFIG_ARM64=y\nCONFIG_SLUB=y\n", "expected a configuration for x86, found one for arm64");
    said(&tree, "no option\n", "expected a kernel's .config, found no line `CONFIG_..=`");
    std::fs::remove_dir_all(tree.join("arch")).expect("a folder");
    std::fs::create_dir_all(tree.join("arch/arm64")).expect("a folder");
    said(&tree, "", "arch/x86");
}

/// `timeout` sends its signal to the program and to its process group: that is one signal.
#[test]
fn a_build_that_gets_a_signal_twice_leaves_nothing() {
    let at = folder("linux-signal");
    let tree = fake_tree(&at, "@touch $(CURDIR)/../begun; exec sleep 300.25");
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    let tree = tree.to_str().expect("UTF-8");
    command.args(["linux", "build", tree]).env("XDG_CACHE_HOME", &at).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let begun = || at.join("begun").exists();
    let since = std::time::Instant::now();
    while !begun() && since.elapsed().as_secs() < 20 && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    if !begun() {
        // This host has not what a kernel's build needs.
        let output = child.wait_with_output().expect("a child");
        assert!(text(&output.stderr).contains("kbuild needs"), "{}", text(&output.stderr));
        return;
    }
    let pid = child.id().to_string();
    for _ in 0..2 {
        Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
    }
    let status = child.wait().expect("a child");
    assert_eq!(status.code(), Some(143), "{status:?}");
    assert!(builds(&at).is_empty(), "{:?}", builds(&at));
    let is_sleep = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\x00300.25\x00")
    };
    let left = std::fs::read_dir("/proc").expect("/proc").flatten().any(is_sleep);
    assert!(!left, "the processes of the build go on");
}

/// Runs git in a folder, and returns what it prints.
#[track_caller]
fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
    command.args(["-c", "core.compression=0", "-c", "gc.auto=0"]).args(words).current_dir(folder);
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_string()
}

#[test]
fn a_series_that_cannot_be_made_is_refused() {
    let at = folder("linux-series-refused");
    let (plain, tree) = (at.join("plain"), at.join("tree"));
    for folder in [&plain, &tree] {
        std::fs::create_dir_all(folder.join("mm")).expect("a folder");
        std::fs::write(folder.join("mm/slub.c"), "1\n").expect("a file");
    }
    git(&tree, &["init", "-q"]);
    for words in [["add", "-A", "."].as_slice(), &["commit", "-q", "-m", "one"]] {
        git(&tree, words);
    }
    std::fs::write(tree.join("mm/slub.c"), "2\n").expect("a file");
    git(&tree, &["commit", "-q", "-a", "-m", "two"]);
    let patch = at.join("a.patch");
    let of = |old: &str| format!("--- a/mm/slub.c\n+++ b/mm/slub.c\n@@ -1 +1 @@\n-{old}\n+3\n");
    std::fs::write(&patch, of("9")).expect("a file");
    let [plain, tree, patch] = [&plain, &tree, &patch].map(|path| path.to_str().expect("UTF-8").to_string());
    let recording = argument(RECORDING);
    let replay = ["--replay", recording.as_str()];
    let has = |tool: &&str| Command::new(tool).arg("--version").output().is_ok();
    let has_tools = ["flex", "bison", "bc"].iter().all(has);
    let check = |args: &[&str], words: &str| {
        let output = linux(&at, args);
        let said = unbroken(&text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        // Results are kept by the tools that built them: on a machine without them they are asked for first.
        let needs_tools = !has_tools && said.contains("to build it, kbuild needs ");
        assert!(said.contains(words) || needs_tools, "{args:?}: {said}");
        assert!(output.stdout.is_empty() && !said.contains("panicked"), "{args:?}: {said}");
    };
    let commits = |range: &str, tree: &str, others: &[&str], words: &str| {
        check(&[&["commits", range, "-C", tree], others].concat(), words);
    };
    commits("HEAD~1..HEAD", &tree, &[], "--run");
    commits("HEAD~1..HEAD", &tree, &[&replay[..], &["--run", "2026"]].concat(), "cannot be used with");
    commits("HEAD~1..HEAD", &plain, &replay, "expected a git repository: `-C TREE` names its top folder");
    commits("HEAD~1..HEAD", &format!("{tree}/mm"), &replay, "found a folder without mm");
    commits("HEAD~1..HEAD", "/nonexistent/linux", &replay, "/nonexistent/linux: No such file");
    commits("HEAD", &tree, &replay, "expected BASE..HEAD; one commit alone is `HEAD~1..HEAD`");
    commits("v9..HEAD", &tree, &replay, "v9: no commit of ");
    commits("HEAD..HEAD", &tree, &replay, "there is no commit between HEAD and HEAD");
    commits("HEAD~1..", &tree, &["--replay", "/nonexistent/r"], "/nonexistent/r: No such file");
    commits("HEAD~1..", &tree, &["--run", "no-such-experiment"], "no-such-experiment");
    commits("HEAD~1..", &tree, &[&replay[..], &["--quick"]].concat(), "a replay has one run");
    commits("HEAD~1..", &tree, &[&replay[..], &["--shard", "1/2"]].concat(), "--folder");
    commits(
        "HEAD~1..",
        &tree,
        &[&replay[..], &["--cached"]].concat(),
        "--cached: nothing is kept of this base",
    );
    let patched = |patch: &str, tree: &str, words: &str| {
        check(&[&["patch", patch, "-C", tree], &replay[..]].concat(), words);
    };
    patched(&patch, &tree, "it does not apply to ");
    patched("/nonexistent/a.patch", &tree, "/nonexistent/a.patch: No such file");
    patched(&patch, &plain, "it does not apply to ");
    std::fs::write(&patch, of("2")).expect("a file");
    patched(
        &patch,
        &tree,
        "the base does not build: expected a kernel tree, found a folder without Makefile",
    );
    check(&["patch", "-C", &tree], "required");
}

/// Files of a kernel tree that a build of its allocator reads, and some that it does not.
const FILES: [&str; 20] = [
    "Makefile",
    "Kbuild",
    "README",
    "arch/x86",
    "arch/Kconfig",
    "certs",
    "include",
    "init",
    "kernel",
    "lib",
    "mm",
    "scripts",
    "tools/arch",
    "tools/build",
    "tools/include",
    "tools/lib",
    "tools/objtool",
    "tools/scripts",
    "usr",
    "virt",
];

/// The change of a commit: the first line that begins with these words is replaced by these.
struct Change(&'static str, &'static str, &'static str, &'static str);

const SLUB: &str = "mm/slub.c";
const ORDER: &str = "mm/slub: a lower order";
const BATCH: &str = "mm/slub: a smaller batch";
const BROKEN: &str = "mm/slub: a syntax error";
const BUG: &str = "mm/slub: a wrong check";
const LIMIT: &str = "#define TRACK_ADDRS_COUNT";

/// Eight commits: title, file, what is sought, what takes its place.
const SERIES: [Change; 8] = [
    Change("README: a word", "README", "Linux", "Linux, the kernel"),
    Change(
        "mm/slub: an unused constant",
        SLUB,
        "#define OO_SHIFT",
        "#define SLABLAB_UNUSED 1\n#define OO_SHIFT\t16",
    ),
    Change(ORDER, SLUB, "static unsigned int slub_max_order", "static unsigned int slub_max_order = 1;"),
    Change("mm/ksm: a blank line", "mm/ksm.c", "#include <linux/errno.h>", "\n#include <linux/errno.h>"),
    Change(BROKEN, SLUB, LIMIT, "syntax error;"),
    Change("mm/slub: the error is gone", SLUB, "syntax error;", "#define TRACK_ADDRS_COUNT 16"),
    Change(BATCH, SLUB, "static void slub_set_cpu_partial(", "{\n\tnr_objects = 0;"),
    Change(BUG, SLUB, "void kmem_cache_free(", "{\n\tBUG_ON(1);"),
];

/// The text with a change. A place that is a function's begins with the line of its name: the brace after
/// that is replaced.
fn changed(old: &str, Change(title, _, sought, new): &Change) -> String {
    let at = old
        .lines()
        .position(|line| line.starts_with(sought))
        .unwrap_or_else(|| panic!("{title}: no {sought}"));
    let at = at
        + if sought.ends_with('(') {
            old.lines().skip(at).position(|line| line == "{").expect("a brace")
        } else {
            0
        };
    let lines = old.lines().enumerate().map(|(line, text)| if line == at { *new } else { text });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A repository of a kernel tree's files, with the series on it.
fn made(tree: &Path, at: &Path) -> PathBuf {
    let made = at.join("linux");
    std::fs::create_dir_all(&made).expect("a folder");
    git(&made, &["init", "-q"]);
    let from = format!("--work-tree={}", tree.display());
    let there: Vec<&str> = FILES.into_iter().filter(|path| tree.join(path).exists()).collect();
    let everywhere = [":(glob)**/Kconfig*", ":(glob)**/Makefile*", ":(glob)**/Kbuild*"];
    let all = [&["--git-dir=.git", &from, "add", "-f", "-A", "--"][..], &there, &everywhere].concat();
    git(&made, &all);
    git(&made, &["commit", "-q", "-m", "Linux"]);
    git(&made, &["reset", "-q", "--hard"]);
    for change in &SERIES {
        let path = made.join(change.1);
        let old = std::fs::read_to_string(&path).expect("a file of the tree");
        std::fs::write(&path, changed(&old, change)).expect("a file");
        git(&made, &["commit", "-q", "-a", "-m", change.0]);
    }
    made
}

/// A commit's row of a document.
#[track_caller]
fn row<'a>(document: &'a Value, title: &str) -> &'a Value {
    let commits = document["commits"].as_array().expect("commits");
    commits
        .iter()
        .find(|commit| commit["title"] == title)
        .unwrap_or_else(|| panic!("no {title}: {commits:#?}"))
}

#[test]
fn a_made_series_names_the_commits_that_move_numbers() {
    let Some(tree) = std::env::var_os("SLABLAB_LINUX_TREE").map(PathBuf::from) else { return };
    let at = folder("linux-series");
    let linux_tree = made(&tree, &at);
    let (made, recording) = (linux_tree.to_str().expect("UTF-8"), argument(HACKBENCH));
    let state = || (git(&linux_tree, &["status", "--porcelain"]), git(&linux_tree, &["count-objects", "-v"]));
    let before = state();
    let series = ["commits", "HEAD~8..HEAD", "-C", made, "--replay", &recording];
    let json = |others: &[&str]| -> Value {
        let args = [&series[..], others, &["--format", "json"]].concat();
        let output = linux(&at, &args);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", text(&output.stderr));
        let document = serde_json::from_slice(&output.stdout).expect("JSON");
        check_document(&args, &document);
        document
    };
    let page = at.join("page.html");
    let document = json(&["--html", page.to_str().expect("UTF-8")]);
    assert!(page.exists());
    let check = |title: &str, state: &str, moves: bool, problem: &str| {
        let row = row(&document, title);
        assert_eq!(row["state"], state, "{row:#}");
        assert_eq!(row["moved"].as_u64().expect("a number") > 0, moves, "{row:#}");
        assert!(row["problem"].as_str().unwrap_or_default().contains(problem), "{row:#}");
    };
    check("README: a word", "untouched", false, "");
    check("mm/slub: an unused constant", "measured", false, "");
    check(ORDER, "measured", true, "");
    check("mm/ksm: a blank line", "untouched", false, "");
    check(BROKEN, "does not build", false, "error:");
    check("mm/slub: the error is gone", "measured", false, "");
    check(BATCH, "measured", true, "");
    check(BUG, "ended", false, "BUG at mm/slub.c:");
    let slabs = document["moves"].as_array().expect("moves").iter().filter(|one| one["name"] == "alloc_slab");
    let order = row(&document, ORDER)["commit"].clone();
    assert!(
        slabs.clone().any(|one| one["commit"] == order),
        "a lower order takes more slabs: {:#}",
        document["moves"]
    );

    // The text begins with the commit, and the second time nothing is built.
    let begun = std::time::Instant::now();
    let output = linux(&at, &[&series[..], &["--cached"]].concat());
    let said = text(&output.stdout);
    check_narrow(&said);
    let id = order.as_str().expect("digits");
    assert!(said.starts_with("2 of 8 commits move numbers in replays of"), "{said}");
    assert!(unbroken(&said).contains(&format!("{} ({ORDER})", &id[..12])), "{said}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    println!("{said}");

    // Two parts are the whole.
    let parts = at.join("parts");
    let parts = parts.to_str().expect("UTF-8");
    let first = json(&["--folder", parts, "--shard", "1/2"]);
    assert_eq!(row(&first, BUG)["state"], "not run");
    json(&["--folder", parts, "--shard", "2/2"]);
    let whole = json(&["--folder", parts, "--cached"]);
    assert_eq!(whole["moves"], document["moves"]);

    a_patch(&at, &linux_tree, &recording, id);
    assert_eq!(state(), before, "the repository is only read");
    let output = linux(&at, &["remove", "--all"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        !at.join("slablab/linux/commits")
            .read_dir()
            .is_ok_and(|mut files| files.any(|file| { file.is_ok_and(|file| file.path().is_dir()) }))
    );
}

/// The commit `id` as a patch on the one before it; then patches that do not build, and touch nothing.
fn a_patch(at: &Path, tree: &Path, recording: &str, id: &str) {
    let side = at.join("side");
    git(tree, &["clone", "-q", "--shared", ".", side.to_str().expect("UTF-8")]);
    git(&side, &["checkout", "-q", &format!("{id}~1")]);
    let patched = |from: &str, code: i32| {
        let patch = at.join("a.patch");
        std::fs::write(&patch, git(tree, &["format-patch", "-1", "--stdout", from]) + "\n").expect("a file");
        let (patch, side) = (patch.to_str().expect("UTF-8"), side.to_str().expect("UTF-8"));
        let args = ["patch", patch, "-C", side, "--replay", recording, "--format", "json"];
        let output = linux(at, &args);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        if code != 2 {
            check_document(&args, &serde_json::from_slice(&output.stdout).expect("JSON"));
        }
        (text(&output.stdout), unbroken(&text(&output.stderr)))
    };
    let document: Value = serde_json::from_str(&patched(id, 0).0).expect("JSON");
    let slabs = |at: usize| document["engines"][at]["total"]["slab_end_bytes"].as_u64();
    assert_ne!(slabs(0), slabs(1), "{:#}", document["answer"]);
    let said = patched("HEAD~3", 2).1;
    assert!(said.contains("the base with the patch does not build: mm/slub.c:"), "{said}");
    let said = patched("HEAD~4", 0).0;
    assert!(said.contains("of which the build of the allocator reads none"), "{said}");
}
