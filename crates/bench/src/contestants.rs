//! The allocators of this build, and the test which of them served a block.

use crate::block::AnyBlock;
use crate::engines::{self, Ours, Slab, Slqb, SlubOld};
use crate::harness::Harness;
use crate::proof;
use crate::subject::{Role, Subject, Subjects, Visitor, prove};
use std::alloc::{GlobalAlloc, System};

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

    fn free_null() {
        proof::free_null();
    }

    fn serves(at: *const u8) -> bool {
        !known_to_others(Glibc::NAME, at)
    }
}

/// Every allocator of this build, in the order of tables.
pub(crate) struct Known;

impl Subjects for Known {
    fn each(visitor: &mut impl Visitor) {
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
}

/// Whether an allocator other than `name` that knows its own addresses served a block.
pub(crate) fn known_to_others(name: &str, at: *const u8) -> bool {
    #[cfg(feature = "peers")]
    use crate::peers::known;
    #[cfg(not(feature = "peers"))]
    fn known(_name: &str, _at: *const u8) -> bool {
        false
    }
    engines::known(at) || Harness::serves(at) || known(name, at)
}

/// Serves blocks with `A` and checks which allocator served them: `A` confirms each address, and the C
/// library's count for all threads of the process must agree.
pub(crate) fn identify<A: Subject>() -> Result<(), String> {
    const BLOCKS: usize = 160;
    const BYTES: usize = 100_000;
    proof::malloc_is_libc()?;
    // Some allocators take memory of the C library when they start.
    drop(AnyBlock::<A>::new(BYTES));
    let before = proof::libc_bytes();
    // Test small blocks too, because they take other paths.
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
