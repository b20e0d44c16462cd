//! A recording becomes a trace.
//!
//! ```text
//! run
//!   input::open          which kind, by content; plain, gz, zst or xz; a run directory; stdin
//!   convert
//!     Effects::next        the next event in the order of effects
//!     Lookahead::next      the same, a window of time ahead of it known
//!     Pairing              address -> object, cache, dense id
//!       alloc, free          an event names an address
//!       pages                a page event says that nothing lives there
//!     Writer::push         the row
//!   describe             header, machine.json, counts -> the trace's metadata
//! ```
//! Rows are in the order in which events took effect (module `effect`), which is nearly that of the
//! recording's time. What the recording cannot mean is repaired by these rules, and every repair is flagged
//! in its row and counted per cache:
//!
//! 1. *Order.* The kernel traces an allocation after it and a free before it, so with true clocks an object's
//!    allocation, free and next allocation are never recorded in another order. If an address is allocated
//!    while live, or freed while known to be free, and the next event of that address is the one that would
//!    make sense of it, by another CPU and at most [`ORDER_WINDOW_NS`] later, then that one is moved in front
//!    and takes the time of the event it was moved in front of. Where only the order of effects made it
//!    impossible, the recorded one is kept.
//! 2. *Untraced frees.* An allocation of an address still live, a page event on a page with live objects, or
//!    a free to another cache than the address was allocated from: the object was freed by a path that is not
//!    traced. An `implied_free` row is written in front, by the CPU of the event that shows it.
//! 3. *Unseen objects.* A free of an address that is not live frees an object of before the recording, or,
//!    where the recording has seen that address freed already, one of an allocation that is not traced
//!    (bulk).
//!
//! State is the addresses now live, and those known to be free: at most [`FREED_LIMIT`], beyond which all of
//! the latter are forgotten at once, counted, and rule 3 takes their objects for old ones.

mod convert;
mod describe;
mod effect;
mod formats;
mod input;
mod lookahead;
mod pages;
mod pairing;
mod report;
mod spool;
#[cfg(test)]
mod tests;
mod words;

use std::io::Write;
use std::path::Path;

use slablab_trace::{Metadata, Reader, Writer};

#[cfg(unix)]
use slablab_report::AtomicFile;
use slablab_report::error::{At, Result};

pub use input::reads;
pub use pairing::FREED_LIMIT;
pub use report::Report;

/// How far apart two events may be for the order rule. Clocks of one machine's CPUs that agree no better than
/// this are not used for tracing by the kernel; handing an object to another CPU and freeing it there takes
/// about as long.
pub const ORDER_WINDOW_NS: u64 = 1000;

/// What to import.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// A file, `-` for standard input, or a directory of recordings.
    pub path: &'a Path,
    /// Which recording of the directory.
    pub recording: Option<&'a str>,
    /// For a perf.data that was cut off: a perf.data of the same kernel, or the folder `events/kmem` of its
    /// tracefs, which have the formats of the events.
    pub formats: Option<&'a Path>,
}

/// Imports `input` into a trace at `output`, which appears whole or not at all. `tick` hears the number of
/// events from time to time.
///
/// # Errors
/// What cannot be read or is no recording, naming the file and the place in it; an output that cannot be
/// written.
#[cfg(unix)]
pub fn import(input: Input, output: &Path, tick: &mut dyn FnMut(u64)) -> Result<Report> {
    let beside = AtomicFile::create(output)?;
    let (beside, metadata) = run(input, beside, 0, tick)?;
    beside.commit()?;
    Ok(Report { input: input.path.into(), output: output.into(), metadata })
}

/// Opens a trace; any other recording is imported into a file without a name first.
///
/// # Errors
/// As [`import`], and those of a trace.
pub fn open(input: Input, tick: &mut dyn FnMut(u64)) -> Result<Reader> {
    let trace = if input::is_trace(input.path)? {
        spool::named(input.path)?
    } else {
        spool::positioned(run(input, spool::unnamed()?, 0, tick)?.0)?
    };
    Reader::new(trace).map_err(slablab_trace::Error::without_path).at(input.path)
}

/// Opens a recording in another order of effects (module `effect`): each `draw` from 1 on is one. `None` for
/// what has one order: a trace, and standard input, which is read once.
///
/// # Errors
/// As [`open`].
pub(crate) fn redrawn(input: Input, draw: u64) -> Result<Option<Reader>> {
    if input::is_stdin(input.path) || input::is_trace(input.path)? {
        return Ok(None);
    }
    let trace = spool::positioned(run(input, spool::unnamed()?, draw, &mut |_| ())?.0)?;
    Reader::new(trace).map_err(slablab_trace::Error::without_path).at(input.path).map(Some)
}

fn run<W: Write + Send + 'static>(
    input: Input,
    out: W,
    draw: u64,
    tick: &mut dyn FnMut(u64),
) -> Result<(W, Metadata)> {
    let writer = Writer::new(out).map_err(slablab_trace::Error::without_path).at(input.path)?;
    input::open(input)?.convert(writer, draw, tick)
}
