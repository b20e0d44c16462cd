//! The same machine with another policy, other boot parameters, other pages, more or fewer CPUs.
//!
//! ```text
//! predict            a State and a Change become a Prediction
//!   Case             the state and the change, with what chooses orders, today and then (Rules, Policy)
//!   Cpus             which CPUs hold slabs, which objects there are for each CPU (touch)
//!     held           where the objects of a cache are today
//!     PerCpu         what the kernel allocates for each CPU
//!     Touches        how often programs touch caches (reach)
//!     workqueues     objects of pool_workqueue
//!   caches           each cache: bytes per object (layout), who shares slabs (merge), slabs (fill)
//!   Holders          another release: sheaves instead of CPU slabs, and back (sheaves)
//!   arrays           what a configuration or release keeps beside objects: accounting
//!   assumptions      what had to be assumed, in words
//!   Range            how far such predictions were off (errors)
//! Against            a Prediction, compared with the dump of a boot that had the change
//! Grid               several values of several knobs
//! released         every dump of a release predicts those of others
//! boots              every dump of a kernel predicts every other one: the errors of the ranges
//! ```
//!
//! Orders and objects per slab are arithmetic and exact: the kernel's own rule on size, pages and CPUs. Slabs
//! are a theory of where objects are ([`fill`], [`touch`]). How far it was off on real boots is in
//! docs/whatif.md, and makes the range of a prediction ([`errors`]).
//!
//! Deliberately absent: time. Numbers measured on dumps are what kernels allocate for each CPU ([`PerCpu`]),
//! how often caches are touched ([`reach`]), and errors.

mod against;
mod arrays;
mod assumptions;
pub mod boots;
mod caches;
mod capacity;
mod case;
mod change;
mod config;
pub mod errors;
mod figures;
pub mod fill;
mod grid;
mod held;
mod layout;
mod merge;
pub mod normal;
mod percpu;
mod policy;
mod predict;
pub mod reach;
pub mod released;
mod rules;
pub mod sheaves;
pub mod touch;
mod workqueues;

pub use against::{Against, Mismatch, Off};
pub use capacity::SheafCapacity;
pub use change::Change;
pub use config::Config;
pub use figures::{Figures, Row, Total};
pub use grid::{Grid, on_off};
pub use layout::Debug;
pub use percpu::{COLUMNS as PER_CPU_COLUMNS, Kernel, PerCpu, Rate};
pub use policy::Policy;
pub use predict::{Prediction, evidence, missing, predict, predict_with};
pub use rules::Rules;
