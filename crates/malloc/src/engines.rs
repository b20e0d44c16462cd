//! Further heaps in a process, on the same page allocator as the process's own: the bench compares engines
//! with them.

use crate::engine;
use crate::heap::Heap;
use crate::policy::slub_here;
use crate::shared::{self, Registration};
use crate::world::Native;
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::{Front, Preset};

/// A further heap of the process, as an allocator. It stays until the process ends.
pub struct ExtraHeap<E: Front<Native> + 'static>(&'static Heap<E>);

/// A further heap, by the engine of its preset.
pub enum Engines {
    /// SLUB, with sheaves or without.
    Slub(ExtraHeap<Slub<Native>>),
    /// SLQB.
    Slqb(ExtraHeap<Slqb<Native>>),
    /// SLAB.
    Slab(ExtraHeap<SlabEngine<Native>>),
}

impl Engines {
    /// Makes a further heap. `None` without memory, if the process has the largest number of heaps and
    /// caches, and for SLOB, which cannot tell the size of an object.
    pub fn open(preset: Preset) -> Option<Engines> {
        if matches!(preset, Preset::Slob(_) | Preset::Registered(_)) {
            return None;
        }
        // The process's own heap starts the world.
        engine::start_now();
        let (pages, registration) = (shared::pages()?, shared::register()?);
        Some(match preset {
            Preset::Slub(policy) => {
                let policy = slub_here(policy, false);
                Engines::Slub(ExtraHeap::publish(registration, |first| Heap::new(pages, first, &policy)))
            }
            Preset::Slqb(policy) => {
                Engines::Slqb(ExtraHeap::publish(registration, |first| Heap::new(pages, first, &policy)))
            }
            Preset::Slab(policy) => {
                Engines::Slab(ExtraHeap::publish(registration, |first| Heap::new(pages, first, &policy)))
            }
            Preset::Slob(_) | Preset::Registered(_) => unreachable!("refused above"),
        })
    }
}

impl<E: Front<Native, Common: Sync> + Sync> ExtraHeap<E> {
    /// Makes a heap and registers it as a tenant.
    fn publish(mut registration: Registration, make: impl FnOnce(u32) -> Heap<E>) -> Self {
        let heap: &'static Heap<E> = Box::leak(Box::new(make(registration.first())));
        shared::publish_static(&mut registration, heap);
        ExtraHeap(heap)
    }
}

impl<E: Front<Native>> ExtraHeap<E> {
    /// The heap.
    pub fn heap(&self) -> &'static Heap<E> {
        self.0
    }
}
