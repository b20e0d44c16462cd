//! Further heaps in a process, on the same page allocator as the process's own.
//!
//! | type | engine | for |
//! |---|---|---|
//! | [`ExtraHeap`] | a type, without wrappers | the bench: calls are compiled for the engine |
//! | [`ChosenHeap`] | chosen at run time, with wrappers | a part of a program that needs another malloc |

use crate::engine::{self, placed};
use crate::env;
use crate::fast::Given;
use crate::heap::Heap;
use crate::shared::{self, Registration};
use crate::world::Native;
use crate::wrapped::Serves;
use slablab_pages::Pages;
use slablab_slabs::Front;
use slablab_slabs::preset::Choice;
use std::fmt;

/// Bytes that a slot must have room for: those of the classes' caches, wrapped or not.
const SLOT_BYTES: usize = 64 << 10;

/// The page allocator and cache numbers for a further heap. `None` without memory or room in slots, and if
/// the process has the largest number of heaps and caches.
fn room() -> Option<(&'static Pages<Native>, Registration)> {
    // The process's own heap starts the world.
    engine::start_now();
    let pages = shared::pages()?;
    if Native::has_room(SLOT_BYTES) { Some((pages, shared::register()?)) } else { None }
}

/// A further heap of the process, as an allocator. It stays until the process ends.
pub struct ExtraHeap<E: Front<Native> + 'static>(&'static Heap<E>);

impl<E: Front<Native, Common: Sync> + Sync> ExtraHeap<E> {
    /// Makes a further heap. An engine that cannot tell whose an object is ([`KNOWS_OWNERS`]) does not
    /// compile here. `None` without memory, and if the process has the largest number of heaps and caches.
    ///
    /// [`KNOWS_OWNERS`]: slablab_slabs::Engine::KNOWS_OWNERS
    pub fn open(policy: &E::Policy) -> Option<ExtraHeap<E>> {
        let (pages, mut registration) = room()?;
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

/// A further heap of the process, whose engine and wrappers are chosen at run time. It stays until the
/// process ends.
///
/// An object is freed and resized by the heap that allocated it: another heap, the process's own too, reports
/// such an object and ends the process. Blocks above the size classes are page frames, which any heap takes
/// back. Not for signal handlers.
#[derive(Clone, Copy)]
pub struct ChosenHeap(&'static dyn Serves);

/// Why there is no further heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoHeap {
    /// The text names no engine, or one that cannot serve malloc.
    Engine(String),
    /// There is no memory, or the process has the largest number of heaps and caches.
    Memory,
}

impl ChosenHeap {
    /// Makes a heap of an engine with its knobs, for example `slub@6.1` or `slab@6.1,debug=FZPU`.
    ///
    /// # Errors
    /// [`NoHeap::Engine`] also for `harden=on`: all free memory of a hardened process is zeros, from its
    /// start.
    pub fn open(engine: &str) -> Result<ChosenHeap, NoHeap> {
        let choice = Choice::parse(engine).map_err(|bad| NoHeap::Engine(bad.to_string()))?;
        if let Some(why) = env::refusal(&choice) {
            return Err(NoHeap::Engine(format!("{engine}: {why}")));
        }
        if choice.wrap.hardened {
            let why = "harden=on is for the process's own heap: set SLABLAB_ENGINE";
            return Err(NoHeap::Engine(format!("{engine}: {why}")));
        }
        let (pages, mut registration) = room().ok_or(NoHeap::Memory)?;
        match placed(pages, registration.first(), &choice) {
            Some(heap) => {
                shared::publish_static(&mut registration, heap.tenant());
                Ok(ChosenHeap(heap))
            }
            None => {
                shared::release(registration);
                Err(NoHeap::Memory)
            }
        }
    }

    /// `bytes` bytes, aligned to the power of two `align`, and to 16; null without memory.
    pub fn alloc_aligned(&self, bytes: usize, align: usize) -> *mut u8 {
        self.0.alloc_aligned(bytes, align)
    }

    /// `bytes` zeros, aligned to the power of two `align`, and to 16; null without memory.
    pub fn alloc_zeroed(&self, bytes: usize, align: usize) -> *mut u8 {
        self.0.alloc_zeroed(bytes, align)
    }

    /// Frees memory. An address that is no live allocation's start ends the process with a report.
    pub fn free(&self, at: Given) {
        self.0.free(at);
    }

    /// Frees memory whose size and alignment the caller says. With debugging around the engine, a size or an
    /// alignment that is not the allocation's is reported, and the memory is freed all the same.
    pub fn free_sized(&self, at: Given, bytes: usize, align: usize) {
        self.0.check_sized(at.as_ptr(), Some(bytes), align);
        self.0.free(at);
    }

    /// Gives an allocation another size, where it is or elsewhere; null without memory, and then the
    /// allocation stays as it is.
    pub fn realloc(&self, at: Given, bytes: usize, align: usize) -> *mut u8 {
        self.0.realloc(at, bytes, align)
    }

    /// Bytes that may be used at the start of a live allocation; 0 for null.
    pub fn usable(&self, at: *const u8) -> usize {
        self.0.usable(at)
    }
}

impl fmt::Debug for ChosenHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut to = f.debug_struct("ChosenHeap");
        let mut caches = 0;
        self.0.tenant().each_usage(&mut |_, _| caches += 1);
        to.field("caches", &caches).finish_non_exhaustive()
    }
}

impl fmt::Display for NoHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoHeap::Engine(why) => f.write_str(why),
            NoHeap::Memory => f.write_str("no memory for a heap, or too many heaps and caches"),
        }
    }
}

impl std::error::Error for NoHeap {}
