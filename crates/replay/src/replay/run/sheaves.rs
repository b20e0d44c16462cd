//! Where a run's caches get memory for sheaves: from a kmalloc cache of the same engine.

use super::{CacheTable, Note, Window, World};
use slablab_model::Addr;
use slablab_platform::Gfp;
use slablab_slabs::{Backing, Engine, Metadata};
use std::cell::Cell;

/// Where a run's caches get memory for sheaves: of the run's other fields, some are borrowed meanwhile.
macro_rules! sheaf_memory {
    ($run:ident) => {
        SheafMemory {
            plain: Backing::new(&$run.pages, &$run.common),
            caches: &$run.caches,
            table: $run.job.table,
            windows: &$run.windows,
            served: &$run.served,
            traffic: &$run.metadata,
        }
    };
}
pub(in crate::replay) use sheaf_memory;

/// Allocations and frees of a cache's objects by other caches, for sheaves.
#[derive(Clone, Copy, Default)]
pub(in crate::replay) struct MetadataTraffic {
    pub(in crate::replay) allocs: u64,
    pub(in crate::replay) frees: u64,
    pub(in crate::replay) failed: u64,
}

/// Sheaves are objects of a kmalloc cache of the same engine.
pub(in crate::replay) struct SheafMemory<'a, W: World, E: Engine<W>> {
    /// What the sheaves stand on; nothing that they themselves could be made of.
    pub(in crate::replay) plain: Backing<'a, W, E::Common>,
    pub(in crate::replay) caches: &'a [E],
    pub(in crate::replay) table: &'a CacheTable,
    pub(in crate::replay) windows: &'a [Window],
    pub(in crate::replay) served: &'a [bool],
    pub(in crate::replay) traffic: &'a [Cell<MetadataTraffic>],
}

impl<W: World, E: Engine<W>> SheafMemory<'_, W, E> {
    #[inline]
    pub(in crate::replay) fn backing(&self) -> Backing<'_, W, E::Common> {
        Backing { metadata: Some(self), ..self.plain }
    }

    fn count(&self, cache: usize, change: impl FnOnce(&mut MetadataTraffic)) {
        if self.windows[cache].open {
            let mut traffic = self.traffic[cache].get();
            change(&mut traffic);
            self.traffic[cache].set(traffic);
        }
    }
}

impl<W: World, E: Engine<W>> Metadata<W> for SheafMemory<'_, W, E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Addr> {
        let cache = self.table.metadata_cache(bytes).filter(|cache| self.served[*cache])?;
        let object = self.caches[cache].alloc(&self.plain, gfp, None);
        object.into_iter().for_each(|object| W::noted(Note::Allocated(object)));
        self.count(cache, |traffic| match object {
            Some(_) => traffic.allocs += 1,
            None => traffic.failed += 1,
        });
        object
    }

    fn free(&self, object: Addr) {
        let owner = slablab_slabs::slab::Slab::<W>::of(object).map(|(slab, _)| slab.owner());
        // The cache is in the low 24 bits, whatever else an engine keeps there.
        let cache = (owner.expect("a sheaf is an object") & 0xFF_FFFF) as usize;
        self.count(cache, |traffic| traffic.frees += 1);
        W::noted(Note::Freed(object));
        self.caches[cache].free(&self.plain, object).expect("a sheaf is an object of its cache");
    }
}
