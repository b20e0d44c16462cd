//! A stream of numbers for one run: what varies from repeat to repeat.

/// The stream of a seed (Steele, Lea, Flood 2014: splitmix64).
#[derive(Clone, Debug)]
pub struct Draws(pub u64);

impl Draws {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((self.draw() as u128 * end as u128) >> 64) as u64
    }

    /// Puts `items` into an order that the stream draws.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
