//! A recording of a run as a Perfetto trace.

use slablab_report::perfetto::{Trace, Track, Unit};
use slablab_sim::record::{Holds, Instant, Recording, Slice, Value};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A slice or an instant, which is a slice without an end.
struct Shown<'a> {
    name: &'a str,
    from: u64,
    to: Option<u64>,
    /// The flow that leads to a slice, or on from an instant.
    flow: Option<u64>,
}

impl Shown<'_> {
    fn end(&self) -> u64 {
        self.to.unwrap_or(self.from)
    }
}

/// Slices that nest, so that one track can show them.
#[derive(Default)]
struct Lane<'a> {
    shown: Vec<Shown<'a>>,
    /// Ends of the open slices, the innermost last.
    open: Vec<u64>,
}

impl Lane<'_> {
    /// Whether a slice from `from` to `to` ends inside the slice in which it begins.
    fn has_room(&mut self, from: u64, to: u64) -> bool {
        while self.open.last().is_some_and(|end| *end <= from) {
            self.open.pop();
        }
        self.open.last().is_none_or(|end| to <= *end)
    }
}

/// Writes a recording as a trace that ui.perfetto.dev opens. Slices of a track that overlap without nesting
/// are put on further tracks of its name.
///
/// # Errors
/// What writing gives.
pub fn write_perfetto<W: Write>(recording: &Recording, out: W) -> io::Result<W> {
    let mut trace = Trace::new(out);
    let mut groups: BTreeMap<&str, Track> = BTreeMap::new();
    for (group, ..) in &recording.tracks {
        if !groups.contains_key(group.as_str()) {
            groups.insert(group, trace.group(None, group)?);
        }
    }
    let mut shown: Vec<Vec<Shown<'_>>> = recording.tracks.iter().map(|_| Vec::new()).collect();
    let flow_of = |flow: u64| (flow > 0).then_some(flow);
    for Slice { track, name, from, to, flow } in &recording.slices {
        let name = &recording.names[name.0 as usize];
        shown[track.0 as usize].push(Shown { name, from: *from, to: Some(*to), flow: flow_of(*flow) });
    }
    for Instant { track, name, at, flow } in &recording.instants {
        let name = &recording.names[name.0 as usize];
        shown[track.0 as usize].push(Shown { name, from: *at, to: None, flow: flow_of(*flow) });
    }
    let mut values: Vec<Vec<(u64, i64)>> = recording.tracks.iter().map(|_| Vec::new()).collect();
    for Value { track, at, value } in &recording.values {
        values[track.0 as usize].push((*at, *value));
    }
    for (at, (group, name, holds)) in recording.tracks.iter().enumerate() {
        let group = Some(groups[group.as_str()]);
        let unit = match holds {
            Holds::Slices => {
                for lane in lanes(std::mem::take(&mut shown[at])) {
                    let track = trace.slices(group, name)?;
                    write_lane(&mut trace, track, &lane)?;
                }
                continue;
            }
            Holds::Bytes => Unit::Bytes,
            Holds::Counts => Unit::Count,
        };
        values[at].sort_by_key(|value| value.0);
        let track = trace.values(group, name, unit)?;
        values[at].iter().try_for_each(|(at, value)| trace.value(track, *at, *value))?;
    }
    trace.finish()
}

/// Slices in lanes in which they nest: each in the first that has room.
fn lanes(mut shown: Vec<Shown<'_>>) -> Vec<Vec<Shown<'_>>> {
    shown.sort_by(|a, b| (a.from, b.end()).cmp(&(b.from, a.end())));
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    for slice in shown {
        let (from, to) = (slice.from, slice.end());
        let at = lanes.iter_mut().position(|lane| lane.has_room(from, to));
        let at = at.unwrap_or_else(|| {
            lanes.push(Lane::default());
            lanes.len() - 1
        });
        lanes[at].open.push(to);
        lanes[at].shown.push(slice);
    }
    lanes.into_iter().map(|lane| lane.shown).collect()
}

fn write_lane<W: Write>(trace: &mut Trace<W>, track: Track, lane: &[Shown<'_>]) -> io::Result<()> {
    let mut open: Vec<u64> = Vec::new();
    for Shown { name, from, to, flow } in lane {
        while let Some(end) = open.pop_if(|end| *end <= *from) {
            trace.end(track, end)?;
        }
        match to {
            Some(to) => {
                trace.begin_at_flow(track, *from, name, *flow)?;
                open.push(*to);
            }
            None => trace.instant_of_flow(track, *from, name, *flow)?,
        }
    }
    open.into_iter().rev().try_for_each(|end| trace.end(track, end))
}
