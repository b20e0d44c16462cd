//! The file as pieces: bytes at an offset, decompressed where they are compressed.

use std::io::{Read, Seek, SeekFrom};

use crate::bytes::{Bytes, Short, uint};
use crate::decoders;
use crate::error::{At, ReadError};

/// The largest part of a file that is not its events, as it is and decompressed.
pub(super) const PART_LIMIT: u64 = 64 << 20;

/// How version 7 compresses sections and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    None,
    Zlib,
    Zstd,
}

impl Algorithm {
    /// By the name in the file's header.
    pub(super) fn of(name: &[u8], offset: u64) -> Result<Algorithm, ReadError> {
        match name {
            b"none" | b"" => Ok(Algorithm::None),
            b"zlib" => Ok(Algorithm::Zlib),
            b"zstd" => Ok(Algorithm::Zstd),
            found => Err(ReadError::text(offset, "the compression `none`, `zlib` or `zstd`", found)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Algorithm::None => "nothing",
            Algorithm::Zlib => "zlib",
            Algorithm::Zstd => "zstd",
        }
    }

    /// Decompresses `packed`, of file offset `offset`, to exactly `size` bytes, which the caller has found
    /// bearable.
    pub(super) fn unpack(self, packed: &[u8], size: u64, offset: u64) -> Result<Vec<u8>, ReadError> {
        let error = |message: String| {
            let algorithm = self.name();
            let what = format_args!("a part compressed with {algorithm} cannot be decompressed: {message}");
            ReadError::at_byte(offset, what)
        };
        let mut out = Vec::new();
        // One byte more than stated shows that the statement is wrong, and no more is ever taken.
        let done = match self {
            Algorithm::None => return Err(error("the file's header names no compression".into())),
            Algorithm::Zlib => flate2::bufread::ZlibDecoder::new(packed).take(size + 1).read_to_end(&mut out),
            Algorithm::Zstd => decoders::zstd(packed, WINDOW_LOG)
                .and_then(|decoder| decoder.take(size + 1).read_to_end(&mut out)),
        };
        done.map_err(|source| error(source.to_string()))?;
        if out.len() as u64 != size {
            return Err(error(format!("it has not the {size} bytes that are stated")));
        }
        Ok(out)
    }
}

/// Largest log2 of a zstd window: that of the largest part.
const WINDOW_LOG: u32 = PART_LIMIT.ilog2();

/// A file with its conventions.
pub(super) struct File<R> {
    reader: R,
    pub(super) big_endian: bool,
    pub(super) algorithm: Algorithm,
}

impl<R: Read + Seek> File<R> {
    pub(super) fn new(reader: R) -> Self {
        File { reader, big_endian: false, algorithm: Algorithm::None }
    }

    /// Appends up to `count` bytes from `offset`; memory grows with what is there, not with `count`.
    pub(super) fn read(&mut self, offset: u64, count: u64, into: &mut Vec<u8>) -> Result<(), ReadError> {
        let io = |source| ReadError::io(At::Offset(offset), source);
        if offset > i64::MAX as u64 {
            let expected = "an offset below 2^63";
            return Err(ReadError::value(offset, expected, offset));
        }
        self.reader.seek(SeekFrom::Start(offset)).map_err(io)?;
        self.reader.by_ref().take(count).read_to_end(into).map(drop).map_err(io)
    }

    /// Bytes of the file.
    pub(super) fn length(&mut self) -> Result<u64, ReadError> {
        self.reader.seek(SeekFrom::End(0)).map_err(|source| ReadError::io(At::Whole, source))
    }

    /// Exactly `count` bytes from `offset`.
    pub(super) fn exact(
        &mut self,
        offset: u64,
        count: u64,
        what: &'static str,
    ) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        self.read(offset, count, &mut bytes)?;
        let have = bytes.len() as u64;
        if have < count {
            return Err(Short { offset, what, need: count, have }.into());
        }
        Ok(bytes)
    }

    /// The section of version 7 at `offset`: its content, decompressed, and where that begins.
    pub(super) fn section(
        &mut self,
        offset: u64,
        id: u16,
        what: &'static str,
    ) -> Result<(Vec<u8>, u64), ReadError> {
        const COMPRESSED: u64 = 1;
        let header = self.exact(offset, 16, what)?;
        let field = |range: std::ops::Range<usize>| uint(&header[range], self.big_endian);
        let (found, flags, size) = (field(0..2), field(2..4), field(8..16));
        if found != u64::from(id) {
            return Err(ReadError::value(offset, what, found));
        }
        let limited = |offset, size: u64| {
            let expected = "a section of at most 64 MiB";
            if size > PART_LIMIT { Err(ReadError::value(offset, expected, size)) } else { Ok(size) }
        };
        let at = offset + 16;
        if flags & COMPRESSED == 0 {
            return Ok((self.exact(at, limited(offset + 8, size)?, what)?, at));
        }
        let sizes = self.exact(at, 8, what)?;
        let mut sizes = Bytes::new(&sizes, at, self.big_endian);
        let packed = limited(at, u64::from(sizes.u32("compressed size")?))?;
        let unpacked = limited(at + 4, u64::from(sizes.u32("uncompressed size")?))?;
        let packed = self.exact(at + 8, packed, what)?;
        Ok((self.algorithm.unpack(&packed, unpacked, at + 8)?, at + 8))
    }
}
