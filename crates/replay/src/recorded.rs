//! Files of `slablab record`: a recording with the states around it.

use slablab_readers::compressed::Decompressed;
use slablab_readers::recording::{ABOUT, BEFORE, END_SLABS, Members, START_SLABS};
use slablab_readers::slabinfo::Slabinfo;
use slablab_readers::slabs::Snapshot;
use slablab_report::error::{At, Error, Result};
use slablab_report::files;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// Whether the file at `path` is a recording that has the state before it.
///
/// # Errors
/// A file that cannot be read.
pub fn has_start(path: &Path) -> Result<bool> {
    Ok(members(path)?.is_some_and(|members| members.get(BEFORE).is_some()))
}

/// The members of the file at `path`; `None` if it is no recording with states.
pub(crate) fn members(path: &Path) -> Result<Option<Members>> {
    // A pipe's bytes would be gone.
    if !files::is_file(path) {
        return Ok(None);
    }
    Members::of(files::open(path).at(path)?).at(path)
}

/// Bytes of a recording's events, and why the recorder ended before its command or time did; `None` if it did
/// not.
pub(crate) fn ended_early(path: &Path) -> Result<Option<(u64, String)>> {
    let Some(members) = members(path)? else { return Ok(None) };
    let Some((about, events)) = members.get(ABOUT).zip(members.events()) else { return Ok(None) };
    let text = about.read(files::open(path).at(path)?).at(path)?;
    let about: serde_json::Value = serde_json::from_slice(&text).at(path)?;
    Ok(about["cut_off"].as_str().map(|why| (events.size, why.to_string())))
}

/// The /proc/slabinfo that a recording has in its member `name`.
pub(crate) fn slabinfo(path: &Path, name: &str) -> Result<Option<Slabinfo>> {
    let Some(members) = members(path)? else { return Ok(None) };
    let Some(member) = members.get(name) else { return Ok(None) };
    let text = member.read(files::open(path).at(path)?).at(path)?;
    Ok(Some(Slabinfo::parse(&text).at(path)?))
}

/// Every slab at the start and at the end of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// At the start.
    pub start: Snapshot,
    /// At the end.
    pub end: Snapshot,
}

impl Snapshots {
    /// From when to when caches were read, by the monotonic clock.
    pub(crate) fn times_ns(&self) -> Range<u64> {
        let first = self.start.caches.iter().map(|cache| cache.at_ns).min();
        let last = self.end.caches.iter().map(|cache| cache.at_ns).max();
        first.unwrap_or(0)..last.unwrap_or(u64::MAX)
    }
}

/// Bytes of a snapshot's text that are read: ten million slabs take a quarter of it.
const SNAPSHOT_MAX: u64 = 1 << 30;

/// The snapshots that a recording has; `None` without both of them.
pub(crate) fn snapshots(path: &Path) -> Result<Option<Snapshots>> {
    let Some(members) = members(path)? else { return Ok(None) };
    let read = |name: &str| -> Result<Option<Snapshot>> {
        let Some(member) = members.get(name) else { return Ok(None) };
        let at = |error: &dyn std::fmt::Display| Error::new(path, format!("{name}: {error}"));
        let packed = member.read(files::open(path).at(path)?).at(path)?;
        let text = Decompressed::new(&packed[..]).map_err(|error| at(&error))?;
        let mut bytes = Vec::new();
        text.take(SNAPSHOT_MAX).read_to_end(&mut bytes).map_err(|error| at(&error))?;
        Snapshot::parse(&bytes).map(Some).map_err(|error| at(&error))
    };
    Ok(read(START_SLABS)?.zip(read(END_SLABS)?).map(|(start, end)| Snapshots { start, end }))
}
