//! The addresses of allocations that profilers were told of: a table of fixed size, without a lock.

use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Places for addresses that share a remainder. If all are taken, an allocation is not sampled.
const WAYS: usize = 8;
/// Remainders.
const SETS: usize = 2048;

/// An address in each place; 0 where there is none. Its pages have no memory until an address is in them.
static ADDRESSES: [[AtomicUsize; WAYS]; SETS] = [const { [const { AtomicUsize::new(0) }; WAYS] }; SETS];
/// How many addresses there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The places of an address. Blocks begin with a page: the lowest bits say nothing.
fn set(at: usize) -> &'static [AtomicUsize; WAYS] {
    let hash = (at as u64 >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &ADDRESSES[(hash >> 32) as usize % SETS]
}

/// Whether there are any.
#[inline(always)]
pub(crate) fn any() -> bool {
    COUNT.load(Relaxed) > 0
}

/// Adds an address. `false` if there is no place for it.
pub(crate) fn add(at: usize) -> bool {
    // Counted first: `any` says `true` as long as an address is there.
    COUNT.fetch_add(1, Relaxed);
    let added = set(at).iter().any(|place| place.compare_exchange(0, at, Relaxed, Relaxed).is_ok());
    if !added {
        COUNT.fetch_sub(1, Relaxed);
    }
    added
}

/// Removes an address. `false` if it is not there.
#[cold]
pub(crate) fn remove(at: usize) -> bool {
    let removed = set(at).iter().any(|place| place.compare_exchange(at, 0, Relaxed, Relaxed).is_ok());
    if removed {
        COUNT.fetch_sub(1, Relaxed);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_there_until_it_is_removed() {
        let all: Vec<usize> = (1..=SETS * WAYS).map(|page| page << 12).collect();
        let added: Vec<usize> = all.iter().copied().filter(|at| add(*at)).collect();
        assert!(
            added.len() > all.len() * 3 / 4 && added.len() < all.len(),
            "{} of {}",
            added.len(),
            all.len()
        );
        assert!(any());
        for at in all {
            assert_eq!(remove(at), added.binary_search(&at).is_ok());
            assert!(!remove(at));
        }
        assert!(!any() && !remove(0x7000));
    }
}
