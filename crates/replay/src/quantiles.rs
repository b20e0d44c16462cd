//! The random numbers of a start: the same for a name and a seed on every host.

/// Numbers from 0 to 1 that any run of consecutive ones fills evenly (multiples of the golden ratio): a
/// systematic sample whose start is drawn by the seed of a name.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    state: u64,
    /// Which draw of the start this sample is for.
    seed: u64,
}

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Quantiles {
    /// The sample of the cache with this name; another seed starts it elsewhere.
    pub(crate) fn of(name: &str, seed: u64) -> Quantiles {
        // FNV-1a (G. Fowler, L. Noll, K.-P. Vo).
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let start = name.bytes().fold(0xCBF2_9CE4_8422_2325, hash);
        Quantiles { state: start ^ scrambled(seed), seed }
    }

    /// Which draw of the start this sample is for; 0 is the answer.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_add(GOLDEN);
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `end`, scrambled.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        scrambled(self.state) % end.max(1)
    }
}

/// SplitMix64's output (Steele, Lea, Flood 2014); 0 stays 0.
fn scrambled(number: u64) -> u64 {
    let mut mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_even_and_its_own() {
        let mut sample = Quantiles::of("filp", 0);
        let low = (0..100).filter(|_| sample.next() < 0.3).count();
        assert!((29..=31).contains(&low), "{low} of 100 are below 0.3");
        assert_ne!(Quantiles::of("filp", 0).next(), Quantiles::of("dentry", 0).next());
    }
}
