//! Sizes of live allocations: `malloc_usable_size`, `realloc`.

use super::blocks::Block;
use super::bytes;
use super::tail::room;
use super::{Hardened, UNSAID};
use crate::classes;
use crate::fast::Given;
use crate::heap::not_here;
use crate::mappings;
use crate::signals;
use crate::slow::KEPT_FRACTION;
use crate::world::Native;
use slablab_native::{Object, system};

/// What a live allocation is in.
enum In {
    Class(usize, Object),
    Block(Block),
    /// A mapping of its own.
    Mapping,
    /// The reserve for signal handlers.
    Reserve,
}

impl Hardened {
    /// The requested bytes of a live allocation; 0 for null.
    pub(crate) fn usable(&self, at: *const u8) -> usize {
        if at.is_null() { 0 } else { self.live("malloc_usable_size", at.cast_mut()).0 }
    }

    /// The bytes of the live allocation that starts at `at`, and what it is in. Any address may come: what is
    /// no live allocation ends the process with a report that names `call`.
    fn live(&self, call: &str, at: *mut u8) -> (usize, In) {
        let Some((object, location)) = Object::at(at).zip(Native::location(at)) else {
            if let Some(bytes) = signals::usable(at.addr()) {
                return (bytes, In::Reserve);
            }
            return (mappings::usable(at.addr()).unwrap_or_else(|| not_here(call, at)), In::Mapping);
        };
        if let Some(block) = self.block_at(location) {
            return (self.live_block(call, &block, object, location.offset), In::Block(block));
        }
        let class = self.start_of(call, object, location);
        (self.live_bytes(call, class, object), In::Class(class, object))
    }

    /// Gives an allocation another size, where it is or elsewhere; null without memory, and then the
    /// allocation stays as it is.
    pub(crate) fn realloc(&self, given: Given, bytes: usize, align: usize) -> *mut u8 {
        let at = given.as_ptr();
        let (before, kind) = self.live("realloc", at);
        let stays = match &kind {
            In::Class(class, object) => self.resize_object(*class, *object, before, bytes),
            In::Block(block) if self.class_for(bytes, align).is_none() => match Native::pass() {
                Some(_pass) => system::keeping_errno(|| self.resize_block(block, before, bytes)),
                None => false,
            },
            In::Mapping if bytes > Native::largest_block() / KEPT_FRACTION => {
                let resize = |_pass| system::keeping_errno(|| mappings::resize(at, bytes, align));
                if let Some(moved) = Native::pass().and_then(resize) {
                    return moved;
                }
                false
            }
            In::Mapping | In::Block(_) => false,
            In::Reserve => bytes <= before,
        };
        if stays {
            return at;
        }
        let moved = self.alloc_aligned(bytes, align);
        if !moved.is_null() {
            bytes::copy(at, moved, before.min(bytes));
            self.free_sized(given, UNSAID, 1);
        }
        moved
    }

    /// Gives a live object another size if its class fits well enough. Its slack stays zeros.
    fn resize_object(&self, class: usize, object: Object, before: usize, bytes: usize) -> bool {
        let (room, size) = (room(class), classes::size(class) as usize);
        if bytes > room || (room - bytes > size / 2 && size > 64) {
            return false;
        }
        if bytes < before {
            bytes::clear_new(object.as_ptr().wrapping_add(bytes), before - bytes);
        }
        bytes::set_word(object, room, self.guards.keys.tail(object, room, bytes));
        true
    }
}
