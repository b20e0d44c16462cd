//! Code that is no engine and says itself what it does: an allocator of a kernel tree, which was compiled to
//! report its accesses. A world that charges time charges what is reported; others take no notice.

use crate::{NodeId, Pfn};

/// Where reported code touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// A byte of a page frame.
    Frame(Pfn, u32),
    /// A frame's descriptor: the kernel's `struct page`.
    Descriptor(Pfn),
    /// Memory of the code's own that no frame of the machine has: an address of the code's choice, and the
    /// node.
    Own(u64, NodeId),
}

/// How reported code touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// One locked instruction that reads and writes.
    Exchange,
    /// One instruction writes all bytes.
    Fill,
}

/// What reported code does beside touching memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Instructions.
    Instruction,
    /// Interrupts off and on again.
    Interrupts,
    /// An exchange without a lock prefix, of the CPU's own data.
    LocalExchange,
}

/// What a world charged for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// Picoseconds.
    pub ps: u64,
    /// Cache lines that came from other CPUs' caches or from memory.
    pub lines: u64,
}
