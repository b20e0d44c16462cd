//! Files of `slablab record`: a recording with the states around it.

use slablab_readers::compressed::Decompressed;
use slablab_readers::recording::{ABOUT, BEFORE, END_SLABS, Members, START_SLABS};
use slablab_readers::slabinfo::Slabinfo;
use slablab_readers::slabs::Snapshot;
use slablab_report::error::{At, Error, Result};
use slablab_report::files;
use slablab_trace::{Metadata, Statistics};
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

    /// Whether the slabs were read while the trace's events were recorded, by one clock.
    pub(crate) fn same_clock(&self, metadata: &Metadata) -> std::result::Result<(), String> {
        let Statistics { rows, first_time_ns, last_time_ns, .. } = &metadata.statistics;
        if *rows == 0 || self.start.caches.is_empty() {
            return Ok(());
        }
        let around = first_time_ns.saturating_sub(APART_NS)..=last_time_ns.saturating_add(APART_NS);
        let read = self.times_ns();
        if around.contains(&read.start) && around.contains(&read.end) {
            return Ok(());
        }
        let [from, to, first, last] = [read.start, read.end, *first_time_ns, *last_time_ns].map(seconds);
        Err(format!(
            "its slabs were read at {from} and {to} of the monotonic clock, its events are from {first} to \
             {last}: expected events of that time by that clock, as `slablab record` asks for. Are they another \
             recording's? --no-snapshot leaves the slabs out"
        ))
    }
}

/// Time between the reading of slabs and the nearest event that may be: the recorder's own reads are events.
const APART_NS: u64 = 10_000_000_000;

fn seconds(at_ns: u64) -> String {
    format!("{}.{:03} s", at_ns / 1_000_000_000, at_ns / 1_000_000 % 1000)
}

/// The snapshots that a recording has; `None` without both of them.
pub(crate) fn snapshots(path: &Path) -> Result<Option<Snapshots>> {
    let Some(members) = members(path)? else { return Ok(None) };
    let read = |name: &str| -> Result<Option<Snapshot>> {
        let Some(member) = members.get(name) else { return Ok(None) };
        let at = |error: &dyn std::fmt::Display| Error::new(path, format!("{name}: {error}"));
        let packed = member.read(files::open(path).at(path)?).at(path)?;
        let text = Decompressed::new(&packed[..]).map_err(|error| at(&error))?;
        let mut bytes = Vec::new();
        text.take(Snapshot::BYTES_MAX).read_to_end(&mut bytes).map_err(|error| at(&error))?;
        Snapshot::parse(&bytes).map(Some).map_err(|error| at(&error))
    };
    Ok(read(START_SLABS)?.zip(read(END_SLABS)?).map(|(start, end)| Snapshots { start, end }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_readers::slabs::CacheSlabs;

    #[test]
    fn slabs_of_another_time_are_refused() {
        /// Slabs read at 1000 s and 1010 s, events from `first` to `last` seconds.
        #[track_caller]
        fn check(first: u64, last: u64, expected: std::result::Result<(), &str>) {
            let at = |seconds: u64| Snapshot {
                caches: vec![CacheSlabs { at_ns: seconds * 1_000_000_000, ..CacheSlabs::default() }],
                ..Snapshot::default()
            };
            let snapshots = Snapshots { start: at(1000), end: at(1010) };
            let [first_time_ns, last_time_ns] = [first, last].map(|seconds| seconds * 1_000_000_000);
            let statistics = Statistics { rows: 7, first_time_ns, last_time_ns, ..Statistics::default() };
            let metadata = Metadata { statistics, ..Metadata::default() };
            let found = snapshots.same_clock(&metadata);
            match expected {
                Ok(()) => assert_eq!(found, Ok(())),
                Err(words) => assert!(found.clone().is_err_and(|text| text.contains(words)), "{found:?}"),
            }
        }
        check(999, 1011, Ok(()));
        // The first event of an idle machine comes late.
        check(1004, 1006, Ok(()));
        check(0, 12, Err("its events are from 0.000 s to 12.000 s"));
        check(1_700_000_000, 1_700_000_012, Err("read at 1000.000 s and 1010.000 s"));
    }
}
