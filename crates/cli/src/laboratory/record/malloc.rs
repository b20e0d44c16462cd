//! `slablab record --malloc -- PROGRAM`: a program's allocation calls become a trace.
//!
//! ```text
//! run
//!   left::clear      what killed recorders left is named
//!   Folder           the raw files, beside the trace; the library that records
//!   Program          the program; signals are passed on
//!   write_trace
//!     chosen           which of its processes
//!     convert          the trace, beside its place and renamed
//!     summary::text    on standard error
//! recover            the same from a folder that is already there
//! ```

use super::ending::Ending;
use super::{Args, left, program, summary};
use crate::input::Progress;
use crate::outcome::{Done, Failure, say, tell};
use crate::output::check;
use slablab_recorder::{Folder, LIBRARY, Left, Process, convert};
use slablab_report::AtomicFile;
use slablab_trace::Metadata;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Records a program.
pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    if LIBRARY.is_empty() {
        return Err(
            "this program was built without the recorder: its build needs Linux and a C compiler".into()
        );
    }
    let Some(program) = args.program.first() else {
        return Err("record --malloc: expected COMMAND behind --, or --recover FOLDER".into());
    };
    let output = writable_output(args, program)?;
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty());
    let (parent, temporary) = (parent.unwrap_or(Path::new(".")), std::env::temp_dir());
    left::clear(&[parent, &temporary]);
    let mut folder = Folder::create(parent, &temporary)?;
    let mut environment = folder.environment(args.limit * 1_000_000, args.call_chains.then_some(args.sample));
    environment.push(("LD_PRELOAD", preloaded(&folder)));
    let ending = Ending::new(folder.path().to_path_buf())?;
    let (ended, pid) = program::Program::start(&args.program, &environment)?.wait()?;
    ending.begin();
    let written = folder
        .processes()
        .map_err(|error| format!("{}: {error}", folder.path().display()).into())
        .and_then(|all| write_trace(&all, pid, args, &output, Some(&ending)));
    let _whole = ending.hold();
    if let Err(error) = written {
        // What was recorded may have taken hours.
        return Err(match folder.keep() {
            true => {
                tell(error);
                left::tell_kept(folder.path());
                "the trace was not made; the recording is kept".into()
            }
            false => error,
        });
    }
    Ok(ended)
}

/// Makes the trace of a recording whose recorder was killed.
pub(super) fn recover(folder: &Path, args: &Args) -> Result<Done, Failure> {
    let left = Left::open(folder)?;
    let all = left.processes().map_err(|error| format!("{}: {error}", folder.display()))?;
    // The program that was started called first, as a rule.
    let first = all.iter().find(|process| process.calls > 0);
    let Some(first) = first else {
        return Err(format!("{}: no call was recorded", folder.display()).into());
    };
    let output = match &args.process {
        None => writable_output(args, OsStr::new(first.name()))?,
        Some(_) => writable_output(args, OsStr::new(chosen(&all, first.pid, args)?.name()))?,
    };
    write_trace(&all, first.pid, args, &output, None)?;
    tell(format_args!("the recording stays: `rm -r {}` removes it", folder.display()));
    Ok(Done::Complete)
}

/// Writes the trace of the chosen process, and says what it has.
fn write_trace(
    all: &[Process],
    pid: u64,
    args: &Args,
    output: &Path,
    ending: Option<&Ending>,
) -> Result<(), Failure> {
    let process = chosen(all, pid, args)?;
    let progress = Progress::new("convert");
    let known = Metadata { release: kernel_release(), ..Metadata::default() };
    // An event of `realloc` is two, so the bar may reach its end a little early.
    let whole = process.calls;
    let beside = AtomicFile::create(output)?;
    let (beside, result) = convert(process, beside, known, &mut |done| progress.at(done.min(whole), whole))?;
    let held = ending.map(Ending::hold);
    beside.commit()?;
    drop((held, progress));
    say(&summary::text(output, all, process, &result));
    if result.lost > 0 {
        tell(format_args!("{} calls were lost: expected a larger --limit, or more disk space", result.lost));
    }
    Ok(())
}

/// Where the trace will be. Fails now where it would after a long run.
fn writable_output(args: &Args, program: &OsStr) -> Result<PathBuf, Failure> {
    let output = args.output.clone().unwrap_or_else(|| default_output(program));
    check([], [("-o", output.as_path())])?;
    drop(AtomicFile::create(&output)?);
    Ok(output)
}

/// The value of `LD_PRELOAD`: the library, and behind it what the user preloads.
fn preloaded(folder: &Folder) -> OsString {
    let mut list = folder.library().into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

fn default_output(program: &OsStr) -> PathBuf {
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
        _ => nothing_recorded(all, args).into(),
    })
}

/// Why a program has no calls.
fn nothing_recorded(all: &[Process], args: &Args) -> String {
    let program =
        args.program.first().map_or(String::new(), |program| program.to_string_lossy().into_owned());
    let refused = all.iter().filter(|process| process.could_not_write()).count();
    let why = match refused {
        0 => "expected a program that is linked to its malloc dynamically, not a static one, none with a \
              malloc of its own, none with more rights than its user (setuid)"
            .to_string(),
        _ => format!(
            "{refused} processes could not write to the folder of the recording: expected another place of the \
             trace (-o), which they can reach and which has room"
        ),
    };
    format!("{program}: no call was recorded: {why}")
}
