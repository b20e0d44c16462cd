//! What the model said beside what the kernel did.
//!
//! Two kinds: the change between two dumps, judged by skill against "nothing changes"; and every counter of a kernel with
//! SLUB_STATS, each cache in the window of its own two readings.

pub mod change;
pub mod counters;

pub use change::verify_change;
pub use counters::verify_counters;

/// A table of real and predicted, and what follows from it.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Column names; the first column is text.
    pub header: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
    /// Sentences with numbers.
    pub summary: Vec<String>,
    /// The same for machines.
    pub json: serde_json::Value,
}
