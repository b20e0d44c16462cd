//! The memory of a service at the parts of its day, beside what is live.

use crate::stats::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parts of a day, at the end of each of which memory is read.
pub const PARTS: usize = 20;

/// A day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Day {
    /// The ends of its parts.
    pub moments: [Moment; PARTS],
}

/// A moment of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// The share of the day that is over, 0 to 1.
    pub at: f64,
    /// Live bytes, as they were asked for, in MB.
    pub live_mb: f64,
    /// Resident memory less that before the first request, in MB.
    pub resident_mb: f64,
}

impl Day {
    /// The largest resident memory of the moments in MB.
    pub fn most_mb(&self) -> f64 {
        self.moments.iter().map(|moment| moment.resident_mb).fold(0.0, f64::max)
    }

    /// The mean over all moments of resident over live memory.
    pub fn over_live(&self) -> f64 {
        let over = |moment: &Moment| moment.resident_mb / moment.live_mb.max(1e-3);
        self.moments.iter().map(over).sum::<f64>() / PARTS as f64
    }

    /// The medians of several days, moment by moment. `None` if there are none.
    pub fn median(days: &[Day]) -> Option<Day> {
        let first = days.first()?;
        let middle = |at: usize, of: fn(&Moment) -> f64| {
            median(&days.iter().map(|day| of(&day.moments[at])).collect::<Vec<f64>>())
        };
        let moment = |at: usize| Moment {
            at: first.moments[at].at,
            live_mb: middle(at, |moment| moment.live_mb),
            resident_mb: middle(at, |moment| moment.resident_mb),
        };
        Some(Day { moments: std::array::from_fn(moment) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_known_days() {
        let day = |resident_mb: f64| Day {
            moments: std::array::from_fn(|at| Moment {
                at: (at + 1) as f64 / PARTS as f64,
                live_mb: 10.0,
                resident_mb: resident_mb + at as f64,
            }),
        };
        assert_eq!(Day::median(&[]), None);
        let middle = Day::median(&[day(10.0), day(90.0), day(20.0)]).expect("three");
        assert_eq!(middle, day(20.0));
        assert_eq!((middle.most_mb(), middle.over_live()), (39.0, 2.95));
    }
}
