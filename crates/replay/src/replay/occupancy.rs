//! How full slabs from before were of which the recording sees only frees.
//!
//! A dump says how many slabs of a cache are partial and how many objects these have together, not which.
//! What is known of them (docs/theory/occupancy.md derives it):
//!
//! - *Prior.* Occupancies of partial slabs are geometric, cut to 1 .. N-1, with the dump's mean: of all
//!   distributions with that mean the one that assumes least.
//! - *Frees.* How many objects of each slab are freed, slabs without a free included, is the recording's own
//!   evidence. `frees` has the probability of each number of frees by a slab's objects in use, with six
//!   unknown shares; `fit` draws these shares from what the evidence leaves likely.
//!
//! The answer (seed 0) is the mean of all draws; every other seed takes one draw.
//!
//! Only the four operations of `f64` are used, which every host rounds alike.

mod fit;
mod frees;

use fit::Evidence;
use frees::Shares;

/// What the dump has on a node beyond the slabs that are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Objects of a slab.
    pub(super) objects: u64,
    /// Partial slabs on the node's list.
    pub(super) partial: u64,
    /// Objects in use in those.
    pub(super) in_use: u64,
    /// Full slabs.
    pub(super) full: u64,
}

/// What is known of the slabs of a cache on a node that the recording says nothing else about.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// Slabs by objects in use, from 0 to the objects of a slab.
    weights: Vec<f64>,
    /// Draws of the shares; none if nothing is freed.
    draws: Vec<Shares>,
}

/// A cache with more objects in a slab is not fitted: the least fit would take many seconds. Pages of 64 KiB
/// have such slabs, of objects up to 32 bytes.
const MOST_FITTED: u64 = 2048;
/// What the occupancies of a cache's slabs may cost: probabilities to work out. Where all draws cost more,
/// the answer is the mean of fewer.
const WORK: usize = 1_000_000_000;

/// The weights of a slab's occupancies, added up.
#[derive(Clone, Debug, Default)]
pub(super) struct Likely(Vec<(u64, f64)>);

impl Pool {
    /// The pool of `rest`; `freed` has how many objects are freed of each slab of which only frees are seen.
    /// `seed`: 0 for all draws of the shares, another for one of them.
    pub(super) fn new(rest: &Rest, freed: &[u64], seed: u64) -> Pool {
        let count = rest.objects as usize;
        let mut weights = vec![0.0; count + 1];
        if rest.partial > 0 && count > 1 {
            let prior = geometric(count, rest.in_use as f64 / rest.partial as f64);
            for (weight, prior) in weights[1..count].iter_mut().zip(prior) {
                *weight = rest.partial as f64 * prior;
            }
        }
        weights[count] += rest.full as f64;
        let evidence = Evidence::of(&weights, freed).filter(|_| rest.objects <= MOST_FITTED);
        let mut draws = evidence.as_ref().map_or(Vec::new(), fit::draws);
        if let Some(one) = seed.checked_sub(1).filter(|_| !draws.is_empty()) {
            draws = vec![draws[fit::spread_out(one, draws.len())]];
        }
        draws.truncate(evidence.map_or(0, |evidence| (WORK / evidence.cost_of_all()).max(1)));
        Pool { weights, draws }
    }

    /// The occupancies of a slab of which `freed` objects are freed, with at least `least` objects. `full`:
    /// whether it may be full.
    pub(super) fn likely(&self, freed: u64, least: u64, full: bool) -> Likely {
        let objects = self.weights.len() as u64 - 1;
        let last = if full { objects } else { objects.saturating_sub(1) };
        let first = least.max(freed);
        let prior = || self.weights.iter().take(last as usize + 1).skip(first as usize);
        let mut sums: Vec<f64> = prior().map(|_| 0.0).collect();
        let mut add = |likely: &[f64]| {
            let whole: f64 = prior().zip(likely).map(|(weight, likely)| weight * likely).sum();
            if whole > 0.0 {
                let parts = prior().zip(likely).map(|(weight, likely)| weight * likely / whole);
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
        };
        if self.draws.is_empty() {
            add(&vec![1.0; self.weights.len()]);
        }
        for draw in &self.draws {
            // Of a slab without an object none is freed.
            let mut likely = vec![f64::from(u8::from(freed == 0))];
            draw.frees(objects, freed, |_, each| {
                likely.push(each.get(freed as usize).copied().unwrap_or(0.0))
            });
            add(&likely[(first as usize).min(likely.len())..]);
        }
        let mut sum = 0.0;
        let mut upto: Vec<(u64, f64)> = (first..)
            .zip(&sums)
            .map(|(used, weight)| {
                sum += weight;
                (used, sum)
            })
            .collect();
        if sum == 0.0 {
            upto = vec![(last.max(least), 1.0)];
        }
        Likely(upto)
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

    fn rest(objects: u64, partial: u64, in_use: u64, full: u64) -> Rest {
        Rest { objects, partial, in_use, full }
    }

    #[test]
    fn partial_slabs_have_the_mean_of_the_dump() {
        for (objects, partial, in_use) in [(39, 6124, 57676), (16, 10, 80), (16, 100, 1400), (2, 5, 5)] {
            let pool = Pool::new(&rest(objects, partial, in_use, 0), &[], 0);
            let (found, wanted) = (mean(&pool, 0, false), in_use as f64 / partial as f64);
            assert!((found - wanted).abs() < 0.1, "{objects}: mean {found}, in the dump {wanted}");
        }
    }

    /// The part of 1,000 slabs with `freed` frees that these empty.
    fn emptied(rest: Rest, frees: &[(u64, usize)], freed: u64) -> usize {
        let frees: Vec<u64> = frees.iter().flat_map(|(freed, slabs)| vec![*freed; *slabs]).collect();
        let likely = Pool::new(&rest, &frees, 0).likely(freed, freed, true);
        (0..1000).filter(|part| likely.at((f64::from(*part) + 0.5) / 1000.0) == freed).count()
    }

    /// Full slabs say whether slabs go whole; partial ones, of which no file says how full they are, follow.
    #[test]
    fn full_slabs_say_whether_slabs_go_whole() {
        let slabs = rest(16, 200, 1600, 400);
        let many = |last: (u64, usize)| {
            [(4, 4), (6, 6), (8, 8), (10, 10), (12, 14), (13, 16), (14, 20), (15, 24), last]
        };
        let whole = emptied(slabs, &many((16, 60)), 12);
        let never = emptied(slabs, &many((16, 0)), 12);
        assert!(
            never < 40 && whole > 4 * never,
            "of 1000: {whole} if full slabs go whole, {never} if none does"
        );
    }

    #[test]
    fn neighbours_that_die_together_leave_few_others() {
        let slabs = rest(39, 1000, 9000, 200);
        let of = |frees: &[u64]| mean(&Pool::new(&slabs, frees, 0), 4, true);
        let (alone, groups) =
            (of(&[&[1; 400][..], &[4]].concat()), of(&[[1, 2, 3, 4, 5, 6, 8, 10, 13, 17]; 12].concat()));
        assert!(groups + 2.0 < alone, "of slabs with 4 frees {groups} objects, {alone} if independent");
    }

    /// Slabs of 64 KiB: an answer in a bounded time, by fewer draws, or without a fit.
    #[test]
    fn large_slabs_have_few_draws() {
        #[track_caller]
        fn check(objects: u64, frees: u64, draws: usize) {
            let freed: Vec<u64> = (1..=frees).collect();
            let pool = Pool::new(&rest(objects, 100, 50 * objects, 10), &freed, 0);
            assert_eq!(pool.draws.len(), draws, "{objects} objects, up to {frees} freed");
        }
        check(64, 64, 32);
        check(512, 60, 32);
        check(1024, 400, 12);
        check(2049, 4, 0);
    }

    #[test]
    fn each_other_seed_is_one_draw() {
        let (slabs, frees) = (rest(16, 100, 800, 10), [&[1; 30][..], &[7; 5], &[12; 4]].concat());
        let mean = |seed| mean(&Pool::new(&slabs, &frees, seed), 7, true);
        let draws: Vec<f64> = (1..=10).map(mean).collect();
        let (least, most) =
            draws.iter().fold((f64::MAX, 0.0_f64), |(least, most), mean| (least.min(*mean), most.max(*mean)));
        let all = mean(0);
        assert!(least < all && all < most, "{least} to {most} objects, {all} by all draws");
    }
}
