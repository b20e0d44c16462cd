//! Objects that are allocated in advance. Each holds the link to the next, as free objects do, so the list
//! needs no memory.

use crate::AllocError;
use crate::untyped::Cache;
use slablab_malloc::world::Native;
use slablab_native::Object;
use slablab_platform::Memory;

/// The number of objects that one call of the cache allocates or frees.
const BATCH: usize = 32;

/// Objects of one cache, allocated in advance. They leak unless [`Prefill::give_back`] is called.
#[derive(Debug, Default)]
pub(crate) struct Prefill {
    first: Option<Object>,
    left: usize,
}

impl Prefill {
    /// Allocates objects until there are `count`, and calls `prepare` with each new one.
    pub(crate) fn fill(
        &mut self,
        cache: &Cache,
        count: usize,
        mut prepare: impl FnMut(Object),
    ) -> Result<(), AllocError> {
        while self.left < count {
            let mut batch = [None; BATCH];
            let batch = &mut batch[..BATCH.min(count - self.left)];
            cache.alloc_bulk(batch)?;
            for object in batch.iter().flatten() {
                Native::set_link(*object, cache.link_offset(), self.first);
                self.first = Some(*object);
                self.left += 1;
            }
            // After the whole batch is linked: `prepare` may panic, and no object of the batch leaks then.
            batch.iter().flatten().for_each(|object| prepare(*object));
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn pop(&mut self, cache: &Cache) -> Option<Object> {
        let object = self.first?;
        self.first = Native::link(object, cache.link_offset());
        self.left -= 1;
        if cache.is_wrapped() {
            // A wrapper may have filled the object with zeros (`init=alloc`), before the link was written.
            Native::set_link(object, cache.link_offset(), None);
        }
        Some(object)
    }

    pub(crate) fn left(&self) -> usize {
        self.left
    }

    pub(crate) fn give_back(&mut self, cache: &Cache) {
        while let Some(first) = self.pop(cache) {
            let mut batch = [first; BATCH];
            let mut count = 1;
            while count < BATCH
                && let Some(object) = self.pop(cache)
            {
                batch[count] = object;
                count += 1;
            }
            cache.free_bulk(&batch[..count]);
        }
    }
}
