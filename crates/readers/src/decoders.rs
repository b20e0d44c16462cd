//! Decoders of zstd and xz with bounded memory: the C libraries. For a browser clang compiles them, too.

use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use std::io::{BufRead, Error, Result};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

pub(crate) type Zstd<R> = zstd::stream::read::Decoder<'static, R>;

/// Decodes windows of at most 2^`window_log` bytes.
pub(crate) fn zstd<R: BufRead>(input: R, window_log: u32) -> Result<Zstd<R>> {
    let mut decoder = Zstd::with_buffer(input)?;
    decoder.window_log_max(window_log)?;
    Ok(decoder)
}

pub(crate) type Xz<R> = XzDecoder<R>;

/// Decodes with at most `memory` bytes.
pub(crate) fn xz<R: BufRead>(input: R, memory: u64) -> Result<Xz<R>> {
    let stream = Stream::new_stream_decoder(memory, CONCATENATED).map_err(Error::other)?;
    Ok(XzDecoder::new_stream(input, stream))
}

/// A frame that comes in pieces.
pub(crate) struct Pieces(Decoder<'static>);

impl Pieces {
    pub(crate) fn new() -> Result<Pieces> {
        Decoder::new().map(Pieces)
    }

    /// Decodes from `input` into `output`; answers how much of each.
    pub(crate) fn run(&mut self, input: &[u8], output: &mut [u8]) -> (usize, usize, Result<()>) {
        let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(output));
        let result = self.0.run(&mut input, &mut output).map(drop);
        (input.pos(), output.pos(), result)
    }
}
