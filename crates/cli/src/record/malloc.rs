//! `slablab record --malloc -- PROGRAM`: a program's allocation calls become a trace.
//!
//! ```text
//! run
//!   Folder           the raw files, beside the trace
//!   Preload          the library that records, in the folder for temporary files
//!   Program          the program; signals are passed on
//!   chosen           which of its processes
//!   convert          the trace, beside its place and renamed
//!   summary::text    on standard error
//! ```

use super::{Args, program, summary};
use crate::input::Progress;
use crate::outcome::{Done, Failure, say, tell};
use crate::output::check;
use slablab_recorder::{FOLDER, LIBRARY, LIMIT, Process, convert, processes};
use slablab_report::AtomicFile;
use slablab_trace::Metadata;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub(super) fn run(args: Args) -> Result<Done, Failure> {
    if LIBRARY.is_empty() {
        return Err(
            "this program was built without the recorder: its build needs Linux and a C compiler".into()
        );
    }
    let output = args.output.clone().unwrap_or_else(|| default_output(&args.program[0]));
    check([], [("-o", output.as_path())])?;
    // Fails now where it would after a long run.
    drop(AtomicFile::create(&output)?);
    let folder = Folder::new(&output)?;
    let library = Preload::new()?;
    let environment = [
        ("LD_PRELOAD", library.list()),
        (FOLDER, folder.0.clone().into_os_string()),
        (LIMIT, (args.limit * 1_000_000).to_string().into()),
    ];
    let (ended, pid) = program::Program::start(&args.program, &environment)?.wait()?;
    drop(library);
    let all = processes(&folder.0).map_err(|error| format!("{}: {error}", folder.0.display()))?;
    let process = chosen(&all, pid, &args)?;
    let progress = Progress::new("convert");
    let known = Metadata { release: kernel_release(), ..Metadata::default() };
    // An event of `realloc` is two, so the bar may reach its end a little early.
    let whole = process.calls;
    let beside = AtomicFile::create(&output)?;
    let (beside, result) = convert(process, beside, known, &mut |done| progress.at(done.min(whole), whole))?;
    beside.commit()?;
    drop(progress);
    say(&summary::text(&output, &all, process, &result));
    if result.lost > 0 {
        tell(format_args!("{} calls were lost: expected a larger --limit, or more disk space", result.lost));
    }
    Ok(ended)
}

fn default_output(program: &std::ffi::OsStr) -> PathBuf {
    let name = Path::new(program).file_name().unwrap_or(program);
    PathBuf::from(format!("{}.trace.parquet", name.to_string_lossy()))
}

fn kernel_release() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/osrelease").ok()?.trim().to_string())
}

/// The process that becomes the trace. Of several with one name it is the one with most calls. `pid` is the
/// process that was started: it may have executed one program after another.
fn chosen<'a>(all: &'a [Process], pid: u64, args: &Args) -> Result<&'a Process, Failure> {
    let mut called = all.iter().filter(|process| process.calls > 0);
    let found = match &args.process {
        None => called.rfind(|process| process.pid == pid),
        Some(asked) => called
            .filter(|process| process.name() == asked || process.pid.to_string() == *asked)
            .max_by_key(|process| process.calls),
    };
    found.ok_or_else(|| match &args.process {
        Some(asked) if !all.is_empty() => {
            let mut names: Vec<&str> = all.iter().map(Process::name).collect();
            names.sort_unstable();
            names.dedup();
            format!("--process {asked}: expected a number, or one of {}", names.join(", ")).into()
        }
        _ => {
            let program = args.program[0].to_string_lossy();
            let why = "no call was recorded: expected a program that is linked to its malloc dynamically, not a \
                       static one, none with a malloc of its own, none with more rights than its user (setuid)";
            format!("{program}: {why}").into()
        }
    })
}

/// A folder for the raw files. Its end removes it.
struct Folder(PathBuf);

impl Folder {
    /// A folder in that of the trace: there is room for the raw files if there is room for the trace.
    fn new(output: &Path) -> Result<Folder, Failure> {
        let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize()?;
        let path = parent.join(format!(".slablab-record.{}", std::process::id()));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left would be found beside the trace.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The library, in a file that the loader finds. Its end removes it.
struct Preload(Folder);

impl Preload {
    fn new() -> Result<Preload, Failure> {
        let folder = Folder::new(&std::env::temp_dir().join("library"))?;
        let path = folder.0.join("libslablab-record.so");
        fs::write(&path, LIBRARY).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Preload(folder))
    }

    /// The value of `LD_PRELOAD`: the library, and behind it what the user preloads.
    fn list(&self) -> OsString {
        let mut list = self.0.0.join("libslablab-record.so").into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            list.push(":");
            list.push(others);
        }
        list
    }
}
