//! trace.dat of trace-cmd, versions 6 and 7, plain or with compressed sections.
//!
//! ```text
//! next
//!   heads.peek           the CPU whose next event is the oldest
//!   deliver              payload -> Event, by the recording's own format text
//!   advance              that CPU's next event or loss
//!     Reader::step         the next of its ring buffer, whose pages are read as they are needed
//! ```
//! The layout is that of the man pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). Events of one CPU are in
//! the order of time; those of several CPUs, and of several tracing instances, are merged by it, the lower
//! CPU first where times are equal. Two things are not in the man pages: version 6 has the clock behind its
//! table of CPUs, and an instance of version 6 has such a table of its own, without options.
//!
//! Options that shift all times alike (DATE, OFFSET, TIME_SHIFT) are not applied: the clock is that of the
//! recording machine.
//!
//! Memory: the format texts and symbols, and the pages of each CPU that are being read: together at most 64
//! MiB for the former, [`TraceDat::PAGES`] for the latter.

mod file;
mod head;
mod meta;
mod ring;
mod symbols;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{Read, Seek};

pub use head::MAGIC;

use crate::bytes::{Short, uint_at};
use crate::error::ReadError;
use crate::event::{CutOff, Event, Header, Item, Kind, LossKind, Lost, Name, Names, Source, Tally};
use crate::kmem::Decoded;
use file::File;
use meta::{Buffer, Meta};
use ring::{Reader, Step};

/// A trace.dat being read. See [`Source`] for its stream.
pub struct TraceDat<R> {
    file: File<R>,
    meta: Meta,
    names: Names,
    tally: Tally,
    cpus: Vec<Cpu>,
    /// The next step of each CPU that has one, by its time, and its index in `cpus`.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    last_ns: u64,
    /// Whether all events were read.
    ended: bool,
    failed: bool,
}

/// One CPU and its next event.
struct Cpu {
    reader: Reader,
    head: Option<Step>,
    /// Events that the head is, and those of them that are not delivered yet: a bulk call is several.
    events: u64,
    left: u64,
}

impl<R: Read + Seek> TraceDat<R> {
    /// Pages kept in memory of all CPUs together, in bytes.
    pub const PAGES: u64 = 256 << 20;
    /// Bytes taken from the file at once for a CPU.
    const SPAN: u64 = 1 << 18;
    /// A compressed chunk; trace-cmd makes them of ten pages.
    const CHUNK: u64 = 16 << 20;

    /// Reads a file. Input that cannot seek must be put into a file, as each CPU's events are in a place of
    /// their own.
    ///
    /// # Errors
    /// What is wrong with the header, the formats or the options. The events are not looked at yet.
    pub fn new(reader: R) -> Result<Self, ReadError> {
        let (mut file, mut names) = (File::new(reader), Names::new());
        let mut meta = head::read(&mut file, &mut names)?;
        let buffers = std::mem::take(&mut meta.buffers);
        let cpus = Self::readers(&mut file, &buffers)?;
        let (tally, heads) = (Tally::default(), BinaryHeap::with_capacity(cpus.len()));
        let mut source =
            TraceDat { file, meta, names, tally, cpus, heads, last_ns: 0, ended: false, failed: false };
        for index in 0..source.cpus.len() {
            source.advance(index)?;
            source.heads.extend(source.cpus[index].head.as_ref().map(|_| source.head(index)));
        }
        Ok(source)
    }

    fn readers(file: &mut File<R>, buffers: &[Buffer]) -> Result<Vec<Cpu>, ReadError> {
        let rings = buffers.iter().flat_map(|buffer| buffer.cpus.iter().map(move |ring| (buffer, *ring)));
        let mut rings: Vec<_> = rings.filter(|(_, ring)| ring.size > 0).collect();
        let value = |offset, expected, found| Err(ReadError::value(offset, expected, found));
        let share = Self::PAGES / rings.len().max(1) as u64;
        if let Some((buffer, ring)) = rings.iter().find(|(buffer, _)| buffer.page_size > share) {
            let expected = "fewer CPUs with pages of this size";
            return value(ring.offset, expected, buffer.page_size);
        }
        // In a row and none twice: reading takes time and memory by the file's size, whatever its tables say.
        rings.sort_by_key(|(_, ring)| ring.offset);
        if let Some(pair) =
            rings.windows(2).find(|pair| pair[0].1.offset.saturating_add(pair[0].1.size) > pair[1].1.offset)
        {
            let expected = "a CPU's events behind the end of those of another";
            return value(pair[1].1.offset, expected, pair[0].1.offset.saturating_add(pair[0].1.size));
        }
        let reader = |(buffer, ring): (&Buffer, _)| {
            let Buffer { page_size, compressed, .. } = *buffer;
            let span = if compressed {
                Self::CHUNK.min(share)
            } else {
                Self::SPAN.min(share).max(page_size) / page_size * page_size
            };
            Ok(Cpu {
                reader: Reader::new(file, ring, page_size, compressed, span)?,
                head: None,
                events: 0,
                left: 0,
            })
        };
        let mut cpus = rings.into_iter().map(reader).collect::<Result<Vec<_>, ReadError>>()?;
        // Which is first where times are equal.
        cpus.sort_by_key(|cpu| cpu.reader.cpu());
        Ok(cpus)
    }

    fn head(&self, index: usize) -> Reverse<(u64, usize)> {
        Reverse((self.cpus[index].reader.time(), index))
    }

    /// Finds the next step of a CPU; events that the vocabulary has no word for are passed over.
    #[inline]
    fn advance(&mut self, index: usize) -> Result<(), ReadError> {
        let big_endian = self.file.big_endian;
        let cpu = &mut self.cpus[index];
        loop {
            cpu.head = cpu.reader.step(&mut self.file)?;
            cpu.left = 0;
            let Some(Step::Event(range)) = &cpu.head else { return Ok(()) };
            let payload = cpu.reader.payload(range);
            let id = uint_at(payload, 0, 2, big_endian).map(|id| id as u16);
            let decoder = id.and_then(|id| self.meta.decoders.get(&id));
            // A payload that is too short is told when it is decoded.
            let events = decoder.map(|decoder| decoder.events(payload).unwrap_or(1));
            let is_mark = || id.is_some_and(|id| self.meta.mark.is_some_and(|mark| mark.id == id));
            if events == Some(0) {
                continue;
            }
            if events.is_some() || is_mark() {
                cpu.left = events.unwrap_or(1);
                cpu.events = cpu.left;
                return Ok(());
            }
            self.tally.skipped += 1;
        }
    }

    fn event(&mut self, index: usize, range: &std::ops::Range<usize>) -> Result<Event, ReadError> {
        let big_endian = self.file.big_endian;
        let Cpu { reader, events, left, .. } = &self.cpus[index];
        let payload = reader.payload(range);
        let id = uint_at(payload, 0, 2, big_endian).map_or(0, |id| id as u16);
        let decoded = match self.meta.decoders.get(&id) {
            Some(decoder) => decoder.decode(payload, events - left, &mut self.names),
            None => self.meta.mark.and_then(|mark| {
                let text = mark.text(payload, big_endian)?;
                let pid = uint_at(payload, 4, 4, big_endian)? as i32;
                let kind = Kind::Mark(self.names.intern(text.trim_end()));
                Some(Decoded { pid: Some(pid), context: None, kind })
            }),
        };
        let Some(Decoded { pid, context, mut kind }) = decoded else {
            let (what, have) = ("the payload that the format text describes", payload.len() as u64);
            let offset = reader.offset(range.start);
            return Err(Short { offset, what, need: have + 1, have }.into());
        };
        self.name_site(&mut kind);
        let pid = pid.unwrap_or(-1);
        let reader = &self.cpus[index].reader;
        let time = reader.time();
        let time_ns = self.meta.tsc.map_or(time, |tsc| tsc.nanoseconds(time));
        let comm = self.meta.comms.get(&pid).copied();
        Ok(Event { time_ns, cpu: reader.cpu(), pid, comm, context, stack: None, kind })
    }

    fn name_site(&mut self, kind: &mut Kind) {
        let site = match kind {
            Kind::Kmalloc(alloc) | Kind::CacheAlloc(alloc) => &mut alloc.call_site,
            Kind::Kfree(free) | Kind::CacheFree(free) | Kind::KfreeRcu(free) => &mut free.call_site,
            Kind::PageAlloc(_) | Kind::PageFree(_) | Kind::Mark(_) => return,
        };
        let name = |address| -> Option<Name> { self.meta.symbols.name(address, &mut self.names) };
        site.symbol = site.addr.and_then(name);
    }

    fn pull(&mut self) -> Result<Option<Item>, ReadError> {
        let Some(head) = self.heads.peek() else {
            // What the rings counted, and what was cut off, is known at the end only.
            if !self.ended {
                self.ended = true;
                self.note_cut()?;
            }
            let lost = self.meta.losses.pop();
            return Ok(lost.map(|lost| self.lost(lost)));
        };
        let Reverse((_, index)) = *head;
        let item = match self.cpus[index].head.take() {
            Some(Step::Event(range)) => {
                let event = self.event(index, &range)?;
                self.tally.event(event.time_ns, &mut self.last_ns);
                let cpu = &mut self.cpus[index];
                cpu.left -= 1;
                if cpu.left > 0 {
                    cpu.head = Some(Step::Event(range));
                    return Ok(Some(Item::Event(event)));
                }
                Some(Item::Event(event))
            }
            Some(Step::Lost(mut lost)) => {
                lost.time_ns =
                    lost.time_ns.map(|time| self.meta.tsc.map_or(time, |tsc| tsc.nanoseconds(time)));
                Some(self.lost(lost))
            }
            None => None,
        };
        self.advance(index)?;
        let next = self.cpus[index].head.as_ref().map(|_| self.head(index));
        // Replaced in place: the next event is most often of the same CPU.
        if let Some(mut head) = self.heads.peek_mut() {
            match next {
                Some(next) => *head = next,
                None => drop(PeekMut::pop(head)),
            }
        }
        Ok(item)
    }

    /// A CPU whose events were cut off has lost the rest of them. The parts of the CPUs follow each other in
    /// the file, so those of other CPUs may be whole.
    fn note_cut(&mut self) -> Result<(), ReadError> {
        let cut = self.cpus.iter().filter(|cpu| cpu.reader.is_cut_off());
        let lost = cut.map(|cpu| Lost {
            cpu: Some(cpu.reader.cpu()),
            time_ns: None,
            offset: cpu.reader.end(),
            count: 0,
            kind: LossKind::Ring,
        });
        let before = self.meta.losses.len();
        self.meta.losses.extend(lost);
        if self.meta.losses.len() > before {
            let of = self.cpus.iter().map(|cpu| cpu.reader.end()).max();
            self.meta.header.cut_off = Some(CutOff { at: self.file.length()?, of });
        }
        Ok(())
    }

    fn lost(&mut self, lost: Lost) -> Item {
        self.tally.lost(&lost);
        Item::Lost(lost)
    }
}

impl<R: Read + Seek> Source for TraceDat<R> {
    type Error = ReadError;

    fn next(&mut self) -> Result<Option<Item>, ReadError> {
        if self.failed {
            return Ok(None);
        }
        let item = self.pull();
        self.failed = item.is_err();
        item
    }

    fn state(&self) -> (&Header, &Names, &Tally) {
        (&self.meta.header, &self.names, &self.tally)
    }
}
