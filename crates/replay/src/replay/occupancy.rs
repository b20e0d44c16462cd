//! How full slabs from before were of which the recording sees only frees.
//!
//! A dump says how many slabs of a cache are partial and how many objects these have together, not which.
//! Two things are known of them (docs/replay.md has the measurements):
//!
//! - *Prior.* Occupancies of partial slabs are geometric, cut to 1 .. N-1, with the dump's mean: of all
//!   distributions with that mean the one that assumes least. Steady histories leave nearly this one.
//! - *Groups.* Objects that die together were often allocated one after another, and share slabs. The
//!   recording's own frees say how often: how many slab neighbours of a freed object are freed as well, beyond
//!   the share of old objects that are freed at all. Where one object in a row goes on the group of the one
//!   before with probability `chain`, two of the `used` objects of a slab are of one group with a probability
//!   that falls with `used`: a slab with few objects is often one group. The number of freed objects is
//!   beta-binomial with that correlation.
//!
//! Only the four operations of `f64` are used, which every host rounds alike.

/// What is known of the slabs of a cache on a node that the recording says nothing else about.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// Weight of each number of objects in use, from 0 to the objects of a slab.
    weights: Vec<f64>,
    /// The part of the pool's objects that are freed.
    share: f64,
    /// By objects in use: the probability that two of them are of one group.
    grouped: Vec<f64>,
}

/// The weights of a slab's occupancies, added up.
#[derive(Clone, Debug, Default)]
pub(super) struct Likely(Vec<(u64, f64)>);

impl Pool {
    /// A pool of `partial` slabs with `in_use` objects together and of `full` slabs, each of `objects`;
    /// `freed` has how many objects of each slab of which only frees are seen are freed.
    pub(super) fn new(objects: u32, partial: u64, in_use: u64, full: u64, freed: &[u64]) -> Pool {
        let count = objects as usize;
        let mut weights = vec![0.0; count + 1];
        if partial > 0 && count > 1 {
            let prior = geometric(count, in_use as f64 / partial as f64);
            for (weight, prior) in weights[1..count].iter_mut().zip(prior) {
                *weight = partial as f64 * prior;
            }
        }
        weights[count] += full as f64;
        let live: f64 = weights.iter().enumerate().map(|(used, weight)| weight * used as f64).sum();
        let all: u64 = freed.iter().sum();
        let share = if live > 0.0 { (all as f64 / live).min(MOST) } else { 0.0 };
        let pairs: u64 = freed.iter().map(|freed| freed * freed.saturating_sub(1)).sum();
        let chain = if all > 0 { chain(&weights, live, share, pairs as f64 / all as f64) } else { 0.0 };
        let grouped = (0..=count).map(|used| grouped(used, chain)).collect();
        Pool { weights, share, grouped }
    }

    /// The occupancies of a slab of which `freed` objects are freed, with at least `least` objects. `full`:
    /// whether it may be full.
    pub(super) fn likely(&self, freed: u64, least: u64, full: bool) -> Likely {
        let objects = self.weights.len() as u64 - 1;
        let last = if full { objects } else { objects.saturating_sub(1) };
        let mut sum = 0.0;
        let upto = (least.max(freed)..=last).map(|used| {
            sum += self.weights[used as usize] * self.frees(used, freed);
            (used, sum)
        });
        let mut upto: Vec<(u64, f64)> = upto.collect();
        if sum == 0.0 {
            upto = vec![(last.max(least), 1.0)];
        }
        Likely(upto)
    }

    /// The probability that `freed` of `used` objects are freed.
    fn frees(&self, used: u64, freed: u64) -> f64 {
        let together = self.grouped[used as usize];
        // Weights of the freed and of the others; with independent frees they stay in proportion.
        let scale = (1.0 - together) / together.max(LEAST);
        let (gone, kept) = (self.share * scale, (1.0 - self.share) * scale);
        let mut likely = 1.0;
        for at in 0..freed {
            let at_f = at as f64;
            likely *= (gone + at_f) / (scale + at_f) * (used - at) as f64 / (at_f + 1.0);
        }
        for at in 0..used - freed {
            likely *= (kept + at as f64) / (scale + (freed + at) as f64);
        }
        likely
    }
}

impl Likely {
    /// The objects in use at `quantile` of the distribution, from 0 to 1.
    pub(super) fn at(&self, quantile: f64) -> u64 {
        let last = self.0[self.0.len() - 1];
        let wanted = quantile * last.1;
        self.0.iter().find(|(_, upto)| *upto > wanted).unwrap_or(&last).0
    }
}

/// The probability that two of `used` objects in a row are of one group, if each goes on the group of the one
/// before with probability `chain`.
fn grouped(used: usize, chain: f64) -> f64 {
    if used < 2 {
        return chain;
    }
    let (mut power, mut sum) = (1.0, 0.0);
    for distance in 1..used {
        power *= chain;
        sum += (used - distance) as f64 * power;
    }
    2.0 * sum / (used * (used - 1)) as f64
}

/// How often an object goes on the group of the one before, so that a freed object has `neighbours` freed
/// neighbours in its slab.
fn chain(weights: &[f64], live: f64, share: f64, neighbours: f64) -> f64 {
    let mean = |chain: f64| -> f64 {
        let of = |(used, weight): (usize, &f64)| {
            let others = used.saturating_sub(1) as f64;
            weight * used as f64 * others * (share + (1.0 - share) * grouped(used, chain))
        };
        weights.iter().enumerate().map(of).sum::<f64>() / live
    };
    let (mut low, mut high) = (0.0, MOST);
    if mean(low) >= neighbours {
        return low;
    }
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if mean(middle) < neighbours { low = middle } else { high = middle }
    }
    low
}

/// Correlations are at least this, so that a scale is finite.
const LEAST: f64 = 1e-9;

/// Shares are at most this: the formulas have no answer at 1.
const MOST: f64 = 0.999;

/// Weights of 1 .. `objects` - 1 in geometric proportion, with sum 1 and this mean.
fn geometric(objects: usize, mean: f64) -> Vec<f64> {
    let mean = mean.clamp(1.0, objects as f64 - 1.0);
    // Above the middle: what is free is distributed so.
    let mirrored = 2.0 * mean > objects as f64;
    let mean = if mirrored { objects as f64 - mean } else { mean };
    let weights_of = |ratio: f64| -> (Vec<f64>, f64) {
        let mut weight = 1.0;
        let weights: Vec<f64> = (1..objects)
            .map(|_| {
                let now = weight;
                weight *= ratio;
                now
            })
            .collect();
        let sum = weights.iter().sum();
        (weights, sum)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let ratio = (low + high) / 2.0;
        let (weights, sum) = weights_of(ratio);
        let first: f64 = weights.iter().enumerate().map(|(at, weight)| (at + 1) as f64 * weight).sum();
        if first < mean * sum { low = ratio } else { high = ratio }
    }
    let (mut weights, sum) = weights_of((low + high) / 2.0);
    weights.iter_mut().for_each(|weight| *weight /= sum);
    if mirrored {
        weights.reverse();
    }
    weights
}

/// Numbers from 0 to 1 that any run of consecutive ones fills evenly (multiples of the golden ratio): a
/// systematic sample whose start is drawn by the seed of a name.
pub(super) struct Quantiles(u64);

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Quantiles {
    /// The sample of the cache with this name; another seed starts it elsewhere.
    pub(super) fn of(name: &str, seed: u64) -> Quantiles {
        // FNV-1a (G. Fowler, L. Noll, K.-P. Vo).
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let start = name.bytes().fold(0xCBF2_9CE4_8422_2325, hash);
        Quantiles(start ^ scrambled(seed))
    }

    /// The next number.
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `end`, scrambled.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        scrambled(self.0) % end.max(1)
    }
}

/// SplitMix64's output (Steele, Lea, Flood 2014); 0 stays 0.
fn scrambled(number: u64) -> u64 {
    let mut mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod histories;

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean of the occupancies at many quantiles.
    fn mean(pool: &Pool, freed: u64, full: bool) -> f64 {
        let likely = pool.likely(freed, freed.max(1), full);
        (0..1000).map(|part| likely.at((f64::from(part) + 0.5) / 1000.0) as f64).sum::<f64>() / 1000.0
    }

    #[test]
    fn partial_slabs_have_the_mean_of_the_dump() {
        for (objects, partial, in_use) in [(39, 6124, 57676), (16, 10, 80), (16, 100, 1400), (2, 5, 5)] {
            let pool = Pool::new(objects, partial, in_use, 0, &[]);
            let (found, wanted) = (mean(&pool, 0, false), in_use as f64 / partial as f64);
            assert!((found - wanted).abs() < 0.1, "{objects}: mean {found}, in the dump {wanted}");
        }
    }

    #[test]
    fn frees_of_a_slab_are_a_distribution() {
        for freed in [&[1u64; 40][..], &[4; 10], &[16, 16, 8]] {
            let pool = Pool::new(16, 100, 800, 10, freed);
            for used in 1..=16 {
                let sum: f64 = (0..=used).map(|freed| pool.frees(used, freed)).sum();
                let mean: f64 = (0..=used).map(|freed| pool.frees(used, freed) * freed as f64).sum();
                assert!((sum - 1.0).abs() < 1e-6, "{used} objects: {sum}");
                assert!((mean - pool.share * used as f64).abs() < 1e-6, "{used} objects: mean {mean}");
            }
        }
    }

    #[test]
    fn neighbours_that_die_together_leave_few_others() {
        let alone = Pool::new(39, 1000, 9000, 0, &[1; 400]);
        let groups = Pool::new(39, 1000, 9000, 0, &[4; 100]);
        assert_eq!(alone.grouped[39], 0.0);
        let (alone, groups) = (mean(&alone, 4, true), mean(&groups, 4, true));
        assert!(groups + 2.0 < alone, "of slabs with 4 frees {groups} objects, {alone} if independent");
    }

    #[test]
    fn a_full_slab_is_as_likely_as_its_live_objects() {
        // 10 objects in use on 10 partial slabs of 2, 45 full ones with 90: one free of ten hits a partial
        // slab.
        let likely = Pool::new(2, 10, 10, 45, &[1]).likely(1, 1, true);
        let full = (0..1000).filter(|part| likely.at(f64::from(*part) / 1000.0) == 2).count();
        assert!((880..=920).contains(&full), "{full} of 1000 are full");
    }

    #[test]
    fn a_sample_is_even_and_its_own() {
        let mut sample = Quantiles::of("filp", 0);
        let low = (0..100).filter(|_| sample.next() < 0.3).count();
        assert!((29..=31).contains(&low), "{low} of 100 are below 0.3");
        assert_ne!(Quantiles::of("filp", 0).next(), Quantiles::of("dentry", 0).next());
    }
}
