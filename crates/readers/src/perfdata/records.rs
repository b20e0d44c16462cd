//! Records of a perf.data's data section: framing, and the records inside compressed ones.
//!
//! ```text
//! next
//!   inflated.next      a record out of the compressed stream, if a whole one is there
//!   inflated.refill    up to CHUNK more bytes out of the compressed record at hand
//!   outer.frame        header and body of the next record of the file
//! ```
//! Memory: one outer record, CHUNK inflated bytes and the beginning of one record. A record that inflates to
//! gigabytes costs time in proportion, not memory.

use std::io::{ErrorKind, Read};

use crate::decoders::Pieces;

use crate::bytes::{Short, uint};
use crate::error::{At, ReadError};

// PERF_RECORD_* of user space whose framing is special.
pub(super) const AUXTRACE: u32 = 71;
pub(super) const TRACING_DATA: u32 = 66;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// A record's header and where its body lies.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// File offset of the record's header; for an inflated record, of the compressed record it came from.
    pub(super) offset: u64,
    place: Place,
    start: usize,
    end: usize,
}

#[derive(Clone, Copy)]
enum Place {
    Outer,
    Inflated,
}

const HEADER: usize = 8;

/// A stream of records.
pub(super) struct Records<R> {
    outer: Outer<R>,
    inflated: Inflated,
    big_endian: bool,
}

struct Outer<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// File offset of `buffer[start]`.
    offset: u64,
    /// File offset where the data section ends; `u64::MAX` for a pipe.
    limit: u64,
    /// File offset where the input ended before its data did.
    cut: Option<u64>,
}

struct Inflated {
    decoder: Option<Pieces>,
    input: Vec<u8>,
    input_at: usize,
    output: Vec<u8>,
    output_at: usize,
    offset: u64,
    state: State,
}

/// Where the inflating of one compressed record stands.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// There is none, or all its records were given.
    Idle,
    /// Input is left.
    Inflating,
    /// All input is inflated; whole records may be left.
    Inflated,
}

impl<R: Read> Records<R> {
    const BUFFER: usize = 1 << 18;

    /// Records of `reader`, which stands at byte `offset`, up to byte `limit`.
    pub(super) fn new(reader: R, offset: u64, limit: u64, big_endian: bool) -> Self {
        let outer =
            Outer { reader, buffer: vec![0; Self::BUFFER], start: 0, end: 0, offset, limit, cut: None };
        let inflated = Inflated {
            decoder: None,
            input: Vec::new(),
            input_at: 0,
            output: Vec::new(),
            output_at: 0,
            offset: 0,
            state: State::Idle,
        };
        Records { outer, inflated, big_endian }
    }

    /// The next record, never a compressed one; `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            if self.inflated.state != State::Idle {
                if let Some(record) = self.inflated.next(self.big_endian)? {
                    return Ok(Some(record));
                }
                self.inflated.refill()?;
                continue;
            }
            let Some(record) = self.outer.next(self.big_endian)? else {
                // A pipe does not say how much it should have: half a record shows that it was cut off.
                if self.outer.limit == u64::MAX && self.inflated.left() > 0 {
                    self.outer.cut.get_or_insert(self.outer.offset);
                }
                if self.outer.cut.is_some() {
                    return Ok(None);
                }
                return self.inflated.check_end().map(|()| None);
            };
            match record.kind {
                COMPRESSED | COMPRESSED2 => self.begin_inflating(record)?,
                _ => return Ok(Some(record)),
            }
        }
    }

    /// Where the input ended before its data did, if it did. Known when `next` has given `None`.
    pub(super) fn cut(&self) -> Option<u64> {
        self.outer.cut
    }

    /// The body of the record that `next` gave last.
    #[inline]
    pub(super) fn body(&self, record: &Record) -> &[u8] {
        match record.place {
            Place::Outer => &self.outer.buffer[record.start..record.end],
            Place::Inflated => &self.inflated.output[record.start..record.end],
        }
    }

    /// Reads `count` bytes that follow a record without being part of it.
    pub(super) fn take_trailing(&mut self, count: u64, what: &'static str) -> Result<Vec<u8>, ReadError> {
        let mut data = Vec::new();
        self.outer.trailing(count, what, |bytes| data.extend_from_slice(bytes))?;
        Ok(data)
    }

    /// Skips `count` bytes that follow a record without being part of it.
    pub(super) fn skip_trailing(&mut self, count: u64, what: &'static str) -> Result<(), ReadError> {
        self.outer.trailing(count, what, |_| ())
    }

    fn begin_inflating(&mut self, record: Record) -> Result<(), ReadError> {
        let body = &self.outer.buffer[record.start..record.end];
        let have = body.len() as u64;
        let data = match (record.kind, body.split_at_checked(8)) {
            (COMPRESSED2, Some((size, data))) => {
                let need = uint(size, self.big_endian);
                let what = "compressed data";
                let offset = record.offset + HEADER as u64 + 8;
                let short = Short { offset, what, need, have: have - 8 };
                usize::try_from(need).ok().and_then(|size| data.get(..size)).ok_or(short)?
            }
            (COMPRESSED2, None) => {
                let (offset, what) = (record.offset + HEADER as u64, "compressed data size");
                return Err(Short { offset, what, need: 8, have }.into());
            }
            _ => body,
        };
        self.inflated.begin(data, record.offset)
    }
}

impl<R: Read> Outer<R> {
    /// Makes `count` bytes available at `start`, fewer at the end of the data.
    #[inline]
    fn fill(&mut self, count: usize) -> Result<usize, ReadError> {
        if self.end - self.start < count { self.fill_slow(count) } else { Ok(count) }
    }

    #[cold]
    fn fill_slow(&mut self, count: usize) -> Result<usize, ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < count {
            let left = self.limit - self.offset - self.end as u64;
            let room = (self.buffer.len() - self.end).min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.reader.read(&mut self.buffer[self.end..self.end + room]) {
                Ok(0) => break,
                Ok(got) => self.end += got,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A compressed file that was cut off.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.cut = Some(self.offset + self.end as u64);
                    break;
                }
                Err(source) => {
                    return Err(ReadError::io(At::Offset(self.offset + self.end as u64), source));
                }
            }
        }
        Ok(self.end.min(count))
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    fn next(&mut self, big_endian: bool) -> Result<Option<Record>, ReadError> {
        let offset = self.offset;
        let truncated = |what, need: usize, have: usize| {
            ReadError::from(Short { offset, what, need: need as u64, have: have as u64 })
        };
        match self.fill(HEADER)? {
            HEADER => {}
            // A file says how long its data is; a pipe just ends.
            0 if self.limit == u64::MAX || self.offset == self.limit => return Ok(None),
            have if self.ends_at(have) => return Ok(None),
            have => return Err(truncated("a record's header", HEADER, have)),
        }
        let (kind, misc, size) = frame(&self.buffer[self.start..self.start + HEADER], big_endian);
        if size < HEADER {
            let expected = "a record size of at least 8";
            return Err(ReadError::value(offset + 6, expected, size));
        }
        let have = self.fill(size)?;
        if have < size && self.ends_at(have) {
            return Ok(None);
        }
        if have < size {
            return Err(truncated("a record", size, have));
        }
        let (start, end) = (self.start + HEADER, self.start + size);
        self.consume(size);
        Ok(Some(Record { kind, misc, offset, place: Place::Outer, start, end }))
    }

    /// Whether the input ends behind `have` bytes although its data should go on.
    fn ends_at(&mut self, have: usize) -> bool {
        let end = self.offset + have as u64;
        let early = end < self.limit;
        if early {
            self.cut.get_or_insert(end);
        }
        early
    }

    fn trailing(
        &mut self,
        count: u64,
        what: &'static str,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), ReadError> {
        let (offset, mut left) = (self.offset, count);
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
            let got = self.fill(want)?;
            if got == 0 {
                return Err(Short { offset, what, need: count, have: count - left }.into());
            }
            each(&self.buffer[self.start..self.start + got]);
            self.consume(got);
            left -= got as u64;
        }
        Ok(())
    }
}

impl Inflated {
    fn begin(&mut self, data: &[u8], offset: u64) -> Result<(), ReadError> {
        self.input.clear();
        self.input.extend_from_slice(data);
        (self.input_at, self.offset, self.state) = (0, offset, State::Inflating);
        if self.decoder.is_none() {
            self.decoder = Some(Pieces::new().map_err(|error| self.error(&error))?);
        }
        Ok(())
    }

    fn error(&self, error: &std::io::Error) -> ReadError {
        let what = format_args!("a compressed record cannot be decompressed: {error}");
        ReadError::at_byte(self.offset, what)
    }

    fn next(&mut self, big_endian: bool) -> Result<Option<Record>, ReadError> {
        let ready = &self.output[self.output_at..];
        let Some((header, _)) = ready.split_at_checked(HEADER) else { return Ok(None) };
        let (kind, misc, size) = frame(header, big_endian);
        if size < HEADER || matches!(kind, COMPRESSED | COMPRESSED2 | AUXTRACE | TRACING_DATA) {
            let expected = "a plain record of at least 8 bytes inside the compressed one";
            return Err(ReadError::value(self.offset, expected, kind));
        }
        if ready.len() < size {
            return Ok(None);
        }
        let (start, end) = (self.output_at + HEADER, self.output_at + size);
        self.output_at = end;
        Ok(Some(Record { kind, misc, offset: self.offset, place: Place::Inflated, start, end }))
    }

    /// Inflates more of the input; the beginning of a record stays for the next compressed one.
    fn refill(&mut self) -> Result<(), ReadError> {
        const CHUNK: usize = 1 << 17;
        if self.state == State::Inflated {
            self.state = State::Idle;
            return Ok(());
        }
        self.output.drain(..self.output_at);
        self.output_at = 0;
        let kept = self.output.len();
        self.output.resize(kept + CHUNK, 0);
        let decoder = self.decoder.as_mut().expect("begin made it");
        let (read, written, result) = decoder.run(&self.input[self.input_at..], &mut self.output[kept..]);
        self.output.truncate(kept + written);
        self.input_at += read;
        if let Err(error) = result {
            return Err(self.error(&error));
        }
        // With room left over, zstd has given all that this input holds.
        if (self.input_at == self.input.len() && written < CHUNK) || (read == 0 && written == 0) {
            self.state = State::Inflated;
        }
        Ok(())
    }

    /// Bytes of a record that is not whole.
    fn left(&self) -> u64 {
        (self.output.len() - self.output_at) as u64
    }

    /// At the end of the file no record may be left half inflated.
    fn check_end(&self) -> Result<(), ReadError> {
        let have = self.left();
        if have > 0 {
            let what = "a record inside a compressed one";
            return Err(Short { offset: self.offset, what, need: have + 1, have }.into());
        }
        Ok(())
    }
}

/// Type, misc and size of a record.
#[inline]
fn frame(header: &[u8], big_endian: bool) -> (u32, u16, usize) {
    let field = |range: std::ops::Range<usize>| uint(&header[range], big_endian);
    (field(0..4) as u32, field(4..6) as u16, field(6..8) as usize)
}
