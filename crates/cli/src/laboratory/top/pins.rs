//! What keeps memory that is free: the slabs that have free objects, and others in use.

/// The free objects whose slabs cannot go back, because another object of the slab is in use: by a caller, or
/// in a sheaf or barn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pins {
    /// The free objects of such slabs.
    pub(super) free: u64,
    /// The slabs of which no more than a quarter is in use.
    pub(super) sparse_slabs: u64,
    /// The objects in use of those.
    pub(super) sparse_objects: u64,
    /// The free objects of those.
    pub(super) sparse_free: u64,
}

impl Pins {
    /// Counts a slab with `used` of `objects` objects in use.
    pub(super) fn count(&mut self, used: u64, objects: u64) {
        if used == 0 {
            return;
        }
        self.free += objects - used;
        if used * 4 <= objects {
            self.sparse_slabs += 1;
            self.sparse_objects += used;
            self.sparse_free += objects - used;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slabs by the objects in use and all of them, and what they pin.
    #[test]
    fn what_slabs_pin() {
        #[track_caller]
        fn check(slabs: &[(u64, u64)], expected: Pins) {
            let mut pins = Pins::default();
            slabs.iter().for_each(|(used, objects)| pins.count(*used, *objects));
            assert_eq!(pins, expected, "{slabs:?}");
        }
        let pins = |free, sparse_slabs, sparse_objects, sparse_free| Pins {
            free,
            sparse_slabs,
            sparse_objects,
            sparse_free,
        };
        check(&[], pins(0, 0, 0, 0));
        // Nothing keeps an empty slab, and a full one has nothing to give.
        check(&[(0, 16), (16, 16)], pins(0, 0, 0, 0));
        check(&[(5, 16)], pins(11, 0, 0, 0));
        check(&[(4, 16), (1, 16), (8, 16)], pins(12 + 15 + 8, 2, 5, 27));
        // One object of a slab has none beside it to pin.
        check(&[(1, 1)], pins(0, 0, 0, 0));
    }
}
