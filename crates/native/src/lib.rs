//! The native world: the engines on mapped memory.
//!
//! # Theory
//!
//! One piece of address space is reserved when the world starts. It is cut into page frames, and a second
//! piece holds their descriptors, so that an address leads to its slab by arithmetic, as in the kernel.
//! Reserved memory cannot be written, so that it counts neither as data nor as committed; it is opened step
//! by step before a frame is first used, and given back without a background thread.
//!
//! A *slot* is a thread's area: a piece of memory that holds the hot part of every cache, each cache at the
//! same offset in all areas. A thread finds its area by one read of thread-local storage:
//!
//! ```text
//! hot part = thread's area (initial-exec TLS, the refusing area at first) + cache's offset
//! ```
//!
//! The *refusing area* is a static of zeros: zero means "held", so a thread that has no area yet is refused
//! by every hot operation, comes to the slow path, and gets one there. The fast path has no test for it.
//!
//! # States of a slot
//!
//! ```text
//!         first slow path of a thread         thread exit
//! free ───────────────────────────────▶ live ─────────────▶ free
//!   ▲ │ claim (cpu_down, shrink)
//!   │ ▼
//! claimed
//! ```
//!
//! # Files
//!
//! | file | what |
//! |---|---|
//! | `world` | the contract |
//! | `object` | addresses of objects, words of mapped memory |
//! | `start`, `space` | which parts the address space has, and how much of the heap may be written |
//! | `region` | the mapping, and addresses turned into references: tables with a checked index, access to the heap |
//! | `memory` | frames, descriptors, words of objects |
//! | `area`, `slot_space` | areas: where, and which lines are some cache's |
//! | `current` | the area and the slot that a thread may use now |
//! | `thread`, `local` | threads: numbers, ends, thread-local words |
//! | `per_cpu`, `sequence` | slots per CPU: whether, and the restartable sequences |
//! | `slots` | the hot part of a cache in an area |
//! | `lock`, `lazy` | locks; values per node and per CPU |
//! | `boot_memory` | memory for the world's own values |
//! | `directory` | where another process finds the counts |
//! | `fork` | who holds a lock or a slot, and the gate that a fork closes |
//! | `stack` | who called, for debugging |
//! | `system` | what is asked of the operating system |
//!
//! Deliberately absent: engines and pages (they meet this world where a library is assembled), a background
//! thread, and any use of the program's own allocator.

mod area;
#[expect(unsafe_code, reason = "reads atomic words as a thread's own")]
mod arrays;
#[expect(unsafe_code, reason = "owns memory")]
mod boot_memory;
mod current;
pub mod directory;
mod fixed_slots;
mod fork;
mod hot;
mod lazy;
#[expect(unsafe_code, reason = "thread-local storage by hand")]
mod local;
mod lock;
mod memory;
mod object;
mod per_cpu;
mod place;
#[expect(unsafe_code, reason = "owns address space, and turns addresses into references")]
mod region;
pub mod report;
#[expect(unsafe_code, reason = "assembler")]
mod sequence;
mod slot_arrays;
mod slot_space;
#[expect(unsafe_code, reason = "owns memory")]
mod slots;
mod space;
pub mod stack;
mod start;
mod starts;
#[expect(unsafe_code, reason = "calls the C library")]
pub mod system;
mod testable;
mod thread;
mod timers;
mod topology;
#[expect(unsafe_code, reason = "promises that mapped memory is memory")]
mod world;

pub use fixed_slots::FixedSlots;
pub use fork::Pass;
pub use lock::Sleep;
pub use memory::{Location, PagemapEntry};
pub use object::Object;
pub use per_cpu::{Owner, Served};
pub use place::Place;
pub use region::Trusted;
pub use slot_arrays::SlotArrays;
pub use start::{Start, Wishes};
pub use world::Native;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
