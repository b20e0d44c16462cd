//! A kernel's heap over a static array. The example to copy.
//!
//! Without `std`, without `alloc`, on one CPU whose interrupts allocate. An interrupt may come anywhere, also
//! in the middle of an allocation; it gets memory, or is told that there is none, and never waits.
//!
//! | file | contents | when you copy it |
//! |---|---|---|
//! | `cpu` | interrupts on and off, the clock | write yours |
//! | `memory` | the frames, their descriptors, words of objects | put your memory map in place of the array |
//! | `slots` | the CPU's own objects of each cache | keep; make it an array where there are more CPUs |
//! | `world` | the contract, [`slablab_platform::Platform`] | keep |
//! | `heap` | size classes, large blocks, out of memory, misuse | keep |
//! | `global` | Rust's `#[global_allocator]` | keep |
//!
//! # How an interrupt in the middle of an allocation goes well
//!
//! - A lock turns interrupts off, so interrupted code never holds one.
//! - So do the four hot operations of a slot: they are a few instructions.
//! - A slot that is *held* (between two sheaves, say) may be interrupted. It says so, and the interrupt's
//!   allocation goes past it: one object, from the slab, under the node's lock. Every engine has that way.
//!
//! The tests interrupt a program at every single question the allocator asks the platform, and look for
//! objects that overlap and pages that did not come back.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod cpu;
#[expect(unsafe_code, reason = "is a global allocator")]
mod global;
mod heap;
#[expect(unsafe_code, reason = "owns memory")]
mod memory;
mod slots;
mod world;

#[cfg(test)]
mod tests;

pub use global::Global;
pub use heap::Heap;
pub use memory::MEMORY_BYTES;
pub use world::Kernel;
