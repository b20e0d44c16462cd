//! A kernel tree to an image of its allocator.
//!
//! ```text
//! tree ── config ── kbuild ─┬─ objects, plain ────────┐
//!                           └─ objects, instrumented ─┼─ link ── stubs ── plain.elf, instrumented.elf ── store
//! shim ── command (how kbuild compiled the allocator) ┘
//! ```
//!
//! Nothing is written into the tree: kbuild builds in a folder of the user's cache, which is kept, so that a
//! changed source costs the seconds of its compilation. A build of an unchanged tree costs the milliseconds
//! in which its files are looked at ([`Store`]).
//!
//! *Absent*: what an image does when it runs; any text of a kernel.

mod allocator;
mod answer;
pub(crate) mod blocks;
mod built;
mod child;
mod command;
mod config;
mod kbuild;
mod link;
mod make;
pub mod name;
mod objects;
mod recipe;
mod request;
mod shim;
mod sources;
mod step;
mod store;
mod stubs;
mod tools;
mod tree;

pub use allocator::Allocator;
pub use answer::{built_answer, list_answer, removed_answer, schemas, untouched_answer};
pub use built::{Built, Entry, Origin};
pub(crate) use child::{Ending, run};
pub use config::Change;
pub use make::{build, find, list, remove};
pub(crate) use recipe::recipe;
pub(crate) use request::Asked;
pub use request::Request;
pub(crate) use sources::hex;
pub(crate) use step::Listener;
pub use step::{Part, Step};
pub use store::Store;
pub(crate) use tools::Tools;
