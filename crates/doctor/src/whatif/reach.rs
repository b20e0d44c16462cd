//! On how many CPUs a cache is touched, from the number of CPUs that hold a slab of it.
//!
//! A touch is equally likely to be on any CPU: `k` touches reach `n (1 - (1 - 1/n)^k)` of `n` CPUs. If some
//! CPUs hold a slab, this gives `k`. If all do, `k` is only known to be large enough, and the likely number
//! is the mean over the distribution of `k` among caches: the logarithm of `k` is normal, [`LN_MEAN`] and
//! [`LN_DEVIATION`], on kernels from 4 to 160 CPUs, just after boot and after a load (docs/whatif.md).

use super::fill::distinct;

/// Mean of the natural logarithm of a cache's touches.
pub const LN_MEAN: f64 = 1.7;
/// Standard deviation of the natural logarithm of a cache's touches.
pub const LN_DEVIATION: f64 = 1.5;

/// How much of a cache's distance from the mean another boot of the same machine repeats: the slope of one
/// boot's `ln k` over another's, both from [`LN_MEAN`].
pub const REPEATED: f64 = 0.94;

/// Widths of the sum over `ln k`, and where it ends: 160,000 touches.
const STEP: f64 = 0.02;
const STEPS: u32 = 600;

/// CPUs of `then` that hold a slab in another boot, on average, if `held` of `today` do in this one.
pub fn reached(today: u32, held: u64, then: u32) -> f64 {
    let (cpus, wanted) = (f64::from(today), f64::from(then));
    if held < u64::from(today) {
        return distinct(wanted, again(touches(today, held).ln()));
    }
    let (mut sum, mut weights) = (0.0, 0.0);
    for step in 0..STEPS {
        let ln = f64::from(step) * STEP;
        let away = (ln - LN_MEAN) / LN_DEVIATION;
        let weight = (-away * away / 2.0).exp() * all_hit(cpus, ln.exp());
        sum += weight * distinct(wanted, again(ln));
        weights += weight;
    }
    if weights > 0.0 { sum / weights } else { wanted }
}

/// Touches in another boot, likely ones, of a cache whose touches in this boot have this logarithm.
fn again(ln: f64) -> f64 {
    (LN_MEAN + REPEATED * (ln - LN_MEAN)).exp()
}

/// Touches that hit `held` of `cpus` CPUs on average, fewer than all.
pub fn touches(cpus: u32, held: u64) -> f64 {
    let cpus = f64::from(cpus);
    (1.0 - held as f64 / cpus).ln() / (1.0 - 1.0 / cpus).ln()
}

/// The chance that this many touches hit every CPU, as if CPUs were hit independently.
fn all_hit(cpus: f64, touches: f64) -> f64 {
    if touches < cpus { 0.0 } else { (1.0 - (-touches / cpus).exp()).powf(cpus) }
}

/// Mean and standard deviation of `ln k` over caches, of which `held` of `cpus` CPUs hold a slab: those that
/// make the observations most likely, to a tenth.
pub fn fit(observed: &[(u32, u64)]) -> (f64, f64) {
    let tenths = |from: u32, to: u32| (from..=to).map(|tenths| f64::from(tenths) / 10.0);
    let grid = tenths(0, 50).flat_map(|mean| tenths(5, 30).map(move |deviation| (mean, deviation)));
    let likely = |&(mean, deviation): &(f64, f64)| {
        let density = |ln: f64| {
            let away = (ln - mean) / deviation;
            (-away * away / 2.0).exp() / deviation
        };
        let mut of_all: Vec<(u32, f64)> = Vec::new();
        let mut sum = 0.0;
        for (cpus, held) in observed.iter().copied().filter(|(cpus, held)| *cpus > 1 && *held > 0) {
            let chance = if held < u64::from(cpus) {
                density(touches(cpus, held).ln())
            } else if let Some((_, chance)) = of_all.iter().find(|(known, _)| *known == cpus) {
                *chance
            } else {
                let lns = (0..STEPS).map(|step| f64::from(step) * STEP);
                let chance = lns.map(|ln| density(ln) * all_hit(cpus.into(), ln.exp()) * STEP).sum();
                of_all.push((cpus, chance));
                chance
            };
            sum += chance.max(f64::MIN_POSITIVE).ln();
        }
        sum
    };
    grid.map(|point| (likely(&point), point))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or((0.0, 0.0), |best| best.1)
}

/// The slope of one boot's `ln k` over another's, both from [`LN_MEAN`]: touches of one cache in two boots of
/// one machine.
pub fn repeated(touches: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for (one, other) in touches {
        let (one, other) = (one.ln() - LN_MEAN, other.ln() - LN_MEAN);
        products += one * other;
        squares += one * one;
    }
    products / squares
}
