//! A file that several threads can read at once.
//!
//! `parquet` reads a `File` by moving its offset, which clones of the handle share: two threads would read
//! each other's bytes. Here every read names its own position.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A file read by position.
#[derive(Clone, Debug)]
pub struct Positioned {
    file: Arc<File>,
    len: u64,
}

impl Positioned {
    /// Wraps a file. Its length is that of now.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub fn new(file: File) -> std::io::Result<Positioned> {
        let len = file.metadata()?.len();
        Ok(Positioned { file: Arc::new(file), len })
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
    file: Arc<File>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(From { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let in_file = start.checked_add(length as u64).is_some_and(|end| end <= self.len);
        if !in_file {
            let what = format!("{length} bytes at {start} of a file of {} bytes", self.len);
            return Err(ParquetError::EOF(what));
        }
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start).map_err(|error| ParquetError::External(error.into()))?;
        Ok(buffer.into())
    }
}
