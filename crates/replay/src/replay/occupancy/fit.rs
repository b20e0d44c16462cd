//! The shares that a recording's frees leave likely.
//!
//! The likelihood is that of the whole histogram of frees per slab, slabs without a free included. Before the
//! recording each share is as likely as any other, with these exceptions (docs/theory/occupancy.md):
//!
//! - `single` is small: its third root is uniform.
//! - In half of all cases no slab has an object that stays.
//! - In a third of all cases partial and full slabs hold groups alike often, in a third partial ones less
//!   often, by any factor; in a third full ones, and there a small factor is unlikely.
//!
//! The draws are a Metropolis chain from the best of some hundred points, with random numbers of its own: a
//! fit is the same for every seed.

use super::frees::Shares;
use crate::quantiles::Quantiles;

/// How many slabs lose how many objects, and how many slabs there are by objects in use.
pub(super) struct Evidence<'a> {
    /// Slabs by objects in use.
    weights: &'a [f64],
    /// All slabs.
    slabs: f64,
    /// Numbers of frees, from 0, with how many slabs had that many.
    histogram: Vec<(u64, f64)>,
}

/// The density of [`ratio_of_full`], where it is not 1, is this power of it: a prior that keeps a fit from
/// explaining full slabs that never go whole by partial slabs alone. Any power from 2 on does
/// (docs/results/fidelity.md).
const SELDOM: f64 = 2.0;

/// Where each share is between its least and its most, from 0 to 1.
type Point = [f64; 6];

/// Draws that are kept.
const DRAWS: usize = 32;
/// Points to begin with, and how many of them are improved.
const POINTS: usize = 120;
const IMPROVED: usize = 6;
/// What a fit may cost: probabilities to work out, and the fewest and most steps.
const WORK: usize = 8_000_000;
const STEPS: (usize, usize) = (320, 3200);

impl<'a> Evidence<'a> {
    /// `freed`: how many objects of each slab of which only frees are seen. `None` if there is nothing to
    /// fit.
    pub(super) fn of(weights: &'a [f64], freed: &[u64]) -> Option<Evidence<'a>> {
        let slabs: f64 = weights.iter().sum();
        let most = freed.iter().max().copied().filter(|most| *most > 0 && slabs > 0.0)?;
        let mut counts = vec![0.0; most as usize + 1];
        freed.iter().for_each(|freed| counts[*freed as usize] += 1.0);
        counts[0] = (slabs - freed.len() as f64).max(0.0);
        let histogram = (0..).zip(counts).filter(|(_, slabs)| *slabs > 0.0).collect();
        Some(Evidence { weights, slabs, histogram })
    }

    /// The logarithm of the probability of the histogram.
    fn likelihood(&self, shares: &Shares) -> f64 {
        let objects = self.weights.len() as u64 - 1;
        let most = self.histogram.last().map_or(0, |(freed, _)| *freed);
        let mut sums = vec![0.0; most as usize + 1];
        shares.frees(objects, most, |used, each| {
            let weight = self.weights[used as usize];
            sums.iter_mut().zip(each).for_each(|(sum, each)| *sum += weight * each);
        });
        let of = |(freed, slabs): &(u64, f64)| slabs * ln((sums[*freed as usize] / self.slabs).max(LEAST));
        self.histogram.iter().map(of).sum()
    }

    /// The logarithm of the probability of a point, up to a constant.
    fn posterior(&self, point: &Point) -> f64 {
        let full = ratio_of_full(point);
        self.likelihood(&shares_at(point)) + SELDOM * ln(full.max(LEAST))
    }

    /// Probabilities that a likelihood works out.
    fn cost(&self) -> usize {
        let most = self.histogram.last().map_or(0, |(freed, _)| *freed as usize);
        self.weights.len() * (most + 1)
    }

    /// Probabilities that one draw's occupancies of slabs with each number of frees work out.
    pub(super) fn cost_of_all(&self) -> usize {
        let each = |(freed, _): &(u64, f64)| self.weights.len() * (*freed as usize + 1);
        self.histogram.iter().map(each).sum::<usize>().max(1)
    }
}

/// Probabilities below this count as this: frees that no share explains.
const LEAST: f64 = 1e-12;

/// Shares drawn from what the evidence leaves likely.
pub(super) fn draws(evidence: &Evidence) -> Vec<Shares> {
    let mut random = Quantiles::of("shares", 0);
    let mut uniform = move || random.below(1 << 32) as f64 / (1u64 << 32) as f64;
    let steps = (WORK / evidence.cost()).clamp(STEPS.0, STEPS.1);
    let mut points: Vec<(f64, Point)> = (0..POINTS.min(steps / 4))
        .map(|_| {
            let point = std::array::from_fn(|_| uniform());
            (evidence.posterior(&point), point)
        })
        .collect();
    points.sort_by(|one, other| other.0.total_cmp(&one.0));
    points.truncate(IMPROVED);
    for point in &mut points {
        for _ in 0..steps / (4 * IMPROVED) {
            step(point, evidence, &mut uniform, |gain, _| gain >= 0.0);
        }
    }
    let Some(mut point) = points.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)) else {
        return Vec::new();
    };
    let mut draws = Vec::new();
    // A quarter of the chain is left out: it forgets where it began.
    let (forgotten, each) = (steps / 4, (steps / (2 * DRAWS)).max(1));
    for at in 0..forgotten + each * DRAWS {
        step(&mut point, evidence, &mut uniform, |gain, chance| gain >= ln(chance.max(LEAST)));
        if at >= forgotten && (at - forgotten) % each == each - 1 {
            draws.push(shares_at(&point.1));
        }
    }
    draws
}

/// Moves one coordinate, by a distance of any order of magnitude, if `accept` says so: of the gain of the
/// likelihood's logarithm, and a number from 0 to 1.
fn step(
    (now, point): &mut (f64, Point),
    evidence: &Evidence,
    uniform: &mut impl FnMut() -> f64,
    accept: impl Fn(f64, f64) -> bool,
) {
    let mut next = *point;
    let at = (uniform() * next.len() as f64) as usize;
    let halvings = (uniform() * 9.0) as i32;
    next[at] += (2.0 * uniform() - 1.0) / f64::from(1 << halvings);
    let chance = uniform();
    if !(0.0..1.0).contains(&next[at]) {
        return;
    }
    let then = evidence.posterior(&next);
    if accept(then - *now, chance) {
        (*now, *point) = (then, next);
    }
}

/// Shares are at most this: the formulas have no answer at 1.
const MOST: f64 = 0.999;

/// How often full slabs hold groups, of how often partial ones do, at most 1.
fn ratio_of_full(point: &Point) -> f64 {
    (3.0 - 3.0 * point[2]).min(1.0)
}

fn shares_at(point: &Point) -> Shares {
    let [single, holds, alike, holes, grouped, chain] = *point;
    Shares {
        single: (single * single * single).min(MOST),
        full: holds * ratio_of_full(point),
        partial: holds * (3.0 * alike).min(1.0),
        holes: (2.0 * holes - 1.0).max(0.0),
        grouped: grouped.min(MOST),
        chain: chain.min(MOST),
    }
}

/// Which of `count` draws draw number `at` of the start takes: neighbours in the chain are alike, so that few
/// draws are from all of it.
pub(super) fn spread_out(at: u64, count: usize) -> usize {
    // 13 has no factor in common with a number of draws that is a power of 2.
    (at.wrapping_mul(13) % count as u64) as usize
}

/// The natural logarithm of a positive number, by the four operations alone.
fn ln(number: f64) -> f64 {
    let bits = number.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as f64 - 1023.0;
    let mut part = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if part > std::f64::consts::SQRT_2 {
        (part, exponent) = (part / 2.0, exponent + 1.0);
    }
    // ln((1 + t) / (1 - t)) is twice the odd powers of t, each over its exponent.
    let ratio = (part - 1.0) / (part + 1.0);
    let mut series = 0.0;
    for power in (1..=17).rev().step_by(2) {
        series = series * ratio * ratio + 1.0 / f64::from(power);
    }
    exponent * std::f64::consts::LN_2 + 2.0 * ratio * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_library() {
        for number in [1e-12, 0.3, 1.0, 1.414, 1.415, 2.0, 12345.6] {
            assert!((ln(number) - f64::ln(number)).abs() < 1e-12, "{number}: {}", ln(number));
        }
    }

    /// Of slabs that the shares themselves made, the fit is as likely as these shares.
    #[test]
    fn shares_are_found_again() {
        let made = Shares { single: 0.01, full: 0.7, partial: 0.1, holes: 1.0, grouped: 0.6, chain: 0.8 };
        let mut weights = vec![30.0; 21];
        (weights[0], weights[20]) = (0.0, 1000.0);
        let mut freed = Vec::new();
        for count in 1..=20 {
            let mut slabs = 0.0;
            made.frees(20, count, |used, each| {
                slabs += weights[used as usize] * each.get(count as usize).unwrap_or(&0.0);
            });
            freed.resize(freed.len() + (slabs + 0.5) as usize, count);
        }
        let evidence = Evidence::of(&weights, &freed).expect("there are frees");
        let draws = draws(&evidence);
        let best = draws.iter().map(|draw| evidence.likelihood(draw)).fold(f64::MIN, f64::max);
        let real = evidence.likelihood(&made);
        assert!(best > real - 3.0, "{best}, that of the shares {real}");
        let holes = draws.iter().map(|draw| draw.holes).sum::<f64>() / draws.len() as f64;
        assert!(holes > 0.9, "{holes} of the slabs have an object that stays; all have");
    }

    #[test]
    fn nothing_freed_is_nothing_to_fit() {
        assert!(Evidence::of(&[0.0, 3.0], &[]).is_none());
        assert!(Evidence::of(&[0.0, 0.0], &[1]).is_none());
    }
}
