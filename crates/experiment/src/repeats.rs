//! How often a cell runs: so many repeats of each placement, until an interval is narrow.
//!
//! ```text
//! runs of a cell    0  1  2 | 3  4  5 | 6  7  8 ...      3 placements: run i is of placement i % 3
//!                   repeat 0  repeat 1  repeat 2
//! ```
//!
//! A *placement* is what stays equal from boot to boot: [`slablab_sim::placement`]. Repeats of one placement
//! are not independent of each other; the mean of a placement is one value.

use super::workload::Metric;
use super::workload::Runs;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::text::counted;
use slablab_stats::placement::{Groups, Parts};
use slablab_stats::sequential::Rule;
use slablab_stats::{Result as Tested, Sample};

/// The fewest repeats with a precision: an interval of two says little, and a rule that looks at it stops too
/// early.
pub(super) const LEAST_MIN: u32 = 3;

/// How often each cell runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    /// Repeats of each placement, at least.
    pub least: u32,
    /// Placements. With one, the machine is as it is made: nothing of it is drawn.
    pub placements: u32,
    /// When a cell needs no more; `None` for `least` repeats of each.
    pub until: Option<Until>,
}

/// How often each cell runs beside the number of repeats, in a document.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct MoreRepeats {
    /// Starting states in which each cell repeats, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    placements: Option<u32>,
    /// The interval at which a cell stops, if the experiment asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    precision_percent: Option<f64>,
    /// Runs at which a cell stops in any case, if the experiment asks for an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats_most: Option<u32>,
}

/// When a cell needs no more repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// The half-width of the main metric's 95 % interval over its mean, percent.
    pub percent: f64,
    /// Repeats of each placement at which it ends even so.
    pub most: u32,
}

impl Repeats {
    /// Runs of a cell, at least.
    pub fn least(&self) -> u32 {
        self.least * self.placements
    }

    /// Runs of a cell, at most.
    pub fn most(&self) -> u32 {
        self.until.map_or(self.least, |until| until.most) * self.placements
    }

    /// How often a cell runs in words.
    pub fn words(&self) -> String {
        let runs = match self.until {
            None => format!("{} each", counted(self.least.into(), "run")),
            Some(Until { percent, most }) => {
                format!("{} to {most} runs each, until an interval of {percent} %", self.least)
            }
        };
        match self.placements {
            1 => runs,
            placements => format!("{runs} in each of {placements} placements"),
        }
    }

    /// What a document says beside their number: nothing of one placement without a precision.
    pub(crate) fn more(&self) -> MoreRepeats {
        MoreRepeats {
            placements: (self.placements > 1).then_some(self.placements),
            precision_percent: self.until.map(|until| until.percent),
            repeats_most: self.until.map(|until| until.most),
        }
    }

    /// Whether a cell with these runs, in their order, needs more: how many in all. A run that failed ends
    /// the cell.
    pub(super) fn next(&self, runs: &Runs, metric: &Metric) -> Option<u32> {
        let Until { percent, most } = self.until?;
        let values: Option<Vec<f64>> =
            runs.iter().map(|run| Some(*run.as_ref().ok()?.metrics.get(metric.name)? as f64)).collect();
        let values = values?;
        let repeats = values.len() / self.placements as usize;
        let rule = Rule { least: self.least as usize, most: most as usize, percent };
        let wanted = match self.placements {
            1 => rule.next(&values)?,
            // The interval is that of the placements' means: more repeats help it only so far.
            _ if repeats >= rule.most || rule.is_met(&self.means(&values).ok()?) => return None,
            _ => (2 * repeats).min(rule.most),
        };
        Some(wanted as u32 * self.placements)
    }

    /// The values of each placement.
    fn groups(&self, values: &[f64]) -> Tested<Vec<Sample>> {
        let of = |at: usize| {
            let of_placement: Vec<f64> =
                values.iter().skip(at).step_by(self.placements as usize).copied().collect();
            Sample::new(of_placement)
        };
        (0..self.placements as usize).map(of).collect()
    }

    /// The independent values of a cell's runs: each placement's mean, or all values of one placement.
    pub(super) fn means(&self, values: &[f64]) -> Tested<Sample> {
        match self.placements {
            1 => Sample::new(values),
            _ => Sample::new(self.groups(values)?.iter().map(Sample::mean).collect::<Vec<f64>>()),
        }
    }

    /// The independent values of two numbers of a cell, a pair for each run, or of each placement's means.
    pub(super) fn pairs(&self, base: &[f64], other: &[f64]) -> Vec<[f64; 2]> {
        let places = self.placements as usize;
        let mean = |values: &[f64], at: usize| {
            let own: Vec<f64> = values.iter().skip(at).step_by(places).copied().collect();
            own.iter().sum::<f64>() / own.len() as f64
        };
        match self.placements {
            1 => base.iter().zip(other).map(|(base, other)| [*base, *other]).collect(),
            _ => (0..places).map(|at| [mean(base, at), mean(other, at)]).collect(),
        }
    }

    /// The variance within and between placements; `None` with one placement, or one repeat of each.
    pub(super) fn parts(&self, values: &[f64]) -> Option<Parts> {
        Some(Groups::new(self.groups(values).ok()?).ok()?.parts())
    }
}
