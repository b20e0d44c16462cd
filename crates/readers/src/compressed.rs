//! Plain, gz, bz2, zst or xz input as one `Read`, told apart by its first bytes.
//!
//! Memory is bounded for every input: the readers refuse zstd windows above 128 MiB and xz dictionaries above
//! 256 MiB. The size of the decompressed data has no bound here. A caller that stores the data must bound it.

use std::io::{BufReader, Chain, Cursor, Error, ErrorKind, Read, Result};

use crate::decoders::{self, Xz, Zstd};
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all, or in no way known here.
    Plain,
    /// gzip.
    Gzip,
    /// bzip2.
    Bzip2,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
}

impl Compression {
    /// Bytes needed to tell.
    pub const MAGIC_BYTES: usize = 6;

    /// Tells by the first [`Compression::MAGIC_BYTES`] bytes, or fewer if the input is shorter.
    pub fn of(first: &[u8]) -> Compression {
        let begins = |magic: &[u8]| first.starts_with(magic);
        match () {
            () if begins(b"\x1f\x8b") => Compression::Gzip,
            // The fourth byte is the size of blocks: 1 to 9. A text may begin with the first three.
            () if begins(b"BZh") && matches!(first.get(3), Some(b'1'..=b'9')) && is_bzip2(first) => {
                Compression::Bzip2
            }
            () if begins(b"\x28\xb5\x2f\xfd") => Compression::Zstd,
            () if begins(b"\xfd7zXZ\0") => Compression::Xz,
            () => Compression::Plain,
        }
    }
}

/// Whether a block or the end of a stream of bzip2 follows its head.
fn is_bzip2(first: &[u8]) -> bool {
    first.get(4..6).is_none_or(|magic| matches!(magic, b"\x31\x41" | b"\x17\x72"))
}

type Input<R> = BufReader<Counted<Chain<Cursor<Vec<u8>>, R>>>;

/// Counts the bytes that were read of the compressed input.
struct Counted<R> {
    reader: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

/// Input decompressed as it is read. Concatenated members are read as one, as gzip, zstd and xz do.
///
/// # Errors
/// Of kind `UnexpectedEof` if the compressed input ends early: the message has the number of its bytes. Of
/// any other kind if the input is corrupt or `R` fails: the message names the compression and the number of
/// bytes that came out before. Errors of an input that is not compressed are passed on as they are.
pub struct Decompressed<R: Read> {
    inner: Inner<R>,
    out: u64,
}

enum Inner<R: Read> {
    Plain(Input<R>),
    Gzip(Box<MultiGzDecoder<Input<R>>>),
    Bzip2(Box<MultiBzDecoder<Input<R>>>),
    Zstd(Box<Zstd<Input<R>>>),
    Xz(Box<Xz<Input<R>>>),
}

impl<R: Read> Decompressed<R> {
    /// Largest log2 of a zstd window.
    const ZSTD_WINDOW_LOG: u32 = 27;
    /// Most memory an xz stream may ask for.
    const XZ_MEMORY: u64 = 256 << 20;

    /// Looks at the first bytes of `reader`.
    ///
    /// # Errors
    /// What `reader` reports.
    pub fn new(mut reader: R) -> Result<Self> {
        let mut first = Vec::new();
        reader.by_ref().take(Compression::MAGIC_BYTES as u64).read_to_end(&mut first)?;
        let compression = Compression::of(&first);
        let input =
            BufReader::with_capacity(1 << 16, Counted { reader: Cursor::new(first).chain(reader), count: 0 });
        let inner = match compression {
            Compression::Plain => Inner::Plain(input),
            Compression::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(input))),
            Compression::Bzip2 => Inner::Bzip2(Box::new(MultiBzDecoder::new(input))),
            Compression::Zstd => Inner::Zstd(Box::new(decoders::zstd(input, Self::ZSTD_WINDOW_LOG)?)),
            Compression::Xz => Inner::Xz(Box::new(decoders::xz(input, Self::XZ_MEMORY)?)),
        };
        Ok(Decompressed { inner, out: 0 })
    }

    /// The decompressor's error in words for the user.
    #[cold]
    fn error(&self, error: Error) -> Error {
        let (name, read) = match &self.inner {
            Inner::Plain(_) => return error,
            Inner::Gzip(decoder) => ("gzip", decoder.get_ref().get_ref().count),
            Inner::Bzip2(decoder) => ("bzip2", decoder.get_ref().get_ref().count),
            Inner::Zstd(decoder) => ("zstd", decoder.get_ref().get_ref().count),
            Inner::Xz(decoder) => ("xz", decoder.get_ref().get_ref().count),
        };
        let what = match error.kind() {
            ErrorKind::UnexpectedEof => {
                format!("the compressed data ends early at byte {read}: was it copied whole?")
            }
            _ => format!("{name} data after {} decompressed bytes: {error}", self.out),
        };
        Error::new(error.kind(), what)
    }

    /// How the input is compressed.
    pub fn compression(&self) -> Compression {
        match self.inner {
            Inner::Plain(_) => Compression::Plain,
            Inner::Gzip(_) => Compression::Gzip,
            Inner::Bzip2(_) => Compression::Bzip2,
            Inner::Zstd(_) => Compression::Zstd,
            Inner::Xz(_) => Compression::Xz,
        }
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let result = match &mut self.inner {
            Inner::Plain(input) => input.read(buffer),
            Inner::Gzip(decoder) => decoder.read(buffer),
            Inner::Bzip2(decoder) => decoder.read(buffer),
            Inner::Zstd(decoder) => decoder.read(buffer),
            Inner::Xz(decoder) => decoder.read(buffer),
        };
        match result {
            Ok(count) => {
                self.out += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(data: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(data: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_compression_is_read_whole_twice_over_and_cut_off() {
        #[track_caller]
        fn check(compression: Compression, pack: impl Fn(&[u8]) -> Vec<u8>) {
            let data: Vec<u8> = (0..40_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
            let packed = pack(&data);
            let read = |input: &[u8]| {
                let mut reader = Decompressed::new(input).unwrap();
                assert_eq!(reader.compression(), compression);
                let mut out = Vec::new();
                reader.read_to_end(&mut out).map(|_| out)
            };
            assert!(read(&packed).unwrap() == data);
            let twice = [&packed[..], &packed[..]].concat();
            assert!(read(&twice).unwrap() == [&data[..], &data[..]].concat());
            if compression != Compression::Plain {
                let error = read(&packed[..packed.len() / 2]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
            }
        }
        check(Compression::Plain, <[u8]>::to_vec);
        check(Compression::Gzip, gzip);
        check(Compression::Bzip2, bzip2);
        check(Compression::Zstd, |data| zstd::encode_all(data, 1).unwrap());
        check(Compression::Xz, xz);
    }
}
