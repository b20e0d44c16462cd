//! The native world as this process uses it. `unsafe`: makes the promise that its functions ask for.
//!
//! Hidden from the documentation, and not public. The object caches and the benchmarks name it because they
//! share the process's page allocator. A crate that names it is trusted as this crate is.

use slablab_native::{Object, Trusted};
use slablab_platform::Platform;

/// The program that the native world trusts: this crate's heaps and the object caches of the process.
#[derive(Debug)]
pub enum Process {}

// SAFETY: in this process only engines call the contract's functions, over the one page allocator
// (`shared::pages`). The addresses that callers hand in are looked up and checked (`fast::mark_free`,
// `Heap::live`) before an engine gets them.
unsafe impl Trusted for Process {}

/// The native world that all engines of the process use.
pub type Native = slablab_native::Native<Process>;

/// This thread's slots of the process's heap.
pub(crate) type FixedSlots = slablab_native::FixedSlots<Process>;

/// A world that the engines of a heap can use: the native world, or a wrapper around it.
pub trait Over: Platform<Ptr = Object, Ground = Native> {}

impl<W: Platform<Ptr = Object, Ground = Native>> Over for W {}
