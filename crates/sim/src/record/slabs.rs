//! The slab caches of a machine when its run has ended, as /proc/slabinfo and `slabinfo -AD` know them.

use crate::heap::{CacheNumber, Heap};
use slablab_platform::Event;
use slablab_slabs::{Geometry, Usage};

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheState {
    /// The name.
    pub name: String,
    /// Its slabs' layout.
    pub geometry: Geometry,
    /// What it holds.
    pub usage: Usage,
    /// Allocations since boot: fast ones, and others.
    pub allocs: [u64; 2],
    /// Frees since boot: fast ones, and others.
    pub frees: [u64; 2],
}

/// The caches that were used, in the heap's order. Called outside of a machine's calls, so that nothing is
/// charged.
pub(crate) fn caches(heap: &dyn Heap) -> Vec<CacheState> {
    let state = |at: usize, name: &str| {
        let cache = CacheNumber(at as u16);
        let count = |events: [Event; 2]| events.map(|event| heap.counted(cache, event));
        CacheState {
            name: name.to_string(),
            geometry: heap.geometry(cache),
            usage: heap.usage(cache),
            allocs: count([Event::AllocFastpath, Event::AllocSlowpath]),
            frees: count([Event::FreeFastpath, Event::FreeSlowpath]),
        }
    };
    let all = heap.caches().iter().enumerate().map(|(at, cache)| state(at, &cache.name));
    all.filter(|cache| cache.allocs != [0; 2]).collect()
}
