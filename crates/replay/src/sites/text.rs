//! Texts that are read whole.

use slablab_readers::compressed::Decompressed;
use slablab_report::error::{At, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest text read whole. A kernel's allocinfo has half a megabyte.
const TEXT_BYTES: u64 = 256 << 20;

/// The whole of a text.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let done = match path == Path::new("-") {
        true => {
            Decompressed::new(std::io::stdin()).and_then(|from| from.take(TEXT_BYTES).read_to_end(&mut text))
        }
        false => File::open(path)
            .and_then(Decompressed::new)
            .and_then(|from| from.take(TEXT_BYTES).read_to_end(&mut text)),
    };
    done.at(path)?;
    Ok(text)
}
