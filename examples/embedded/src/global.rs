//! The heap as Rust's global allocator. `unsafe`: hands out memory.

use crate::heap::Heap;
use crate::memory::OneCpu;
use crate::world::Kernel;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::OnceCell;
use core::ptr;
use slablab_slabs::Engine;

/// A heap in a static: `#[global_allocator] static HEAP: Global<Slub<Kernel>> = Global::new();`.
pub struct Global<E: Engine<Kernel>>(OneCpu<OnceCell<Heap<E>>>);

impl<E: Engine<Kernel>> Global<E> {
    /// An allocator without a heap: allocations return null until the heap is set.
    pub const fn new() -> Self {
        Global(OneCpu(OnceCell::new()))
    }

    /// Makes the heap, once, before interrupts are on.
    pub fn boot(&self, policy: &E::Policy) -> &Heap<E> {
        self.0.0.get_or_init(|| Heap::new(policy))
    }
}

impl<E: Engine<Kernel>> Default for Global<E> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: what the heap gives is the caller's alone, as large and as aligned as the layout says.
unsafe impl<E: Engine<Kernel>> GlobalAlloc for Global<E> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let object = self.0.0.get().and_then(|heap| heap.alloc(layout));
        object.map_or(ptr::null_mut(), |object| object.as_ptr())
    }
    unsafe fn dealloc(&self, at: *mut u8, _layout: Layout) {
        let heap = self.0.0.get().expect("what is freed was allocated");
        heap.free(at).unwrap_or_else(|misuse| panic!("free of {at:p}: {misuse:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::machine;
    use slablab_slabs::engines::slub::{Slub, SlubPolicy};
    use std::assert;

    /// The newest SLUB, with slabs of one page where an object fits.
    const POLICY: SlubPolicy = SlubPolicy { max_order: 0, ..SlubPolicy::V7_1 };

    #[test]
    fn rust_allocates_from_it() {
        static HEAP: Global<Slub<Kernel>> = Global::new();
        let layout = Layout::new::<[u64; 9]>();
        // SAFETY: the layout has bytes; what is freed was allocated.
        machine::booted(|| unsafe {
            assert!(HEAP.alloc(layout).is_null(), "before boot there is no memory");
            HEAP.boot(&POLICY);
            let (first, second) = (HEAP.alloc_zeroed(layout), HEAP.alloc(layout));
            assert!(!first.is_null() && first.addr().abs_diff(second.addr()) >= layout.size());
            let grown = HEAP.realloc(first, layout, 5000);
            assert!((0..layout.size()).all(|byte| *grown.add(byte) == 0));
            HEAP.dealloc(second, layout);
            HEAP.dealloc(grown, Layout::from_size_align(5000, 8).expect("a layout"));
        });
    }
}
