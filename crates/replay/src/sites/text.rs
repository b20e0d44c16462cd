//! Texts that are read whole.

use slablab_readers::compressed::Decompressed;
use slablab_report::Limit;
use slablab_report::error::{At, Result};
use slablab_report::files::open;
use std::path::Path;

/// The largest text read whole. A kernel's allocinfo has half a megabyte.
const TEXT: Limit = Limit::mib("a text of the kernel", 256);

/// The whole of a text.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>> {
    match path == Path::new("-") {
        true => TEXT.read(Decompressed::new(std::io::stdin()).at(path)?, path),
        false => TEXT.read(Decompressed::new(open(path).at(path)?).at(path)?, path),
    }
}
