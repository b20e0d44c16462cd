//! Objects of a page or more, frees after a grace period, and seeded pages.

use super::{HEADER, Heap, SHARED, Slob};
use crate::backing::Backing;
use crate::cache::CacheFlags;
use crate::damage::kept_wrong;
use crate::report::Misuse;
use crate::slab::Slab;
use slablab_platform::{Event, FrameKind, Gfp, NodeId, PerCpu, Pfn, Platform};

impl<P: Platform> Slob<P> {
    /// The order of the pages for `bytes` bytes, which the page allocator may not have.
    pub(super) fn order_of(bytes: u32) -> u8 {
        bytes.div_ceil(Self::page_bytes()).next_power_of_two().ilog2() as u8
    }

    /// Allocates whole pages for one object, outside the heap and without its lock.
    pub(super) fn alloc_pages(
        &self,
        backing: &Backing<'_, P, Heap<P>>,
        bytes: u32,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        let order = Self::order_of(bytes);
        let node = node.unwrap_or_else(|| P::cpu_node(P::cpu()));
        let pfn = backing.pages.alloc(gfp | Gfp::COMP, order, node, FrameKind::Large)?;
        P::map_slab(pfn, order, bytes, SHARED);
        let slab = Slab::<P>::at(pfn);
        slab.set_owner(self.id.0 as u64);
        self.slots.count(Event::AllocSlab, 1);
        let object = P::address(pfn, 0);
        let tally = self.tally(object);
        tally.add_large(1);
        tally.add_frames(1 << order);
        Some(object)
    }

    /// Checks that `object`, which has whole pages of its own, is an object of this cache.
    pub(super) fn check_large(&self, object: P::Ptr, head: Pfn) -> Result<(), Misuse> {
        let owner = Slab::<P>::at(head).owner() as u32;
        if owner != self.id.0 {
            return Err(Misuse::WrongCache(crate::CacheId(owner)));
        }
        if P::locate(object) == (head, 0) { Ok(()) } else { Err(Misuse::NotAnObject) }
    }

    pub(super) fn free_pages(&self, backing: &Backing<'_, P, Heap<P>>, object: P::Ptr) {
        let (pfn, _) = P::locate(object);
        let order = Slab::<P>::at(pfn).state().order;
        self.tally(object).add_frames(-(1 << order));
        P::unmap_slab(pfn, order);
        backing.pages.free(pfn);
        self.slots.count(Event::FreeSlab, 1);
    }

    /// Frees an object after its grace period, when no reader can hold it any more.
    pub(super) fn free_after_grace(&self, backing: &Backing<'_, P, Heap<P>>, argument: u64) {
        let offset = argument & (Self::page_bytes() as u64 - 1);
        self.free_or_abort(backing, P::address(Pfn((argument >> P::page_shift()) as u32), offset));
    }

    /// Frees an object from deferred work or seeding. There is no caller to return an error to.
    fn free_or_abort(&self, backing: &Backing<'_, P, Heap<P>>, object: P::Ptr) {
        match self.place(object) {
            Ok(None) => self.free_pages(backing, object),
            Ok(Some(placed)) => {
                if let Err(misuse) = self.free_block(backing, &placed) {
                    kept_wrong::<P>(self.id, "deferred work", object, misuse);
                }
            }
            Err(misuse) => kept_wrong::<P>(self.id, "deferred work", object, misuse),
        }
    }

    pub(super) fn seed_page(
        &self,
        backing: &Backing<'_, P, Heap<P>>,
        node: NodeId,
        free: &[u16],
    ) -> Option<P::Ptr> {
        let objects = self.geometry.objects;
        if free.len() == objects as usize {
            return None;
        }
        let Some(request) = self.request else {
            return self.alloc_pages(backing, self.geometry.size, Gfp::KERNEL | Gfp::THISNODE, Some(node));
        };
        let search = self.search(request, None);
        let block = backing.common.seed(backing.pages, &search, node, objects)?;
        let (pfn, first) = P::locate(block);
        let object = |index: u32| P::address(pfn, (first + request.lead + index * self.geometry.size) as u64);
        if self.flags.has(CacheFlags::KMALLOC) {
            let header = |index: u32| P::address(pfn, (first + index * self.geometry.size) as u64);
            let bytes = (request.bytes - HEADER) as u16;
            (0..objects).for_each(|index| P::set_half(header(index), bytes));
        }
        self.tally(block).add_shared(objects as i64, objects as i64 * Self::rounded(request.bytes));
        for index in free {
            let object = object(*index as u32);
            self.free_or_abort(backing, object);
            self.tally(object).add_shared(-1, 0);
        }
        Some(object(0))
    }
}
