//! Slabs that emptied and whose objects' contents have an end of their own: set aside until the cache's next
//! slow path.
//!
//! An engine gives the slabs of a cache up whose contents may be read while they are free
//! (`SLAB_TYPESAFE_BY_RCU`) in a work of its own, when no lock and no slot is held. That work comes here.
//! What is in the objects ends in a call of the cache, not in whatever call of whatever thread the work came
//! up in: its end is the program's code, which may take the program's locks.

use slablab_malloc::world::Native;
use slablab_native::{Object, Sleep};
use slablab_platform::Pfn;
use slablab_slabs::Geometry;
use slablab_slabs::slab::{Slab, SlabWord};

/// Slabs set aside, linked through their frames.
#[derive(Debug)]
pub(crate) struct DeferredDrops(Sleep<Option<Pfn>>);

impl Default for DeferredDrops {
    fn default() -> Self {
        DeferredDrops(Sleep::new(None))
    }
}

impl DeferredDrops {
    pub(crate) fn push(&self, slab: Pfn) {
        let mut first = self.0.lock();
        Slab::<Native>::at(slab).set_next(first.map(Slab::at));
        *first = Some(slab);
    }

    pub(crate) fn pop(&self) -> Option<Pfn> {
        let mut first = self.0.lock();
        let slab = Slab::<Native>::at((*first)?);
        *first = slab.next().map(Slab::pfn);
        Some(slab.pfn())
    }
}

/// The objects of an empty slab. Its state is in the racing word under SLUB (`racing`), in the engine's own
/// field elsewhere.
pub(crate) fn objects(
    slab: Pfn,
    racing: bool,
    geometry: &Geometry,
    link: fn(Object, u32) -> Option<Object>,
) -> impl Iterator<Item = Object> {
    // What is linked are slots; the object may be behind something.
    let (link_offset, left) = (geometry.link_offset, (geometry.size - geometry.spacing) as usize);
    let slab = Slab::<Native>::at(slab);
    let word = if racing { slab.word() } else { SlabWord::unpack(slab.extra()) };
    let first = word.head.map(|head| slab.object(head));
    // The link is read before the object is handed on.
    std::iter::successors(first.map(|first| (first, link(first, link_offset))), move |(_, next)| {
        next.map(|object| (object, link(object, link_offset)))
    })
    .filter_map(move |(slot, _)| Object::at(slot.as_ptr().wrapping_add(left)))
    .take(word.objects as usize)
}
