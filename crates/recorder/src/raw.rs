//! The file that the preloaded library writes for each process. The library and its reader share this module.
//!
//! ```text
//! head      4 KiB: the words and texts below
//! chunks    64 KiB each: events of 24 bytes; a chunk belongs to one thread at a time
//! ```
//!
//! Beside it is a file with [`MAPS`] in its name, if there are call chains: copies of /proc/self/maps, one
//! each time that a frame was in code which the copy before did not have.
//!
//! A chunk begins with an event `THREAD`, and has another one where the next thread continues in it. An event
//! whose kind is 0 was not written. A killed process leaves its file as it was at that moment.

/// The first word of a file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"slabrec1");
/// The end of the name of the file with the process's mappings.
pub(crate) const MAPS: &str = "maps";
/// Bytes of the head.
pub(crate) const HEAD_BYTES: usize = 4096;
/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: usize = 1 << 16;
/// Bytes of an event: the time in ns of CLOCK_MONOTONIC, an address, and a word of kind, alignment, size.
pub(crate) const EVENT_BYTES: usize = 24;
/// Events of a chunk.
pub(crate) const CHUNK_EVENTS: usize = CHUNK_BYTES / EVENT_BYTES;

/// Words of the head, by their number.
pub(crate) mod word {
    /// [`super::MAGIC`].
    pub(crate) const MAGIC: usize = 0;
    /// The process.
    pub(crate) const PID: usize = 1;
    /// Its parent.
    pub(crate) const PARENT: usize = 2;
    /// The time at which the file was opened, in ns of CLOCK_MONOTONIC.
    pub(crate) const START: usize = 3;
    /// Bytes of a page.
    pub(crate) const PAGE: usize = 5;
    /// Calls that could not be written.
    pub(crate) const LOST: usize = 4;
    /// Bytes in each of which about one allocation has a call chain; 0: none has. [`NO_CHAINS`]: they were
    /// asked for, and the C library cannot walk stacks.
    pub(crate) const SAMPLE: usize = 7;
    /// See [`SAMPLE`].
    pub(crate) const NO_CHAINS: u64 = u64::MAX;
    /// [`START`] of the process's first file. A process that gave up the right to its file goes on in
    /// another.
    pub(crate) const FIRST: usize = 6;
}

/// Offset of the command line: words that each end with a zero byte.
pub(crate) const COMMAND_AT: usize = 512;
/// Offset of the path of the library whose `malloc` the process uses.
pub(crate) const ALLOCATOR_AT: usize = 2560;
/// The most bytes of each text.
pub(crate) const TEXT_BYTES: usize = 1536;

/// Kinds of events. A `*_DONE` follows its `*_BEGIN` on the same thread; events of signal handlers may be
/// between them.
pub(crate) mod kind {
    /// `malloc` answered an address.
    pub(crate) const MALLOC: u8 = 1;
    /// `calloc` answered an address.
    pub(crate) const CALLOC: u8 = 2;
    /// An aligned request was answered; the word has the alignment.
    pub(crate) const ALIGNED: u8 = 3;
    /// `operator new` answered an address.
    pub(crate) const NEW: u8 = 4;
    /// `free` is about to be called.
    pub(crate) const FREE: u8 = 5;
    /// `operator delete` is about to be called.
    pub(crate) const DELETE: u8 = 6;
    /// `realloc` of a block is about to be called: the address is the old one.
    pub(crate) const REALLOC_BEGIN: u8 = 7;
    /// `realloc` answered: the address is the new one, 0 if it failed.
    pub(crate) const REALLOC_DONE: u8 = 8;
    /// A thread goes on here: the address is its number in the kernel, the size its number in the process.
    pub(crate) const THREAD: u8 = 9;
    /// The thread ended.
    pub(crate) const END: u8 = 10;
    /// The call chain of the allocation whose address this is; the size is the number of its frames.
    pub(crate) const CHAIN: u8 = 11;
    /// The next frame of the thread's chain, from the innermost: an address of code behind the call.
    pub(crate) const FRAME: u8 = 12;
    /// The process has so many pages in memory that are no file's; that is the size.
    pub(crate) const RESIDENT: u8 = 13;
}
