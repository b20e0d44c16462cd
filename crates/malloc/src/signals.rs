//! The signal-handler reserve: memory for callers that must not take a lock. These are signal handlers that
//! interrupted an allocation or a free, and threads that gave up waiting for another thread's fork. `unsafe`:
//! links freed memory.
//!
//! The interrupted code may hold any lock, so the handler takes none. Memory comes from a region of its own,
//! in units that one atomic operation takes. A free of any other memory is deferred: the object is put on a
//! list, and the next uninterrupted slow path frees it.

use crate::fast::Given;
use slablab_native::system;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

/// Bytes of a unit: as much as an object of any class.
const UNIT: usize = 64 << 10;
/// The number of units. If all are taken, the request gets a mapping.
const UNITS: usize = 512;

/// The address of the region; 0 until a handler first needs it.
static REGION: AtomicUsize = AtomicUsize::new(0);
/// A bit per unit that is taken.
static TAKEN: [AtomicU64; UNITS / 64] = [const { AtomicU64::new(0) }; UNITS / 64];
/// The list of objects whose free is deferred: the first word of each is the address of the next.
static DEFERRED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// The region, mapped by the first handler that needs it. `None` where the kernel refuses the mapping: the
/// next request tries again.
fn region() -> Option<usize> {
    match REGION.load(Acquire) {
        0 => system::keeping_errno(map_region),
        region => Some(region),
    }
}

#[cold]
fn map_region() -> Option<usize> {
    let mapped = system::map_block(UNIT * UNITS, UNIT)?.as_ptr();
    let region = mapped.expose_provenance();
    match REGION.compare_exchange(0, region, AcqRel, Acquire) {
        Ok(_) => Some(region),
        Err(first) => {
            // SAFETY: mapped above, and only this thread has its address: another thread's mapping became
            // the region.
            unsafe { system::unmap_block(mapped, UNIT * UNITS) };
            Some(first)
        }
    }
}

/// The unit an address is in; `None` outside the region.
fn unit(at: usize) -> Option<usize> {
    let region = Some(REGION.load(Relaxed)).filter(|region| *region > 0)?;
    let offset = at.checked_sub(region)?;
    (offset < UNIT * UNITS).then_some(offset / UNIT)
}

/// Allocates `bytes` bytes of the reserve, aligned to `align` and at least to a page. `None` if no unit fits
/// or is free.
pub(crate) fn alloc(bytes: usize, align: usize) -> Option<*mut u8> {
    if bytes > UNIT || align > UNIT {
        return None;
    }
    let region = region()?;
    TAKEN.iter().enumerate().find_map(|(index, word)| {
        let taken = word.fetch_update(AcqRel, Relaxed, |taken| (taken != !0).then(|| taken | (taken + 1)));
        let unit = index * 64 + (!taken.ok()?).trailing_zeros() as usize;
        Some(ptr::with_exposed_provenance_mut(region + unit * UNIT))
    })
}

/// The usable bytes of the reserve's allocation that starts at `at`; `None` if there is none.
pub(crate) fn usable(at: usize) -> Option<usize> {
    let unit = unit(at)?;
    let starts = (at - REGION.load(Relaxed)).is_multiple_of(UNIT);
    let taken = TAKEN[unit / 64].load(Relaxed) & 1 << (unit % 64) != 0;
    (starts && taken).then_some(UNIT)
}

/// The result of [`free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// The allocation was freed.
    Yes,
    /// The address is outside the reserve.
    Elsewhere,
    /// The address is in the reserve, but no allocation starts there.
    Not,
}

/// Frees the allocation of the reserve that starts at `at`.
pub(crate) fn free(at: *mut u8) -> Freed {
    let Some(unit) = unit(at.addr()) else { return Freed::Elsewhere };
    let bit = 1 << (unit % 64);
    let starts = (at.addr() - REGION.load(Relaxed)).is_multiple_of(UNIT);
    match starts && TAKEN[unit / 64].fetch_and(!bit, AcqRel) & bit != 0 {
        true => Freed::Yes,
        false => Freed::Not,
    }
}

/// Defers the free of the allocation at `given`.
pub(crate) fn defer_free(given: Given) {
    let at = given.as_ptr();
    let mut next = DEFERRED.load(Relaxed);
    loop {
        // SAFETY: `Given::new`: no thread uses the allocation, which has at least a word. That `at` is an
        // allocation is not looked up here: the slow path that takes it off the list reports it if not.
        unsafe { at.cast::<*mut u8>().write(next) };
        match DEFERRED.compare_exchange(next, at, AcqRel, Relaxed) {
            Ok(_) => return,
            Err(now) => next = now,
        }
    }
}

/// Whether the free of some object is deferred.
#[inline]
pub(crate) fn any_deferred() -> bool {
    !DEFERRED.load(Relaxed).is_null()
}

/// Takes all objects whose free is deferred off the list.
pub(crate) fn take_deferred() -> impl Iterator<Item = *mut u8> {
    let mut next = DEFERRED.swap(ptr::null_mut(), AcqRel);
    std::iter::from_fn(move || {
        let at = next;
        if at.is_null() {
            return None;
        }
        // SAFETY: `defer_free` wrote the word, and this thread took the list.
        next = unsafe { at.cast::<*mut u8>().read() };
        Some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_taken_once_and_come_back() {
        assert_eq!(alloc(UNIT + 1, 1), None);
        let mut all: Vec<*mut u8> = std::iter::from_fn(|| alloc(100, 4096)).collect();
        assert_eq!(all.len(), UNITS);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), UNITS, "each once");
        assert_eq!(usable(all[3].addr()), Some(UNIT));
        assert_eq!(free(all[3].wrapping_add(16)), Freed::Not);
        assert_eq!(free(all[3]), Freed::Yes);
        assert_eq!(free(all[3]), Freed::Not);
        assert_eq!(usable(all[3].addr()), None, "it is free");
        assert_eq!(usable(all[4].addr() + 16), None, "inside");
        assert_eq!(free((&raw mut all).cast()), Freed::Elsewhere);
        assert_eq!(alloc(UNIT, UNIT), Some(all[3]));
        let kept = [all[5], all[9]];
        // SAFETY: `alloc` above gave the units, and only this test has their addresses.
        kept.iter().for_each(|at| defer_free(unsafe { Given::new(*at) }));
        assert!(any_deferred());
        assert_eq!(take_deferred().collect::<Vec<_>>(), [kept[1], kept[0]]);
        assert!(!any_deferred());
    }
}
