//! Empty slabs with constructed values, whose drop is deferred to the cache's next slow path.
//!
//! The engine frees an empty slab of such a cache (`SLAB_TYPESAFE_BY_RCU`) in a deferred work, in which no
//! lock and no slot is held. The work may run in any call of any thread. Dropping the values runs code of the
//! program, which may take the program's locks, so that happens in a call of the cache itself.

use slablab_malloc::world::Native;
use slablab_native::{Object, Sleep};
use slablab_platform::{Frames, Pfn};
use slablab_slabs::Geometry;
use slablab_slabs::slab::{Slab, SlabWord};

/// Slabs whose values are to be dropped, linked through their frames.
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

/// The objects of an empty slab: by their places under SLUB (`racing`), whose first object starts where the
/// slab does; by their links elsewhere.
pub(crate) fn objects(
    slab: Pfn,
    racing: bool,
    geometry: &Geometry,
    link: fn(Object, u32) -> Option<Object>,
) -> impl Iterator<Item = Object> {
    // Links lead to places in the slab; an object may begin behind a red zone.
    let (link_offset, left) = (geometry.link_offset, (geometry.size - geometry.spacing) as usize);
    let (size, slab) = (u64::from(geometry.size), Slab::<Native>::at(slab));
    let word = if racing { slab.word() } else { SlabWord::unpack(slab.extra()) };
    let (placed, first) =
        if racing { (word.objects, None) } else { (0, word.head.map(|head| slab.object(head))) };
    let places = (0..u64::from(placed)).map(move |place| Native::address(slab.pfn(), place * size));
    // The link is read before the object is passed to the caller.
    let linked =
        std::iter::successors(first.map(|first| (first, link(first, link_offset))), move |(_, next)| {
            next.map(|object| (object, link(object, link_offset)))
        });
    let linked = linked.map(|(slot, _)| slot).take(word.objects as usize);
    places.chain(linked).filter_map(move |slot| Object::at(slot.as_ptr().wrapping_add(left)))
}
