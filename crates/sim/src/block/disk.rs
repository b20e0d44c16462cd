//! Disks with queues: mechanics, elevators, plugging, free requests.
//!
//! ```text
//! Bio ── Queue: plug ── elevator ── Request ── Drive: seek, rotation, data ── Ended
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`bio`] | bios, requests, merging |
//! | [`queue`], [`pool`], [`presets`] | the request queue; free requests; queues by release |
//! | [`elevator`] | Linus' elevator, CFQ, deadline, none |
//! | [`drive`], `rotating`, `write_cache`, `card` | the disk itself |
//! | [`queued`] | a disk behind its queue |
//! | [`stat`] | counters |
//! | [`device`], `mempool` | a disk of the simulated kernel: objects, tasks that wait, interrupts |
//!
//! Absent on purpose: a queue knows no task but by number and no clock; its caller brings the time.
//! Rules with their sources: docs/theory/block.md.

pub mod bio;
mod card;
pub mod command;
pub mod device;
pub mod drive;
pub mod elevator;
mod mempool;
pub mod pool;
pub mod presets;
pub mod queue;
pub mod queued;
mod rotating;
pub mod stat;
mod write_cache;
