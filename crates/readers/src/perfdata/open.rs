//! Opening a perf.data: its header, and in file mode what lies around the data section.

use std::io::{ErrorKind, Read};

use super::meta::{FileHeader, Meta, Parts};
use crate::bytes::Bytes;
use crate::error::{At, ReadError, What};
use crate::event::{CutOff, FormatText};

/// The largest part of a file that is not its data.
pub(super) const AROUND_LIMIT: u64 = 64 << 20;

/// What a user of a file that was cut off can do.
const WITH_FORMATS: &str = "import it with --formats, another recording of the same kernel or its \
                            /sys/kernel/tracing/events/kmem, to read the events that are there";

/// The beginning of either mode.
pub(super) struct Start {
    pub(super) big_endian: bool,
    pub(super) file: Option<FileHeader>,
    head: Vec<u8>,
}

impl Start {
    pub(super) fn read(reader: &mut impl Read) -> Result<Start, ReadError> {
        let mut head = Vec::new();
        read_up_to(reader, 16, &mut head, 0)?;
        let mut bytes = Bytes::new(&head, 0, false);
        let magic = bytes.take(8, "magic")?;
        let big_endian = match magic {
            b"PERFILE2" => false,
            b"2ELIFREP" => true,
            found => {
                let found = format_args!("{found:02x?}: not a perf.data");
                return Err(ReadError::value(0, "`PERFILE2`", found));
            }
        };
        let size = bytes.with_endianness(big_endian).u64("header size")?;
        let file = match size {
            16 => None,
            FileHeader::SIZE => {
                read_up_to(reader, FileHeader::SIZE - 16, &mut head, 16)?;
                Some(FileHeader::parse(Bytes::new(&head[16..], 16, big_endian))?)
            }
            found => {
                let expected = "a header size of 104 bytes (file) or 16 (pipe)";
                return Err(ReadError::value(8, expected, found));
            }
        };
        Ok(Start { big_endian, file, head })
    }
}

/// What was skipped of a data section.
pub(super) struct Skipped {
    /// Bytes that were there.
    pub(super) there: u64,
    /// Whether a compressed file was cut off there.
    pub(super) cut: bool,
}

impl Skipped {
    /// Reads over `count` bytes, or those that are there.
    pub(super) fn over(reader: &mut impl Read, count: u64) -> std::io::Result<Skipped> {
        let (mut there, mut piece) = (0, vec![0; 1 << 16]);
        while there < count {
            let room = piece.len().min(usize::try_from(count - there).unwrap_or(usize::MAX));
            match reader.read(&mut piece[..room]) {
                Ok(0) => break,
                Ok(got) => there += got as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(Skipped { there, cut: true });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Skipped { there, cut: false })
    }
}

/// Reads what is around the data section of a file. `reader` stands after the header. `formats` are those of
/// a file that was cut off.
pub(super) fn scan<R: Read>(
    reader: &mut R,
    start: &Start,
    file: &FileHeader,
    formats: &[FormatText],
    skip: impl FnOnce(&mut R, u64) -> std::io::Result<Skipped>,
) -> Result<Meta, ReadError> {
    let data = file.data;
    if data.size == 0 && formats.is_empty() {
        let what = format_args!(
            "the data size is 0: perf record was killed before it could finish this file, and what describes \
             its events is missing; {WITH_FORMATS}"
        );
        return Err(ReadError::at_byte(48, what));
    }
    let limit = AROUND_LIMIT;
    if data.offset < FileHeader::SIZE || data.offset > limit {
        let expected = "data that begins after the header and before 64 MiB";
        return Err(ReadError::value(40, expected, data.offset));
    }
    let tail_at = data.offset.checked_add(data.size).filter(|&end| end <= i64::MAX as u64);
    let tail_at =
        tail_at.ok_or_else(|| ReadError::value(48, "a data size that ends before 2^63", data.size))?;
    let (mut head, mut tail) = (start.head.clone(), Vec::new());
    read_up_to(reader, data.offset - FileHeader::SIZE, &mut head, FileHeader::SIZE)?;
    if data.size == 0 {
        let parts = Parts { head: &head, tail: &[], tail_at: data.offset, big_endian: start.big_endian };
        return Meta::with_formats(file, &parts, formats, CutOff { at: data.offset, of: None });
    }
    let skipped = skip(reader, data.size);
    let skipped = skipped.map_err(|source| ReadError::io(At::Offset(data.offset), source))?;
    if skipped.cut || skipped.there < data.size {
        return cut_off(
            file,
            start,
            &head,
            formats,
            CutOff { at: data.offset + skipped.there, of: Some(tail_at) },
        );
    }
    match read_up_to(reader, limit + 1, &mut tail, tail_at) {
        // A compressed file that was cut off.
        Err(ReadError { what: What::Io(error), .. }) if error.kind() == ErrorKind::UnexpectedEof => {}
        other => other?,
    }
    let at = tail_at + tail.len() as u64;
    if tail.len() as u64 > limit {
        let expected = "at most 64 MiB after the data";
        return Err(ReadError::value(tail_at, expected, tail.len()));
    }
    let table = file.feature_table();
    if (tail.len() as u64) < table {
        return cut_off(file, start, &head, formats, CutOff { at, of: Some(tail_at + table) });
    }
    let parts = Parts { head: &head, tail: &tail, tail_at, big_endian: start.big_endian };
    match Meta::of_file(file, &parts) {
        Err(ReadError { what: What::Truncated { .. }, .. }) if !formats.is_empty() => {
            cut_off(file, start, &head, formats, CutOff { at, of: None })
        }
        meta => meta,
    }
}

/// What a file says that ends at `cut`: its events are described by `formats`, or not at all.
fn cut_off(
    file: &FileHeader,
    start: &Start,
    head: &[u8],
    formats: &[FormatText],
    cut: CutOff,
) -> Result<Meta, ReadError> {
    let whole = cut.of.unwrap_or(cut.at);
    if formats.is_empty() {
        let (at, of) = (cut.at as f64 / 1e6, whole as f64 / 1e6);
        let what = format_args!(
            "cut off after {at:.1} of {of:.1} MB: perf writes what describes the events behind them, so it is missing; \
             {WITH_FORMATS}"
        );
        return Err(ReadError::new(At::Whole, what));
    }
    let parts = Parts { head, tail: &[], tail_at: whole, big_endian: start.big_endian };
    Meta::with_formats(file, &parts, formats, cut)
}

/// Appends up to `count` bytes; memory grows with what comes, not with `count`.
fn read_up_to(reader: &mut impl Read, count: u64, into: &mut Vec<u8>, offset: u64) -> Result<(), ReadError> {
    reader.take(count).read_to_end(into).map(drop).map_err(|source| ReadError::io(At::Offset(offset), source))
}
