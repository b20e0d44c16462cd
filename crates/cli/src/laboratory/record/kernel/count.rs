//! A stream of perf in pipe mode: whole records, and how many events they are.
//!
//! Every record has a header of 8 bytes: type, flags, and its size. Formats follow one record without a
//! header of their own. A record is passed on when it is whole, so a stream that is cut off ends with a whole
//! record.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The header of a stream in pipe mode.
const HEADER: usize = 16;
const MAGIC: &[u8] = b"PERFILE2";

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const TRACING_DATA: u32 = 66;

/// Events so far.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) events: AtomicU64,
    /// Events lost by records of a full buffer, which come when there is room again.
    lost_ring: AtomicU64,
    /// Events lost as perf counts them at the end: the same ones, and those behind the last such record.
    lost_samples: AtomicU64,
}

impl Counts {
    pub(super) fn lost(&self) -> u64 {
        self.lost_ring.load(Relaxed).max(self.lost_samples.load(Relaxed))
    }
}

/// Takes the stream in pieces of any size.
#[derive(Default)]
pub(super) struct Records {
    pending: Vec<u8>,
    /// Whether the stream's header has passed.
    begun: bool,
}

impl Records {
    /// Takes the next `bytes`. Returns the records that are whole now.
    pub(super) fn pass(&mut self, bytes: &[u8], counts: &Counts) -> io::Result<Vec<u8>> {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        if !self.begun {
            if self.pending.len() < HEADER {
                return Ok(Vec::new());
            }
            if !self.pending.starts_with(MAGIC) {
                let what = "perf's output does not begin as a perf.data does";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            (self.begun, at) = (true, HEADER);
        }
        while let Some(size) = record(&self.pending[at..], counts)? {
            at += size;
        }
        let rest = self.pending.split_off(at);
        Ok(std::mem::replace(&mut self.pending, rest))
    }
}

/// The size of the record that `bytes` begin with, if it is whole. Counts it.
fn record(bytes: &[u8], counts: &Counts) -> io::Result<Option<usize>> {
    let Some((header, body)) = bytes.split_first_chunk::<8>() else { return Ok(None) };
    let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
    let mut size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
    if size < header.len() {
        let what = format!("perf wrote a record of {size} bytes: expected 8 or more");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    if bytes.len() < size {
        return Ok(None);
    }
    let body = &body[..size - header.len()];
    let word =
        |at: usize| body.get(at..at + 8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
    match kind {
        SAMPLE => _ = counts.events.fetch_add(1, Relaxed),
        LOST => _ = counts.lost_ring.fetch_add(word(8).unwrap_or(0), Relaxed),
        LOST_SAMPLES => _ = counts.lost_samples.fetch_add(word(0).unwrap_or(0), Relaxed),
        TRACING_DATA => {
            let behind = body.first_chunk::<4>().map_or(0, |size| u32::from_ne_bytes(*size));
            size += behind as usize;
            if bytes.len() < size {
                return Ok(None);
            }
        }
        _ => {}
    }
    Ok(Some(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = (8 + body.len()) as u16;
        [&kind.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes(), body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn whole_records_in_pieces_of_any_size() {
        let header = [MAGIC, &16u64.to_ne_bytes()].concat();
        let formats = [record(TRACING_DATA, &words(&[24])[..4]), vec![b'f'; 24]].concat();
        let stream = [
            header,
            formats,
            record(SAMPLE, &words(&[1, 2])),
            record(LOST, &words(&[7, 40])),
            record(SAMPLE, &[]),
            record(LOST_SAMPLES, &words(&[42])),
        ]
        .concat();
        #[track_caller]
        fn check(stream: &[u8], piece: usize, expected: (usize, u64, u64)) {
            let (counts, mut records, mut out) = (Counts::default(), Records::default(), Vec::new());
            for piece in stream.chunks(piece) {
                out.extend(records.pass(piece, &counts).unwrap());
            }
            assert!(stream.starts_with(&out));
            let found = (out.len(), counts.events.load(Relaxed), counts.lost());
            assert_eq!(found, expected, "in pieces of {piece}");
        }
        for piece in [1, 7, 16, 4096] {
            check(&stream, piece, (stream.len(), 2, 42));
            // The last record has 16 bytes, the one before it 8.
            check(&stream[..stream.len() - 1], piece, (stream.len() - 16, 2, 40));
            check(&stream[..stream.len() - 17], piece, (stream.len() - 24, 1, 40));
        }
        check(&stream[..40], 40, (16, 0, 0));
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        #[track_caller]
        fn check(bytes: &[u8], expected: &str) {
            let result = Records::default().pass(bytes, &Counts::default());
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
        check(b"usage: perf record", "perf's output does not begin as a perf.data does");
        let bad = [MAGIC, &[0; 8], &[0; 8]].concat();
        check(&bad, "perf wrote a record of 0 bytes: expected 8 or more");
    }
}
