//! Objects that a signal handler freed while it had interrupted an allocation or a free. The next slow path
//! of the cache frees them, in whatever thread.

use slablab_malloc::world::Native;
use slablab_native::Object;
use slablab_platform::Memory;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Free objects of one cache, linked through themselves.
#[derive(Debug, Default)]
pub(crate) struct SignalFrees {
    /// Address of the first object; 0 for none.
    first: AtomicUsize,
}

impl SignalFrees {
    /// Adds an object whose link is `link_offset` bytes from its start.
    pub(crate) fn push(&self, object: Object, link_offset: u32) {
        let mut first = self.first.load(Relaxed);
        loop {
            Native::set_link(object, link_offset, at(first));
            match self.first.compare_exchange(first, object.addr(), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all objects off the list.
    pub(crate) fn take(&self, link_offset: u32) -> impl Iterator<Item = Object> {
        let first = if self.first.load(Relaxed) == 0 { 0 } else { self.first.swap(0, Acquire) };
        // The link is read before the object is passed to the caller.
        let with_next = move |object| (object, Native::link(object, link_offset));
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

    #[test]
    fn freed_objects_are_taken_once() {
        let mut memory = [0_u64; 8];
        let start = memory.as_mut_ptr();
        let objects = [0, 2, 4].map(|word| Object::at(start.wrapping_add(word).cast()).expect("an address"));
        let waiting = SignalFrees::default();
        assert_eq!(waiting.take(8).count(), 0);
        objects.iter().for_each(|object| waiting.push(*object, 8));
        assert_eq!(waiting.take(8).collect::<Vec<_>>(), [objects[2], objects[1], objects[0]]);
        assert_eq!(waiting.take(8).count(), 0);
    }
}
