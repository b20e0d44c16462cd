//! Heaps beside the process's own, on the same pages: what compares engines within one process. `unsafe`:
//! allocators.

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
use std::alloc::{GlobalAlloc, Layout};

/// A heap that stays until the process ends, as an allocator.
pub struct Beside<E: Front<Native> + 'static>(&'static Heap<E>);

/// A heap of the engine that a preset names.
pub enum Engines {
    /// SLUB, with sheaves or without.
    Slub(Beside<Slub<Native>>),
    /// SLQB.
    Slqb(Beside<Slqb<Native>>),
    /// SLAB.
    Slab(Beside<SlabEngine<Native>>),
}

impl Engines {
    /// Opens a heap beside the process's own. `None` without memory, if there are too many, and for SLOB,
    /// which cannot tell the size of what it gave.
    pub fn open(preset: Preset) -> Option<Engines> {
        if matches!(preset, Preset::Slob(_)) {
            return None;
        }
        // The process's own heap brings the world up.
        crate::api::start_now();
        let (pages, registration) = (shared::pages()?, shared::register()?);
        Some(match preset {
            Preset::Slub(policy) => Engines::Slub(Beside::settle(registration, slub(pages, policy))),
            Preset::Slqb(policy) => {
                Engines::Slqb(Beside::settle(registration, |first| Heap::new(pages, first, &policy)))
            }
            Preset::Slab(policy) => {
                Engines::Slab(Beside::settle(registration, |first| Heap::new(pages, first, &policy)))
            }
            Preset::Slob(_) => unreachable!("refused above"),
        })
    }
}

/// Bytes of a sheaf's objects, where the engine has sheaves: a program's bursts are longer than a kernel's.
const SHEAF_BYTES: u32 = 256 << 10;
/// The largest slabs, 64 KiB on pages of 4 KiB, where nothing says otherwise.
const MAX_ORDER: u8 = COSTLY_ORDER + 1;
/// Where sheaves begin: 12 addresses and the header fill a class of 128 bytes.
const ELASTIC: u32 = 12;

/// Addresses in the largest sheaf of objects of so many bytes: 252 and the header fill a class.
pub fn sheaf_capacity(object_size: u32) -> u32 {
    (SHEAF_BYTES / object_size).clamp(8, 252)
}

/// SLUB's policies as a heap's or an object cache's: what a preset leaves open is chosen for a program.
pub fn slub_here(mut policy: SlubPolicy) -> SlubPolicy {
    if policy.elastic == 0 {
        policy.elastic = ELASTIC;
    }
    // Slabs of a few objects of 16 to 32 KiB are a third unused.
    if policy.max_order == COSTLY_ORDER {
        policy.max_order = MAX_ORDER;
    }
    policy.order_cpus = system::cpus_usable();
    // A freed object's second word is free for the key that tells double frees.
    policy.link = slablab_slabs::cache::LinkPlace::Start;
    policy
}

/// Makes a heap of SLUB, given its first cache's number.
pub(crate) fn slub(
    pages: &'static Pages<Native>,
    policy: SlubPolicy,
) -> impl FnOnce(u32) -> Heap<Slub<Native>> {
    let policy = slub_here(policy);
    move |first| Heap::new(pages, first, &policy)
}

impl<E: Front<Native, Common: Sync> + Sync> Beside<E> {
    fn settle(registration: Registration, make: impl FnOnce(u32) -> Heap<E>) -> Self {
        let heap: &'static Heap<E> = Box::leak(Box::new(make(registration.first())));
        shared::publish_static(&registration, heap);
        Beside(heap)
    }
}

impl<E: Front<Native>> Beside<E> {
    /// The heap.
    pub fn heap(&self) -> &'static Heap<E> {
        self.0
    }
}

// SAFETY: what the heap hands out is the caller's alone, as large and as aligned as asked.
unsafe impl<E: Front<Native>> GlobalAlloc for Beside<E> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.alloc_aligned(layout.size(), layout.align())
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.0.alloc_zeroed(layout.size(), layout.align())
    }
    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, _layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(at) }
    }
    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.0.realloc(at, bytes, layout.align()) }
    }
}
