//! The objects of a new slab: how each is prepared, and in which order they are linked.

use crate::cache::CacheFlags;
use crate::zones::{Zones, ahead};
use slablab_platform::Platform;

/// Makes an object when its slab is made; what it made survives frees (`ctor`).
pub type Constructor<P> = fn(<P as slablab_platform::Frames>::Ptr);

/// How the objects of a new slab are prepared, and in which order they are linked.
pub struct NewObjects<P: Platform> {
    /// Constructs each object.
    pub construct: Option<Constructor<P>>,
    /// The red zones and records of each object, in a cache that is debugged.
    pub zones: Option<Zones>,
    /// Offset of a word in each object that starts as zero: state that the owner of the cache keeps.
    pub zeroed: Option<u32>,
    /// Marks each object as free, in a cache whose owner keeps such a mark in the object.
    pub mark: Option<Constructor<P>>,
    /// The objects are linked in random order (`SLAB_FREELIST_RANDOM`, 4.7), not by address.
    pub shuffled: bool,
}

impl<P: Platform> Default for NewObjects<P> {
    fn default() -> Self {
        NewObjects { construct: None, zones: None, zeroed: None, mark: None, shuffled: false }
    }
}

impl<P: Platform> Clone for NewObjects<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for NewObjects<P> {}

impl<P: Platform> NewObjects<P> {
    /// Whether there is anything to prepare in an object.
    pub fn makes(&self) -> bool {
        self.construct.is_some() || self.zones.is_some() || self.zeroed.is_some() || self.mark.is_some()
    }

    /// Prepares the object whose slot starts at `start`.
    #[inline]
    pub fn make(&self, start: P::Ptr) {
        let mut object = start;
        if let Some(zones) = &self.zones {
            zones.make::<P>(start);
            object = ahead::<P>(start, zones.left);
        }
        if let Some(offset) = self.zeroed {
            P::set_word(ahead::<P>(object, offset), 0);
        }
        if let Some(mark) = self.mark {
            mark(object);
        }
        if let Some(construct) = self.construct {
            construct(object);
        }
    }

    /// Checks that objects of a cache with these flags keep their contents while they are free.
    ///
    /// # Panics
    /// If they do not.
    pub fn fitting(self, flags: CacheFlags) -> Self {
        let makes = self.construct.is_some() || self.zones.is_some() || self.zeroed.is_some();
        assert!(
            !makes || flags.has(CacheFlags::CONSTRUCTOR),
            "the cache was made without room for a constructor's work"
        );
        self
    }
}

/// The index of the object at position `place` of a list of `objects` objects, in the order that belongs to
/// `key`.
///
/// A permutation without memory: a Feistel network of four rounds over the next even number of bits, walked
/// until it comes back into the range (Black and Rogaway, 2002).
pub(super) fn shuffled(place: u32, objects: u32, key: u32) -> u32 {
    let half = objects.next_power_of_two().ilog2().div_ceil(2).max(1);
    let mask = (1u32 << half) - 1;
    let mut at = place;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 1..=4u32 {
            // Multiplicative hashing (Knuth): the high bits depend on all of them.
            let mixed = (right ^ key.rotate_left(round * 7)).wrapping_mul(0x9E37_79B1);
            (left, right) = (right, left ^ (mixed >> (32 - half)));
        }
        at = left << half | right;
        if at < objects {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shuffled;

    #[test]
    fn a_shuffled_order_has_each_object_once() {
        for objects in [1u32, 2, 3, 21, 64, 100, 512, 4096] {
            let mut firsts = 0u64;
            for key in [0u32, 1, 0x1234_5678, u32::MAX] {
                let mut seen = [false; 4096];
                for place in 0..objects {
                    let object = shuffled(place, objects, key) as usize;
                    assert!(!seen[object], "object {object} of {objects} twice, key {key}");
                    seen[object] = true;
                }
                firsts |= 1 << (shuffled(0, objects, key) % 64);
            }
            assert!(objects < 21 || firsts.count_ones() > 1, "{objects} objects: every key begins alike");
        }
    }
}
