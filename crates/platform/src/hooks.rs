//! Hooks: the decisions an allocator leaves to its world. Reclaim, fault injection, random numbers, counting,
//! and the end of a program whose memory is damaged.

use crate::{Charged, Event, Gfp, NodeId, Pfn, Reclaim, Reclaimed, Site, Step, Topology, Touch};
use core::fmt;

/// The decisions of a world.
pub trait Hooks: Topology {
    /// The reclaim policy: the page allocator found no block of the wanted order above the watermark. Returns
    /// what was freed, and whether another attempt makes sense.
    ///
    /// The call may be suspended here, like a task that sleeps in direct reclaim: other calls, on this CPU
    /// and others, may run before it returns. The caller holds no lock. It may hold a slot, which refuses
    /// other calls meanwhile.
    fn reclaim(ask: Reclaim) -> Reclaimed;
    /// Whether the running task frees memory for others (`PF_MEMALLOC`): kswapd, or a task that is in
    /// [`Hooks::reclaim`] and needs memory for that. Such a task's requests use no watermark, unless their
    /// flags say [`Gfp::NOMEMALLOC`], and never reclaim. Asked on slow paths only. `false` where no task is
    /// one.
    fn is_reclaimer() -> bool {
        false
    }
    /// Whether a request with these flags may take the last page: it frees memory, and did not say that it
    /// does without.
    fn takes_reserves(gfp: Gfp) -> bool {
        gfp.takes_reserves() || Self::is_reclaimer() && !gfp.has(Gfp::NOMEMALLOC)
    }
    /// Pages of a zone that are in use but can be handed over at once ([`crate::ReclaimStep::StealClean`]):
    /// the `inactive_clean` list of 2.4.8 and 2.4.9. Asked under their policy only.
    fn clean_frames(_node: NodeId, _zone: u8) -> u64 {
        0
    }
    /// Whether the running task keeps a block that it frees, so that no other task can take it: the
    /// task-local pages of 2.4.10, whose [`Hooks::reclaim`] hands one of them over. The block stays allocated
    /// then. Asked under that policy only.
    fn keeps_freed(_pfn: Pfn, _order: u8) -> bool {
        false
    }
    /// Whether a page allocation of this order may succeed at all: the world's fault injection. Usually
    /// `true`.
    fn permit(order: u8, gfp: Gfp) -> bool;
    /// Counts an event that belongs to no cache: pages, locks.
    fn count(event: Event, n: u64);
    /// A pseudo-random number, for spreading only: no engine needs it to be unpredictable. The kernel reads
    /// the cycle counter here.
    fn random() -> u32;
    /// A number drawn once per world, and unpredictable where an attacker may write to free objects: links
    /// are encoded with it.
    fn secret() -> u64;
    /// Whether the world charges what code reports that is no engine ([`Hooks::touched`], [`Hooks::ran`]).
    fn charges() -> bool {
        false
    }
    /// Code that is no engine touched `bytes` bytes from `site` on.
    fn touched(_site: Site, _bytes: u32, _touch: Touch) -> Charged {
        Charged::default()
    }
    /// Code that is no engine did `times` steps.
    fn ran(_step: Step, _times: u64) -> Charged {
        Charged::default()
    }
    /// Makes a value, a lock, whose words lie at `site`.
    fn made_at<T>(_site: Site, make: impl FnOnce() -> T) -> T {
        make()
    }
    /// Runs `f`, with which the program keeps books of such code: nothing that it touches is charged. `f`
    /// takes no lock.
    fn aside<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    /// Runs `f`, which visits objects that do not depend on each other, such as those of an array, and begins
    /// each visit with [`Hooks::visits`]. A CPU begins a visit while lines of earlier ones are on their way,
    /// so a world that charges lines charges fewer waits. Nothing else changes.
    fn walk<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    /// The next visit of a [`Hooks::walk`] begins.
    fn visits() {}
    /// Ends the program, and says why: an engine found that its data in free memory was overwritten, so it
    /// cannot go on. `cache` is the number of the cache whose data it is, if that is known: a world whose
    /// caches have names prints the name. Panics by default; a world that serves the panic handler's own
    /// allocations has to end in another way.
    #[cold]
    fn broken(cache: Option<u32>, what: fmt::Arguments<'_>) -> ! {
        match cache {
            Some(cache) => panic!("cache {cache}: {what}"),
            None => panic!("{what}"),
        }
    }
}
