//! A line through points, and what part of the variance it explains: which assumption moves a result.

use crate::special::t_two_sided;

/// A line of least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// What one more of `x` adds.
    pub slope: f64,
    /// The part of the variance of `y` that the line explains.
    pub part: f64,
    /// The probability of such a part, or a larger one, if `x` does not matter.
    pub p: f64,
}

/// The line through the points `(x[i], y[i])`. `None` with fewer than three points, with sides of different
/// lengths, or if a side has one value alone.
pub fn slope(x: &[f64], y: &[f64]) -> Option<Slope> {
    let n = x.len();
    if n < 3 || n != y.len() {
        return None;
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / n as f64;
    let (of_x, of_y) = (mean(x), mean(y));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| -> f64 { x.iter().zip(y).map(|(x, y)| of(x - of_x, y - of_y)).sum() };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if xx <= 0.0 || yy <= 0.0 {
        return None;
    }
    let part = (xy * xy / (xx * yy)).min(1.0);
    let freedom = (n - 2) as f64;
    let t = (part / (1.0 - part) * freedom).sqrt();
    Some(Slope { slope: xy / xx, part, p: t_two_sided(t, freedom) })
}
