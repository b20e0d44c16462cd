//! The modelled machine, at two levels. At level `count` every counter is exact and there are no clocks. At
//! level `cost` each CPU has a clock, memory that is touched costs time, and calls wait for locks.
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
//!
//! TimedMachine::new(spec, hardware, paths)       level `cost`
//!   Timed::spawn(cpu, at, f)              a call: f runs on cpu from `at` on
//!   Timed::run()                          calls go on, that with the earliest clock first
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `level` | what differs between the levels: hooks, empty at level `count` |
//! | `memory`, `bytes` | frames, links, storage; bytes that were written |
//! | `state` | a machine's state, and the hooks that take it |
//! | `slots`, `lock` | slots, values of nodes and CPUs, locks: the world's types over a state |
//! | `world` | the machine and its side of the contract |
//! | `cost` | level `cost`: its hooks, and what a simulation calls |
//! | `clocks` | what level `cost` keeps: clocks, lines, prices, where time went |
//! | `calls` | calls as coroutines, in the order of their clocks |
//! | `waiters` | locks of level `cost`: who waits, and what a hand-over costs |
//! | `coherence` | cache lines: who touched one last, and what the next touch costs |
//! | `tlb` | pages that a CPU's TLB holds |
//! | `walks` | misses of independent objects, which overlap |
//! | `hardware` | what a machine's parts cost: data |
//! | [`disk`] | what a machine's disks consist of: data |
//!
//! Deterministic: a seed and the sequence of calls give the same answers. What belongs to the running call
//! (CPU, context, ranks of held locks) is one struct, apart from the machine's state. Absent on purpose: the
//! model reads no clock of the host, no environment and no hash order, and names no allocator. Its tests are
//! in the crate `check`: the conformance suite, the oracle, the sizes of its tables, calls and locks.
#![deny(unsafe_code)]

mod bytes;
#[cfg(feature = "cost")]
mod calls;
#[cfg(feature = "cost")]
mod clocks;
#[cfg(feature = "cost")]
mod coherence;
mod contents;
#[cfg(feature = "cost")]
#[cfg_attr(target_family = "wasm", path = "coroutine/page.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "coroutine/native.rs")]
#[expect(unsafe_code, reason = "switches of stacks")]
mod coroutine;
#[cfg(feature = "cost")]
mod cost;
mod count;
pub mod disk;
mod hardware;
mod level;
mod lock;
mod memory;
mod random;
mod slots;
mod spec;
mod state;
mod testable;
mod timers;
#[cfg(feature = "cost")]
mod tlb;
#[cfg(feature = "cost")]
mod waiters;
#[cfg(feature = "cost")]
mod walks;
mod world;

#[cfg(feature = "cost")]
pub use calls::CallId;
#[cfg(feature = "cost")]
pub use clocks::{LockTimes, LockWait, Paths, ReclaimPolicy, Spent};
#[cfg(feature = "cost")]
pub use cost::{Cost, Timed, TimedMachine};
pub use count::Count;
pub use hardware::{Costs, Handover, Hardware, Ps};
pub use level::{Access, Level};
pub use memory::Addr;
pub use spec::{BadSpec, MachineSpec, NodeSpec};
pub use state::Entered;
pub use world::{Machine, MachineAt, Model, Modelled};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
