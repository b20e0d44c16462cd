//! splitmix64 (Steele, Lea, Flood 2014).

/// The generator of a process. Two generators with the same state give the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator(u64);

impl Generator {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    /// The generator whose seed is the FNV-1a hash (64 bits) of `name`.
    pub(crate) fn of_name(name: &str) -> Generator {
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Generator(name.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}
