//! Opening a perf.data: its header, and in file mode what lies around the data section.

use std::io::Read;

use super::meta::{FileHeader, Meta, Parts};
use crate::bytes::Bytes;
use crate::error::{At, ReadError};

/// The largest part of a file that is not its data.
pub(super) const AROUND_LIMIT: u64 = 64 << 20;

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

/// Reads what is around the data section of a file. `reader` stands after the header.
pub(super) fn scan<R: Read>(
    reader: &mut R,
    start: &Start,
    file: &FileHeader,
    skip: impl FnOnce(&mut R, u64) -> std::io::Result<()>,
) -> Result<Meta, ReadError> {
    let data = file.data;
    if data.size == 0 {
        let what = "the data size is 0: perf record was killed before it could finish this file";
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
    skip(reader, data.size).map_err(|source| ReadError::io(At::Offset(data.offset), source))?;
    read_up_to(reader, limit + 1, &mut tail, tail_at)?;
    if tail.len() as u64 > limit {
        let expected = "at most 64 MiB after the data";
        return Err(ReadError::value(tail_at, expected, tail.len()));
    }
    Meta::of_file(file, &Parts { head: &head, tail: &tail, tail_at, big_endian: start.big_endian })
}

/// Appends up to `count` bytes; memory grows with what comes, not with `count`.
fn read_up_to(reader: &mut impl Read, count: u64, into: &mut Vec<u8>, offset: u64) -> Result<(), ReadError> {
    reader.take(count).read_to_end(into).map(drop).map_err(|source| ReadError::io(At::Offset(offset), source))
}
