//! malloc from the kernel's slab allocators, on mapped memory.
//!
//! # Theory
//!
//! A heap is what a kernel's kmalloc is: one cache per size class, all of one engine, on one page allocator.
//! The classes are malloc's own ([`classes`]); above the largest a request gets page frames, not rounded to a
//! power of two. The engine is chosen when the process first allocates: `SLABLAB_ENGINE=slqb@2009-09`, in the
//! same words as everywhere else in slablab.
//!
//! ```text
//! alloc                      class by size, then
//!   fast  Front::alloc_first  the array of this thread's slot, without a call
//!   slow  Front::alloc_hot    the slot of this thread or CPU: sheaf, queue, array or CPU list
//!   cold  alloc_in_engine      the engine's own way, pages from the page allocator; now and then, upkeep
//! free
//!   fast  Native::pagemap_local  address to slab, by arithmetic: one load, if it is memory of this thread's
//!                              node
//!         mark_free            a freed object carries a key: a second free is found
//!         Front::free_first   the array of this thread's slot, without a call
//!   slow  Front::free_hot     any address, any slot
//!   cold  free_object          the engine's own way; or a report of the misuse
//! ```
//!
//! The same three words name the rungs in `entry` (which heap there is), `fast` (a heap) and here.
//!
//! What is called at the end of a fast path is called last: fast paths have no frame.
//!
//! **What is always detected** by `free`, `realloc` and `malloc_usable_size`: an address that is not in the
//! heap, in an empty slab, or not the start of an object; and an object that was freed before, unless the
//! freed block was written to or handed out again. The process ends with a report that names the address and
//! the class.
//!
//! **Signal handlers** that came in the middle of an allocation or a free are served apart (`interrupted`).
//!
//! **Upkeep** has no thread: slow paths of ordinary activity run timers, shrink one class at a time, and give
//! free memory back. It reaches every heap and object cache of the process, its *tenants* ([`shared`]): they
//! share one page allocator, and the number that a page frame carries says whose it is.
//!
//! Deliberately absent: C's names, which the library `slablab-c` exports.

pub mod classes;
#[expect(unsafe_code, reason = "refers to statics that one thread wrote")]
mod engine;
#[expect(unsafe_code, reason = "allocators")]
mod engines;
#[expect(unsafe_code, reason = "an allocator hands out memory")]
mod entry;
mod env;
#[expect(unsafe_code, reason = "an allocator hands out memory")]
mod fast;
mod freed_blocks;
mod heap;
#[expect(unsafe_code, reason = "gives mappings back")]
mod mappings;
pub mod report;
pub mod shared;
#[expect(unsafe_code, reason = "links freed memory")]
mod signals;
#[expect(unsafe_code, reason = "an allocator hands out memory")]
mod slow;
#[doc(hidden)]
#[expect(unsafe_code, reason = "promises how the native world is used")]
pub mod world;
#[expect(unsafe_code, reason = "an allocator hands out memory")]
pub mod wrapped;

pub use engines::{Engines, ExtraHeap, sheaf_capacity, slub_here};
pub use entry::{Slablab, api};
pub use heap::{Heap, Over};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
