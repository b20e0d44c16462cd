//! Bytes of objects, for worlds whose memory is words of 8 bytes.
//!
//! [`pieces`] cuts a range of bytes into words and masks; [`put`] and [`find_other`] do what
//! [`Memory::fill`](crate::Memory::fill) and [`Memory::differs`](crate::Memory::differs) do with one of them.
//! The byte at the lowest address is a word's lowest.

/// One word of a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes from the start of the range to the start of the word; negative for a first word that begins
    /// before it.
    pub start: i64,
    /// 0xff for each byte in the range.
    pub mask: u64,
}

/// The words of the `bytes` bytes that start `skew` bytes (below 8) behind a word's start.
pub fn pieces(skew: u32, bytes: u32) -> impl Iterator<Item = Piece> {
    let end = skew as u64 + bytes as u64;
    (0..end.div_ceil(8)).map(move |index| {
        let first = (skew as u64).saturating_sub(index * 8);
        let behind = (end - index * 8).min(8);
        let upto = |bytes: u64| if bytes == 8 { u64::MAX } else { (1 << (bytes * 8)) - 1 };
        Piece { start: index as i64 * 8 - skew as i64, mask: upto(behind) & !upto(first) }
    })
}

const fn repeated(value: u8) -> u64 {
    value as u64 * 0x0101_0101_0101_0101
}

/// A word after its bytes in the range were filled.
pub const fn put(word: u64, piece: Piece, value: u8) -> u64 {
    word & !piece.mask | repeated(value) & piece.mask
}

/// The first byte of a word in the range that is not `value`: its offset in the range, and what it is.
pub const fn find_other(word: u64, piece: Piece, value: u8) -> Option<(u32, u8)> {
    let different = (word ^ repeated(value)) & piece.mask;
    if different == 0 {
        return None;
    }
    let byte = different.trailing_zeros() / 8;
    Some(((piece.start + byte as i64) as u32, (word >> (byte * 8)) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a range of a few words and looks at every byte, and at what a search for another byte finds.
    fn check(skew: u32, bytes: u32) {
        let mut words = [0x1111_1111_1111_1111u64; 5];
        for (word, piece) in words.iter_mut().zip(pieces(skew, bytes)) {
            *word = put(*word, piece, 0x6b);
        }
        let found: [u8; 40] = core::array::from_fn(|at| (words[at / 8] >> (at % 8 * 8)) as u8);
        for (at, byte) in found.iter().enumerate() {
            let inside = (skew..skew + bytes).contains(&(at as u32));
            assert_eq!(*byte, if inside { 0x6b } else { 0x11 }, "byte {at} of {bytes} from {skew}");
        }
        let search = |words: &[u64; 5]| {
            words.iter().zip(pieces(skew, bytes)).find_map(|(word, piece)| find_other(*word, piece, 0x6b))
        };
        assert_eq!(search(&words), None, "{bytes} bytes from {skew}");
        for wrong in 0..bytes {
            let mut words = words;
            let at = (skew + wrong) as usize;
            words[at / 8] ^= 1 << (at % 8 * 8);
            assert_eq!(search(&words), Some((wrong, 0x6a)), "{bytes} bytes from {skew}");
        }
    }

    #[test]
    fn ranges_of_bytes() {
        for skew in 0..8 {
            for bytes in 0..30 {
                check(skew, bytes);
            }
        }
    }
}
