//! The same machine with another policy, other boot parameters, other pages, more or fewer CPUs.
//!
//! ```text
//! predict            a State and a Change become a Prediction
//!   Rules            what chooses orders, today and then
//!   layout           bytes per object, with and without debugging
//!   merge            which caches share slabs
//!   touch            which CPUs hold slabs, which objects there are for each CPU
//!   fill             slabs: one for each such CPU, and those full of objects
//! Against            a Prediction, compared with the dump of a boot that had the change
//! Grid               several values of several knobs
//! ```
//!
//! Orders and objects per slab are arithmetic and exact: the kernel's own rule on size, pages and CPUs. Slabs
//! are a theory of where objects are ([`fill`], [`touch`]). How far it was off on real boots is in
//! docs/whatif.md, and makes the range of a prediction ([`errors`]).
//!
//! Deliberately absent: time. Numbers measured on dumps are what kernels allocate for each CPU ([`PerCpu`]),
//! how often caches are touched ([`reach`]), and errors.

mod against;
pub mod boots;
mod caches;
pub mod errors;
pub mod fill;
mod grid;
mod layout;
mod merge;
mod percpu;
mod predict;
pub mod reach;
mod rules;
pub mod touch;

pub use against::{Against, Mismatch};
pub use grid::Grid;
pub use layout::Debug;
pub use percpu::{COLUMNS as PER_CPU_COLUMNS, Kernel, PerCpu, Rate};
pub use predict::{Change, Figures, Prediction, Row, Total, evidence, missing, predict, predict_with};
pub use rules::{Policy, Rules};
