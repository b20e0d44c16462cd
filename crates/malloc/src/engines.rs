//! Further heaps in a process, on the same page allocator as the process's own: the bench compares engines
//! with them.

use crate::heap::Heap;
use crate::shared::{self, Registration};
use crate::world::Native;
use slablab_native::system;
use slablab_pages::Pages;
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::order::COSTLY_ORDER;
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
        if matches!(preset, Preset::Slob(_)) {
            return None;
        }
        // The process's own heap starts the world.
        crate::api::start_now();
        let (pages, registration) = (shared::pages()?, shared::register()?);
        Some(match preset {
            Preset::Slub(policy) => Engines::Slub(ExtraHeap::publish(registration, slub(pages, policy))),
            Preset::Slqb(policy) => {
                Engines::Slqb(ExtraHeap::publish(registration, |first| Heap::new(pages, first, &policy)))
            }
            Preset::Slab(policy) => {
                Engines::Slab(ExtraHeap::publish(registration, |first| Heap::new(pages, first, &policy)))
            }
            Preset::Slob(_) => unreachable!("refused above"),
        })
    }
}

/// Bytes of the objects of the largest sheaf: a program's bursts are longer than a kernel's.
const SHEAF_BYTES: u32 = 256 << 10;
/// The order of the largest slabs, 64 KiB on pages of 4 KiB, if the choice names none.
const MAX_ORDER: u8 = COSTLY_ORDER + 1;
/// Addresses in the first sheaf: 12 and the header fill a class of 128 bytes.
const ELASTIC: u32 = 12;

/// Addresses in the largest sheaf of a cache with objects of `object_size` bytes. 252 and the header fill a
/// class.
pub fn sheaf_capacity(object_size: u32) -> u32 {
    (SHEAF_BYTES / object_size).clamp(8, 252)
}

/// SLUB's policies for a heap or an object cache: values that a preset leaves open are chosen for a program.
pub fn slub_here(mut policy: SlubPolicy) -> SlubPolicy {
    if policy.elastic == 0 {
        policy.elastic = ELASTIC;
    }
    // In smaller slabs, of a few objects of 16 to 32 KiB each, a third would be unused.
    if policy.max_order == COSTLY_ORDER {
        policy.max_order = MAX_ORDER;
    }
    policy.order_cpus = system::cpus_usable();
    // The link is the first word, so that the second can hold the key by which a double free is found.
    policy.link = slablab_slabs::cache::LinkPlace::Start;
    policy
}

/// Returns a function that makes a heap of SLUB from the number of its first cache.
pub(crate) fn slub(
    pages: &'static Pages<Native>,
    policy: SlubPolicy,
) -> impl FnOnce(u32) -> Heap<Slub<Native>> {
    let policy = slub_here(policy);
    move |first| Heap::new(pages, first, &policy)
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
