//! The contract between allocators and worlds.
//!
//! An allocator (crates `pages` and `slabs`) is generic over one parameter, [`Platform`]: it knows no world.
//! A world (native memory, a modelled machine, a model checker, your kernel) implements [`Platform`]: it
//! knows no allocator. They meet where something is assembled.
//!
//! | module | contents |
//! |---|---|
//! | [`contract`] | [`Platform`]: the five traits together, and the types that CPUs share |
//! | [`topology`] | CPUs, nodes, distances |
//! | [`frames`] | page frames, their descriptors, addresses |
//! | [`memory`] | links, storage and bytes of objects: the `unsafe trait` |
//! | [`time`] | the clock and deferred work |
//! | [`hooks`] | reclaim, fault injection, random numbers, counting, the end |
//! | [`reclaim`] | what the page allocator asks for when memory is short, and the answers |
//! | [`reported`] | what code reports that is no engine |
//! | [`sync`] | words, locks, values per node and per CPU |
//! | [`slots`] | one slot per CPU: tagged list, bounded array, the engine's state |
//! | [`rank`] | the lock order, as types |
//! | [`event`] | what is counted, once, for counters, tables and docs |
//! | [`gfp`] | allocation flags, independent of any kernel's bit numbers |
//! | [`bytes`] | ranges of bytes in memory that is words |
//! | [`starts`] | where the objects of a slab start |
//! | [`real`], [`plain_slots`] | parts of worlds over real memory, to delegate to |
//! | [`delegate!`] | a world around a world, stated by what differs |
//! | [`conformance`] | the contract as checks that every world must pass |
//!
//! Deliberately absent: this crate does not allocate, has no dependencies, no `unsafe` blocks, no statics,
//! and names no engine. Its tests are those of `bytes` and `starts` and, in the crate `check`, the
//! conformance suite on every world.
#![no_std]
#![deny(unsafe_code)]

pub mod bytes;
pub mod conformance;
pub mod contract;
mod delegate;
pub mod event;
pub mod frames;
pub mod gfp;
pub mod hooks;
#[expect(unsafe_code, reason = "declares the unsafe trait")]
pub mod memory;
pub mod plain_slots;
pub mod rank;
pub mod real;
pub mod reclaim;
pub mod reported;
pub mod slots;
pub mod starts;
pub mod sync;
pub mod time;
pub mod topology;

pub use contract::{Platform, SlotOf};
pub use event::Event;
pub use frames::{Descriptor, Frame, FrameKind, FrameState, Frames, MAP_BYTES, NO_CACHE};
pub use gfp::Gfp;
pub use hooks::Hooks;
pub use memory::Memory;
pub use plain_slots::{Counts, Interrupts, PlainHeld, PlainSlots};
pub use rank::Rank;
pub use real::{Base, Real, RealMemory};
pub use reclaim::{Reclaim, ReclaimStep, Reclaimed};
pub use reported::{Charged, Site, Step, Touch};
pub use slots::{HotArray, HotList, Local, PerCpu, Shortcut, Want};
pub use starts::Starts;
pub use sync::{CpuShared, Field, Lock, PerNode, Word};
pub use time::{Context, Time, Work, WorkKind};
pub use topology::{CpuId, NodeId, Pfn, Topology};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
