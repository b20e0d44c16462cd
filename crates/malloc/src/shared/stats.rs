//! What all heaps and object caches hold, as numbers.

use super::pages::pages;
use super::tenants;
use crate::world::Native;
use crate::{kept_blocks, mappings};
use slablab_platform::Topology;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of live objects and blocks that hold metadata of engines: they are allocated, but not by a caller of
/// malloc.
pub(crate) static METADATA_BYTES: AtomicU64 = AtomicU64::new(0);

/// What all heaps and object caches of the process hold. Not exact while other threads run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of page frames in slabs and blocks, and of free ones that the system backs with memory.
    pub heap_bytes: u64,
    /// Bytes of live objects, each as large as its class, and of blocks of page frames; without what is
    /// metadata.
    pub live_bytes: u64,
    /// Free objects in slabs.
    pub free_objects: u64,
    /// Bytes of free page frames that the system backs with memory.
    pub free_frame_bytes: u64,
    /// Blocks with a mapping of their own, and their bytes.
    pub mappings: u64,
    /// Bytes of those mappings.
    pub mapping_bytes: u64,
}

/// What all heaps and object caches of the process hold.
pub fn totals() -> Totals {
    let Some(pages) = pages() else { return Totals::default() };
    let shift = Native::page_shift();
    let kept = kept_blocks::frames();
    let used = pages.taken_frames().saturating_sub(kept);
    let mut totals = Totals::default();
    let slab_frames;
    let sums = Cell::new((0, 0, 0));
    tenants::each(|tenant| {
        tenant.each_usage(&mut |usage, object_bytes| {
            let (frames, live, free) = sums.get();
            let live_objects = usage.live_objects();
            let free_objects = usage.total_objects.saturating_sub(live_objects);
            sums.set((
                frames + usage.frames,
                live + live_objects * u64::from(object_bytes),
                free + free_objects,
            ));
        });
    });
    (slab_frames, totals.live_bytes, totals.free_objects) = sums.get();
    // Frames that are in no slab are in blocks.
    totals.live_bytes += used.saturating_sub(slab_frames) << shift;
    totals.live_bytes = totals.live_bytes.saturating_sub(METADATA_BYTES.load(Relaxed));
    totals.free_frame_bytes = (pages.resident_free_frames() + kept) << shift;
    totals.heap_bytes = (used << shift) + totals.free_frame_bytes;
    (totals.mappings, totals.mapping_bytes) = mappings::totals();
    totals
}
