//! The modelled machine, level `count`: every counter exact, no clocks of its own.
//!
//! Page frames are only numbers. There is memory behind objects only where bytes were written, which
//! debugging alone does. Frame descriptors, links and slots are made when first touched, so a fresh machine
//! of 1 TiB and 1,024 CPUs costs a few megabytes.
//!
//! ```text
//! Machine::new(spec).enter(|| { .. })     the machine's state is per thread, for the scope
//!   Model::run_on(cpu)                    which CPU the code runs on from here
//!   Model::advance_to(ns)                 event time
//!   Model::next_due()                     timers that are due and grace periods that have ended
//!   Model::counted(event)                 counters outside caches
//! ```
//!
//! Deterministic: a seed and the sequence of calls give the same answers. What belongs to the running call
//! (CPU, context, ranks of held locks) is one struct, apart from the machine's state. Absent on purpose: the
//! model reads no clock, no environment and no hash order, and names no allocator. Its tests are in the crate
//! `check`: the conformance suite, the oracle, and the sizes of its tables.
#![forbid(unsafe_code)]

mod contents;
mod hardware;
mod level;
mod lock;
mod memory;
mod slots;
mod spec;
mod testable;
mod timers;
mod world;

pub use hardware::{Costs, Handover, Hardware, Ps};
pub use level::{Access, Count, Level};
pub use memory::Addr;
pub use spec::{BadSpec, MachineSpec, NodeSpec};
pub use world::{Machine, MachineAt, Model, Modelled};
