//! How far predictions are off, and the range that is printed beside a prediction.
//!
//! ```text
//! Class        what an error depends on: the question, the size of the machine, its state
//! half_width   the width of the range of a class
//! Range        the range of a prediction, from the built-in errors
//! ```
//!
//! The range contains nine of ten measured boots of its class. It is symmetric in the logarithm: `bytes /
//! e^w` to `bytes e^w`, where `w` is the 90 % quantile of `|ln(real / predicted)|`. Of `n` errors that is the
//! one of rank `ceil(0.9 (n + 1))`, which contains the next error with a chance of at least 90 % if errors
//! are exchangeable (conformal prediction: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World,
//! 2005). The errors are in data/whatif-errors.csv, which the example `whatif_errors` writes.

mod class;
mod range;

pub use class::{COVERAGE, Class, FEWEST, LogError, Question, beyond, half_width, is_loaded};
pub use range::{COLUMNS, Range};
