//! Allocators as types: their names, and how they prove that they served a block.
//!
//! A heap of slablab is a [`Subject`] and one line in `contestants::Known`; so is a peer. A program registers
//! engines of its own ([`crate::own`]).

use std::alloc::GlobalAlloc;

/// The role of a contestant in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// An allocator of slablab.
    Ours,
    /// An allocator of another project. Ours are compared with the best of these.
    Peer,
    /// The first of our allocators under another name. Any difference between the two comes from the rig.
    Twin,
    /// The loop without an allocator, or with the simplest one.
    Floor,
}

impl Role {
    /// The role's name.
    pub fn name(self) -> &'static str {
        match self {
            Role::Ours => "ours",
            Role::Peer => "peer",
            Role::Twin => "twin",
            Role::Floor => "floor",
        }
    }
}

/// An allocator.
pub trait Subject: 'static {
    /// Its name in tables and on the command line.
    const NAME: &'static str;
    /// The allocator's role.
    const ROLE: Role;
    /// How a block proves which allocator served it.
    const EVIDENCE: &'static str;

    /// The allocator, as a program has it for its global one.
    fn heap() -> &'static impl GlobalAlloc;

    /// The allocator's `free(NULL)`. It does nothing if there is none.
    #[inline(always)]
    fn free_null() {}

    /// Whether this allocator served the live block at an address. Any address may be passed.
    fn serves(at: *const u8) -> bool;
}

/// An operation on every allocator.
pub trait Visitor {
    /// Runs the operation on `A`.
    fn visit<A: Subject>(&mut self);
}

/// A list of allocators, as a type.
pub(crate) trait Subjects {
    /// Visits each.
    fn each(visitor: &mut impl Visitor);
}

/// Returns an error if another allocator than `A` served the block at an address.
pub fn prove<A: Subject>(at: *const u8) -> Result<(), String> {
    match A::serves(at) {
        true => Ok(()),
        false => Err(format!("{}: another allocator served the block at {at:p} ({})", A::NAME, A::EVIDENCE)),
    }
}
