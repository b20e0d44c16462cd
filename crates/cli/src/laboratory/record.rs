//! `slablab record`: a recording of the kernel's slab allocator while a command runs, or a program's
//! allocation calls as a trace.

mod ending;
mod kernel;
mod left;
mod malloc;
mod program;
mod summary;

use crate::input::{duration, size};
use crate::outcome::{Done, Failure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Records the kernel's slab allocator while a command runs, or a program's allocation calls.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  slablab record -- make -j8                                 the kernel, to make.recording.tar
  slablab record --for 10s -o busy.recording.tar             everything that runs, for ten seconds
  slablab record -g -- find / -xdev                          with call chains
  slablab verify make.recording.tar                          the dumps of before and after are inside
  slablab replay make.recording.tar --engine slub@6.12 --engine slub@7.1
  slablab record --malloc -- python3 app.py                  a program's malloc, to python3.trace.parquet
  slablab record --malloc --process cc1 -- gcc -O2 -c big.c  a program that the command starts
  LD_PRELOAD=libjemalloc.so.2 slablab record --malloc -- ./server            under another allocator
  slablab record --malloc --recover .slablab-record.814-90125                slablab was killed

A recording of the kernel needs root, and perf or tracefs. The exit status is the command's. docs/record.md
has more.")]
pub(crate) struct Args {
    /// Record a program's calls of malloc, calloc, realloc, free, aligned requests, operator new and delete,
    /// instead of the kernel
    #[arg(long)]
    malloc: bool,
    /// File to write [default: COMMAND.recording.tar, with --malloc COMMAND.trace.parquet]; it appears when
    /// it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Record the kernel with this; without it perf, or tracefs where perf does not work
    #[arg(long, value_enum, value_name = "TOOL", conflicts_with = "malloc")]
    with: Option<With>,
    /// End the recording of the kernel after TIME, for example 500ms, 10s or 2m; a command runs on
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "malloc")]
    time: Option<Duration>,
    /// Record the kernel's call chain of each event, too; with --malloc the program's of some allocations
    #[arg(short = 'g', long)]
    call_chains: bool,
    /// Do not read every slab of the kernel, with its free objects, at the start and at the end
    #[arg(long, conflicts_with = "malloc")]
    no_snapshot: bool,
    /// Set no probes on bulk calls and kfree_rcu, which have no events of their own
    #[arg(long, conflicts_with = "malloc")]
    no_probes: bool,
    /// Size of the kernel's buffer for each CPU in MB: a larger one loses fewer events
    #[arg(long, value_name = "MB", conflicts_with = "malloc",
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    buffer: Option<u64>,
    /// With --malloc -g: record the call chain of about one allocation in each BYTES that are allocated, for
    /// example 64K; 1: of every allocation
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = sample, requires_all = ["malloc", "call_chains"])]
    sample: u64,
    /// With --malloc: process that becomes the trace, by its program's name or its number; without it the
    /// program that ran last in the process that was started
    #[arg(long, value_name = "NAME|PID", requires = "malloc")]
    process: Option<String>,
    /// With --malloc: make the trace of a recording whose slablab was killed, from its hidden folder
    /// .slablab-record.PID-START
    #[arg(long, value_name = "FOLDER", requires = "malloc", conflicts_with = "program")]
    recover: Option<PathBuf>,
    /// With --malloc: largest size of a process's raw file in MB, 24 bytes a call; later calls are counted as
    /// lost
    #[arg(long, value_name = "MB", default_value_t = 8000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    limit: u64,
    /// Command and its arguments. Without it the kernel is recorded until Ctrl-C, or for the time of --for
    #[arg(last = true, value_name = "COMMAND")]
    program: Vec<OsString>,
}

/// The recorders of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum With {
    /// perf record
    Perf,
    /// The kernel's own files, in an instance of its own below /sys/kernel/tracing/instances
    Tracefs,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    match (&args.recover, args.malloc) {
        (Some(folder), _) => malloc::recover(folder, &args),
        (None, true) => malloc::run(&args),
        (None, false) => kernel::run(&args),
    }
}

/// Records everything that runs, with call chains, for `time` or until Ctrl-C, into the file `output`.
/// `buffer` is in MB for each CPU.
pub(crate) fn window(output: &Path, time: Duration, buffer: Option<u64>) -> Result<(), Failure> {
    let args = Args {
        malloc: false,
        output: Some(output.to_path_buf()),
        with: None,
        time: Some(time),
        call_chains: true,
        sample: 0,
        buffer,
        no_snapshot: true,
        no_probes: true,
        process: None,
        recover: None,
        limit: 0,
        program: Vec::new(),
    };
    kernel::record(&args).map(drop)
}

/// Bytes of which there is at least one.
fn sample(text: &str) -> Result<u64, String> {
    size(text).and_then(
        |bytes| if bytes > 0 { Ok(bytes) } else { Err(format!("expected at least 1, found {text}")) },
    )
}
