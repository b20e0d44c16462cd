//! One CPU's ring buffer: its pages, and the events in them.
//!
//! A page begins with the time of its first event and a commit word: bytes of events, and in the highest bits
//! whether events were lost before this page and whether their number stands behind the events. An event
//! begins with a word of five bits of type and 27 bits of time since the event before:
//!
//! ```text
//! 0        data; its size, this field included, is in the next word
//! 1..=28   data; the type is its size in words
//! 29       padding: to the page's end if the time is 0, else the next word has its size; the event was discarded
//! 30       time extend: the next word has the higher bits of the time since the event before
//! 31       time stamp: as 30, but the time itself, of 59 bits
//! ```

use std::io::{Read, Seek};
use std::ops::Range;

use super::file::File;
use super::meta::Ring;
use crate::bytes::{Bytes, Short, uint};
use crate::error::{ReadError, What};
use crate::event::{LossKind, Lost};

/// Bytes of a page before its events.
const PAGE_HEADER: usize = 16;
/// In the commit word: bytes of events.
const COMMIT_SIZE: u64 = (1 << 27) - 1;
/// In the commit word: events were lost before this page.
const MISSED: u64 = 1 << 31;
/// In the commit word: their number stands behind the events.
const MISSED_STORED: u64 = 1 << 30;
/// Bits of a time stamp that an event of type 31 has; the higher ones are those of the time before.
const STAMP_BITS: u32 = 59;

/// The next item of a CPU.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An event: its payload's place in [`Reader::payload`].
    Event(Range<usize>),
    /// Events were lost before this point.
    Lost(Lost),
}

/// A CPU's events being read.
pub(super) struct Reader {
    ring: Ring,
    page_size: usize,
    /// Chunks still to come, where the pages are compressed.
    chunks: Option<u32>,
    /// Where in the file the next bytes are, and where this CPU's end.
    next: u64,
    end: u64,
    /// Bytes taken at once; a chunk's limit.
    span: u64,
    /// Whole pages, and the beginning of one.
    data: Vec<u8>,
    /// File offset of `data`, or of the start of its chunk if the file is compressed.
    data_at: u64,
    /// The page after the current one.
    page: usize,
    /// Events of the current page not read yet.
    events: Range<usize>,
    time: u64,
    /// Whether the file ended before this CPU's events did.
    cut_off: bool,
}

impl Reader {
    /// `span`: see the field.
    pub(super) fn new<R: Read + Seek>(
        file: &mut File<R>,
        ring: Ring,
        page_size: u64,
        compressed: bool,
        span: u64,
    ) -> Result<Reader, ReadError> {
        let (mut chunks, mut next, mut cut_off) = (None, ring.offset, false);
        if compressed && ring.size > 0 {
            match file.exact(ring.offset, 4, "number of chunks") {
                Ok(count) => chunks = Some(uint(&count, file.big_endian) as u32),
                Err(ReadError { what: What::Truncated { .. }, .. }) => (chunks, cut_off) = (Some(0), true),
                Err(error) => return Err(error),
            }
            next += 4;
        }
        Ok(Reader {
            ring,
            page_size: page_size as usize,
            chunks,
            next,
            end: ring.offset.saturating_add(ring.size),
            span,
            data: Vec::new(),
            data_at: next,
            page: 0,
            events: 0..0,
            time: 0,
            cut_off,
        })
    }

    /// The CPU's number.
    pub(super) fn cpu(&self) -> u32 {
        self.ring.cpu
    }

    /// The time of the last step.
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    /// The bytes of an event that [`Reader::step`] has just given.
    #[inline]
    pub(super) fn payload(&self, range: &Range<usize>) -> &[u8] {
        &self.data[range.clone()]
    }

    /// Whether the file ended before this CPU's events did.
    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Where this CPU's events should end.
    pub(super) fn end(&self) -> u64 {
        self.ring.offset.saturating_add(self.ring.size)
    }

    /// The file ended: nothing more is read.
    fn cut_off(&mut self) {
        (self.cut_off, self.end) = (true, self.next);
        self.chunks = self.chunks.map(|_| 0);
    }

    /// File offset of `at` in the data.
    pub(super) fn offset(&self, at: usize) -> u64 {
        self.data_at + at as u64
    }

    /// The next event or loss; `None` at the end.
    #[inline]
    pub(super) fn step<R: Read + Seek>(&mut self, file: &mut File<R>) -> Result<Option<Step>, ReadError> {
        loop {
            if self.events.is_empty() {
                match self.next_page(file)? {
                    Page::End => return Ok(None),
                    Page::Whole => {}
                    Page::AfterLoss(lost) => return Ok(Some(Step::Lost(lost))),
                }
            } else if let Some(payload) = self.event(file.big_endian)? {
                return Ok(Some(Step::Event(payload)));
            }
        }
    }

    /// Moves over one entry of the page; its payload if it is an event.
    #[inline]
    fn event(&mut self, big_endian: bool) -> Result<Option<Range<usize>>, ReadError> {
        let at = self.events.start;
        let word = self.word(at, big_endian)?;
        // The fields are bit fields, which are laid out from the other end on big-endian machines.
        let (kind, delta) =
            if big_endian { (word >> 27, word & 0x7ff_ffff) } else { (word & 0x1f, word >> 5) };
        match kind {
            1..=28 => {
                self.time = self.time.wrapping_add(delta);
                self.take(at + 4, 4 * kind).map(Some)
            }
            0 => {
                let size = self.word(at + 4, big_endian)?;
                self.time = self.time.wrapping_add(delta);
                let size = size.checked_sub(4).ok_or_else(|| {
                    let expected = "an event's size of 4 or more";
                    ReadError::value(self.offset(at + 4), expected, size)
                })?;
                self.take(at + 8, size).map(Some)
            }
            29 if delta == 0 => {
                self.events.start = self.events.end;
                Ok(None)
            }
            29 => {
                let size = self.word(at + 4, big_endian)?;
                self.time = self.time.wrapping_add(delta);
                self.take(at + 4, size).map(|_| None)
            }
            30 => {
                let high = self.word(at + 4, big_endian)?;
                self.time = self.time.wrapping_add(delta + (high << 27));
                self.take(at + 4, 4).map(|_| None)
            }
            _ => {
                let stamp = delta + (self.word(at + 4, big_endian)? << 27);
                let low = stamp & ((1 << STAMP_BITS) - 1);
                let mut time = self.time >> STAMP_BITS << STAMP_BITS | low;
                if time < self.time && self.time - time > 1 << (STAMP_BITS - 1) {
                    time = time.wrapping_add(1 << STAMP_BITS);
                }
                self.time = time;
                self.take(at + 4, 4).map(|_| None)
            }
        }
    }

    #[inline]
    fn word(&self, at: usize, big_endian: bool) -> Result<u64, ReadError> {
        match self.data.get(at..at + 4) {
            Some(bytes) if at + 4 <= self.events.end => Ok(uint(bytes, big_endian)),
            _ => Err(self.truncated(at, 4)),
        }
    }

    /// `size` bytes from `at`. The next event follows them at a multiple of four.
    #[inline]
    fn take(&mut self, at: usize, size: u64) -> Result<Range<usize>, ReadError> {
        let left = self.events.end.saturating_sub(at) as u64;
        if size > left {
            return Err(self.truncated(at, size));
        }
        let end = at + size as usize;
        self.events.start = end.next_multiple_of(4).min(self.events.end);
        Ok(at..end)
    }

    #[cold]
    fn truncated(&self, at: usize, need: u64) -> ReadError {
        let have = self.events.end.saturating_sub(at) as u64;
        Short { offset: self.offset(at), what: "an event in its page", need, have }.into()
    }

    fn next_page<R: Read + Seek>(&mut self, file: &mut File<R>) -> Result<Page, ReadError> {
        while self.data.len() - self.page < self.page_size {
            if !self.fill(file)? {
                break;
            }
        }
        let start = self.page;
        // The last page may be cut off behind its events.
        let page = &self.data[start..self.data.len().min(start + self.page_size)];
        if page.is_empty() {
            return Ok(Page::End);
        }
        let mut bytes = Bytes::new(page, self.offset(start), file.big_endian);
        self.time = bytes.u64("time of a page")?;
        let commit = bytes.u64("commit word of a page")?;
        let size = commit & COMMIT_SIZE;
        bytes.take(size, "events in their page")?;
        let missed = match commit & (MISSED | MISSED_STORED) {
            0 | MISSED_STORED => None,
            MISSED => Some(0),
            // A number that is not known is -1.
            _ => Some(bytes.u64("number of lost events").map_or(0, |count| (count as i64).max(0) as u64)),
        };
        self.events = start + PAGE_HEADER..start + PAGE_HEADER + size as usize;
        self.page = start + page.len();
        Ok(missed.map_or(Page::Whole, |count| {
            Page::AfterLoss(Lost {
                cpu: Some(self.ring.cpu),
                time_ns: Some(self.time),
                offset: self.offset(start),
                count,
                kind: LossKind::Ring,
            })
        }))
    }

    /// Takes more of the file; false at the end.
    fn fill<R: Read + Seek>(&mut self, file: &mut File<R>) -> Result<bool, ReadError> {
        self.data.drain(..self.page);
        self.data_at = self.next - self.data.len() as u64;
        self.page = 0;
        match self.chunks {
            None => {
                let count = self.span.min(self.end - self.next);
                let before = self.data.len();
                file.read(self.next, count, &mut self.data)?;
                let have = (self.data.len() - before) as u64;
                self.next += have;
                if have < count {
                    self.cut_off();
                    // What is left of a page has no end that could be trusted.
                    let whole = self.data.len() - self.data.len() % self.page_size;
                    self.data.truncate(whole);
                }
                Ok(self.data.len() > before)
            }
            Some(0) => Ok(false),
            Some(left) => {
                let sizes = match file.exact(self.next, 8, "size of a chunk") {
                    Ok(sizes) => sizes,
                    Err(ReadError { what: What::Truncated { .. }, .. }) => {
                        self.cut_off();
                        return Ok(false);
                    }
                    Err(error) => return Err(error),
                };
                let mut sizes = Bytes::new(&sizes, self.next, file.big_endian);
                let (packed, size) =
                    (u64::from(sizes.u32("chunk size")?), u64::from(sizes.u32("chunk size")?));
                let (at, limit) = (self.next + 8, self.span);
                if size > limit || packed > limit.max(self.end.saturating_sub(at)) {
                    let expected = "a chunk of bearable size that ends with its CPU's events";
                    return Err(ReadError::value(self.next, expected, size));
                }
                let chunk = match file.exact(at, packed, "a chunk of events") {
                    Ok(chunk) => chunk,
                    Err(ReadError { what: What::Truncated { .. }, .. }) => {
                        self.cut_off();
                        return Ok(false);
                    }
                    Err(error) => return Err(error),
                };
                self.data.extend(file.algorithm.unpack(&chunk, size, at)?);
                self.data_at = at;
                self.next = at + packed;
                self.chunks = Some(left - 1);
                Ok(true)
            }
        }
    }
}

/// What [`Reader::next_page`] found.
enum Page {
    End,
    Whole,
    AfterLoss(Lost),
}
