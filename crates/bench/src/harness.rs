//! What a workload costs without an allocator: a ring of blocks handed out in turn. `unsafe`: hands out memory.
//!
//! Never freed, never checked: a block is handed out again when the ring has gone round, which may be while it is still
//! in use. Workloads write to blocks and read nothing back, so that does no harm.

use crate::subject::{Role, Subject};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Bytes of a thread's ring: more than any workload has live, and little enough for a CPU's cache.
const RING: usize = 1 << 20;
/// Bytes that a block may have at most; larger ones are the C library's.
const MOST: usize = RING / 4;
/// Rings of all threads together.
const RINGS: usize = 256;

static STARTS: [AtomicUsize; RINGS] = [const { AtomicUsize::new(0) }; RINGS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Hands out blocks of a ring.
#[derive(Debug)]
pub(crate) struct Harness;

struct Ring {
    start: Cell<*mut u8>,
    next: Cell<usize>,
}

thread_local! {
    static RING_HERE: Ring = const { Ring { start: Cell::new(ptr::null_mut()), next: Cell::new(0) } };
}

/// The ring of this thread. The rings of threads that are gone serve new ones.
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

// SAFETY: blocks have the size and alignment asked for. They overlap when the ring has gone round, which is what the
// module says.
unsafe impl GlobalAlloc for Harness {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        RING_HERE.with(|here| {
            if here.start.get().is_null() {
                here.start.set(ring());
            }
            let bytes = (layout.size() + 15) & !15;
            if bytes > MOST {
                // SAFETY: the caller's promise.
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
            // SAFETY: `alloc` took it from there.
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
