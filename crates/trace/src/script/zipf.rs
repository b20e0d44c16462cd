//! Zipf's distribution over the pages of an object, in integers.
//!
//! Rank k, from 0, has the weight (k + 1) to the power of minus the exponent, scaled by 2^40 and rounded
//! down as [`Exponent::weight`] says. A draw is a number below the sum of all weights; its rank is the
//! smallest one whose cumulative weight is larger. The table has a guide: for each range of draws of equal
//! size the first rank that can be right, so that a draw costs two or three steps and not log2 of the pages.

use super::generator::Generator;

/// The exponent of Zipf's distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponent {
    /// 0.5, `zipf:50`.
    Half,
    /// 1.0, `zipf:100`.
    One,
    /// 1.5, `zipf:150`.
    OneAndHalf,
}

impl Exponent {
    /// The words of the language, in hundredths.
    pub(crate) const WORDS: [(&str, Exponent); 3] =
        [("50", Exponent::Half), ("100", Exponent::One), ("150", Exponent::OneAndHalf)];

    /// The weight of the rank `rank`, from 0. `rank + 1` is below 2^32, so that no shift overflows.
    fn weight(self, rank: u64) -> u64 {
        let root = ((rank + 1) << 32).isqrt();
        match self {
            Exponent::Half => (1 << 56) / root,
            Exponent::One => (1 << 40) / (rank + 1),
            Exponent::OneAndHalf => (1 << 56) / root / (rank + 1),
        }
    }
}

/// Cumulative weights of the ranks of one object: 12 bytes for a page.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// At k the sum of the weights of ranks 0 to k.
    cumulative: Vec<u64>,
    /// At g the rank of the draw `g << shift`; the last entry is the last rank.
    guide: Vec<u32>,
    shift: u32,
}

impl Zipf {
    /// The table of an object of `pages` pages, at least one.
    pub(crate) fn new(exponent: Exponent, pages: u32) -> Zipf {
        let mut sum = 0;
        let cumulative: Vec<u64> = (0..u64::from(pages))
            .map(|rank| {
                sum += exponent.weight(rank);
                sum
            })
            .collect();
        // About as many ranges as pages: one rank in most of them.
        let shift = sum.ilog2().saturating_sub(pages.ilog2());
        let mut rank = 0;
        let mut guide: Vec<u32> = (0..=(sum - 1) >> shift)
            .map(|range| {
                while cumulative[rank as usize] <= range << shift {
                    rank += 1;
                }
                rank
            })
            .collect();
        guide.push(pages - 1);
        Zipf { cumulative, guide, shift }
    }

    /// The sum of all weights.
    fn sum(&self) -> u64 {
        self.cumulative[self.cumulative.len() - 1]
    }

    /// The rank of the generator's next number.
    #[inline]
    pub(crate) fn draw(&self, generator: &mut Generator) -> u32 {
        let draw = generator.draw() % self.sum();
        let range = (draw >> self.shift) as usize;
        let (mut low, mut high) = (self.guide[range], self.guide[range + 1]);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.cumulative[middle as usize] > draw {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// The pages 0 to `pages - 1`, shuffled by Fisher and Yates' method with a generator seeded by `name`.
pub(crate) fn permutation(name: &str, pages: u32) -> Vec<u32> {
    let mut generator = Generator::of_name(name);
    let mut shuffled: Vec<u32> = (0..pages).collect();
    for last in (1..pages as usize).rev() {
        shuffled.swap(last, (generator.draw() % (last as u64 + 1)) as usize);
    }
    shuffled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide gives the rank that a search over all weights gives, at both ends of every range.
    #[test]
    fn a_guided_draw_is_the_searched_one() {
        for (_, exponent) in Exponent::WORDS {
            for pages in [1, 2, 3, 255, 4096, 5000] {
                let zipf = Zipf::new(exponent, pages);
                let mut generator = Generator::new(u64::from(pages));
                for _ in 0..2000 {
                    let mut same = generator;
                    let draw = same.draw() % zipf.sum();
                    let searched = zipf.cumulative.partition_point(|&sum| sum <= draw) as u32;
                    assert_eq!(
                        zipf.draw(&mut generator),
                        searched,
                        "{exponent:?}, {pages} pages, draw {draw}"
                    );
                }
            }
        }
    }
}
