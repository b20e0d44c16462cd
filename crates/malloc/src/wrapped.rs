//! Heaps with debugging and hardening around their engines (`debug=`, `quarantine=`, `harden=`, `init=`).
//!
//! A wrapped engine is another type, [`Debugged`], with a heap of another type, which is mapped if it is
//! chosen. It has no fast path, so that every request goes through the engine, and it checks its objects
//! itself: [`Heap`] writes no key into them.
//!
//! A violation is printed when it is found ([`crate::report`]). A damaged zone is repaired and the program
//! goes on. A free of an address that is not allocated ends the process, as without debugging.

use crate::fast::Given;
use crate::heap::Heap;
use crate::shared::Tenant;
use crate::world::{Native, Over};
use slablab_native::stack;
use slablab_slabs::preset::Choice;
use slablab_slabs::wrap::{Around, Debugged, Hardened, Wrap};
use slablab_slabs::{Front, Metadata};

/// A wrapped engine of a world.
pub type Wrapped<E, W = Native> = Debugged<W, E>;

/// The native world with encoded free-list links.
pub type Encoded = Hardened<Native>;

/// An engine's policies and the wrappers that a choice puts around it.
pub fn around<T>(engine: T, choice: &Choice) -> Around<T> {
    if choice.wrap.letters.users {
        stack::want();
    }
    // Double frees are always found.
    let wrap = Wrap { checked: true, ..choice.wrap };
    Around { engine, wrap, release: choice.preset.release() }
}

/// The requests of a process to its heap, for any heap but the default.
pub(crate) trait Serves: Sync {
    fn alloc_aligned(&self, bytes: usize, align: usize) -> *mut u8;
    fn alloc_zeroed(&self, bytes: usize, align: usize) -> *mut u8;
    fn free(&self, at: Given);
    /// Frees memory whose size, unless it is `None`, and alignment the caller says. A heap that looks after
    /// its objects reports wrong ones.
    fn free_sized(&self, at: Given, bytes: Option<usize>, align: usize);
    fn usable(&self, at: *const u8) -> usize;
    fn check_sized(&self, at: *mut u8, bytes: Option<usize>, align: usize);
    fn realloc(&self, at: Given, bytes: usize, align: usize) -> *mut u8;
    fn tenant(&'static self) -> &'static dyn Tenant;
    fn metadata(&'static self) -> &'static dyn Metadata<Native>;
}

impl<W: Over, E: Front<W, Common: Sync> + Sync> Serves for Heap<E, W> {
    fn alloc_aligned(&self, bytes: usize, align: usize) -> *mut u8 {
        self.alloc_aligned(bytes, align)
    }
    fn alloc_zeroed(&self, bytes: usize, align: usize) -> *mut u8 {
        self.alloc_zeroed(bytes, align)
    }
    fn free(&self, at: Given) {
        self.free(at);
    }
    fn free_sized(&self, at: Given, bytes: Option<usize>, align: usize) {
        if E::GUARDS {
            self.check_sized(at.as_ptr(), bytes, align);
        }
        self.free(at);
    }
    fn usable(&self, at: *const u8) -> usize {
        self.usable(at)
    }
    fn check_sized(&self, at: *mut u8, bytes: Option<usize>, align: usize) {
        self.check_sized(at, bytes, align);
    }
    fn realloc(&self, at: Given, bytes: usize, align: usize) -> *mut u8 {
        self.realloc(at, bytes, align)
    }
    fn tenant(&'static self) -> &'static dyn Tenant {
        self
    }
    fn metadata(&'static self) -> &'static dyn Metadata<Native> {
        self
    }
}
