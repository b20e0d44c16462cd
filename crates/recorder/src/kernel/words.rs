//! Words of bytes.

/// The word at a place of bytes; 0 behind their end.
pub(super) fn word_at(bytes: &[u8], at: u64) -> u64 {
    let word = bytes.get(at as usize..at as usize + 8);
    word.map_or(0, |word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
}
