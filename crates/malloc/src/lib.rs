//! malloc from the kernel's slab allocators, on mapped memory.
//!
//! # Theory
//!
//! A heap is built like a kernel's kmalloc: one cache per size class, all of one engine, on one page
//! allocator. The classes are malloc's own ([`classes`]). A request above the largest class gets page frames,
//! not rounded to a power of two. The first allocation of the process chooses the engine, by
//! `SLABLAB_ENGINE=slqb@2009-09`: the grammar is that of `slablab replay --engine`.
//!
//! ```text
//! alloc                            bytes to class by a table, then
//!   fast  Front::alloc_fast        the array of this thread's slot; no call
//!   slow  Front::alloc_slow_slot   the slot of this thread or CPU: sheaf, queue, array or CPU list
//!   cold  alloc_cold_engine        the engine's own alloc, with pages from the page allocator; upkeep
//! free
//!   fast  Native::pagemap_local    address to slab by arithmetic and one load, if the memory is of this
//!                                  thread's node
//!         mark_free                writes the key, by which a second free is found
//!         Front::free_fast         the array of this thread's slot; no call
//!   slow  Front::free_slow_slot    any address, any slot
//!   cold  free_cold_engine         the engine's own free, or a report of the misuse; upkeep
//! ```
//!
//! The words fast, slow and cold have the same meaning in `entry` (the process's heap) and in `fast` and
//! `slow` (any heap). A fast path calls a slow one as its last step only, so it needs no stack frame.
//!
//! Other words at the end of such a function's name. Each is there because one function for all would need a
//! test on a path that most calls take:
//!
//! | word | the function |
//! |---|---|
//! | `_fixed` | uses the slots of the process's own SLUB heap, whose places are constants |
//! | `_reckoned` | serves a size above the table of classes |
//! | `_sized` | frees memory whose size the caller says: the slot follows from it. Guarded heaps check it |
//! | `_sized_any` | as `_sized`, for a size that is no constant: then the address's entry is there sooner |
//! | `_marked` | goes on with an object that has its mark: to look again would report a double free |
//! | `_lockless` | serves a caller without a pass, for whom a lock could be a deadlock |
//! | `_slot` | is an engine's part that touches this CPU's slot alone ([`Front`](slablab_slabs::Front)) |
//! | `_engine` | calls the engine's own `alloc` or `free`, last of the cold rungs |
//!
//! **What is always detected** by `free`, `realloc` and `malloc_usable_size`: an address that is not in the
//! heap, is in an empty slab, or is not the start of an object; and an object that was freed before, unless
//! the freed object was written to or allocated again. The process ends with a report that names the address
//! and the class.
//!
//! **Signal handlers** that interrupt an allocation or a free get memory from a reserve (`signals`).
//!
//! **Upkeep** has no thread of its own. Threads on a slow path run timers, shrink one class at a time, and
//! give free memory back to the system. Upkeep covers every heap and object cache of the process, its
//! *tenants* ([`shared`]). Tenants share one page allocator; the cache number in a page frame's descriptor
//! leads to the tenant.
//!
//! **Heap profiles.** Allocations that a profiler wants to see are sampled on slow paths (`probes`).
//!
//! Deliberately absent: C's names, which the library `slablab-c` exports.

#[expect(unsafe_code, reason = "refers to room that one thread wrote")]
mod caches;
pub mod classes;
#[expect(unsafe_code, reason = "refers to statics that one thread wrote")]
mod engine;
mod engines;
mod entry;
mod env;
#[expect(unsafe_code, reason = "an allocator hands out memory")]
mod fast;
mod freed_blocks;
#[expect(unsafe_code, reason = "implements GlobalAlloc")]
mod global;
mod hardened;
mod heap;
mod kept_blocks;
#[expect(unsafe_code, reason = "gives mappings back")]
mod mappings;
mod policy;
#[expect(unsafe_code, reason = "assembler for the places of probes")]
mod probes;
pub mod report;
mod sampled;
pub mod shared;
mod signals;
#[expect(unsafe_code, reason = "an allocator hands out memory")]
mod slow;
#[doc(hidden)]
#[expect(unsafe_code, reason = "promises how the native world is used")]
pub mod world;
pub mod wrapped;
mod zeroing;

pub use engine::FromHeap;
pub use engines::{ChosenHeap, ExtraHeap, NoHeap};
pub use entry::api;
pub use fast::Given;
pub use global::Slablab;
pub use heap::Heap;
pub use policy::{sheaf_capacity, slub_here};
pub use world::Over;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
