//! How many objects slab caches are asked to free (`shrink_slab`), in the two eras.

use crate::counters::Counter;
use crate::host::{Shrinker, Shrunk};
use crate::vm::{Host, Vm};
use std::cell::RefCell;

/// Work that shrinkers owe, for each shrinker (`nr_deferred`; `shrinker->nr` of 2.6).
#[derive(Debug, Default)]
pub struct Owed(RefCell<Vec<u64>>);

impl Owed {
    /// Takes what a shrinker owes.
    fn take(&self, shrinker: usize) -> u64 {
        let mut all = self.0.borrow_mut();
        if shrinker >= all.len() {
            all.resize(shrinker + 1, 0);
        }
        std::mem::take(&mut all[shrinker])
    }

    /// Adds to what it owes.
    fn add(&self, shrinker: usize, owed: u64) {
        self.0.borrow_mut()[shrinker] += owed;
    }
}

/// Objects that a pass asks of a cache since 4.16: a share by priority, not by pages scanned
/// (docs/theory/vm.md 3.8).
pub fn share_by_priority(freeable: u64, priority: u32, seeks: u32) -> u64 {
    match seeks {
        0 => freeable / 2,
        seeks => (freeable >> priority) * 4 / u64::from(seeks),
    }
}

/// Objects that a pass asks of a cache in 2.6: the share of the lists' pages that were scanned, twice over
/// for the usual cost of two seeks (docs/theory/vm.md 6.6).
pub fn share_by_scan(freeable: u64, scanned: u64, lru_pages: u64, seeks: u32) -> u64 {
    let scanned = if scanned == 0 { 32 } else { scanned };
    let delta = 4 * scanned / u64::from(seeks.max(1));
    (u128::from(delta) * u128::from(freeable) / u128::from(lru_pages + 1)) as u64
}

/// One pass over all caches at a priority. Returns pages that came back.
pub fn shrink_slab(vm: &Vm, host: &dyn Host, owed: &Owed, priority: u32) -> u64 {
    let caches = host.shrinkers().into_iter().enumerate();
    caches.map(|(at, cache)| shrink_one(vm, host, owed, (at, cache), priority).pages).sum()
}

/// Frees what caches can free (`drop_caches`): rounds until one frees next to nothing, for which each may
/// free twice as much as the one before.
pub fn drop_slab(vm: &Vm, host: &dyn Host) {
    vm.with(|state| state.count(Counter::DropSlab));
    let round = || -> u64 {
        let caches = host.shrinkers().into_iter().enumerate();
        caches.map(|(at, cache)| shrink_one(vm, host, &Owed::default(), (at, cache), 0).freed).sum()
    };
    let _ = (0..64).find(|shift| round() >> shift <= 1);
}

fn shrink_one(
    vm: &Vm,
    host: &dyn Host,
    owed: &Owed,
    (at, cache): (usize, Shrinker),
    priority: u32,
) -> Shrunk {
    let mut all = Shrunk::default();
    let freeable = host.shrinkable(at);
    if freeable == 0 {
        return all;
    }
    let before = owed.take(at);
    let delta = share_by_priority(freeable, priority, cache.seeks);
    let mut left = ((before >> priority) + delta).min(2 * freeable);
    while left >= u64::from(cache.batch) || left >= freeable {
        let shrunk = host.shrink(vm, at, left.min(cache.batch.into()));
        if shrunk.scanned == 0 {
            break;
        }
        vm.with(|state| state.counters.add(Counter::SlabsScanned, shrunk.scanned));
        left = left.saturating_sub(shrunk.scanned);
        all.scanned += shrunk.scanned;
        all.freed += shrunk.freed;
        all.pages += shrunk.pages;
        host.resched();
    }
    owed.add(at, (before + delta).saturating_sub(all.scanned).min(2 * freeable));
    all
}

/// One pass over all caches after `scanned` pages of `lru_pages` were scanned (2.6).
pub fn shrink_slab_by_scan(vm: &Vm, host: &dyn Host, owed: &Owed, scanned: u64, lru_pages: u64) -> Shrunk {
    let mut all = Shrunk::default();
    for (at, cache) in host.shrinkers().into_iter().enumerate() {
        let freeable = host.shrinkable(at);
        let delta = share_by_scan(freeable, scanned, lru_pages, cache.seeks);
        let mut left = (owed.take(at) + delta).min(2 * freeable);
        while left >= u64::from(cache.batch) {
            let shrunk = host.shrink(vm, at, cache.batch.into());
            // A shrinker that cannot work now: its objects stay owed no more.
            if shrunk.scanned == 0 {
                break;
            }
            vm.with(|state| state.counters.add(Counter::SlabsScanned, u64::from(cache.batch)));
            left -= u64::from(cache.batch);
            all.scanned += shrunk.scanned;
            all.freed += shrunk.freed;
            all.pages += shrunk.pages;
            host.resched();
        }
        owed.add(at, left);
    }
    all
}
