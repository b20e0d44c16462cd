//! Allocators as types: what each is called, and how it proves that it served a block.
//!
//! A heap of slablab is a [`Subject`] and one line in [`each_subject`]; so is a peer.

use crate::engines::{self, Ours, Slab, Slqb, SlubOld};
use crate::harness::Harness;
use crate::proof;
use std::alloc::{GlobalAlloc, System};

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

/// The C library.
#[derive(Debug)]
pub(crate) struct Glibc;

impl Subject for Glibc {
    const NAME: &'static str = "glibc";
    const ROLE: Role = Role::Peer;
    const EVIDENCE: &'static str = "no other allocator knows the address; mallinfo2 counts it";

    #[inline(always)]
    fn heap() -> &'static impl GlobalAlloc {
        static HEAP: System = System;
        &HEAP
    }

    fn serves(at: *const u8) -> bool {
        !known_to_others(Glibc::NAME, at)
    }
}

/// Something done with every allocator.
pub trait Visitor {
    /// Does it.
    fn visit<A: Subject>(&mut self);
}

/// Visits every allocator there is in this build, in the order of tables.
pub fn each_subject(visitor: &mut impl Visitor) {
    visitor.visit::<Ours>();
    visitor.visit::<SlubOld>();
    visitor.visit::<Slqb>();
    visitor.visit::<Slab>();
    visitor.visit::<Glibc>();
    #[cfg(feature = "peers")]
    {
        use crate::peers::{Jemalloc, Mimalloc, Rpmalloc, Snmalloc};
        visitor.visit::<Mimalloc>();
        visitor.visit::<Jemalloc>();
        visitor.visit::<Snmalloc>();
        visitor.visit::<Rpmalloc>();
    }
    visitor.visit::<Harness>();
}

/// Whether an allocator that knows its own addresses, other than the one of this name, served a block.
pub(crate) fn known_to_others(name: &str, at: *const u8) -> bool {
    #[cfg(feature = "peers")]
    use crate::peers::known;
    #[cfg(not(feature = "peers"))]
    fn known(_name: &str, _at: *const u8) -> bool {
        false
    }
    engines::known(at) || Harness::serves(at) || known(name, at)
}

/// Says so if another allocator than `A` served the block at an address.
pub fn prove<A: Subject>(at: *const u8) -> Result<(), String> {
    match A::serves(at) {
        true => Ok(()),
        false => Err(format!("{}: another allocator served the block at {at:p} ({})", A::NAME, A::EVIDENCE)),
    }
}

/// Serves blocks with `A` and looks who served them: the allocator itself at each address, and what the C library counts
/// for all threads of the process.
pub fn identify<A: Subject>() -> Result<(), String> {
    use crate::block::AnyBlock;
    const BLOCKS: usize = 160;
    const BYTES: usize = 100_000;
    proof::malloc_is_libc()?;
    // Some take memory of the C library's for themselves when they start.
    drop(AnyBlock::<A>::new(BYTES));
    let before = proof::libc_bytes();
    // Small ones too: they are served in other ways.
    let blocks: Vec<AnyBlock<A>> =
        (0..BLOCKS).map(|_| BYTES).chain((3..15).map(|power| 1 << power)).map(AnyBlock::new).collect();
    let counted = proof::libc_bytes().saturating_sub(before);
    blocks.iter().try_for_each(|block| prove::<A>(block.at()))?;
    let by_libc = counted > BLOCKS * BYTES / 2;
    if by_libc != (A::NAME == Glibc::NAME) {
        let asked = BLOCKS * BYTES;
        return Err(format!("{}: mallinfo2 counts {counted} bytes more for {asked} bytes", A::NAME));
    }
    Ok(())
}
