//! Holm's correction: p-values of many tests, such that the probability of even one false "differs" stays
//! below the level. Source: S. Holm, Scand. J. Stat. 6 (1979), 65-70.

use crate::error::{Error, Result};

/// The corrected p-values, in the order of the input: the smallest of m times m, the next times m - 1 and so
/// on, none below the one before it and none above 1. A test differs at level a if its corrected p-value is
/// at most a.
///
/// # Errors
/// If a p-value is NaN or not from 0 to 1.
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>> {
    if let Some(index) = p_values.iter().position(|p| !(0.0..=1.0).contains(p)) {
        return Err(Error::Probability { index, value: p_values[index] });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![0.0; p_values.len()];
    let mut before: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        let tests_left = (p_values.len() - place) as f64;
        before = before.max((p_values[index] * tests_left).min(1.0));
        corrected[index] = before;
    }
    Ok(corrected)
}
