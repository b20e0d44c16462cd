//! The simple reference: the ranges of addresses that are allocated.

use slablab_pages::Pages;
use slablab_platform::{NodeId, Platform};
use std::collections::BTreeMap;

/// An object that was freed with `free_rcu`, and whose readers may not have ended.
pub(super) struct Waiting<Ptr> {
    pub(super) object: Ptr,
    /// Whether the engine frees the object when its readers have ended. Otherwise the runner frees it.
    pub(super) collected: bool,
}

/// Live objects, and freed objects that wait for a grace period and must not be allocated yet, by address.
pub(super) struct Reference<P: Platform> {
    live: BTreeMap<u64, P::Ptr>,
    waiting: BTreeMap<u64, Waiting<P::Ptr>>,
    size: u64,
    align: u64,
}

impl<P: Platform> Reference<P> {
    pub(super) fn new(size: u32, align: u32) -> Self {
        let (live, waiting) = (BTreeMap::new(), BTreeMap::new());
        Reference { live, waiting, size: size as u64, align: align as u64 }
    }

    fn key(object: P::Ptr) -> u64 {
        let (pfn, offset) = P::locate(object);
        ((pfn.0 as u64) << P::page_shift()) + offset as u64
    }

    /// The number of live objects.
    pub(super) fn live(&self) -> u64 {
        self.live.len() as u64
    }

    /// The number of objects that wait for their readers: with those that the engine frees, or without.
    pub(super) fn waiting(&self, with_collected: bool) -> u64 {
        self.waiting.values().filter(|waiting| with_collected || !waiting.collected).count() as u64
    }

    /// The address of an object in `ranges` that an object at `key` would overlap.
    fn overlapped<T>(&self, ranges: &BTreeMap<u64, T>, key: u64) -> Option<u64> {
        let below = ranges.range(..=key).next_back().map(|(other, _)| *other);
        let above = ranges.range(key..).next().map(|(other, _)| *other);
        let below = below.filter(|other| other + self.size > key);
        below.or(above.filter(|other| key + self.size > *other))
    }

    pub(super) fn add(&mut self, object: P::Ptr, only: Option<NodeId>) -> Result<(), String> {
        let key = Self::key(object);
        if key % self.align != 0 {
            return Err(format!("{key:#x} is not aligned to {}", self.align));
        }
        if let Some(other) = self.overlapped(&self.live, key) {
            return Err(format!("{key:#x} overlaps {other:#x}, which is live"));
        }
        if let Some(other) = self.overlapped(&self.waiting, key) {
            return Err(format!("{key:#x} overlaps {other:#x}, whose readers have not ended"));
        }
        let node = Pages::<P>::block_of(object).map(|(_, state)| state.node);
        if let (Some(only), Some(node)) = (only, node)
            && only != node
        {
            return Err(format!("{key:#x} is on node {}, THISNODE asked for {}", node.0, only.0));
        }
        self.live.insert(key, object);
        Ok(())
    }

    /// Removes and returns the `which`-th live object.
    pub(super) fn take(&mut self, which: u16) -> Option<P::Ptr> {
        let index = which as usize % self.live.len().max(1);
        let key = *self.live.keys().nth(index)?;
        self.live.remove(&key)
    }

    /// Notes that `object` waits for its readers. Returns the key for [`Reference::readers_ended`].
    pub(super) fn wait(&mut self, object: P::Ptr, collected: bool) -> u64 {
        let key = Self::key(object);
        self.waiting.insert(key, Waiting { object, collected });
        key
    }

    /// Ends the wait of the object with `key`: it may be allocated again.
    pub(super) fn readers_ended(&mut self, key: u64) -> Waiting<P::Ptr> {
        self.waiting.remove(&key).expect("a grace period ends once")
    }
}
