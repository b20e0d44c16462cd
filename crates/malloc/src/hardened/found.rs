//! The reports. Each ends the process with one line: the call, the address, the class, and what was found.

use super::UNSAID;
use super::bytes;
use super::tail::{Says, room};
use crate::classes;
use slablab_native::Object;
use slablab_native::report::misuse;
use slablab_slabs::Misuse;

/// The first byte that is not 0 from `from` up to `end`, its value, and the last such byte.
fn others(object: Object, from: usize, end: usize) -> Option<(usize, u8, usize)> {
    let is_other = |at: &usize| (bytes::word(object, at & !7) >> (8 * (at & 7))) as u8 != 0;
    let first = (from..end).find(is_other)?;
    let last = (from..end).rev().find(is_other)?;
    Some((first, (bytes::word(object, first & !7) >> (8 * (first & 7))) as u8, last))
}

/// An object was written to between its free and this allocation.
#[cold]
#[inline(never)]
pub(super) fn written_when_free(object: Object, class: usize, tail: u32) -> ! {
    let (size, room) = (classes::size(class), room(class));
    match others(object, 0, room) {
        Some((first, value, last)) => misuse(format_args!(
            "write after free: bytes {first} to {last} of the free object {object:?} (malloc-{size}): byte {first} \
             is {value:#04x}, expected 0; found by an allocation"
        )),
        None => misuse(format_args!(
            "write after free, or below the object behind: the last 4 bytes of the free object {object:?} \
             (malloc-{size}) are {tail:#010x}, expected 0; found by an allocation"
        )),
    }
}

/// No live object starts at `object`, or the bytes behind it were written to.
#[cold]
#[inline(never)]
pub(super) fn not_live(call: &str, object: Object, class: usize, says: &Says, canary: u64) -> ! {
    let (size, room) = (classes::size(class), room(class));
    match says {
        Says::Free if call == "free" => double_free(object, class),
        Says::Free => misuse(format_args!("{call} of {object:?}: already freed (malloc-{size})")),
        Says::Live(requested) => {
            let (first, value, last) =
                others(object, *requested, room).unwrap_or((*requested, 0, *requested));
            misuse(format_args!(
                "{call} of {object:?} (malloc-{size}): written to up to {} bytes behind its {requested}: byte \
                 {first} is {value:#04x}, expected 0",
                last + 1 - requested
            ))
        }
        Says::Damaged => {
            let other = bytes::word(object, room) ^ canary;
            // The slack is in the two upper bytes, and may be as it was.
            let first = (other.trailing_zeros() / 8) as usize;
            let last = match (other << 16).leading_zeros() {
                64 => 7,
                zeros => 5 - (zeros / 8) as usize,
            };
            misuse(format_args!(
                "{call} of {object:?} (malloc-{size}): its canary is overwritten, bytes {} to {} of the object \
                 at least: an overflow, or a write below the object behind",
                room + first,
                room + last.max(first)
            ))
        }
    }
}

/// A second free of an object.
#[cold]
#[inline(never)]
pub(super) fn double_free(object: Object, class: usize) -> ! {
    misuse(format_args!("double free of {object:?} (malloc-{})", classes::size(class)))
}

/// A free said a size or an alignment that the object does not have.
#[cold]
#[inline(never)]
pub(super) fn said_wrong(object: Object, class: usize, requested: usize, said: usize, align: usize) -> ! {
    let size = classes::size(class);
    if said != UNSAID && said != requested {
        misuse(format_args!(
            "sized free of {object:?}: given {said} bytes, expected {requested} (malloc-{size})"
        ));
    }
    misuse(format_args!("sized free of {object:?}: given an alignment of {align} bytes, expected less"))
}

/// An object that left a ring or a sheaf is none: the ring or the sheaf was written to.
#[cold]
#[inline(never)]
pub(super) fn ring_wrong(object: Object, class: usize, what: &Misuse) -> ! {
    misuse(format_args!(
        "{object:?} left a ring of malloc-{}, and is no object of it: {what} (overwritten?)",
        classes::size(class)
    ))
}

/// As [`not_live`], for a large block with room for `room` bytes.
#[cold]
#[inline(never)]
pub(super) fn block_damaged(call: &str, object: Object, room: usize, requested: Option<usize>) -> ! {
    match requested.and_then(|requested| Some((requested, others(object, requested, room)?))) {
        Some((requested, (first, value, last))) => misuse(format_args!(
            "{call} of {object:?} (a large block): written to up to {} bytes behind its {requested}: byte \
             {first} is {value:#04x}, expected 0",
            last + 1 - requested
        )),
        None => misuse(format_args!(
            "{call} of {object:?} (a large block): its canary at byte {room} is overwritten: an overflow"
        )),
    }
}
