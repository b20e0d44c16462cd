//! Objects taken in advance, linked through themselves as free objects are: no memory is needed to keep them.

use crate::Why;
use crate::untyped::Cache;
use slablab_malloc::world::Native;
use slablab_native::Object;
use slablab_platform::Memory;

/// Objects that go from and to a cache at once.
const BATCH: usize = 32;

/// Objects of one cache. Lost if they are not given back.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    first: Option<Object>,
    left: usize,
}

impl Ahead {
    /// Takes objects until there are `count`, and makes each ready.
    pub(crate) fn fill(
        &mut self,
        cache: &Cache,
        count: usize,
        mut prepare: impl FnMut(Object),
    ) -> Result<(), Why> {
        while self.left < count {
            let mut batch = [None; BATCH];
            let batch = &mut batch[..BATCH.min(count - self.left)];
            cache.alloc_bulk(batch)?;
            for object in batch.iter().flatten() {
                Native::set_link(*object, cache.link_offset(), self.first);
                self.first = Some(*object);
                self.left += 1;
            }
            // After all of them are here: a constructor may panic.
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
            // It may have been handed out as zeros.
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
