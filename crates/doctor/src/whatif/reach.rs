//! On how many CPUs programs touch a cache, from the number of CPUs that hold a slab of it.
//!
//! A touch is equally likely to be on any CPU: `k` touches reach `n (1 - (1 - 1/n)^k)` of `n` CPUs. Over the
//! caches of one machine, `ln k` is uniform from 0 to `ln T`: most caches are touched by few of the programs,
//! and none is touched more often than programs came to another CPU, `T` times. `T` belongs to what a machine
//! did since it booted, not to its number of CPUs (docs/whatif.md). So the caches of a dump that some CPUs
//! hold slabs of tell of `T`, and `T` bounds the touches of those that all CPUs hold slabs of.

use std::collections::BTreeMap;

/// Mean of `ln T` over the boots in examples/dumps: what is assumed before a dump is read.
pub const LN_MOST_MEAN: f64 = 4.2;
/// Standard deviation of `ln T` over these boots.
pub const LN_MOST_DEVIATION: f64 = 0.9;

/// How much of a cache's distance from the mean of its machine, in `ln k`, another boot of the machine
/// repeats: the slope of one boot's distances over another's.
pub const REPEATED: f64 = 0.95;

/// Each number of touches up to here is summed over; from there on steps of `ln k`.
const FEW: u32 = 64;
const STEP: f64 = 0.02;
/// Where the sums end.
const LN_END: f64 = 10.0;

/// After so many touches for each CPU, all CPUs are hit: all but a millionth of the caches.
const SURE: f64 = 20.0;

/// How often programs touched the caches of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Touches {
    /// `ln T`: the natural logarithm of the touches of the cache that is touched most.
    pub ln_most: f64,
    cpus: u32,
    points: Vec<Point>,
    /// For each number of CPUs that hold a slab: how likely it is, for each of the points.
    chances: BTreeMap<u32, Vec<f64>>,
}

/// A number of touches.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    touches: u32,
    ln: f64,
    /// Its part of the caches, before division by that of all numbers up to `T`.
    weight: f64,
}

impl Touches {
    /// The likeliest `T` of a machine with so many CPUs, from the CPUs that hold a slab of each cache that
    /// programs touch.
    pub fn of(cpus: u32, held: &[u64]) -> Touches {
        Touches::with(cpus, held, |ln_most| {
            let away = (ln_most - LN_MOST_MEAN) / LN_MOST_DEVIATION;
            -away * away / 2.0
        })
    }

    /// [`Touches::of`], where nothing is assumed before the dump is read.
    pub fn alone(cpus: u32, held: &[u64]) -> Touches {
        Touches::with(cpus, held, |_| 0.0)
    }

    fn with(cpus: u32, held: &[u64], ln_prior: impl Fn(f64) -> f64) -> Touches {
        let cpus = cpus.max(1);
        let points = points();
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for held in held.iter().filter(|held| **held > 0) {
            *counts.entry(bounded(*held, cpus)).or_default() += 1;
        }
        let chances = chances(cpus, &counts.keys().copied().collect::<Vec<_>>(), &points);
        let mut likely: Vec<f64> = points.iter().map(|point| ln_prior(point.ln)).collect();
        for (held, chances) in &chances {
            let (mut sum, mut weights) = (0.0, 0.0);
            let of_all = counts.get(held).map_or(0.0, |count| *count as f64);
            for ((likely, point), chance) in likely.iter_mut().zip(&points).zip(chances) {
                sum += point.weight * chance;
                weights += point.weight;
                *likely += of_all * (sum / weights).max(f64::MIN_POSITIVE).ln();
            }
        }
        let best = likely.iter().zip(&points).max_by(|a, b| a.0.total_cmp(b.0));
        Touches { ln_most: best.map_or(0.0, |(_, point)| point.ln), cpus, points, chances }
    }

    /// CPUs of `then` that hold a slab in another boot, on average, if `held` CPUs do in this one: the mean
    /// over the touches that are likely, up to `T`.
    pub fn reached(&self, held: u64, then: u32) -> f64 {
        let (held, wanted) = (bounded(held, self.cpus), f64::from(then));
        let found = match self.chances.get(&held) {
            Some(found) => found,
            None => &chances(self.cpus, &[held], &self.points).remove(&held).unwrap_or_default(),
        };
        let (mut sum, mut weights) = (0.0, 0.0);
        // More touches than `T` too, if fewer are impossible.
        for (point, chance) in self.points.iter().zip(found) {
            if point.ln > self.ln_most && weights > 0.0 {
                break;
            }
            let weight = point.weight * chance;
            sum += weight * hit(wanted, self.again(point.ln));
            weights += weight;
        }
        if weights > 0.0 { sum / weights } else { wanted }
    }

    /// The logarithm of the touches in another boot, of a cache with this one.
    fn again(&self, ln: f64) -> f64 {
        let mean = self.ln_most / 2.0;
        mean + REPEATED * (ln - mean)
    }
}

/// Distances of a cache's `ln k` from the mean in two boots of one machine, by cache: of those that some but
/// not all CPUs hold a slab of in both. A boot is its CPUs, and the CPUs that hold a slab of each cache.
pub fn twice(cpus: u32, one: &[(&str, u64)], other: &[(&str, u64)]) -> Vec<(f64, f64)> {
    let mean = |boot: &[(&str, u64)]| {
        let held: Vec<u64> = boot.iter().map(|(_, held)| *held).collect();
        Touches::of(cpus, &held).ln_most / 2.0
    };
    let (mean_one, mean_other) = (mean(one), mean(other));
    let some = |(_, held): &&(&str, u64)| *held > 0 && *held < u64::from(cpus);
    let pairs = one.iter().filter(some).filter_map(|(name, held)| {
        let (_, same) = other.iter().filter(some).find(|(other, _)| other == name)?;
        Some((touches(cpus, *held).ln() - mean_one, touches(cpus, *same).ln() - mean_other))
    });
    pairs.collect()
}

/// The slope of the second numbers over the first, both from 0.
pub fn slope(pairs: &[(f64, f64)]) -> f64 {
    let products: f64 = pairs.iter().map(|(one, other)| one * other).sum();
    products / pairs.iter().map(|(one, _)| one * one).sum::<f64>()
}

/// Touches that hit `held` of `cpus` CPUs on average, fewer than all.
fn touches(cpus: u32, held: u64) -> f64 {
    let cpus = f64::from(cpus);
    (-(held as f64) / cpus).ln_1p() / (-1.0 / cpus).ln_1p()
}

fn bounded(held: u64, cpus: u32) -> u32 {
    u32::try_from(held).unwrap_or(cpus).min(cpus)
}

/// CPUs that `e^ln` touches hit on average.
fn hit(cpus: f64, ln: f64) -> f64 {
    // The first touch hits one; each of the others any.
    if cpus > 1.0 { 1.0 - (cpus - 1.0) * (ln.exp_m1() * (-1.0 / cpus).ln_1p()).exp_m1() } else { cpus }
}

/// Numbers of touches whose logarithms are uniform.
fn points() -> Vec<Point> {
    let few = (1..=FEW).map(|touches| {
        let number = f64::from(touches);
        Point { touches, ln: number.ln(), weight: 1.0 / number }
    });
    let first = (f64::from(FEW) + 0.5).ln() + STEP / 2.0;
    let steps = ((LN_END - first) / STEP) as u32;
    let many = (0..steps).map(|step| {
        let ln = first + f64::from(step) * STEP;
        Point { touches: ln.exp().round() as u32, ln, weight: STEP }
    });
    few.chain(many).collect()
}

/// For each of `wanted`: the chance that touches hit so many of the CPUs, at each of the points.
fn chances(cpus: u32, wanted: &[u32], points: &[Point]) -> BTreeMap<u32, Vec<f64>> {
    let mut chances: BTreeMap<u32, Vec<f64>> = wanted.iter().map(|held| (*held, Vec::new())).collect();
    let number = f64::from(cpus);
    // The chance of each number of CPUs after this many touches.
    let mut of = vec![0.0; cpus as usize + 1];
    let mut after = 0;
    of[0] = 1.0;
    for point in points {
        let sure = f64::from(point.touches) > SURE * number;
        while after < point.touches && !sure {
            for held in (1..of.len()).rev() {
                let place = held as f64;
                of[held] = of[held] * (place / number) + of[held - 1] * ((number - place + 1.0) / number);
            }
            of[0] = 0.0;
            after += 1;
        }
        for (held, chances) in &mut chances {
            let all = if *held == cpus { 1.0 } else { 0.0 };
            chances.push(if sure { all } else { of[*held as usize] });
        }
    }
    chances
}
