//! The cost of a workload without an allocator: a ring of blocks, used in turn. `unsafe`: returns memory.
//!
//! Blocks are never freed and never checked. When the ring has gone round, a block is returned again, even if
//! it is still in use. That does no damage, because workloads write to blocks and do not read them.

use crate::subject::{Role, Subject};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Bytes of a thread's ring: more than any workload has live, and small enough for a CPU's cache.
const RING: usize = 1 << 20;
/// The largest block. The C library serves larger ones.
const MOST: usize = RING / 4;
/// The number of rings of all threads.
const RINGS: usize = 256;

static STARTS: [AtomicUsize; RINGS] = [const { AtomicUsize::new(0) }; RINGS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Serves blocks from a ring.
#[derive(Debug)]
pub(crate) struct Harness;

struct Ring {
    start: Cell<*mut u8>,
    next: Cell<usize>,
}

thread_local! {
    static RING_HERE: Ring = const { Ring { start: Cell::new(ptr::null_mut()), next: Cell::new(0) } };
}

/// The ring of this thread. The rings of ended threads are used again.
#[cold]
fn ring() -> *mut u8 {
    let place = COUNT.fetch_add(1, Relaxed) % RINGS;
    let start = STARTS[place].load(Acquire);
    if start != 0 {
        return ptr::with_exposed_provenance_mut(start);
    }
    // SAFETY: the layout has a size. It is never freed.
    let new = unsafe { System.alloc_zeroed(Layout::from_size_align(RING, 4096).expect("a power of two")) };
    assert!(!new.is_null(), "no memory for a ring");
    match STARTS[place].compare_exchange(0, new.expose_provenance(), AcqRel, Acquire) {
        Ok(_) => new,
        Err(other) => ptr::with_exposed_provenance_mut(other),
    }
}

// SAFETY: blocks have the requested size and alignment. They overlap after the ring has gone round, as the
// module comment says.
unsafe impl GlobalAlloc for Harness {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        RING_HERE.with(|here| {
            if here.start.get().is_null() {
                here.start.set(ring());
            }
            let bytes = (layout.size() + 15) & !15;
            if bytes > MOST {
                // SAFETY: the caller keeps the contract of `GlobalAlloc`.
                return unsafe { System.alloc(layout) };
            }
            let at = if here.next.get() + bytes > RING { 0 } else { here.next.get() };
            here.next.set(at + bytes);
            // SAFETY: the ring has the bytes.
            unsafe { here.start.get().add(at) }
        })
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if (layout.size() + 15) & !15 > MOST {
            // SAFETY: `alloc` took the block from `System`.
            unsafe { System.dealloc(at, layout) }
        }
    }
}

impl Subject for Harness {
    const NAME: &'static str = "harness";
    const ROLE: Role = Role::Floor;
    const EVIDENCE: &'static str = "the address is in a ring";

    #[inline(always)]
    fn heap() -> &'static impl GlobalAlloc {
        &Harness
    }

    fn serves(at: *const u8) -> bool {
        let starts = STARTS.iter().map(|start| start.load(Acquire)).take_while(|start| *start != 0);
        starts.into_iter().any(|start| (start..start + RING).contains(&at.addr()))
    }
}
