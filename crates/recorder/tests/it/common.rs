//! Programs under the preloaded library.

use slablab_recorder::{FOLDER, LIBRARY, Process, Summary, convert, processes};
use slablab_trace::{Metadata, Reader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of a test's own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recorder-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("cargo's folder can be written to");
    folder
}

/// Builds a program. `None`: the machine has no such compiler.
pub(crate) fn built(folder: &Path, compiler: &str, source: &str, arguments: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let program = folder.join(source.file_stem().expect("a name"));
    let done = Command::new(compiler).args(arguments).arg(&source).arg("-o").arg(&program).output();
    let done = match done {
        Err(_) if compiler == "c++" && std::env::var_os("SLABLAB_CXX_REQUIRED").is_none() => return None,
        done => done.unwrap_or_else(|error| panic!("{compiler}: {error}")),
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

/// Runs a command with the library in front of what `others` names.
pub(crate) fn record(folder: &Path, command: &mut Command, others: &str) -> (Output, Vec<Process>) {
    let library = folder.join("libslablab-record.so");
    std::fs::write(&library, LIBRARY).expect("the test's folder");
    let files = folder.join("raw");
    std::fs::create_dir_all(&files).expect("the test's folder");
    let list = format!("{}:{others}", library.display());
    let output = command.env("LD_PRELOAD", list).env(FOLDER, &files).output().expect("it runs");
    (output, processes(&[files]).expect("the files can be read"))
}

pub(crate) fn the_one<'a>(all: &'a [Process], name: &str) -> &'a Process {
    let found: Vec<&Process> = all.iter().filter(|process| process.name() == name).collect();
    assert_eq!(found.len(), 1, "{name} among {all:?}");
    found[0]
}

/// A process's trace, and what making it told.
pub(crate) fn converted(process: &Process) -> (Reader, Summary) {
    let path = process.paths[0].with_extension("trace.parquet");
    let file = std::fs::File::create(&path).expect("the test's folder");
    let (_, summary) = convert(process, file, Metadata::default(), &mut |_| {}).expect("it can be converted");
    (Reader::open(&path).expect("a trace"), summary)
}
