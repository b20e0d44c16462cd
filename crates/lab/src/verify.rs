//! What the model said beside what the kernel did.
//!
//! Two kinds: the change between two dumps, judged by skill against "nothing changes", with the slabs that
//! page events show taken and returned in between; and every counter of a kernel with SLUB_STATS, each cache
//! in the window of its own two readings.

pub mod change;
pub mod counters;
pub mod pages;

pub use change::{Change, Moved, Skill, verify_change};
pub use counters::{Counter, Tally, Values, verify_counters};
pub use pages::SlabPages;

/// A table of real and predicted, and what follows from it.
#[derive(Clone, Debug)]
pub struct Verified {
    /// What was compared.
    pub compared: Compared,
    /// Column names; the first column is text.
    pub header: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
    /// Sentences with numbers.
    pub summary: Vec<String>,
    /// The answer as JSON.
    pub json: serde_json::Value,
}

/// What was compared, value by value.
#[derive(Clone, Debug)]
pub enum Compared {
    /// The change between two dumps: caches that changed or should have, the most wrong first; and the skill
    /// over all.
    Changes(Vec<Change>, Skill),
    /// Counters, by cache; those of all caches together are called `all`.
    Counters(Vec<Counter>),
}
