//! What the caches of the kernel are for: `slablab what`, and the reasons in `slablab doctor`.
//!
//! The knowledge is data, not code: `data/caches.toml`, one table per cache, which users may extend
//! (docs/caches.md), and files of the user's own in the same form ([`Known::read`]). The sizes in it are
//! those of real kernels, each with the kernel that had it. Nothing here looks at the machine it runs on.
//!
//! An entry is found by its exact name, by another name the same cache had in another kernel, and last by a
//! pattern (`ext4_*`), of which the one with the longest fixed part wins. A merged cache's made-up name
//! (`:a-0000104`) has no entry: [`Merged`] reads it.

mod corruption;
mod data;
mod gfp;
mod holders;
mod known;
mod merged;
mod message;
mod users;

pub(crate) use corruption::CorruptionDocument;
pub use corruption::{Damaged, corruptions_in};
pub use slablab_readers::pasted::Corruption;

pub use data::{Entry, Method, Size};
pub use holders::{Counter, HolderKind, Holders};
pub use known::Known;
pub use merged::{Flag, Merged};
pub(crate) use message::MessageDocument;
pub use message::{Failure, Part};
pub(crate) use users::{Base, Users, blocks};
