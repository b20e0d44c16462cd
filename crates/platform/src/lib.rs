//! The contract between allocators and worlds.
//!
//! An allocator (crates `pages` and `slabs`) is generic over one parameter, [`Platform`]: it knows no world. A world
//! (native memory, a modelled machine, a model checker, somebody's kernel) implements [`Platform`]: it knows no
//! allocator. They meet where something is assembled.
//!
//! | module | what it fixes |
//! |---|---|
//! | [`bytes`] | ranges of bytes in memory that is words |
//! | [`contract`] | the traits: memory, words, locks, per-CPU slots, topology, time |
//! | [`frames`] | the descriptor of a page frame and its state word |
//! | [`slots`] | the two per-CPU primitives: tagged list and bounded array |
//! | [`event`] | what is counted, once, for counters, tables and docs |
//! | [`gfp`] | allocation flags, independent of any kernel's bit numbers |
//! | [`rank`] | the lock order, as types |
//! | [`conformance`] | the contract as checks that every world must pass |
//!
//! Deliberately absent: this crate does not allocate, has no dependencies, no `unsafe`, no statics, and names no engine.
#![no_std]
#![forbid(unsafe_code)]

pub mod bytes;
pub mod conformance;
pub mod contract;
pub mod event;
pub mod frames;
pub mod gfp;
pub mod rank;
pub mod slots;

pub use contract::{
    Context, CpuId, CpuShared, Field, Local, Lock, NodeId, PerCpu, PerNode, Pfn, Platform, Reclaim,
    ReclaimStep, Word, Work, WorkKind,
};
pub use event::Event;
pub use frames::{Descriptor, Frame, FrameKind, FrameState};
pub use gfp::Gfp;
pub use rank::Rank;
pub use slots::{HotArray, HotList, Want};
