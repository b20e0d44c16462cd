//! A file that several threads can read at once, or bytes in memory.
//!
//! `parquet` reads a `File` by moving its offset, which clones of the handle share: two threads would read
//! each other's bytes. Here every read names its own position.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

/// What is read by position.
#[derive(Clone, Debug)]
pub struct Positioned {
    source: Source,
    len: u64,
}

#[derive(Clone, Debug)]
enum Source {
    #[cfg_attr(not(unix), expect(dead_code, reason = "a system without files makes none"))]
    File(Arc<File>),
    Memory(Bytes),
}

impl Positioned {
    /// Wraps a file. Its length is that of now.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub fn new(file: File) -> io::Result<Positioned> {
        let len = file.metadata()?.len();
        Ok(Positioned { source: Source::File(Arc::new(file)), len })
    }
}

impl std::convert::From<Vec<u8>> for Positioned {
    fn from(bytes: Vec<u8>) -> Positioned {
        Positioned::from(Bytes::from(bytes))
    }
}

impl std::convert::From<Bytes> for Positioned {
    fn from(bytes: Bytes) -> Positioned {
        Positioned { len: bytes.len() as u64, source: Source::Memory(bytes) }
    }
}

impl Source {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Source::File(file) => std::os::unix::fs::FileExt::read_at(&**file, buffer, at),
            #[cfg(not(unix))]
            Source::File(_) => Err(io::ErrorKind::Unsupported.into()),
            Source::Memory(bytes) => {
                let from = usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
                (&bytes[from..]).read(buffer)
            }
        }
    }
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.len
    }
}

/// Reads on from a position.
#[derive(Debug)]
pub struct From {
    source: Source,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(From { source: self.source.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let in_file = start.checked_add(length as u64).is_some_and(|end| end <= self.len);
        if !in_file {
            let what = format!("{length} bytes at {start} of a file of {} bytes", self.len);
            return Err(ParquetError::EOF(what));
        }
        let mut buffer = vec![0; length];
        let mut from = From { source: self.source.clone(), at: start };
        from.read_exact(&mut buffer).map_err(|error| ParquetError::External(error.into()))?;
        Ok(buffer.into())
    }
}
