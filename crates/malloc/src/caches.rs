//! The caches of a heap's classes. Those of the default heap are made when a request first needs them: a
//! process uses some of the 72, and the others' memory stays untouched. `unsafe`: refers to room that one
//! thread wrote.

use crate::classes::COUNT;
use slablab_native::Sleep;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// A cache for each class.
///
/// Invariant: `is_made` of a class is stored, by a Release, after its room was written, by a thread that
/// holds [`MAKING`]; nothing writes the room later. So a thread that loaded it with Acquire may refer to the
/// room. Heaps stay as long as the process, so no cache is dropped.
#[repr(C)]
pub(crate) struct Caches<E> {
    is_made: [AtomicBool; COUNT],
    /// Caches of 256 bytes, side by side: another process finds them by their class's number.
    rooms: [UnsafeCell<MaybeUninit<E>>; COUNT],
}

// SAFETY: the invariant of `Caches`: threads share a cache, and only after it was written. It is neither
// moved nor dropped, so the thread that made it may be another one than the heap's owner.
unsafe impl<E: Sync> Sync for Caches<E> {}

/// Held while a cache is made, for a moment: page frames and objects are not taken meanwhile. Boot memory may
/// be. As it is a section, signal handlers that interrupt it take no lock, and forks wait.
static MAKING: Sleep<()> = Sleep::new(());

impl<E> Caches<E> {
    /// Room for caches, none of which is made.
    pub(crate) fn new() -> Self {
        Caches {
            is_made: [const { AtomicBool::new(false) }; COUNT],
            rooms: [const { UnsafeCell::new(MaybeUninit::uninit()) }; COUNT],
        }
    }

    /// [`Caches::new`] at an address, without a touch of the rooms.
    ///
    /// # Safety
    /// The room is valid for writes, and aligned.
    pub(crate) unsafe fn place(at: *mut Self) {
        // SAFETY: the section Safety above. The rooms need no value.
        unsafe { (&raw mut (*at).is_made).write([const { AtomicBool::new(false) }; COUNT]) };
    }

    /// The cache of a class; `None` if it is not made, and for a number that is no class's. Takes no lock.
    #[inline(always)]
    pub(crate) fn get(&self, class: usize) -> Option<&E> {
        // Acquire: pairs with the store in `make`, after the room was written.
        let is_made = self.is_made.get(class)?.load(Acquire);
        // SAFETY: the invariant of `Caches`.
        is_made.then(|| unsafe { (*self.rooms[class].get()).assume_init_ref() })
    }

    /// Makes the cache of a class, unless another thread did.
    #[cold]
    pub(crate) fn make(&self, class: usize, make: impl FnOnce() -> E) -> &E {
        let making = MAKING.lock();
        if self.get(class).is_none() {
            // SAFETY: the invariant of `Caches`: the room is not written, and this thread alone writes it.
            unsafe { (*self.rooms[class].get()).write(make()) };
            self.is_made[class].store(true, Release);
        }
        drop(making);
        self.get(class).expect("the class is made")
    }

    /// The caches that are made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        (0..COUNT).filter_map(|class| self.get(class))
    }
}
