//! Averages that decay with time: half of an old value is gone after 32 periods of 1.024 ms
//! (docs/theory/scheduler.md 8.2).

use super::words::Ps;

/// 1.024 ms.
const PERIOD: Ps = 1_024_000_000;

/// Fraction bits of a factor.
const BITS: u32 = 32;

/// Fraction bits of a value.
const FRACTION: u32 = 16;

/// `FACTORS[k]` is 2^(-k/32) with [`BITS`] fraction bits.
const FACTORS: [u64; 33] = factors();

const fn factors() -> [u64; 33] {
    // 2^(-1/32): the square root of one half, five times, with 62 fraction bits.
    let mut root: u128 = 1 << 61;
    let mut times = 0;
    while times < 5 {
        root = (root << 62).isqrt();
        times += 1;
    }
    let mut factors = [0; 33];
    let mut power: u128 = 1 << 62;
    let mut k = 0;
    while k < 33 {
        factors[k] = (power >> (62 - BITS)) as u64;
        power = (power * root) >> 62;
        k += 1;
    }
    factors
}

/// The part of a value that is left after `span`, with [`BITS`] fraction bits.
fn left_after(span: Ps) -> u64 {
    let periods = span / PERIOD;
    let (halves, k) = (periods / 32, (periods % 32) as usize);
    if halves >= u64::from(BITS) {
        return 0;
    }
    let step = FACTORS[k] - FACTORS[k + 1];
    (FACTORS[k] - step * (span % PERIOD) / PERIOD) >> halves
}

/// The decayed average of an input that changes in steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Average {
    value: u64,
    at: Ps,
}

impl Average {
    /// Counts `input`, which held since the last call.
    pub(super) fn advance(&mut self, now: Ps, input: u64) {
        if now <= self.at {
            return;
        }
        let left = left_after(now - self.at);
        let input = u128::from(input << FRACTION) * u128::from((1 << BITS) - left);
        self.value = ((u128::from(self.value) * u128::from(left) + input) >> BITS) as u64;
        self.at = now;
    }

    /// The average at the last call of [`Average::advance`].
    pub(super) fn value(&self) -> u64 {
        self.value >> FRACTION
    }

    /// Adds another average, as of a task that moves here.
    pub(super) fn attach(&mut self, other: &Average) {
        self.value += other.value;
    }

    /// Removes another average, as of a task that moves away.
    pub(super) fn detach(&mut self, other: &Average) {
        self.value = self.value.saturating_sub(other.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::words::MS;

    #[test]
    fn averages_converge_and_halve() {
        let mut average = Average::default();
        average.advance(1000 * MS, 1024);
        assert_eq!(average.value(), 1023, "all but 2^-30 of the input after 1 s");
        average.advance(1000 * MS + 32 * PERIOD, 0);
        assert_eq!(average.value(), 511, "half after 32 periods");
        average.advance(1000 * MS + 48 * PERIOD, 0);
        assert_eq!(average.value(), 362, "1024 * 2^-1.5, after 16 more");
        let mut steps = Average::default();
        (1..=100_000).for_each(|step| steps.advance(step * 10_000_000, 1024));
        assert!((1015..=1024).contains(&steps.value()), "small steps lose little: {}", steps.value());
    }
}
