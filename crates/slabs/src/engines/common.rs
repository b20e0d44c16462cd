//! Functions that engines share, and that registered engines may use: access to slots of other CPUs,
//! checks of a freed object, shrink and destroy, page flags, and the return of pages.

use crate::cache::{CacheFlags, CacheId};
use crate::engine::{Busy, Engine};
use crate::report::Misuse;
use crate::slab::Slab;
use slablab_pages::Pages;
use slablab_platform::{CpuId, Event, Gfp, Local, PerCpu, Platform, Work, WorkKind};

/// The slot of `cpu`, if the caller may use it: the caller runs on that CPU, or no CPU uses the slot.
pub fn reach<P: Platform, T: Default>(
    slots: &P::PerCpu<T>,
    cpu: CpuId,
) -> Option<<P::PerCpu<T> as PerCpu<P::Ptr, T>>::Local<'_>> {
    let own = if P::cpu() == cpu { slots.local() } else { None };
    own.filter(|slot| slot.cpu() == cpu).or_else(|| slots.claim(cpu))
}

/// Checks that a freed address is an object of the cache `id`. `owner` is the cache of the address's slab;
/// `is_start` says whether an object starts at the address.
#[inline(always)]
pub fn check_object(id: CacheId, owner: CacheId, is_start: impl FnOnce() -> bool) -> Result<(), Misuse> {
    if owner != id {
        return Err(Misuse::WrongCache(owner));
    }
    if is_start() { Ok(()) } else { Err(Misuse::NotAnObject) }
}

/// Runs `empty`, which returns empty slabs to the page allocator. Returns the number of returned slabs.
pub fn shrink<P: Platform, E: Engine<P>>(cache: &E, empty: impl FnOnce()) -> u64 {
    let before = cache.counted(Event::FreeSlab);
    empty();
    cache.counted(Event::FreeSlab) - before
}

/// Closes the slots of a cache and runs `empty`, which moves every free object to its slab and returns the
/// slabs. If objects are live, opens the slots again.
pub fn close<P: Platform, E: Engine<P>, T: Default>(
    cache: &E,
    slots: &P::PerCpu<T>,
    empty: impl FnOnce(),
) -> Result<(), Busy> {
    slots.close(true);
    empty();
    cache.usage().all_free().inspect_err(|_| slots.close(false))
}

/// Flags for the pages of a slab that serves a request with the flags `gfp`. `compound` requests one block of
/// pages.
pub fn page_flags(gfp: Gfp, compound: bool, flags: CacheFlags) -> Gfp {
    let asked = [
        (compound, Gfp::COMP),
        (flags.has(CacheFlags::RECLAIM_ACCOUNT), Gfp::RECLAIMABLE),
        (flags.has(CacheFlags::DMA), Gfp::DMA),
    ];
    let without = gfp & !(Gfp::ZERO | Gfp::HIGHMEM | Gfp::MOVABLE | Gfp::ACCOUNT);
    asked.into_iter().filter(|(is_asked, _)| *is_asked).fold(without, |flags, (_, flag)| flags | flag)
}

/// Returns an empty slab that no CPU can reach. It calls `return_pages` at once, or after a grace period if
/// readers may still read the cache's objects (`SLAB_TYPESAFE_BY_RCU`); then the cache gets a
/// [`WorkKind::FreeSlab`].
pub fn discard<P: Platform>(
    id: CacheId,
    flags: CacheFlags,
    slab: Slab<P>,
    return_pages: impl FnOnce(Slab<P>),
) {
    if flags.has(CacheFlags::TYPESAFE_BY_RCU) {
        let argument = slab.pfn().0 as u64;
        P::after_grace_period(Work { kind: WorkKind::FreeSlab, cache: id.0, argument });
    } else {
        return_pages(slab);
    }
}

/// Returns the pages of an empty slab to the page allocator.
pub fn return_pages<P: Platform>(pages: &Pages<P::Ground>, slab: Slab<P>) {
    P::unmap_slab(slab.pfn(), slab.state().order);
    pages.free(slab.pfn());
}
