//! When a machine was too busy for verdicts.
//!
//! The twin is the same machine code as slablab, so all that its intervals show comes from the machine. A run
//! gives no verdict at all if one of these holds:
//!
//! | reason | limit |
//! |---|---|
//! | other programs want more CPUs than there are | load before the run above the number of CPUs; after it, less the bench's own threads |
//! | the twin's intervals are wide | half of the width above 10 % in half of the workloads |
//! | the twin differs from itself too often | so many false alarms have a chance below 5 % if each has one of 5 % |
//! | too few blocks | below 8: resampled medians of so few values are narrower than the truth |

use crate::rig::ENOUGH;
use crate::stats::{Estimate, median};

/// Half of the width of the twin's interval, in percent, above which a run gives no verdict.
const WIDE_PERCENT: f64 = 10.0;
/// The chance of a false alarm in one workload: what is outside of a 95 % interval.
const ALARM: f64 = 0.05;
/// The chance of so many false alarms below which a run gives no verdict.
const CHANCE: f64 = 0.05;

/// What a run says of its machine.
pub(crate) struct Seen {
    /// CPUs that the process may use.
    pub(crate) cpus: usize,
    /// The number of runnable threads before and after.
    pub(crate) load: [f64; 2],
    /// Whether workloads ran several threads at once.
    pub(crate) is_threaded: bool,
    /// The twin over slablab, in each workload with a twin.
    pub(crate) twins: Vec<Estimate>,
    /// The number of those intervals that do not contain 1.
    pub(crate) alarms: usize,
    /// The number of complete blocks.
    pub(crate) blocks: usize,
}

/// Why a run gives no verdict, each a clause. Empty if it gives verdicts.
pub(crate) fn doubts(seen: &Seen) -> Vec<String> {
    let mut said = Vec::new();
    let cpus = seen.cpus as f64;
    let [before, after] = seen.load;
    // The most threads that the bench itself ran at once.
    let own = if seen.is_threaded { seen.cpus.clamp(2, 8) as f64 } else { 1.0 };
    let others = after - own;
    if before > cpus || others > cpus {
        said.push(format!(
            "{:.0} other threads wanted to run, on {} CPUs: expected no more than CPUs",
            before.max(others),
            seen.cpus
        ));
    }
    let widths: Vec<f64> = seen.twins.iter().map(Estimate::give_or_take_percent).collect();
    let wide = median(&widths);
    if wide > WIDE_PERCENT {
        said.push(format!(
            "slablab against itself is known to \u{b1}{wide:.0} % only: expected \u{b1}{WIDE_PERCENT:.0} % or less"
        ));
    }
    let (alarms, of) = (seen.alarms, seen.twins.len());
    if chance(alarms, of) < CHANCE {
        said.push(format!(
            "slablab differs from itself in {alarms} of {of} workloads: expected 1 of 20 or less"
        ));
    }
    if seen.blocks < ENOUGH {
        said.push(format!("{} blocks are too few for intervals: expected {ENOUGH} or more", seen.blocks));
    }
    said
}

/// The chance of at least so many false alarms, if each of `of` workloads has one with the chance [`ALARM`]:
/// the upper tail of a binomial distribution.
fn chance(alarms: usize, of: usize) -> f64 {
    let mut exactly = (1.0 - ALARM).powi(of as i32);
    let mut fewer = 0.0;
    for count in 0..alarms {
        fewer += exactly;
        exactly *= (of - count) as f64 / (count + 1) as f64 * ALARM / (1.0 - ALARM);
    }
    1.0 - fewer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: pbinom(alarms - 1, of, 0.05, lower.tail = FALSE).
    #[test]
    fn chances_of_false_alarms() {
        for (alarms, of, expected) in [
            (0, 0, 1.0),
            (0, 20, 1.0),
            (1, 1, 0.05),
            (1, 20, 0.641_514_1),
            (2, 8, 0.057_244_65),
            (3, 8, 0.005_788_281),
            (4, 20, 0.015_901_53),
        ] {
            let found = chance(alarms, of);
            assert!((found - expected).abs() < 1e-6, "{alarms} of {of}: {found}");
        }
    }
}
