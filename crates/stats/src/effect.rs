//! How large a difference is against the scatter of the runs.

use crate::error::{Error, Result};
use crate::rank::Counts;
use crate::sample::{Moments, Sample};
use crate::special::ln_gamma;

/// Hedges' g: the difference of the means, `other` minus `base`, in pooled standard deviations, corrected for
/// small samples by Γ(m/2) / (√(m/2) Γ((m-1)/2)) with m = n1 + n2 - 2. Around 0.2 is called small, 0.8 large.
/// `None` if neither side varies. Source: L. V. Hedges, J. Educ. Stat. 6 (1981), 107-128.
///
/// # Errors
/// If a side has fewer than 2 values.
pub fn hedges_g(base: &Moments, other: &Moments) -> Result<Option<f64>> {
    let found = base.n().min(other.n());
    if found < 2 {
        return Err(Error::TooFew { test: "Hedges' g", needed: 2, found });
    }
    let (free1, free2) = ((base.n() - 1) as f64, (other.n() - 1) as f64);
    let freedom = free1 + free2;
    let squares = free1 * base.sd() * base.sd() + free2 * other.sd() * other.sd();
    let pooled = (squares / freedom).sqrt();
    let half = freedom / 2.0;
    let correction = (ln_gamma(half) - ln_gamma(half - 0.5)).exp() / half.sqrt();
    Ok((pooled > 0.0).then(|| correction * (other.mean() - base.mean()) / pooled))
}

/// Cliff's delta: how much more often a value of `other` is larger than one of `base` than smaller, from -1
/// to
/// 1. Source: N. Cliff, Psychol. Bull. 114 (1993), 494-509.
pub fn cliffs_delta(base: &Sample, other: &Sample) -> f64 {
    let counts = Counts::new(base, other);
    (counts.smaller - counts.larger) / (base.n() * other.n()) as f64
}
