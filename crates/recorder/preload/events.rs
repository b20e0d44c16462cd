//! Writing an event. `unsafe`: writes to the thread's window.
//!
//! ```text
//! record             the time; an event's place by one addition; three words
//!   record_slow        the thread's first event, and every 2,730th: another chunk; the pages in memory
//! thread_ends        the thread's last event; its chunk is for another one
//! ```

use super::process::{self, Thread, WINDOW_BYTES, current, is_off, lost};
use super::raw::{EVENT_BYTES, kind};
use super::system::{now, thread};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{Ordering::*, compiler_fence};

/// Records a call. `at` is the block's address, or 0; `align` 0 or a power of two.
#[inline]
pub(crate) fn record(kind: u8, at: *mut c_void, size: usize, align: usize) {
    // Whether anything is recorded is asked on the slow path: this one has no branch for it.
    let event = [now(), at as u64, pack(kind, align, size)];
    match own() {
        Some(thread) if write(thread, event) => {}
        _ => record_slow(event),
    }
}

/// The calling thread's window; `None` if it has none yet.
#[inline]
pub(crate) fn own() -> Option<&'static Thread> {
    // SAFETY: the thread's own window, in memory that stays mapped.
    unsafe { current().as_ref() }
}

/// Writes an event to the thread's window. `false`: it is full, or there is none.
#[inline]
fn write(thread: &Thread, event: [u64; 3]) -> bool {
    let turn = thread.turn.load(Relaxed);
    // A handler that interrupts this function gets the next place.
    let at = thread.next.fetch_add(EVENT_BYTES, Relaxed);
    if at >= thread.end.load(Relaxed) {
        return false;
    }
    let place = at as *mut u64;
    // SAFETY: `at` is below the window's end, and no other code of this thread has this place. The window
    // keeps its address, so it is mapped even if a handler has changed the chunk.
    unsafe {
        place.write_volatile(event[0]);
        place.add(1).write_volatile(event[1]);
        // The kind is last: a process that is killed before has an event without a kind.
        compiler_fence(Release);
        place.add(2).write_volatile(event[2]);
    }
    if thread.turn.load(Relaxed) != turn {
        // A handler changed the chunk in between, so the event is in the wrong one.
        lost();
    }
    true
}

#[cold]
fn record_slow(event: [u64; 3]) {
    if is_off() {
        return;
    }
    let [time_ns, at, word] = event;
    let nothing = at == 0 && word as u8 == kind::FREE;
    if nothing && current().is_null() {
        // The C library's last call of a thread, after `thread_ends`: not worth a window, which nobody would
        // take back.
        return;
    }
    if !process::pauses(time_ns) {
        let Some(state) = process::lock() else { return };
        if let Some(this) = state.give(current(), time_ns) {
            let opened = [time_ns, thread(), pack(kind::THREAD, 0, this.serial() as usize)];
            // A chunk has room for more than two events.
            write(this, opened);
            write(this, event);
            if let Some(pages) = state.resident(time_ns) {
                write(this, [time_ns, 0, pack(kind::RESIDENT, 0, pages)]);
            }
            return;
        }
    }
    if !is_off() && !matches!(word as u8, kind::REALLOC_BEGIN | kind::END..) {
        lost();
    }
}

/// The C library calls it when a thread ends, with the thread's window. Functions that run later may
/// allocate: they begin a new thread here, which this function ends.
pub(crate) unsafe extern "C" fn thread_ends(window: *mut c_void) {
    // SAFETY: the key's values are windows, and the C library passes no null.
    let this = unsafe { &*window.cast::<Thread>() };
    if this.serial() == 0 {
        return;
    }
    let last = [now(), 0, pack(kind::END, 0, 0)];
    if !write(this, last) {
        record_slow(last);
    }
    if let Some(state) = process::lock() {
        let base = this.end.load(Relaxed).saturating_sub(WINDOW_BYTES);
        // A full window's next event would be behind its end.
        this.next.fetch_min(base + WINDOW_BYTES, Relaxed);
        state.take_back(this);
    }
}

/// Records how much memory the process has, whenever the last look was.
pub(crate) fn record_resident() {
    if let Some(pages) = process::lock().and_then(|state| state.resident(u64::MAX)) {
        record(kind::RESIDENT, null_mut(), pages, 0);
    }
}

/// The third word of an event: the kind in 8 bits, the alignment as a power of two in 8, the size in 48.
const fn pack(kind: u8, align: usize, size: usize) -> u64 {
    let most = (1 << 48) - 1;
    let size = if size as u64 > most { most } else { size as u64 };
    let power = if align == 0 { 0 } else { align.trailing_zeros() };
    kind as u64 | (power as u64) << 8 | size << 16
}
