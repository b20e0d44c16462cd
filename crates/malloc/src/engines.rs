//! Further heaps in a process, on the same page allocator as the process's own: the bench compares engines
//! with them.

use crate::engine;
use crate::heap::Heap;
use crate::shared;
use crate::world::Native;
use slablab_slabs::Front;

/// A further heap of the process, as an allocator. It stays until the process ends.
pub struct ExtraHeap<E: Front<Native> + 'static>(&'static Heap<E>);

impl<E: Front<Native, Common: Sync> + Sync> ExtraHeap<E> {
    /// Makes a further heap. An engine that cannot tell whose an object is ([`KNOWS_OWNERS`]) does not
    /// compile here. `None` without memory, and if the process has the largest number of heaps and caches.
    ///
    /// [`KNOWS_OWNERS`]: slablab_slabs::Engine::KNOWS_OWNERS
    pub fn open(policy: &E::Policy) -> Option<ExtraHeap<E>> {
        // The process's own heap starts the world.
        engine::start_now();
        let (pages, mut registration) = (shared::pages()?, shared::register()?);
        let heap: &'static Heap<E> = Box::leak(Box::new(Heap::new(pages, registration.first(), policy)));
        shared::publish_static(&mut registration, heap);
        Some(ExtraHeap(heap))
    }
}

impl<E: Front<Native>> ExtraHeap<E> {
    /// The heap.
    pub fn heap(&self) -> &'static Heap<E> {
        self.0
    }
}
