//! Findings: facts about a measured machine that are worth a sentence, each with a number.
//!
//! ```text
//! find                Measured becomes Found
//!   climbing          caches that grew
//!   who               what holds the objects of large caches
//!   made_of           lines of code and modules behind caches
//!   dentries          names that do not exist
//!   caches            where the bytes of caches are
//!   machine           meminfo, nodes, free blocks
//!   trust             the numbers themselves
//!   pasted            a text: its messages, and what one moment tells
//!   dying             removed cgroups
//!   accounting        what the kernel keeps beside objects
//!   rounding          kmalloc's classes, by a recording
//!   each              slabs that a recording has one by one
//! Finding             one of them: its kind, its caches, its bytes, its words
//! ```
//!
//! A finder reads [`Measured`](crate::measure::Measured) and nothing else: it knows no knob and no verdict.

pub(crate) mod accounting;
mod caches;
mod climbing;
pub(crate) mod dentries;
mod dying;
mod each;
mod finding;
mod found;
mod machine;
pub(crate) mod made_of;
pub(crate) mod pasted;
mod rounding;
pub(crate) mod told;
mod trust;
pub(crate) mod who;

pub use finding::{Finding, Kind};
pub use found::{Found, find};
