//! Where the fields of a sample lie: decided by its attribute's `sample_type`.

use crate::bytes::{Bytes, Short, uint_at};
use crate::error::{At, ReadError};

// PERF_SAMPLE_* bits.
const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// The layout of one attribute's samples, and of the id trailer of its other records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    sample_type: u64,
    read_format: u64,
    sample_id_all: bool,
    /// Offsets in a sample's body.
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    fixed: usize,
}

/// The values of an attribute other than the layout.
pub(super) struct Facts {
    pub(super) clock: &'static str,
    pub(super) sampled: bool,
    /// The tracepoint's number.
    pub(super) tracepoint: Option<u64>,
}

/// A sample's fields.
pub(super) struct Sample<'a> {
    pub(super) tid: Option<i32>,
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    /// The call chain, eight bytes for each frame and mark; empty if there is none.
    pub(super) chain: &'a [u8],
    /// The tracepoint's payload.
    pub(super) raw: &'a [u8],
}

/// The id trailer of a record that is not a sample.
#[derive(Clone, Copy, Default)]
pub(super) struct Trailer {
    pub(super) time_ns: Option<u64>,
    pub(super) cpu: Option<u32>,
}

impl Layout {
    /// Reads a `perf_event_attr`.
    pub(super) fn of_attr(mut attr: Bytes<'_>) -> Result<(Layout, Facts), ReadError> {
        let kind = attr.u32("attribute type")?;
        attr.u32("attribute size")?;
        let config = attr.u64("attribute config")?;
        let period = attr.u64("sample period")?;
        let sample_type = attr.u64("sample type")?;
        let read_format = attr.u64("read format")?;
        let flags = attr.u64("attribute flags")?;
        // Bit fields are laid out from the other end on big-endian machines.
        let flags = if attr.is_big_endian() { flags.reverse_bits() } else { flags };
        let clock = attr.take(48, "clock id").ok().map(|bytes| uint_at(bytes, 44, 4, attr.is_big_endian()));
        let (freq, sample_id_all, use_clockid) =
            (flags >> 10 & 1 == 1, flags >> 18 & 1 == 1, flags >> 25 & 1 == 1);
        let clock = match clock.flatten() {
            Some(id) if use_clockid => clock_name(id),
            _ => "perf",
        };
        const TRACEPOINT: u32 = 2;
        let is_tracepoint = kind == TRACEPOINT;
        let tracepoint = is_tracepoint.then_some(config);
        let facts = Facts { clock, sampled: is_tracepoint && (freq || period > 1), tracepoint };
        Ok((Layout::new(sample_type, read_format, sample_id_all), facts))
    }

    fn new(sample_type: u64, read_format: u64, sample_id_all: bool) -> Layout {
        let mut at = 0;
        let mut field = |bit: u64| {
            let here = at;
            at += if sample_type & bit != 0 { 8 } else { 0 };
            (sample_type & bit != 0).then_some(here)
        };
        field(IDENTIFIER);
        field(IP);
        let tid = field(TID);
        let time = field(TIME);
        field(ADDR);
        field(ID);
        field(STREAM_ID);
        let cpu = field(CPU);
        field(PERIOD);
        Layout { sample_type, read_format, sample_id_all, tid, time, cpu, fixed: at }
    }

    /// Whether records carry their attribute's id at a place that does not depend on the attribute.
    pub(super) fn has_identifier(&self) -> bool {
        self.sample_type & IDENTIFIER != 0
    }

    /// Whether samples carry a tracepoint's payload.
    pub(super) fn has_raw(&self) -> bool {
        self.sample_type & RAW != 0
    }

    /// Reads a sample's body, which begins at `at`.
    #[inline]
    pub(super) fn sample<'a>(
        &self,
        body: &'a [u8],
        at: u64,
        big_endian: bool,
    ) -> Result<Sample<'a>, ReadError> {
        let (chain, raw) = self.chain_and_raw(Bytes::new(body, at, big_endian))?;
        let short = || {
            let (need, have) = (self.fixed as u64, body.len() as u64);
            Short { offset: at, what: "a sample's fields", need, have }
        };
        let get = |offset: usize, width| uint_at(body, offset, width, big_endian);
        let time = self.time.ok_or_else(|| lacking("time"))?;
        let cpu = self.cpu.ok_or_else(|| lacking("CPU"))?;
        Ok(Sample {
            tid: self.tid.and_then(|tid| get(tid + 4, 4)).map(|tid| tid as i32),
            time_ns: get(time, 8).ok_or_else(short)?,
            cpu: get(cpu, 4).ok_or_else(short)? as u32,
            chain,
            raw,
        })
    }

    fn chain_and_raw<'a>(&self, mut bytes: Bytes<'a>) -> Result<(&'a [u8], &'a [u8]), ReadError> {
        bytes.take(self.fixed as u64, "a sample's fields")?;
        if self.sample_type & READ != 0 {
            self.skip_read(&mut bytes)?;
        }
        let mut chain: &[u8] = &[];
        if self.sample_type & CALLCHAIN != 0 {
            let count = bytes.u64("callchain length")?;
            chain = bytes.take(count.saturating_mul(8), "callchain")?;
        }
        let size = bytes.u32("payload size")?;
        Ok((chain, bytes.take(u64::from(size), "tracepoint payload")?))
    }

    fn skip_read(&self, bytes: &mut Bytes<'_>) -> Result<(), ReadError> {
        const GROUP: u64 = 1 << 3;
        let words = |bits: u64| u64::from((self.read_format & bits).count_ones());
        // Total times once; id and lost with every value.
        let (times, with_value) = (words(0b11), 1 + words(0b1_0100));
        let values = if self.read_format & GROUP != 0 { bytes.u64("number of counter values")? } else { 1 };
        bytes.take(
            values.saturating_mul(with_value).saturating_add(times).saturating_mul(8),
            "counter values",
        )?;
        Ok(())
    }

    /// Reads the id trailer of another record's body.
    pub(super) fn trailer(&self, body: &[u8], big_endian: bool) -> Trailer {
        if !self.sample_id_all {
            return Trailer::default();
        }
        // The trailer ends the record, so its fields are found backwards.
        let mut end = body.len();
        let mut field = |bit: u64| {
            if self.sample_type & bit == 0 {
                return None;
            }
            end = end.checked_sub(8)?;
            Some(end)
        };
        field(IDENTIFIER);
        let cpu = field(CPU);
        field(STREAM_ID);
        field(ID);
        let time = field(TIME);
        Trailer {
            time_ns: time.and_then(|at| uint_at(body, at, 8, big_endian)),
            cpu: cpu.and_then(|at| uint_at(body, at, 4, big_endian)).map(|cpu| cpu as u32),
        }
    }
}

fn clock_name(id: u64) -> &'static str {
    match id {
        0 => "realtime",
        1 => "monotonic",
        4 => "monotonic_raw",
        7 => "boottime",
        11 => "tai",
        _ => "other",
    }
}

/// The samples lack a field that a replay needs.
#[cold]
pub(super) fn lacking(field: &str) -> ReadError {
    let what =
        format_args!("the recording's samples have no {field}: record with `perf record -a -e 'kmem:*'`");
    ReadError::new(At::Whole, what)
}
