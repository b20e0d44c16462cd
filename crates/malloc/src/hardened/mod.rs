//! The hardened profile (`harden=on`): a SLUB heap whose objects are guarded at a price that programs can pay
//! all the time.
//!
//! # Theory
//!
//! The heap inside is the default one: slabs with maps of their free objects, sheaves per thread. So no free
//! object holds a link, and none can be overwritten. Around it:
//!
//! ```text
//! object     | requested bytes | slack: zeros | tail: canary and slack |      a class of at least bytes + 8
//! free       | zeros                                                   |
//!
//! alloc   class of bytes + 8 ─▶ sheaf ─▶ changes places in the ring ─▶ still zeros? ─▶ tail written
//! free    start of an object? ─▶ tail and slack right? ─▶ zeros ─▶ ring ─▶ who was there goes to the sheaf
//! ```
//!
//! **What always holds.** Every byte of free memory is 0: of objects in rings, sheaves and slabs, and of page
//! frames (`Native::zero_unmapped`, [`zeroing`]). So `calloc` fills nothing, and an object that is not zeros
//! when it is allocated was written to after its free.
//!
//! | file | what |
//! |---|---|
//! | `tail` | the last word: live or free, the requested size, the canary |
//! | `ring` | a thread's few objects of a class that wait, and their random order |
//! | `objects` | requests of the classes |
//! | `blocks` | large blocks, with inaccessible page frames before and behind |
//! | `sizes` | usable bytes, sized frees, `realloc` |
//! | `found` | the reports |
//! | `bytes` | memory filled and compared |
//!
//! Deliberately absent: a way to go on. Each violation ends the process.

mod blocks;
#[expect(unsafe_code, reason = "reads and writes memory of the heap")]
mod bytes;
mod found;
mod objects;
mod ring;
mod sizes;
mod tail;

use crate::classes;
use crate::fast::Given;
use crate::freed_blocks;
use crate::heap::Heap;
use crate::shared::note::Note;
use crate::shared::{EachCache, Tenant};
use crate::world::Native;
use crate::wrapped::Serves;
use crate::zeroing;
use ring::{MOST, Ring};
use slablab_native::Object;
use slablab_platform::{CpuId, PerCpu, Platform, Topology, Work};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::{Idle, Metadata, Usage};
use std::fmt;
use tail::Keys;

/// The size of a free that says none.
pub(crate) const UNSAID: usize = usize::MAX;

/// The hardened heap.
pub(crate) struct Hardened {
    pub(crate) heap: Heap<Slub<Native>>,
    pub(crate) guards: Guards,
}

/// What is around the heap inside.
pub(crate) struct Guards {
    keys: Keys,
    rings: [<Native as Platform>::PerCpu<Ring>; classes::COUNT],
}

impl Guards {
    /// Has all free memory of the process be zeros from now on: before the heap inside, whose caches have the
    /// numbers from `first` on, has memory.
    pub(crate) fn new(first: u32) -> Guards {
        zeroing::begin(first..first + classes::COUNT as u32);
        Guards { keys: Keys::new(), rings: std::array::from_fn(|_| PerCpu::new(0)) }
    }
}

impl Hardened {
    /// Frees the objects of a slot's rings to their slabs, as far as the slot can be claimed.
    fn empty_rings(&self, cpu: CpuId) {
        for (class, ring) in self.guards.rings.iter().enumerate().filter(|(_, ring)| ring.used(cpu)) {
            let taken: [Option<Object>; MOST] = match ring.claim(cpu) {
                Some(mut held) => held.take(),
                None => return,
            };
            for object in taken.into_iter().flatten() {
                self.put_in_slab(class, object);
            }
        }
    }
}

/// Statistics are the heap's: objects in rings count as allocated.
impl Tenant for Hardened {
    fn work(&self, cpu: CpuId, work: Work) {
        Tenant::work(&self.heap, cpu, work);
    }
    fn thread_exit(&self, cpu: CpuId) {
        self.empty_rings(cpu);
        self.heap.thread_exit(cpu);
    }
    fn shrink(&self, turn: u32, idle: Idle) -> bool {
        self.heap.shrink(turn, idle)
    }
    fn shrink_all(&self) {
        (0..Native::cpus()).for_each(|cpu| self.empty_rings(CpuId(cpu)));
        freed_blocks::release_all(self.heap.pages);
        self.heap.shrink_all();
    }
    fn barn_bytes(&self) -> u64 {
        self.heap.barn_bytes()
    }
    fn each_usage(&self, each: &mut dyn FnMut(&Usage, u32)) {
        self.heap.each_usage(each);
    }
    fn each_cache(&self, each: &mut EachCache<'_>) {
        self.heap.each_cache(each);
    }
    fn note(&self) -> Note {
        self.heap.note()
    }
    fn write_name(&self, cache: u32, to: &mut dyn fmt::Write) -> fmt::Result {
        self.heap.write_name(cache, to)
    }
}

impl Serves for Hardened {
    fn alloc_aligned(&self, bytes: usize, align: usize) -> *mut u8 {
        if align <= classes::STEP { self.alloc(bytes) } else { self.alloc_aligned(bytes, align) }
    }
    fn alloc_zeroed(&self, bytes: usize, align: usize) -> *mut u8 {
        self.alloc_zeroed(bytes, align)
    }
    fn free(&self, at: Given) {
        self.free_sized(at, UNSAID, 1);
    }
    fn free_sized(&self, at: Given, bytes: Option<usize>, align: usize) {
        self.free_sized(at, bytes.unwrap_or(UNSAID), align);
    }
    fn usable(&self, at: *const u8) -> usize {
        self.usable(at)
    }
    /// A wrong size or alignment ends the process when the memory is freed.
    fn check_sized(&self, _: *mut u8, _: Option<usize>, _: usize) {}
    fn realloc(&self, at: Given, bytes: usize, align: usize) -> *mut u8 {
        self.realloc(at, bytes, align)
    }
    fn tenant(&'static self) -> &'static dyn Tenant {
        self
    }
    fn metadata(&'static self) -> &'static dyn Metadata<Native> {
        &self.heap
    }
}
