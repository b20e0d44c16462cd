//! The signal-handler reserve: memory for callers that must not take a lock. These are signal handlers that
//! interrupted an allocation or a free, and threads that gave up waiting for another thread's fork.
//!
//! The interrupted code may hold any lock, so the handler takes none. Memory comes from a region of its own,
//! in units that one atomic operation takes. A free of an object is deferred: the object is put on a list,
//! and the next uninterrupted slow path frees it. The caller looks up the address before: a wrong one is
//! reported, and never written to.

use crate::mappings;
use crate::shared::SignalFrees;
use crate::world::Native;
use slablab_native::{Object, system};
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// Bytes of a unit: as much as an object of any class.
const UNIT: usize = 64 << 10;
/// The number of units. If all are taken, the request gets a mapping.
const UNITS: usize = 512;

/// The address of the region; 0 until a handler first needs it.
static REGION: AtomicUsize = AtomicUsize::new(0);
/// A bit per unit that is taken.
static TAKEN: [AtomicU64; UNITS / 64] = [const { AtomicU64::new(0) }; UNITS / 64];
/// The list of objects whose free is deferred, linked by the first word of each.
static DEFERRED: SignalFrees = SignalFrees::new();

/// The region, mapped by the first handler that needs it. `None` where the kernel refuses the mapping: the
/// next request tries again.
fn region() -> Option<usize> {
    match REGION.load(Acquire) {
        0 => system::keeping_errno(|| mappings::map_once(&REGION, UNIT * UNITS, UNIT)),
        region => Some(region),
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

/// Defers the free of an object or large block of the process's own heap, live or marked as free.
pub(crate) fn defer_free(object: Object) {
    DEFERRED.push::<Native>(object, 0);
}

/// Whether the free of some object is deferred.
#[inline]
pub(crate) fn any_deferred() -> bool {
    !DEFERRED.is_empty()
}

/// Takes all objects whose free is deferred off the list.
pub(crate) fn take_deferred() -> impl Iterator<Item = Object> {
    DEFERRED.take::<Native>(0)
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
        let kept = kept.map(|at| Object::at(at).expect("not null"));
        kept.into_iter().for_each(defer_free);
        assert!(any_deferred());
        assert_eq!(take_deferred().collect::<Vec<_>>(), [kept[1], kept[0]]);
        assert!(!any_deferred());
    }
}
