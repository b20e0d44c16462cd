//! The texts of many records in one tar, compressed or not.

use crate::compressed::Decompressed;
use crate::tar::{Entry, Tar, TarError};
use std::io::Read;

/// The most bytes that the texts of an archive may have together.
pub const TEXTS_MOST: u64 = 256 << 20;

/// The files of a tar whose paths `wanted` accepts, in the archive's order: paths and contents. `reader`
/// gives the tar, perhaps compressed.
///
/// # Errors
/// What `reader` reports; a tar that is damaged or ends early; files of more than [`TEXTS_MOST`] bytes.
pub fn texts(reader: impl Read, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, Vec<u8>)>, TarError> {
    let reader = Decompressed::new(reader).map_err(|source| TarError::Io { offset: 0, source })?;
    let mut tar = Tar::new(reader);
    let (mut texts, mut left) = (Vec::new(), TEXTS_MOST);
    while let Some(entry) = tar.next()? {
        let Entry::File { path, size, .. } = entry else { continue };
        if !wanted(&path) {
            continue;
        }
        let expected = "files of at most 256 MiB together";
        left = left.checked_sub(size).ok_or(TarError::Header { offset: tar.offset(), expected })?;
        texts.push((path, tar.content()?));
    }
    Ok(texts)
}
