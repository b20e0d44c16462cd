//! Addresses of the world's own memory turned into references. `unsafe`: that is what this file is for.
//!
//! The invariant, stated once: an address that comes here is in the world's address space (`space`) or in one
//! of its statics, in a part whose entries are of the type asked for; the part is never unmapped; zeros are a
//! value of every such type; and it is written through atomics and cells alone. The functions are safe to
//! call inside this crate because every caller computes the address from a base that `space` gave and an
//! index below the part's length, which the callers say in one line.

use crate::object::Object;
use std::slice;

/// The entry at an address.
#[inline(always)]
pub(crate) fn at<'a, T>(address: usize) -> &'a T {
    debug_assert!(address.is_multiple_of(align_of::<T>()) && address != 0, "{address:#x}");
    // SAFETY: the invariant of this file.
    unsafe { &*std::ptr::with_exposed_provenance(address) }
}

/// `count` entries from an address on.
pub(crate) fn row<T>(address: usize, count: usize) -> &'static [T] {
    // SAFETY: the invariant of this file.
    unsafe { slice::from_raw_parts(std::ptr::with_exposed_provenance(address), count) }
}

/// Fills bytes of a slab that the caller owns.
#[inline]
pub(crate) fn fill(object: Object, bytes: u32, value: u8) {
    // SAFETY: an object's address is in a committed frame; its owner passes its size (`Memory`).
    unsafe { object.as_ptr().write_bytes(value, bytes as usize) };
}

/// Bytes of a slab that the caller owns, and that nothing writes while they are looked at.
pub(crate) fn bytes<'a>(object: Object, bytes: u32) -> &'a [u8] {
    // SAFETY: as in `fill`.
    unsafe { slice::from_raw_parts(object.as_ptr(), bytes as usize) }
}

/// The object at an address that is not 0.
#[inline(always)]
pub(crate) fn object(raw: u64) -> Object {
    // SAFETY: the callers' addresses are in the heap, which does not start at 0.
    unsafe { Object::from_raw(raw).unwrap_unchecked() }
}
