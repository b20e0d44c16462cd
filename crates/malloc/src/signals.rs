//! Requests that may lock nothing: of signal handlers that came in the middle of an allocation or a free, and
//! of threads for which a fork takes too long. `unsafe`: links freed memory.
//!
//! What a handler interrupted may hold any lock, so none is taken: memory comes from a region of its own, in
//! units that one exchange takes; what is freed waits on a list for the next slow path that nothing
//! interrupted.

use slablab_native::system;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

/// Bytes of a unit: every class fits.
const UNIT: usize = 64 << 10;
/// Units there are: a handler that wants more at a time gets no memory.
const UNITS: usize = 512;

/// Where the region is; 0 until a handler first needs it.
static REGION: AtomicUsize = AtomicUsize::new(0);
/// A bit per unit that is taken.
static TAKEN: [AtomicU64; UNITS / 64] = [const { AtomicU64::new(0) }; UNITS / 64];
/// What waits to be freed: each holds the address of the one after it.
static WAITING: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

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
            // SAFETY: mapped above, and known to this thread alone: another thread's mapping became the
            // region.
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

/// `bytes` bytes, aligned to `align` and to a page at least.
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

/// Bytes of the allocation that starts at an address; `None` if none of the region does.
pub(crate) fn usable(at: usize) -> Option<usize> {
    let unit = unit(at)?;
    let starts = (at - REGION.load(Relaxed)).is_multiple_of(UNIT);
    let taken = TAKEN[unit / 64].load(Relaxed) & 1 << (unit % 64) != 0;
    (starts && taken).then_some(UNIT)
}

/// What comes of freeing an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// It is free.
    Yes,
    /// It is not of the region.
    Elsewhere,
    /// It is of the region, and was not allocated.
    Not,
}

/// Gives an allocation of the region back.
pub(crate) fn free(at: *mut u8) -> Freed {
    let Some(unit) = unit(at.addr()) else { return Freed::Elsewhere };
    let bit = 1 << (unit % 64);
    let starts = (at.addr() - REGION.load(Relaxed)).is_multiple_of(UNIT);
    match starts && TAKEN[unit / 64].fetch_and(!bit, AcqRel) & bit != 0 {
        true => Freed::Yes,
        false => Freed::Not,
    }
}

/// Keeps what a handler freed for later.
///
/// # Safety
/// It was allocated, and is nobody's any more.
pub(crate) unsafe fn keep(at: *mut u8) {
    let mut next = WAITING.load(Relaxed);
    loop {
        // SAFETY: an allocation has a word, and nobody else uses it.
        unsafe { at.cast::<*mut u8>().write(next) };
        match WAITING.compare_exchange(next, at, AcqRel, Relaxed) {
            Ok(_) => return,
            Err(now) => next = now,
        }
    }
}

/// Whether anything waits.
#[inline]
pub(crate) fn any_waits() -> bool {
    !WAITING.load(Relaxed).is_null()
}

/// Everything that waits, taken off the list.
pub(crate) fn waiting() -> impl Iterator<Item = *mut u8> {
    let mut next = WAITING.swap(ptr::null_mut(), AcqRel);
    std::iter::from_fn(move || {
        let at = next;
        if at.is_null() {
            return None;
        }
        // SAFETY: `keep` wrote it, and the list is ours.
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
        // SAFETY: ours.
        kept.iter().for_each(|at| unsafe { keep(*at) });
        assert!(any_waits());
        assert_eq!(waiting().collect::<Vec<_>>(), [kept[1], kept[0]]);
        assert!(!any_waits());
    }
}
