//! A thread's few free objects of a class that wait, in no order: a small quarantine.
//!
//! The object that the thread's sheaf gives for a request is not handed out: it changes places with a random
//! one of the ring, which is. So the object freed last is never the next to be allocated, it waits for as
//! many allocations as the ring has places on average, and which object comes next cannot be told from the
//! order of calls. A free needs no second exchange for that: it puts the object on top of the sheaf, from
//! where it can only come into the ring.

use super::tail::Keys;
use crate::classes;
use slablab_native::Object;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most objects of a ring. An object that waits leaves the first-level cache: with rings of 16, Python with
/// malloc for every object took 1.9 times the CPU time that it takes without rings, with 4 it takes 1.3
/// times.
pub(super) const MOST: usize = 4;
/// Bytes of a ring's objects, where two of them are not more.
const BYTES: usize = 8192;

/// Objects of a class's ring.
const fn reckon(class: usize) -> u8 {
    let places = BYTES / classes::size(class) as usize;
    if places > MOST {
        MOST as u8
    } else if places < 2 {
        2
    } else {
        places as u8
    }
}

static PLACES: [u8; classes::COUNT] = {
    let mut places = [0; classes::COUNT];
    let mut class = 0;
    while class < classes::COUNT {
        places[class] = reckon(class);
        class += 1;
    }
    places
};

/// Objects of a class's ring.
#[inline(always)]
pub(super) fn places(class: usize) -> u64 {
    PLACES[class].into()
}

/// The ring of a thread and a class. Zeros are an empty one.
///
/// Each change is one store, so that a fork finds every object once, or not at all: an object that is on its
/// way is lost to the child, as all that is in other threads' registers.
#[derive(Default)]
pub(super) struct Ring {
    random: AtomicU64,
    objects: [AtomicU64; MOST],
}

impl Ring {
    /// Puts an object in a random one of the first `places` places. Returns the object that was there.
    #[inline(always)]
    pub(super) fn exchange(&self, object: Object, places: u64, keys: &Keys) -> Option<Object> {
        let drawn = self.draw(keys);
        let place = &self.objects[(((drawn >> 32) * places) >> 32) as usize % MOST];
        let before = place.load(Relaxed);
        place.store(object.addr() as u64, Relaxed);
        object_at(before)
    }

    /// A number that nobody can tell without the keys and the ring's state.
    #[inline(always)]
    fn draw(&self, keys: &Keys) -> u64 {
        let mut state = self.random.load(Relaxed);
        if state == 0 {
            state = std::ptr::from_ref(self).addr() as u64;
        }
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.store(state, Relaxed);
        keys.mixed(state)
    }

    /// Takes all objects out.
    pub(super) fn take(&mut self) -> [Option<Object>; MOST] {
        self.objects.each_mut().map(|place| object_at(std::mem::take(place.get_mut())))
    }
}

#[inline(always)]
fn object_at(address: u64) -> Option<Object> {
    Object::at(std::ptr::with_exposed_provenance_mut(address as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_holds_what_it_got_and_gives_each_once() {
        let (keys, mut ring) = (Keys::new(), Ring::default());
        let objects: Vec<Object> = (1..=1000).filter_map(|number| object_at(number * 64)).collect();
        let mut out: Vec<Object> =
            objects.iter().filter_map(|object| ring.exchange(*object, 3, &keys)).collect();
        assert_eq!(objects.len() - out.len(), 3, "full");
        let in_order = out.windows(2).filter(|two| two[0].addr() < two[1].addr()).count();
        assert!(in_order < 900, "{in_order} of 997 in order");
        out.extend(ring.take().into_iter().flatten());
        out.sort_by_key(|object| object.addr());
        assert_eq!(out, objects);
    }

    #[test]
    fn a_ring_is_as_large_as_eight_kib_or_two_objects() {
        let places = |bytes| places(classes::of(bytes));
        assert_eq!([16, 512, 2048, 4096, 32768].map(places), [4, 4, 4, 2, 2]);
    }
}
