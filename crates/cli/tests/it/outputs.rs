//! Outputs: no file is lost that the command reads, or writes twice.

use crate::common::{bundled, folder};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the program in `folder`, whose file `X` must be left alone, and which must be told of both of
/// `named`.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], named: [&str; 2]) {
    let before = fs::read(folder.join("X")).expect("the file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    let stdin = if arguments.contains(&"-") {
        Stdio::from(fs::File::open(folder.join("X")).expect("the file"))
    } else {
        Stdio::null()
    };
    let output = command.args(arguments).current_dir(folder).stdin(stdin).output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    for words in named {
        assert!(said.contains(words), "{arguments:?} does not say {words:?}: {said}");
    }
    assert!(said.contains("the same file as"), "{arguments:?}: {said}");
    assert_eq!(before, fs::read(folder.join("X")).expect("the file"), "{arguments:?} changed its input");
    assert!(!folder.join("new").exists(), "{arguments:?} wrote a file");
}

#[test]
fn an_output_that_is_an_input_or_another_output_is_refused() {
    let folder = folder("outputs");
    let (recording, dump) = (
        bundled("examples/data/hackbench-6.18.perf.data.xz"),
        bundled("examples/data/hackbench-6.18.before.tar.xz"),
    );
    fs::copy(recording, folder.join("X")).expect("a file");
    symlink("X", folder.join("link")).expect("a link");
    fs::hard_link(folder.join("X"), folder.join("hard")).expect("a link");
    symlink("new", folder.join("dangling")).expect("a link");
    for output in ["X", "./X", "link", "hard"] {
        refused(&folder, &["import", "X", "-o", output], [&format!("-o {output}"), "the input X"]);
    }
    refused(&folder, &["import", "link", "-o", "X"], ["-o X", "the input link"]);
    refused(&folder, &["import", "-", "-o", "X"], ["-o X", "the input (standard input)"]);
    refused(&folder, &["replay", "X", "--engine", "slub", "-o", "X"], ["-o X", "the recording X"]);
    refused(&folder, &["replay", "X", "--html", "link"], ["--html link", "the recording X"]);
    refused(&folder, &["explain", "X", "slub@6.1", "slub@6.18", "-o", "X"], ["-o X", "the recording X"]);
    refused(&folder, &["verify", "X", "--before", "X", "--after", "X", "-o", "X"], ["-o X", "the input X"]);
    for (from, to) in [("new", "new"), ("new", "./new"), ("new", "dangling"), ("dangling", "new")] {
        let named = [format!("--html {to}"), format!("-o {from}")];
        refused(&folder, &["replay", "X", "-o", from, "--html", to], [&named[0], &named[1]]);
        refused(&folder, &["bench", "-o", from, "--html", to], [&named[0], &named[1]]);
    }
    fs::remove_file(folder.join("hard")).expect("the link");
    fs::copy(dump, folder.join("X")).expect("a file");
    refused(&folder, &["doctor", "X", "-o", "X"], ["-o X", "the input X"]);
    refused(&folder, &["doctor", "X", "--html", "X"], ["--html X", "the input X"]);
    refused(
        &folder,
        &["doctor", "X", "--since", "link", "-o", "new", "--html", "X"],
        ["--html X", "the input X"],
    );
    refused(&folder, &["doctor", "--save", "new.tar", "-o", "new.tar"], ["-o new.tar", "--save new.tar"]);
    refused(&folder, &["whatif", "X", "--max-order", "0", "-o", "X"], ["-o X", "the input X"]);
    fs::remove_dir_all(folder).expect("the folder");
}

/// Nothing is lost in a device, and a pipe is no file.
#[test]
fn devices_may_be_outputs_twice() {
    let dump = bundled("examples/data/hackbench-6.18.before.tar.xz");
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.arg("doctor").arg(dump).args(["-o", "/dev/null", "--html", "/dev/null"]);
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
