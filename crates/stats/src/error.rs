//! Inputs that this crate refuses.

/// Why an input was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A sample without values.
    #[error("the sample has no values: expected at least 1")]
    Empty,
    /// A value that is NaN, infinite, or so large that its square overflows.
    #[error("value {index} is {value}: expected a number between -1e90 and 1e90")]
    Value {
        /// The value's place in the input, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A mean, or a standard deviation, that no sample has.
    #[error("{what} is {value}: expected {expected}")]
    Moment {
        /// Which number: "the mean" or "the standard deviation".
        what: &'static str,
        /// The number.
        value: f64,
        /// What is accepted.
        expected: &'static str,
    },
    /// Too few values for a test.
    #[error("{test} needs {needed} values on each side: {found} are given")]
    TooFew {
        /// The test.
        test: &'static str,
        /// The fewest values that it needs.
        needed: usize,
        /// The values that the smaller side has.
        found: usize,
    },
    /// A confidence level out of range.
    #[error("the confidence level is {0}: expected a number above 0, at most 0.999999, such as 0.95")]
    Level(f64),
    /// A bootstrap without resamples.
    #[error("the bootstrap has {0} resamples: expected at least 2")]
    Resamples(u32),
    /// A p-value outside of 0 to 1.
    #[error("p-value {index} is {value}: expected a number from 0 to 1")]
    Probability {
        /// The p-value's place in the input, from 0.
        index: usize,
        /// The p-value.
        value: f64,
    },
    /// A statistic that gave NaN or an infinite number for a resample.
    #[error("the statistic of a resample is {0}: expected a finite number")]
    Statistic(f64),
    /// A variance between placements of one placement.
    #[error("the variance between placements needs 2 placements and one of them with 2 values")]
    Placements,
    /// A row with another number of cells than the table has columns.
    #[error("row {row:?} has {found} cells: the table has {expected} columns")]
    Cells {
        /// The row's name.
        row: String,
        /// The cells of the row.
        found: usize,
        /// The columns of the table.
        expected: usize,
    },
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
