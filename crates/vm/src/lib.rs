//! Page replacement: frames, lists, page tables, the page cache, swap, and the policies of Linux's releases.
//!
//! ```text
//! a task touches, reads, writes ── mm (fault, cache) ── State ── Replacement: entered, accessed, left
//!                                        │                            │
//!                                        └────────── Host ────────────┘ direct, kswapd: reclaim
//!                     CPU time, page allocator, devices, slab caches, other tasks
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`frames`], [`lists`] | page frames as arrays; lists through them |
//! | [`mappings`], [`spaces`] | page cache of files and tmpfs; address spaces and their page tables |
//! | [`swap`], [`trees`] | slots, their users, the swap cache; nodes of the page cache's trees |
//! | [`state`] | all of these: the data of one machine |
//! | [`ahead`] | cursors of read-ahead |
//! | [`mm`] | what tasks do: touch, fault, read, write, map, fork, exit, write back |
//! | `rmap` | from a frame to the page table entries that map it |
//! | [`pageout`], [`shrinker`] | the eviction of a batch of pages; how much slab caches shrink |
//! | [`workingset`] | the refault distance |
//! | [`classic`], [`generations`], [`split`], [`v24`] | the families of policies: of 6.x, 2.6.29, 2.4 |
//! | [`cache_ext`] | policies of papers in a kernel of 6.x or 7.x |
//! | `reclaimers`, [`near`] | an allocation and kswapd of 6.x; reclaim before another node is asked |
//! | [`preset`], [`knob`] | policies by name: the grammar `vm@6.1,knob=value` |
//! | [`registered`] | policies that a program registers, in that grammar |
//! | [`Vm`], [`Host`], [`Replacement`] | memory with its policy; the interfaces to machine and policy |
//! | [`host`], [`replacement`] | their words |
//! | [`instant`] | a host without time, for tests: its devices answer when somebody waits |
//! | [`compact`], [`scanners`] | compaction: pages move until a block is free; what a zone remembers of it |
//! | [`flush`] | dirty pages of files in the order in which they became dirty (2.4) |
//! | [`Census`] | pages in frames by kind |
//! | [`counters`] | what is counted, by the names of /proc/vmstat |
//!
//! **Pure state, no clock, no tasks.** A function that changes state takes `&mut State` and returns at once.
//! A function that may sleep takes [`Vm`] and a [`Host`], and holds no borrow of the state over a call of the
//! host: during the call other tasks may run and change everything. So such a function looks again after it.
//!
//! **Who frees a frame.** Whoever takes the last page away from it, by [`Vm::release`]. A reclaimer isolates
//! a frame by [`State::isolate`], and others leave it to the reclaimer then ([`Flags::GONE`],
//! [`State::let_go`]).
//!
//! **A frame** that this crate knows is in exactly one of these places: in a list of the policy, isolated
//! from it by one reclaimer, or in no list (2.4's anonymous pages, before they get a slot). Frames of slab
//! caches, page tables and stacks are the host's; they have no flags here.
//!
//! **A page** is where its index says: absent, in a frame, in a swap slot, or gone with a shadow left behind
//! ([`mappings::Entry`]). [`State::check`] walks all of it.

#![forbid(unsafe_code)]

pub mod ahead;
mod census;
pub mod compact;
pub mod counters;
pub mod flush;
pub mod frames;
pub mod host;
mod ids;
pub mod instant;
pub mod knob;
pub mod lists;
pub mod mappings;
mod migrate;
pub mod mm;
pub mod near;
pub mod pageout;
pub mod preset;
mod reclaim;
mod reclaimers;
pub mod registered;
pub mod replacement;
mod rmap;
pub mod scanners;
mod settings;
pub mod shrinker;
pub mod spaces;
pub mod state;
pub mod swap;
pub mod trees;
mod vm;
pub mod workingset;

pub use census::{Census, Holdings};
pub use counters::{Counter, Counters};
pub use frames::{Flags, Frames};
pub use host::{Ask, Block, Io, Mark, Place, Purpose, Shrinker, Shrunk, Throttle, Waited, Work};
pub use ids::{Frame, MappingId, RegionId, Slot, SpaceId};
pub use knob::{BadPreset, Setting};
pub use lists::{ListId, Lists};
pub use mappings::{Entry, Mappings};
pub use preset::Preset;
pub use reclaim::{cache_ext, classic, generations, split, v24};
pub use replacement::{Enter, Freed, Sizes, Verdict};
pub use rmap::Looked;
pub use settings::{DirtyLimit, Settings};
pub use spaces::{Pte, Spaces};
pub use state::{State, Zone};
pub use swap::Swap;
pub use vm::{Host, Replacement, Vm};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
