//! Objects that a signal handler freed while it had interrupted an allocation or a free. The next slow path
//! of their heap or cache frees them, in any thread.

use slablab_native::Object;
use slablab_platform::Memory;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Freed objects of one heap or cache, linked through themselves.
///
/// The world `M` of [`SignalFrees::push`] writes the links. So who may push has a world's memory, and looks
/// an address up first.
#[derive(Debug, Default)]
pub struct SignalFrees {
    /// Address of the first object; 0 for none.
    first: AtomicUsize,
}

impl SignalFrees {
    /// A list without objects.
    pub const fn new() -> SignalFrees {
        SignalFrees { first: AtomicUsize::new(0) }
    }

    /// Whether no object is on the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.load(Relaxed) == 0
    }

    /// Adds an object whose link is `link_offset` bytes from its start.
    pub fn push<M: Memory<Ptr = Object>>(&self, object: Object, link_offset: u32) {
        let mut first = self.first.load(Relaxed);
        loop {
            M::set_link(object, link_offset, at(first));
            match self.first.compare_exchange(first, object.addr(), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all objects off the list.
    pub fn take<M: Memory<Ptr = Object>>(&self, link_offset: u32) -> impl Iterator<Item = Object> {
        let first = if self.is_empty() { 0 } else { self.first.swap(0, Acquire) };
        // The link is read before the object is passed to the caller.
        let with_next = move |object| (object, M::link(object, link_offset));
        let next = move |(_, next): &(Object, Option<Object>)| next.map(with_next);
        std::iter::successors(at(first).map(with_next), next).map(|(object, _)| object)
    }
}

fn at(address: usize) -> Option<Object> {
    Object::at(std::ptr::with_exposed_provenance_mut(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Native;

    #[test]
    fn freed_objects_are_taken_once() {
        let mut memory = [0_u64; 8];
        let start = memory.as_mut_ptr();
        let objects = [0, 2, 4].map(|word| Object::at(start.wrapping_add(word).cast()).expect("an address"));
        let waiting = SignalFrees::default();
        assert_eq!(waiting.take::<Native>(8).count(), 0);
        objects.iter().for_each(|object| waiting.push::<Native>(*object, 8));
        assert_eq!(waiting.take::<Native>(8).collect::<Vec<_>>(), [objects[2], objects[1], objects[0]]);
        assert_eq!(waiting.take::<Native>(8).count(), 0);
    }
}
