//! A table of measurements. A row is one quantity; a column is one of the things that are compared, such as
//! an engine or a kernel. The first column is the base.
//!
//! ```text
//! avg_std::read ──> Table ── compare ──> Pair per row and two columns: gain, p, Holm's p, effect, verdict
//!                     └──┬── avg_std::print    a mail of 2009
//!                        └── mmtests::print    mmtests' table
//! ```

pub mod avg_std;
mod compare;
pub mod mmtests;

pub use compare::{Pair, Pairs, Rules, Test, Verdict, is_rounding, scatters, summary, tally};

use crate::error::{Error, Result};
use crate::sample::{Moments, Sample};

/// Which values of a quantity are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times: lower is better.
    Lower,
    /// Rates: higher is better.
    Higher,
}

/// What was measured of one row in one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The value of every run.
    Runs(Sample),
    /// Only the number of runs, their mean and their standard deviation.
    Moments(Moments),
    /// No number, and why: "out of memory".
    Nothing(String),
}

impl Cell {
    /// The moments; `None` if nothing was measured.
    pub fn moments(&self) -> Option<Moments> {
        match self {
            Cell::Runs(sample) => Some(sample.moments()),
            Cell::Moments(moments) => Some(*moments),
            Cell::Nothing(_) => None,
        }
    }

    /// The value of every run; `None` if only their moments are known, or nothing.
    pub fn runs(&self) -> Option<&Sample> {
        match self {
            Cell::Runs(sample) => Some(sample),
            Cell::Moments(_) | Cell::Nothing(_) => None,
        }
    }
}

/// One quantity, measured in every column.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was measured: "hackbench 7".
    pub name: String,
    /// Which values are better.
    pub better: Better,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// A table in which every row has a cell for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Row>,
}

impl Table {
    /// A table without rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Table {
        Table { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If it has another number of cells than the table has columns.
    pub fn row(&mut self, row: Row) -> Result<()> {
        let (found, expected) = (row.cells.len(), self.columns.len());
        if found != expected {
            return Err(Error::Cells { row: row.name, found, expected });
        }
        self.rows.push(row);
        Ok(())
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl Better {
    /// The word of files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Better::Lower => "lower",
            Better::Higher => "higher",
        }
    }

    /// By how much a value is better than 0.
    pub fn gain(self, value: f64) -> f64 {
        match self {
            Better::Lower => -value,
            Better::Higher => value,
        }
    }
}

/// By how many percent of `base` the value `other` is better, as mmtests counts: above 0 is better, for times
/// and for rates. `None` if `base` is 0 and `other` is not.
pub fn gain_percent(better: Better, base: f64, other: f64) -> Option<f64> {
    let gain = better.gain(other - base);
    if gain == 0.0 {
        return Some(0.0);
    }
    (base != 0.0).then(|| gain * 100.0 / base)
}
