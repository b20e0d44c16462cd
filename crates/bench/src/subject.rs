//! Allocators as types: what each is called, and how it proves that it served a block.
//!
//! A heap of slablab is a [`Subject`] and one line in `contestants::each_subject`; so is a peer.

use std::alloc::GlobalAlloc;

/// What a contestant is in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Ours.
    Ours,
    /// Somebody else's: the best of these is what ours are compared with.
    Peer,
    /// The same as the first of ours, under another name: any difference between the two is the rig's.
    Twin,
    /// What the loop costs without an allocator, or with the simplest one.
    Floor,
}

/// An allocator.
pub trait Subject: 'static {
    /// Its name in tables and on the command line.
    const NAME: &'static str;
    /// What it is.
    const ROLE: Role;
    /// How a block shows who served it.
    const EVIDENCE: &'static str;

    /// The allocator as a program has it.
    fn heap() -> &'static impl GlobalAlloc;

    /// Whether this allocator served the live block at an address. Any address may be asked about.
    fn serves(at: *const u8) -> bool;
}

/// Something done with every allocator.
pub trait Visitor {
    /// Does it.
    fn visit<A: Subject>(&mut self);
}

/// Says so if another allocator than `A` served the block at an address.
pub fn prove<A: Subject>(at: *const u8) -> Result<(), String> {
    match A::serves(at) {
        true => Ok(()),
        false => Err(format!("{}: another allocator served the block at {at:p} ({})", A::NAME, A::EVIDENCE)),
    }
}
