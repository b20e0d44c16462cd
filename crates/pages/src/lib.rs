//! The page allocator: zoned buddy, watermarks, per-CPU page lists, zonelists.
//!
//! # Theory
//!
//! The ideas are Knowlton's buddy system (1965) and Linux's arrangement of it: every node's memory is cut
//! into *zones* by address, every zone keeps *free lists* per order and *migrate type*, and every CPU keeps a
//! few blocks of its own in front of them. What this crate implements is written down in
//! docs/theory/pagealloc.md; which release did what is one table ([`policy`]).
//!
//! **A block** of order n is 2^n page frames at a multiple of 2^n. At any time every frame is in exactly one
//! block, and the block is in one of these states, which its head frame says
//! ([`slablab_platform::FrameState`]):
//!
//! ```text
//!             take                    alloc
//! untouched ───────▶ (under the lock) ───────▶ allocated | slab | large
//!               ▲  │                              │  ▲
//!          give │  │ refill                  free │  │ alloc
//!               │  ▼                              ▼  │
//!             buddy ◀──────── drain ───────────── pcp
//! ```
//!
//! **The equation**: frames of a zone = free in the buddy lists + beyond the frontier + on per-CPU lists +
//! allocated. [`Pages::check`] walks all of it.
//!
//! **Unusual**: untouched memory is a range, not a million descriptors (see `zone`), so a machine of 1 TiB
//! costs nothing until it is used. The lists are intrusive in the world's descriptors, and the counters that
//! CPUs read without a lock are published when the lock is released.
//!
//! # Call tree
//!
//! ```text
//! alloc
//!   permit                       the world's fault injection
//!   try_zonelist(low)           nearest zones first, each tested against its watermark
//!     watermark_ok
//!     alloc_from_zone              per-CPU list, refilled from the buddy; or the buddy
//!   alloc_slow                   wake kswapd, try at min, then what the caller's flags allow
//! free
//!   free_block                   per-CPU list, overflowing to the buddy; or the buddy
//! ```
//!
//! # Files
//!
//! | file | contents |
//! |---|---|
//! | `allocator` | [`Pages`]: the fast path of the call tree |
//! | `request` | a request and what was derived from its arguments |
//! | `policy` | rules by release |
//! | `machine` | the rules as numbers of one machine: watermarks, batches, spans |
//! | `zonelist` | the order of nodes for a request |
//! | `watermark` | whether a request may take from a zone |
//! | `pcp`, `cpu_lists`, `tuned` | per-CPU page lists: which requests use them; the lists; their length since 6.7 |
//! | `zone`, `buddy`, `steal`, `list` | free lists under `zone->lock` |
//! | `compact` | free frames of a range, for compaction |
//! | `slow` | what happens below the low watermark |
//! | `era24`, `policy24` | the orders of 2.4, and its rules |
//! | `report_free` | free memory that goes back to the world; exact allocations |
//! | `tuning` | watermarks that are set while the machine runs |
//! | `query` | what a reclaimer asks of one zone |
//! | `report` | buddyinfo, zoneinfo, and the check that every frame is accounted for |
//!
//! Deliberately absent: this crate knows no world, reads no clock, allocates nothing, and has no statics.
//! Reclaim, compaction and the OOM killer are the world's; this crate decides which requests ask for them,
//! and when.
#![no_std]
#![forbid(unsafe_code)]

mod allocator;
mod buddy;
mod compact;
mod cpu_lists;
mod era24;
mod exact;
mod list;
mod machine;
pub mod migrate;
mod pcp;
pub mod policy;
mod policy24;
mod query;
mod report;
mod report_free;
mod request;
mod resident;
mod slow;
mod steal;
mod tuned;
mod tuning;
mod watermark;
mod zone;
mod zonelist;

pub use allocator::Pages;
pub use machine::{Marks, PcpSizes};
pub use migrate::MigrateType;
pub use policy::PagesPolicy;
pub use query::Level;
pub use report::{Census, Imbalance, ZoneInfo};
pub use request::Attempt;
pub use tuning::Tuning;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
