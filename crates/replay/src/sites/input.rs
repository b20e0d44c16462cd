//! What an input is, and which of its kind the running kernel has.

use super::counted::Counted;
use super::options::Options;
use super::program::{Program, is_program};
use super::recorded::Recorded;
use super::tracked::{FILES, TrackedSites};
use crate::import;
use slablab_readers::compressed::Decompressed;
use slablab_readers::{pasted, tracked};
use slablab_report::error::{At, Error, Result};
use slablab_report::files;
use std::fs::File;
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes by which an input is recognised.
const HEAD_BYTES: u64 = 4096;
const ALLOCINFO: &str = "/proc/allocinfo";
const TRACES: &str = "/sys/kernel/debug/slab";

/// The call sites of an input.
#[derive(Clone, Debug)]
pub enum Sites {
    /// Of a recording of a program's malloc.
    Program(Box<Program>),
    /// Of a recording of a kernel.
    Recorded(Box<Recorded>),
    /// Of /proc/allocinfo.
    Counted(Counted),
    /// Of SLUB's debugging lists.
    Tracked(TrackedSites),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Recording,
    Allocinfo,
    Traces,
}

/// Reads `path`, or without one what the running kernel has. `tick` hears the number of imported events,
/// `progress` the rows read and their number.
///
/// # Errors
/// An input that is none of the kinds, or is damaged; an option that does not go with it.
pub fn read(
    path: Option<&Path>,
    options: &Options,
    tick: &mut dyn FnMut(u64),
    progress: &dyn Fn(u64, u64),
) -> Result<Sites> {
    let (path, kind) = match path {
        Some(path) => recognise(path)?,
        None => (running()?, Kind::Allocinfo),
    };
    let refuse =
        |option: &str, of: &str| Err(Error::new(&path, format!("{option} is for {of}, and this is none")));
    if options.since.is_some() && kind != Kind::Allocinfo {
        return refuse("--since", "a /proc/allocinfo");
    }
    if options.kallsyms.is_some() && kind != Kind::Recording {
        return refuse("--kallsyms", "a recording");
    }
    if options.hz.is_some() && kind != Kind::Traces {
        return refuse("--hz", "alloc_traces and free_traces");
    }
    match kind {
        Kind::Allocinfo if options.cache.is_some() => refuse("--cache", "a recording, and for alloc_traces"),
        Kind::Allocinfo => Counted::read(&path, options.since.as_deref()).map(Sites::Counted),
        Kind::Traces => TrackedSites::read(&path, options.cache.as_deref(), options.hz).map(Sites::Tracked),
        Kind::Recording => {
            let input = import::Input { path: &path, recording: None, formats: None };
            let reader = import::open(input, tick)?;
            if is_program(reader.metadata()) {
                let found = Program::of(&reader, &path, options, progress)?;
                return Ok(Sites::Program(Box::new(found)));
            }
            Recorded::of(&reader, &path, options, progress).map(|found| Sites::Recorded(Box::new(found)))
        }
    }
}

/// The file or folder to read, and what it is.
fn recognise(path: &Path) -> Result<(PathBuf, Kind)> {
    if path.is_dir() {
        return Ok(of_folder(path));
    }
    let mut head = Vec::new();
    if path == Path::new("-") {
        // What is looked at stays in the buffer.
        let mut stdin = std::io::stdin().lock();
        let there = stdin.fill_buf().at(path)?;
        // The beginning of a compressed input may not yet be enough for a byte of its content.
        if let Ok(beginning) = Decompressed::new(Cursor::new(there)) {
            let _ = beginning.take(HEAD_BYTES).read_to_end(&mut head);
        }
    } else {
        let reader = Decompressed::new(files::open(path).at(path)?).at(path)?;
        reader.take(HEAD_BYTES).read_to_end(&mut head).at(path)?;
    }
    let name = path.file_name().unwrap_or_default();
    let kind = match () {
        () if pasted::is_allocinfo(&head) => Kind::Allocinfo,
        () if tracked::is_tracked(&head) || FILES.iter().any(|(file, _)| name == *file) => Kind::Traces,
        () => Kind::Recording,
    };
    Ok((path.to_path_buf(), kind))
}

/// A folder: of a dump, of caches, of one cache, or of recordings.
fn of_folder(path: &Path) -> (PathBuf, Kind) {
    let allocinfo = path.join(&ALLOCINFO[1..]);
    if allocinfo.is_file() {
        return (allocinfo, Kind::Allocinfo);
    }
    let traces = path.join(&TRACES[1..]);
    if traces.is_dir() {
        return (traces, Kind::Traces);
    }
    let has_lists = |folder: &Path| FILES.iter().any(|(name, _)| folder.join(name).is_file());
    let mut below = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let kind = if has_lists(path) || below.any(|folder| has_lists(&folder)) {
        Kind::Traces
    } else {
        Kind::Recording
    };
    (path.to_path_buf(), kind)
}

/// A source of call sites on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// Its path or command.
    pub what: String,
    /// Whether it can be read now.
    pub there: bool,
    /// What it has, or how to get it.
    pub state: String,
}

/// What this machine can tell of its call sites.
pub fn live_sources() -> Vec<Live> {
    let mut found = Vec::new();
    let mut add =
        |what: &str, there: bool, state: String| found.push(Live { what: what.into(), there, state });
    match File::open(ALLOCINFO) {
        Ok(_) => add(ALLOCINFO, true, "live bytes of every allocating line of code".into()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            add(ALLOCINFO, false, "not readable: try with sudo".into());
        }
        Err(_) => add(
            ALLOCINFO,
            false,
            "not there: needs Linux 6.10 with CONFIG_MEM_ALLOC_PROFILING, and sysctl.vm.mem_profiling=1 at boot".into(),
        ),
    }
    let caches = std::fs::read_dir(TRACES)
        .map(|entries| entries.flatten().filter(|entry| entry.path().join(FILES[0].0).is_file()).count());
    match caches {
        Ok(0) => add(
            TRACES,
            false,
            "no cache tracks its users: boot with slab_debug=U or slab_debug=U,CACHE".into(),
        ),
        Ok(count) => add(TRACES, true, format!("{count} caches; slablab sites {TRACES}")),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            add(TRACES, false, "not readable: try with sudo".into());
        }
        Err(_) => add(
            TRACES,
            false,
            "not there: mount debugfs (mount -t debugfs none /sys/kernel/debug), and boot with slab_debug=U"
                .into(),
        ),
    }
    add(
        "a recording",
        true,
        "perf record -g -e 'kmem:*' -a -o load.perf.data sleep 10; slablab sites load.perf.data".into(),
    );
    found
}

/// The running kernel's own list.
fn running() -> Result<PathBuf> {
    if File::open(ALLOCINFO).is_ok() {
        return Ok(ALLOCINFO.into());
    }
    let lines: Vec<String> = live_sources()
        .iter()
        .map(|source| {
            let mark = if source.there { "can be read" } else { "cannot be read" };
            format!("  {} ({mark}): {}", source.what, source.state)
        })
        .collect();
    let what =
        format!("not there; the call sites of this machine are in one of these:\n{}", lines.join("\n"));
    Err(Error::new(ALLOCINFO, what))
}
