//! Which object an address is, and its number in the trace.

use rustc_hash::FxHashMap;
use slablab_trace::{CacheCounts, NONE, Row};

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) id: u32,
    pub(crate) cache: u32,
    /// Bytes that were requested, all of them.
    pub(crate) bytes: u64,
    pub(crate) bytes_alloc: u32,
    pub(crate) cpu: u16,
}

impl Object {
    /// A row that names the block.
    pub(crate) fn of(&self, row: Row) -> Row {
        let bytes_req = u32::try_from(self.bytes).unwrap_or(u32::MAX);
        Row { object: self.id, cache: self.cache, bytes_req, bytes_alloc: self.bytes_alloc, ..row }
    }
}

/// The live blocks of a process.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    live: FxHashMap<u64, Object>,
    free_ids: Vec<u32>,
    ids: u32,
    /// By the trace's cache id.
    pub(crate) caches: Vec<CacheCounts>,
    pub(crate) live_bytes: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) peak_blocks: u64,
}

impl Objects {
    pub(crate) fn get(&self, address: u64) -> Option<&Object> {
        self.live.get(&address)
    }

    /// Blocks that are live.
    pub(crate) fn count(&self) -> u64 {
        self.live.len() as u64
    }

    /// The number for a new block: the one that was freed last.
    pub(crate) fn take_id(&mut self) -> u32 {
        self.free_ids.pop().unwrap_or_else(|| {
            assert!(self.ids < NONE, "more than 4 thousand million blocks live at once");
            self.ids += 1;
            self.ids - 1
        })
    }

    pub(crate) fn give_id(&mut self, id: u32) {
        self.free_ids.push(id);
    }

    /// A block begins at an address that is not live.
    pub(crate) fn begin(&mut self, address: u64, object: Object) {
        self.live.insert(address, object);
        // Saturating: a damaged file may have any sizes.
        self.live_bytes = self.live_bytes.saturating_add(object.bytes);
        if self.live_bytes > self.peak_bytes {
            (self.peak_bytes, self.peak_blocks) = (self.live_bytes, self.live.len() as u64);
        }
        if let Some(cache) = self.caches.get_mut(object.cache as usize) {
            cache.bytes_alloc = object.bytes_alloc.into();
            cache.counts.allocs += 1;
            cache.counts.live_end += 1;
            cache.counts.live_max = cache.counts.live_max.max(cache.counts.live_end);
        }
    }

    /// The block at an address ends, by the CPU `by`, or unseen.
    pub(crate) fn end(&mut self, address: u64, by: Option<u16>) -> Option<Object> {
        let object = self.live.remove(&address)?;
        self.live_bytes = self.live_bytes.saturating_sub(object.bytes);
        self.give_id(object.id);
        if let Some(cache) = self.caches.get_mut(object.cache as usize) {
            cache.counts.live_end -= 1;
            match by {
                Some(cpu) => {
                    cache.counts.frees += 1;
                    cache.counts.frees_other_cpu += u64::from(cpu != object.cpu);
                }
                None => cache.counts.implied_frees += 1,
            }
        }
        Some(object)
    }
}
