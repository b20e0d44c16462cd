//! `kmem_cache_reap` of 2.4: page reclaim takes empty slabs from one cache at a time (docs/theory/slab.md
//! 10).
//!
//! A hand goes around the caches. A look at one cache finds its empty slabs; a cache that grew since the last
//! look is passed over once. Of the caches looked at, the one with the most pages in empty slabs gives 80 %
//! of these slabs. A slab with a constructor, and one of an order above 0, counts for less, as it is dearer
//! to make again.

use crate::backing::Backing;
use crate::engine::{Engine, Reapable};
use slablab_platform::Platform;

/// Caches of one turn (`REAP_SCANLEN`).
const SCAN: usize = 10;
/// Pages that end a turn at once (`REAP_PERFECT`).
const PERFECT: u32 = 10;

/// The hand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// The cache that is looked at next.
    hand: usize,
}

impl Clock {
    /// One turn over `caches`, always the same ones in the same order. Returns the pages that went.
    pub fn reap<P: Platform, E: Engine<P>>(
        &mut self,
        caches: &[E],
        backing: &Backing<'_, P, E::Common>,
    ) -> u64 {
        let mut best: Option<(u32, &E, u32)> = None;
        for _ in 0..SCAN.min(caches.len()) {
            let cache = &caches[self.hand % caches.len()];
            self.hand = (self.hand + 1) % caches.len();
            let Some(found) = cache.look_to_reap(backing) else { continue };
            let pages = worth(found);
            if pages > best.map_or(0, |(most, ..)| most) {
                best = Some((pages, cache, found.slabs));
            }
            if pages >= PERFECT {
                break;
            }
        }
        best.map_or(0, |(_, cache, slabs)| cache.reap_empty(backing, four_fifths(slabs)))
    }
}

/// What a cache's empty slabs count, in pages.
fn worth(found: Reapable) -> u32 {
    let mut pages = found.slabs << found.order;
    if found.constructed {
        pages = four_fifths(pages);
    }
    if found.order > 0 {
        pages = four_fifths(pages);
    }
    pages
}

/// 80 %, rounded as 2.4 rounds (from memory).
fn four_fifths(n: u32) -> u32 {
    (n * 4 + 1) / 5
}
