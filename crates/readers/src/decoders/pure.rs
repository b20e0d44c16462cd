//! Decoders in Rust.

use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{BufRead, Error, ErrorKind, Read, Result};

/// Frames of zstd, one after the other.
pub(crate) struct Zstd<R: BufRead> {
    input: R,
    decoder: FrameDecoder,
}

/// Decodes windows of at most 2^`window_log` bytes.
pub(crate) fn zstd<R: BufRead>(input: R, window_log: u32) -> Result<Zstd<R>> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(1 << window_log);
    let mut zstd = Zstd { input, decoder };
    zstd.begin()?;
    Ok(zstd)
}

impl<R: BufRead> Zstd<R> {
    pub(crate) fn get_ref(&self) -> &R {
        &self.input
    }

    /// Reads the head of a frame, and steps over frames that are no data.
    fn begin(&mut self) -> Result<()> {
        use FrameDecoderError::ReadFrameHeaderError as Header;
        loop {
            match self.decoder.init(&mut self.input) {
                Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    std::io::copy(&mut self.input.by_ref().take(length.into()), &mut std::io::sink())?;
                    if self.input.fill_buf()?.is_empty() {
                        return Ok(());
                    }
                }
                done => return done.map_err(|error| ended(Error::other(error), &mut self.input)),
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while self.decoder.can_collect() == 0 {
            if self.decoder.is_finished() {
                if self.input.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin()?;
                continue;
            }
            let one = BlockDecodingStrategy::UptoBlocks(1);
            let decoded = self.decoder.decode_blocks(&mut self.input, one);
            decoded.map_err(|error| ended(Error::other(error), &mut self.input))?;
        }
        self.decoder.read(buffer)
    }
}

/// An error at the end of the input is one of its length.
fn ended(error: Error, input: &mut impl BufRead) -> Error {
    match input.fill_buf() {
        Ok([]) => Error::new(ErrorKind::UnexpectedEof, error),
        _ => error,
    }
}

/// Streams of xz, one after the other.
pub(crate) struct Xz<R: BufRead>(XzReader<R>);

/// Decodes with at most `memory` bytes.
pub(crate) fn xz<R: BufRead>(input: R, memory: u64) -> Result<Xz<R>> {
    let kib = u32::try_from(memory >> 10).unwrap_or(u32::MAX);
    Ok(Xz(XzReader::new_mem_limit(input, true, kib)))
}

impl<R: BufRead> Xz<R> {
    pub(crate) fn get_ref(&self) -> &R {
        self.0.inner()
    }
}

impl<R: BufRead> Read for Xz<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        // The decoder takes a read of no bytes for the end of a block.
        if buffer.is_empty() {
            return Ok(0);
        }
        self.0.read(buffer).map_err(|error| ended(error, self.0.inner_mut()))
    }
}

/// A frame that comes in pieces, which no decoder in Rust gives as it comes: each keeps a window back.
pub(crate) struct Pieces;

impl Pieces {
    pub(crate) fn new() -> Result<Pieces> {
        Err(Error::other("here perf's own compression is not read: record without `perf record -z`"))
    }

    pub(crate) fn run(&mut self, _: &[u8], _: &mut [u8]) -> (usize, usize, Result<()>) {
        unreachable!("there is no value of it")
    }
}
