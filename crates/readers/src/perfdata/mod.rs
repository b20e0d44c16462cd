//! perf.data, in file and pipe mode, plain or with compressed records.
//!
//! ```text
//! next
//!   order.pop            the oldest event that nothing later can overtake
//!   pump                 until there is one:
//!     records.next         the next record, inflated
//!     sample               payload -> Event, by the recording's own format text
//!     comm, fork, lost     wait in line with the events
//!     finish_round         a round ended: older events may go out
//! ```
//! The container is read here and not by the crate linux-perf-data: 0.13 aborts on a hostile section size (it
//! takes the memory first) and cannot follow a pipe past its tracing data, which every tracepoint recording
//! has.
//!
//! In file mode the formats come after the data, so the file is read twice: from a reader that seeks
//! ([`PerfData::seekable`]), or by opening the input again ([`PerfData::reopen`]), which also serves
//! compressed input. A pipe has them first and is read once.
//!
//! Memory: the sorting window ([`PerfData::set_window`]), and up to 64 MiB of what is around the data.

mod meta;
mod open;
mod order;
mod records;
mod sample;
mod stacks;

use std::io::{Read, Seek, SeekFrom};

use rustc_hash::FxHashMap;

use crate::bytes::{Bytes, Short, text_lossy, uint};
use crate::error::{At, ReadError};
use crate::event::{
    CutOff, Event, FormatText, Header, Item, KernelMap, LossKind, Lost, Name, Names, Source, Tally,
};
use meta::{FileHeader, Meta};
use open::{Skipped, Start, scan};
use order::{Order, Waiting};
use records::{Record, Records};
use sample::Layout;
use stacks::Stacks;

/// A perf.data being read. See [`Source`] for its stream.
pub struct PerfData<R> {
    records: Records<R>,
    meta: Meta,
    names: Names,
    tally: Tally,
    order: Order,
    comms: FxHashMap<i32, Name>,
    stacks: Stacks,
    last_ns: u64,
    big_endian: bool,
    /// Where the file should end, if it says so.
    whole: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// A pipe's attributes and formats may still come.
    Preamble,
    Data,
    /// All records were read.
    Drained,
    Failed,
}

impl<R: Read + Seek> PerfData<R> {
    /// Reads a file, of either mode. `reader` stands at its beginning.
    ///
    /// # Errors
    /// What is wrong with the header, the formats or the attributes. The events are not looked at yet.
    pub fn seekable(reader: R) -> Result<Self, ReadError> {
        PerfData::seekable_with(reader, &[])
    }

    /// As [`PerfData::seekable`]. A file that was cut off lacks the formats of its events, which perf writes
    /// behind them: then `formats` are taken, those of another recording of the same kernel or of its
    /// tracefs.
    ///
    /// # Errors
    /// As [`PerfData::seekable`], and formats that have none of the recording's events.
    pub fn seekable_with(mut reader: R, formats: &[FormatText]) -> Result<Self, ReadError> {
        let start = Start::read(&mut reader)?;
        let Some(file) = &start.file else { return Ok(PerfData::of_pipe(reader, &start)) };
        let skip = |reader: &mut R, count: u64| {
            let end = reader.seek(SeekFrom::End(0))?;
            let there = end.saturating_sub(file.data.offset).min(count);
            reader.seek(SeekFrom::Start(file.data.offset + there)).map(|_| Skipped { there, cut: false })
        };
        let meta = scan(&mut reader, &start, file, formats, skip)?;
        let io = |source| ReadError::io(At::Offset(file.data.offset), source);
        reader.seek(SeekFrom::Start(file.data.offset)).map_err(io)?;
        PerfData::of_file(reader, &start, file, meta)
    }
}

impl<R: Read> PerfData<R> {
    /// Events sorted at once by default. perf's default buffers give rounds of some ten thousand per CPU.
    pub const WINDOW: usize = 1 << 22;
    /// Kernel mappings and task names kept.
    const MAP_LIMIT: usize = 1 << 12;
    const COMM_LIMIT: usize = 1 << 20;

    /// Reads a file of either mode through `open`, which opens it from the beginning: twice for a file, once
    /// for a pipe. For input that cannot seek, such as a compressed file.
    ///
    /// # Errors
    /// As [`PerfData::seekable`]; an error of `open` is a [`What::Io`](crate::error::What::Io).
    pub fn reopen(open: impl FnMut() -> std::io::Result<R>) -> Result<Self, ReadError> {
        PerfData::reopen_with(open, &[])
    }

    /// As [`PerfData::reopen`], with `formats` for a file that was cut off, as
    /// [`PerfData::seekable_with`].
    ///
    /// # Errors
    /// As [`PerfData::reopen`], and formats that have none of the recording's events.
    pub fn reopen_with(
        mut open: impl FnMut() -> std::io::Result<R>,
        formats: &[FormatText],
    ) -> Result<Self, ReadError> {
        let mut open = || open().map_err(|source| ReadError::io(At::Offset(0), source));
        let mut reader = open()?;
        let start = Start::read(&mut reader)?;
        let Some(file) = &start.file else { return Ok(PerfData::of_pipe(reader, &start)) };
        let meta = scan(&mut reader, &start, file, formats, Skipped::over)?;
        let mut reader = open()?;
        Skipped::over(&mut reader, file.data.offset)
            .map_err(|source| ReadError::io(At::Offset(0), source))?;
        PerfData::of_file(reader, &start, file, meta)
    }

    /// Reads a pipe-mode stream (`perf record -o -`).
    ///
    /// # Errors
    /// A file-mode header, which cannot be read without seeking, or none at all.
    pub fn pipe(mut reader: R) -> Result<Self, ReadError> {
        let start = Start::read(&mut reader)?;
        if start.file.is_some() {
            let expected = "a header of 16 bytes, as in a pipe (a file cannot be read from one)";
            return Err(ReadError::value(8, expected, FileHeader::SIZE));
        }
        Ok(PerfData::of_pipe(reader, &start))
    }

    /// Sets how many events are sorted at once, at about 110 bytes each. A recording with larger rounds is
    /// delivered with some events late, and counted ([`Tally::late`]).
    pub fn set_window(&mut self, events: usize) {
        self.order.set_capacity(events);
    }

    fn of_pipe(reader: R, start: &Start) -> Self {
        let records = Records::new(reader, 16, u64::MAX, start.big_endian);
        PerfData::new(records, Meta::default(), start.big_endian, State::Preamble)
    }

    fn of_file(reader: R, start: &Start, file: &FileHeader, meta: Meta) -> Result<Self, ReadError> {
        let (data, big_endian) = (file.data, start.big_endian);
        // `scan` has checked that the sum is a number.
        // perf writes the size last: without it the data goes on to the end.
        let end = if data.size == 0 { u64::MAX } else { data.offset + data.size };
        let records = Records::new(reader, data.offset, end, big_endian);
        let mut perf = PerfData::new(records, meta, big_endian, State::Data);
        perf.whole = (data.size > 0).then_some(end);
        perf.check_meta()?;
        Ok(perf)
    }

    fn new(records: Records<R>, meta: Meta, big_endian: bool, state: State) -> Self {
        let mut names = Names::new();
        let comms = [(0, names.intern("swapper"))].into_iter().collect();
        let (tally, order) = (Tally::default(), Order::new(Self::WINDOW));
        let stacks = Stacks::default();
        let (last_ns, whole) = (0, None);
        PerfData { records, meta, names, tally, order, comms, stacks, last_ns, big_endian, whole, state }
    }

    fn check_meta(&mut self) -> Result<(), ReadError> {
        self.meta.check()?;
        // With one layout it does not matter which attribute a record belongs to; else the id must be
        // findable.
        let layouts = &self.meta.layouts;
        if layouts.is_empty() || (layouts.len() > 1 && !layouts.iter().all(Layout::has_identifier)) {
            return Err(sample::lacking("identifier to tell the events apart"));
        }
        Ok(())
    }

    /// Reads records until an event may go out or there are no more.
    fn pump(&mut self) -> Result<(), ReadError> {
        let Some(record) = self.records.next()? else {
            if self.state == State::Preamble {
                self.check_meta()?;
            }
            self.state = State::Drained;
            self.order.finish();
            let cut = self.records.cut().map(|at| CutOff { at, of: self.whole });
            self.meta.header.cut_off = cut.or(self.meta.header.cut_off);
            return Ok(());
        };
        /// On LOST_SAMPLES: a filter dropped them, which is no loss (PERF_RECORD_MISC_LOST_SAMPLES_BPF).
        const FILTERED: u16 = 1 << 15;
        match record.kind {
            kind::SAMPLE => self.sample(&record),
            kind::FINISHED_ROUND => {
                self.order.finish_round();
                Ok(())
            }
            kind::MMAP | kind::MMAP2 => self.kernel_map(&record),
            kind::LOST_SAMPLES if record.misc & FILTERED != 0 => Ok(()),
            kind::COMM | kind::FORK | kind::LOST | kind::LOST_SAMPLES | kind::THROTTLE => self.other(&record),
            kind::HEADER_ATTR | kind::HEADER_FEATURE if self.state == State::Preamble => {
                self.preamble(&record)
            }
            records::TRACING_DATA => self.tracing_data(&record),
            records::AUXTRACE => {
                let size = self.bytes(&record).u64("size of the trace that follows")?;
                self.records.skip_trailing(size, "hardware trace")
            }
            _ => Ok(()),
        }
    }

    fn bytes(&self, record: &Record) -> Bytes<'_> {
        Bytes::new(self.records.body(record), record.offset + 8, self.big_endian)
    }

    #[inline]
    fn sample(&mut self, record: &Record) -> Result<(), ReadError> {
        if self.state == State::Preamble {
            self.check_meta()?;
            self.state = State::Data;
        }
        let body = self.records.body(record);
        let layout = self.meta.layout_of(body.get(..8), self.big_endian);
        if !layout.has_raw() {
            self.tally.skipped += 1;
            return Ok(());
        }
        let sample = layout.sample(body, record.offset + 8, self.big_endian)?;
        let id = sample.raw.get(..2).map(|id| uint(id, self.big_endian) as u16);
        let Some(decoder) = id.and_then(|id| self.meta.decoders.get(&id)) else {
            self.tally.skipped += 1;
            return Ok(());
        };
        let short = || {
            let (what, have) = ("the payload that the format text describes", sample.raw.len() as u64);
            Short { offset: record.offset + 8, what, need: have + 1, have }
        };
        let stack = self.stacks.name(sample.chain, self.big_endian, &mut self.names);
        for index in 0..decoder.events(sample.raw).ok_or_else(short)? {
            let decoded = decoder.decode(sample.raw, index, &mut self.names).ok_or_else(short)?;
            let pid = decoded.pid.or(sample.tid).unwrap_or(-1);
            let (time_ns, cpu) = (sample.time_ns, sample.cpu);
            let event =
                Event { time_ns, cpu, pid, comm: None, context: decoded.context, stack, kind: decoded.kind };
            self.order.push(Some(time_ns), Waiting::Event(event));
        }
        Ok(())
    }

    /// Records that change task names or report losses.
    fn other(&mut self, record: &Record) -> Result<(), ReadError> {
        if self.meta.layouts.is_empty() {
            return Ok(());
        }
        let body = self.records.body(record);
        let mut bytes = Bytes::new(body, record.offset + 8, self.big_endian);
        let layout =
            self.meta.layout_of(body.len().checked_sub(8).and_then(|at| body.get(at..)), self.big_endian);
        let trailer = layout.trailer(body, self.big_endian);
        // Records that perf itself adds have a trailer of zeros.
        let time_ns = trailer.time_ns.filter(|&time| time != 0);
        let cpu = trailer.cpu.filter(|_| time_ns.is_some());
        let offset = record.offset;
        let waiting = match record.kind {
            kind::COMM => {
                bytes.take(4, "pid")?;
                let tid = bytes.u32("thread id")? as i32;
                // The kernel's limit is 16 bytes; the trailer follows the text's padding.
                let text = bytes.take(bytes.left().min(16) as u64, "comm")?;
                Waiting::Comm { tid, name: self.names.intern(&text_lossy(text)) }
            }
            kind::FORK => {
                bytes.take(8, "pids")?;
                let tid = bytes.u32("thread id")? as i32;
                Waiting::Fork { tid, parent: bytes.u32("parent's thread id")? as i32 }
            }
            kind::LOST => {
                bytes.take(8, "event id")?;
                let count = bytes.u64("number of lost events")?;
                Waiting::Lost(Lost { cpu, time_ns, offset, count, kind: LossKind::Ring })
            }
            kind::LOST_SAMPLES => {
                let count = bytes.u64("number of lost samples")?;
                Waiting::Lost(Lost { cpu, time_ns, offset, count, kind: LossKind::Samples })
            }
            _ => Waiting::Lost(Lost { cpu, time_ns, offset, count: 0, kind: LossKind::Throttled }),
        };
        self.order.push(time_ns, waiting);
        Ok(())
    }

    fn kernel_map(&mut self, record: &Record) -> Result<(), ReadError> {
        const CPU_MODE: u16 = 7;
        const KERNEL: u16 = 1;
        if record.misc & CPU_MODE != KERNEL || self.meta.header.maps.len() >= Self::MAP_LIMIT {
            return Ok(());
        }
        let mut bytes = self.bytes(record);
        bytes.take(8, "pid and thread id")?;
        let (start, len) = (bytes.u64("map address")?, bytes.u64("map length")?);
        bytes.take(if record.kind == kind::MMAP { 8 } else { 40 }, "map attributes")?;
        let name = text_lossy(bytes.take(bytes.left() as u64, "map name")?).into_owned();
        self.meta.header.maps.push(KernelMap { start, len, name });
        Ok(())
    }

    /// HEADER_ATTR and HEADER_FEATURE of a pipe.
    fn preamble(&mut self, record: &Record) -> Result<(), ReadError> {
        let mut bytes = Bytes::new(self.records.body(record), record.offset + 8, self.big_endian);
        if record.kind == kind::HEADER_ATTR {
            return self.meta.pipe_attr(bytes, self.big_endian);
        }
        let feature = bytes.u64("feature number")?;
        self.meta.feature(feature, bytes)
    }

    /// TRACING_DATA of a pipe: the data follows the record, padded to eight bytes.
    fn tracing_data(&mut self, record: &Record) -> Result<(), ReadError> {
        let size = u64::from(self.bytes(record).u32("tracing data size")?);
        if size > open::AROUND_LIMIT {
            let expected = "at most 64 MiB of tracing data";
            return Err(ReadError::value(record.offset + 8, expected, size));
        }
        let data = self.records.take_trailing(size.next_multiple_of(8), "tracing data")?;
        let at = record.offset + 8 + self.records.body(record).len() as u64;
        self.meta.tracing_data(Bytes::new(&data[..size as usize], at, self.big_endian))
    }

    /// Gives out what waited, or takes note of it.
    #[inline]
    fn deliver(&mut self, waiting: Waiting) -> Option<Item> {
        match waiting {
            Waiting::Event(mut event) => {
                event.comm = self.comms.get(&event.pid).copied();
                self.tally.event(event.time_ns, &mut self.last_ns);
                return Some(Item::Event(event));
            }
            Waiting::Lost(lost) => {
                self.tally.lost(&lost);
                return Some(Item::Lost(lost));
            }
            Waiting::Comm { tid, name } => self.set_comm(tid, Some(name)),
            Waiting::Fork { tid, parent } => self.set_comm(tid, self.comms.get(&parent).copied()),
        }
        None
    }

    fn set_comm(&mut self, tid: i32, name: Option<Name>) {
        if let Some(name) = name
            && (self.comms.len() < Self::COMM_LIMIT || self.comms.contains_key(&tid))
        {
            self.comms.insert(tid, name);
        }
    }
}

impl<R: Read> Source for PerfData<R> {
    type Error = ReadError;

    fn next(&mut self) -> Result<Option<Item>, ReadError> {
        loop {
            while let Some((_, waiting)) = self.order.pop() {
                if let Some(item) = self.deliver(waiting) {
                    return Ok(Some(item));
                }
            }
            if matches!(self.state, State::Drained | State::Failed) {
                return Ok(None);
            }
            if let Err(error) = self.pump() {
                self.state = State::Failed;
                return Err(error);
            }
        }
    }

    /// A pipe's header is complete when the first event has been delivered; [`Header::maps`] may grow until
    /// the end.
    fn state(&self) -> (&Header, &Names, &Tally) {
        (&self.meta.header, &self.names, &self.tally)
    }
}

/// Record types of the kernel and of perf that are looked into.
mod kind {
    pub(super) const MMAP: u32 = 1;
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const HEADER_ATTR: u32 = 64;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const HEADER_FEATURE: u32 = 80;
}
