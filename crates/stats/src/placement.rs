//! The "lucky layout": how much of the scatter lies within a placement and how much between placements.
//!
//! A *placement* is what stays equal over some repeats and changes at the next boot: where objects lie, which
//! node a task runs on. Repeats of one placement are not independent: a test over all repeats finds
//! differences where there are none. Test [`Groups::means`] instead.

use crate::error::{Error, Result};
use crate::sample::Sample;
use crate::special::f_above;

/// The repeats of each placement.
#[derive(Clone, Debug)]
pub struct Groups(Vec<Sample>);

/// The parts of a variance: one-way analysis of variance with random effects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// Variance of repeats of one placement.
    pub within: f64,
    /// Variance of the placements' true means, at least 0.
    pub between: f64,
    /// Fisher's F: mean square between placements over that within.
    pub f: f64,
    /// Probability of such an F, or a larger one, if all placements have one mean.
    pub p: f64,
}

impl Parts {
    /// The part of the variance that lies between placements, from 0 to 1; 0 if there is none.
    pub fn share_between(&self) -> f64 {
        let all = self.within + self.between;
        if all == 0.0 { 0.0 } else { self.between / all }
    }
}

impl Groups {
    /// Groups of repeats.
    ///
    /// # Errors
    /// If there are fewer than 2 placements, or none of them has 2 repeats.
    pub fn new(placements: Vec<Sample>) -> Result<Groups> {
        if placements.len() < 2 || placements.iter().all(|repeats| repeats.n() < 2) {
            return Err(Error::Placements);
        }
        Ok(Groups(placements))
    }

    /// The mean of each placement: a sample of independent values.
    ///
    /// # Panics
    /// Never: means of finite values are finite.
    pub fn means(&self) -> Sample {
        let means: Vec<f64> = self.0.iter().map(Sample::mean).collect();
        Sample::new(means).expect("means of finite values")
    }

    /// The variance within and between placements. Placements may have different numbers of repeats.
    pub fn parts(&self) -> Parts {
        let groups = self.0.len() as f64;
        let n: f64 = self.0.iter().map(|group| group.n() as f64).sum();
        let mean = self.0.iter().map(|group| group.mean() * group.n() as f64).sum::<f64>() / n;
        let squares_between: f64 =
            self.0.iter().map(|group| group.n() as f64 * (group.mean() - mean).powi(2)).sum();
        let squares_within: f64 =
            self.0.iter().map(|group| (group.n() - 1) as f64 * group.sd() * group.sd()).sum();
        let (free_between, free_within) = (groups - 1.0, n - groups);
        let (between, within) = (squares_between / free_between, squares_within / free_within);
        // Repeats of a placement, averaged so that the estimate has no bias with unequal numbers.
        let squared_sizes: f64 = self.0.iter().map(|group| (group.n() as f64).powi(2)).sum();
        let repeats = (n - squared_sizes / n) / free_between;
        let (f, p) = match (between > 0.0, within > 0.0) {
            (false, _) => (0.0, 1.0),
            (true, false) => (f64::INFINITY, 0.0),
            (true, true) => (between / within, f_above(between / within, free_between, free_within)),
        };
        Parts { within, between: ((between - within) / repeats).max(0.0), f, p }
    }
}
