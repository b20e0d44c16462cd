//! Slab memory over time: a sequence of samples, the caches in them, and their growth.
//!
//! ```text
//! Source        the running machine, or states of a machine as ticks
//!   Sample      one reading: rows of /proc/slabinfo, meminfo's Slab
//! Watch         every sample so far
//!   Track       one cache in all samples
//!   SortKey     the order of the list
//! ```
//!
//! Only the live source reads a clock: a sample says when it was taken. Nothing is drawn here; the program
//! does that.

mod sample;
mod samples;
mod sort;
mod source;
#[cfg(test)]
mod tests;

pub use sample::{Memory, Row, Sample, Totals, percent};
pub use samples::{HISTORY, Track, Watch, Window};
pub use sort::SortKey;
pub use source::Source;
