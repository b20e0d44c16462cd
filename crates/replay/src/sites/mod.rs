//! Which code allocates: call sites of a recording, of /proc/allocinfo, of SLUB's debugging lists.
//!
//! ```text
//! input::read ─┬─ recorded    a recording: what lives, how long, freed where
//!              │    ├─ pass        one pass over its rows
//!              │    ├─ names       symbols for addresses
//!              │    └─ lifetimes   how long objects live, with those that still do
//!              ├─ program     a recording of a program's malloc, with call chains
//!              │    ├─ pass        two passes over its rows
//!              │    └─ pages       what its live blocks keep in memory
//!              ├─ counted     /proc/allocinfo: live bytes of lines of code, and their growth
//!              └─ tracked     alloc_traces and free_traces: ages, tasks, CPUs and nodes
//! ```

pub mod counted;
mod input;
mod lifetimes;
mod names;
mod options;
mod pass;
pub mod program;
pub mod recorded;
mod text;
pub mod tracked;

pub use counted::{Counted, Growth};
pub use input::{Live, Sites, live_sources, read};
pub use lifetimes::{Lifetimes, Quantile};
pub use options::{Options, Sort};
pub use program::{Numbers, Pages, Program, ProgramChain, ProgramSite, Resident};
pub use recorded::{Frees, Recorded, Site, Stack};
pub use tracked::{List, TrackedSites};
