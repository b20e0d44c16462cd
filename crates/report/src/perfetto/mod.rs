//! Traces in Perfetto's format, which <https://ui.perfetto.dev> and `trace_processor` open.
//!
//! ```text
//! Trace::new(file)
//!   group(None, "CPUs")                    a track that holds others
//!     slices(Some(cpus), "CPU 0")          a track of slices and instants
//!       begin(cpu, at, "run") ── end(cpu, at + 5)      slices nest
//!       instant(cpu, at, "refill")
//!       instant_of_flow(cpu, at, "wakes 7", 1) ── begin_at_flow(cpu, at + 5, "task 7", 1)      an arrow
//!     values(None, "slab memory", Unit::Bytes)         a track of values
//!       value(memory, at, 4096)
//! finish()
//! ```
//!
//! The file is a sequence of packets of protocol buffers. A packet is written when it is full: memory is
//! needed for the tracks, for at most 1 MiB of names, and for a buffer of 64 KiB. Each name is written once
//! and then stands for itself by a number (interning). When there are too many names, the writer clears the
//! table with a packet that says so, and begins a new one.
//!
//! Callers give time in picoseconds; a trace has nanoseconds. Times are rounded down, which keeps the order
//! of events, so slices that nest still do. A slice below a nanosecond may get a duration of 0.

mod messages;

use crate::visible;
use messages::{
    APART, BY_RANK, COUNTER, CounterDescriptor, EventName, INSTANT, InternedData, NEEDS_STATE, SLICE_BEGIN,
    SLICE_END, STATE_CLEARED, TracePacket, TrackDescriptor, TrackEvent, UNIT_COUNT, UNIT_SIZE_BYTES,
    UNIT_TIME_NS,
};
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};

/// Bytes in the buffer above which it is written.
const BUFFER: usize = 64 << 10;
/// Bytes of names above which the table of names is cleared.
const NAMES_MAX: usize = 1 << 20;
/// What an entry of the table needs beside the name itself, about.
const NAME_ENTRY: usize = 64;
/// The only sequence of packets in a file.
const SEQUENCE: u32 = 1;
/// Field 1 of the message `Trace`, a packet: its number and its wire type.
const PACKET: u8 = 1 << 3 | 2;

/// A trace that is being written.
pub struct Trace<W: Write> {
    out: W,
    buffer: Vec<u8>,
    tracks: Vec<State>,
    names: HashMap<String, u64>,
    name_bytes: usize,
    /// The next packet with an event clears the reader's table of names.
    clear: bool,
}

/// A track of a [`Trace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track(u32);

/// What a track of values counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit<'a> {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Something else, by its name.
    Other(&'a str),
}

/// What the writer knows of a track.
struct State {
    kind: Kind,
    /// When its latest event was, in nanoseconds.
    latest: u64,
    /// How many slices are open.
    open: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Group,
    Slices,
    Values,
}

impl Track {
    /// The number that stands for the track in the file; 0 is none's.
    fn uuid(self) -> u64 {
        u64::from(self.0) + 1
    }
}

impl<W: Write> Trace<W> {
    /// A trace without tracks.
    pub fn new(out: W) -> Trace<W> {
        let buffer = Vec::with_capacity(BUFFER + 4096);
        Trace { out, buffer, tracks: Vec::new(), names: HashMap::new(), name_bytes: 0, clear: true }
    }

    /// Adds a track that holds other tracks, inside `parent` if there is one. Tracks are shown in the order
    /// in which they were added.
    ///
    /// # Errors
    /// What writing gives.
    pub fn group(&mut self, parent: Option<Track>, name: &str) -> io::Result<Track> {
        self.track(parent, name, Kind::Group, None)
    }

    /// Adds a track of slices and instants.
    ///
    /// # Errors
    /// What writing gives.
    pub fn slices(&mut self, parent: Option<Track>, name: &str) -> io::Result<Track> {
        self.track(parent, name, Kind::Slices, None)
    }

    /// Adds a track of values over time.
    ///
    /// # Errors
    /// What writing gives.
    pub fn values(&mut self, parent: Option<Track>, name: &str, unit: Unit<'_>) -> io::Result<Track> {
        let (unit, unit_name) = match unit {
            Unit::Count => (Some(UNIT_COUNT), None),
            Unit::Bytes => (Some(UNIT_SIZE_BYTES), None),
            Unit::Nanoseconds => (Some(UNIT_TIME_NS), None),
            Unit::Other(name) => (None, Some(visible::name(name).into_owned())),
        };
        self.track(parent, name, Kind::Values, Some(CounterDescriptor { unit, unit_name }))
    }

    fn track(
        &mut self,
        parent: Option<Track>,
        name: &str,
        kind: Kind,
        counter: Option<CounterDescriptor>,
    ) -> io::Result<Track> {
        let track = Track(u32::try_from(self.tracks.len()).map_err(io::Error::other)?);
        self.tracks.push(State { kind, latest: 0, open: 0 });
        let descriptor = TrackDescriptor {
            uuid: Some(track.uuid()),
            name: Some(visible::name(name).into_owned()),
            parent_uuid: parent.map(Track::uuid),
            counter,
            child_ordering: (kind == Kind::Group).then_some(BY_RANK),
            sibling_order_rank: i32::try_from(track.0).ok(),
            sibling_merge_behavior: Some(APART),
        };
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(track)
    }

    /// Begins a slice at `at_ps`, inside the slice of the track that is open.
    ///
    /// # Errors
    /// What writing gives; [`io::ErrorKind::InvalidInput`] if the track has a later event or holds no slices.
    pub fn begin(&mut self, track: Track, at_ps: u64, name: &str) -> io::Result<()> {
        self.begin_at_flow(track, at_ps, name, None)
    }

    /// Begins a slice at which a flow ends: an arrow from [`Trace::instant_of_flow`] leads to it.
    ///
    /// # Errors
    /// As [`Trace::begin`].
    pub fn begin_at_flow(
        &mut self,
        track: Track,
        at_ps: u64,
        name: &str,
        flow: Option<u64>,
    ) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(SLICE_BEGIN),
            terminating_flow_ids: flow.into_iter().collect(),
            ..TrackEvent::default()
        };
        self.event(track, Kind::Slices, at_ps, Some(name), event)?;
        self.tracks[track.0 as usize].open += 1;
        Ok(())
    }

    /// Ends the slice that began last on the track.
    ///
    /// # Errors
    /// As [`Trace::begin`]; [`io::ErrorKind::InvalidInput`] also if no slice is open.
    pub fn end(&mut self, track: Track, at_ps: u64) -> io::Result<()> {
        let open = &mut self.tracks[track.0 as usize].open;
        let Some(left) = open.checked_sub(1) else {
            return invalid(format!("track {}: a slice ends at {at_ps} ps and none is open", track.0));
        };
        *open = left;
        self.event(
            track,
            Kind::Slices,
            at_ps,
            None,
            TrackEvent { r#type: Some(SLICE_END), ..TrackEvent::default() },
        )
    }

    /// Something that happened at one moment.
    ///
    /// # Errors
    /// As [`Trace::begin`].
    pub fn instant(&mut self, track: Track, at_ps: u64, name: &str) -> io::Result<()> {
        self.instant_of_flow(track, at_ps, name, None)
    }

    /// Something that happened at one moment, at which a flow begins.
    ///
    /// # Errors
    /// As [`Trace::begin`].
    pub fn instant_of_flow(
        &mut self,
        track: Track,
        at_ps: u64,
        name: &str,
        flow: Option<u64>,
    ) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(INSTANT),
            flow_ids: flow.into_iter().collect(),
            ..TrackEvent::default()
        };
        self.event(track, Kind::Slices, at_ps, Some(name), event)
    }

    /// A value of a track of values, which holds until the next.
    ///
    /// # Errors
    /// What writing gives; [`io::ErrorKind::InvalidInput`] if the track has a later value or holds no values.
    pub fn value(&mut self, track: Track, at_ps: u64, value: i64) -> io::Result<()> {
        self.event(
            track,
            Kind::Values,
            at_ps,
            None,
            TrackEvent { r#type: Some(COUNTER), counter_value: Some(value), ..TrackEvent::default() },
        )
    }

    fn event(
        &mut self,
        track: Track,
        kind: Kind,
        at_ps: u64,
        name: Option<&str>,
        event: TrackEvent,
    ) -> io::Result<()> {
        let at = at_ps / 1000;
        let state = &mut self.tracks[track.0 as usize];
        if state.kind != kind {
            return invalid(format!("track {} holds {:?}, not {kind:?}", track.0, state.kind));
        }
        if at < state.latest {
            return invalid(format!(
                "track {}: an event at {at} ns after one at {} ns",
                track.0, state.latest
            ));
        }
        state.latest = at;
        let (name_iid, interned_data) = name.map_or((None, None), |name| self.name(name));
        let cleared = if std::mem::take(&mut self.clear) { STATE_CLEARED } else { 0 };
        self.packet(TracePacket {
            timestamp: Some(at),
            track_event: Some(TrackEvent { name_iid, track_uuid: Some(track.uuid()), ..event }),
            interned_data,
            sequence_flags: Some(NEEDS_STATE | cleared),
            ..TracePacket::default()
        })
    }

    /// The number of a name, and the packet's part that introduces it if it is new.
    fn name(&mut self, name: &str) -> (Option<u64>, Option<InternedData>) {
        if let Some(iid) = self.names.get(name) {
            return (Some(*iid), None);
        }
        self.name_bytes += name.len() + NAME_ENTRY;
        if self.name_bytes > NAMES_MAX {
            self.names.clear();
            self.name_bytes = name.len() + NAME_ENTRY;
            self.clear = true;
        }
        let iid = self.names.len() as u64 + 1;
        self.names.insert(name.into(), iid);
        let names = vec![EventName { iid: Some(iid), name: Some(visible::name(name).into_owned()) }];
        (Some(iid), Some(InternedData { event_names: names }))
    }

    fn packet(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        self.buffer.push(PACKET);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        if self.buffer.len() >= BUFFER { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest, and returns what was written to. A slice that is open has no end in the trace.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(mut self) -> io::Result<W> {
        self.write()?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn invalid(what: String) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}
