//! Large classes lend each other objects: a request whose class has no free object gets one of the next
//! class that has some, before a slab is made. So a program that uses many sizes, and has few objects of
//! each, needs fewer slabs, each of which is unused in part.

use crate::classes;
use slablab_slabs::engines::slub::LARGE_OVER;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A class asks so many larger ones: an eighth of the object is wasted at most.
const LENDERS: usize = 2;
/// So many objects in a row; then the class needs a slab: each of these requests took a slow path.
const LENT_MOST: u8 = 8;

/// A class with so many slabs needs one more: the part of it that is unused is little beside them, and less
/// than what lent objects would waste.
const SLABS_MANY: u64 = 8;

/// How many objects each class was lent since it last needed a slab.
pub(crate) struct Lent([AtomicU8; classes::COUNT]);

impl Lent {
    /// Nothing was lent.
    pub(crate) const fn none() -> Lent {
        Lent([const { AtomicU8::new(0) }; classes::COUNT])
    }

    /// The class whose object a request of a class gets. `has_free` says whether a class has a free object,
    /// `slabs` how many slabs it has.
    pub(crate) fn class(
        &self,
        of: usize,
        has_free: impl Fn(usize) -> bool,
        slabs: impl Fn(usize) -> u64,
    ) -> usize {
        if classes::size(of) <= LARGE_OVER || has_free(of) || slabs(of) >= SLABS_MANY {
            return of;
        }
        let lent = self.0[of].load(Relaxed);
        let lender = (of + 1..classes::COUNT).take(LENDERS).find(|larger| has_free(*larger));
        let lender = lender.filter(|_| lent < LENT_MOST);
        // Two threads may count once.
        self.0[of].store(lender.map_or(0, |_| lent + 1), Relaxed);
        lender.unwrap_or(of)
    }
}

/// Whether a request of a class may get an object of class `from`.
pub(crate) fn may_get(of: usize, from: usize) -> bool {
    let lenders = if classes::size(of) <= LARGE_OVER { 0 } else { LENDERS };
    (of..=of + lenders).contains(&from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of classes that have free objects, and of that whose object each of some requests gets.
    fn check(free: &[usize], requests: &[usize], expected: &[u32]) {
        let lent = Lent::none();
        let free: Vec<usize> = free.iter().map(|bytes| classes::of(*bytes)).collect();
        let class = |bytes: &usize| {
            // 8,192 bytes stand for a class with many slabs.
            let slabs = |class| if class == classes::of(8192) { SLABS_MANY } else { SLABS_MANY - 1 };
            lent.class(classes::of(*bytes), |class| free.contains(&class), slabs)
        };
        let got: Vec<u32> = requests.iter().map(|bytes| classes::size(class(bytes))).collect();
        assert_eq!(got, expected, "free are {free:?}");
        let all = requests.iter().zip(got).all(|(bytes, got)| {
            may_get(classes::of(*bytes), classes::of(got as usize)) && (got as usize) < 2 * bytes
        });
        assert!(all, "free are {free:?}");
    }

    #[test]
    fn who_lends() {
        check(&[5120, 5376], &[5000], &[5120]);
        check(&[5376], &[5000], &[5376]);
        check(&[5632], &[5000], &[5632]);
        check(&[5888], &[5000], &[5120]);
        check(&[], &[5000], &[5120]);
        check(&[8704], &[8000], &[8192]);
        // A small class lends nothing.
        check(&[2048], &[2000, 1900], &[2048, 1920]);
        // The largest class has nobody to ask.
        check(&[], &[32768], &[32768]);
    }

    #[test]
    fn so_many_in_a_row() {
        let again = [[5376; LENT_MOST as usize].as_slice(), &[5120, 5376]].concat();
        check(&[5376], &[5000; LENT_MOST as usize + 2], &again);
    }
}
