//! Memory pressure: scripts of page accesses, records of their runs, and modelled runs beside real ones.
//!
//! ```text
//! folder or archive ── runs ── Runs (scenario, machine, repeats)
//!                                └── judge ── cells, residency, signs, outcomes ── tally
//! ```
//!
//! script, vm, engine, machine ── run ── Run: records of each process ── rows: modelled beside real
//!
//! docs/pressure.md says what is judged and how.

pub mod config;
pub mod guests;
pub mod judge;
pub mod lacks;
pub mod looked;
pub mod measure;
pub mod outcome;
pub mod records;
pub mod rows;
pub mod run;
pub mod runs;
pub mod scenario;
pub mod script;
pub mod suite;
pub mod tally;

/// Policies of page replacement by name: what [`run::Options`] take.
pub use slablab_vm::{knob, preset, registered};
