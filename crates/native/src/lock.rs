//! Locks that sleep, and the gate that fork closes. `unsafe`: a lock hands out what is inside it.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | 1 | held |
//! | 2 | held, and threads may sleep |
//!
//! A fork copies memory while other threads run, and none of them may hold a lock or a slot then. So every
//! lock and every held slot is inside a *section* (`fork::Section`), and a fork waits until no other thread
//! is in one.

use crate::fork::Section;
use crate::system;
use slablab_platform::{Lock, Rank};
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::*};

/// A lock without a rank, for state that no engine knows. Innermost: a thread that holds one takes no other
/// lock.
#[derive(Debug)]
pub struct Sleep<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time.
unsafe impl<T: Send> Sync for Sleep<T> {}

/// How often a thread reads a held lock before it sleeps: most locks are held for less time than a sleep
/// takes.
const SPINS: u32 = 100;

impl<T> Sleep<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Sleep { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock; sleeps while another thread holds it.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        let section = Section::enter();
        if self.word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            self.wait();
        }
        Held { lock: self, _section: section }
    }

    #[inline]
    fn try_lock(&self) -> Option<Held<'_, T>> {
        let section = Section::enter();
        let taken = self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        // Not `then_some`: a guard that was not taken must not be dropped.
        taken.then(|| Held { lock: self, _section: section })
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            if self.word.load(Relaxed) == 0 && self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                return;
            }
            spin_loop();
        }
        while self.word.swap(2, Acquire) != 0 {
            system::futex_wait(&self.word, 2);
        }
    }
}

/// A lock held.
#[derive(Debug)]
pub struct Held<'a, T> {
    lock: &'a Sleep<T>,
    /// Ends after the lock was released: fields are dropped after `drop`.
    _section: Section,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.lock.word.swap(0, Release) == 2 {
            system::futex_wake(&self.lock.word);
        }
    }
}

/// A lock with a rank. The model's and the check's worlds check the order of ranks.
#[derive(Debug)]
pub struct Futex<R, T> {
    lock: Sleep<T>,
    rank: PhantomData<fn() -> R>,
}

/// A ranked lock held.
#[derive(Debug)]
pub struct Guard<'a, T>(Held<'a, T>);

impl<R: Rank, T> Lock<T> for Futex<R, T> {
    type Guard<'a>
        = Guard<'a, T>
    where
        T: 'a,
        R: 'a;

    fn new(value: T) -> Self {
        Futex { lock: Sleep::new(value), rank: PhantomData }
    }
    #[inline]
    fn lock(&self) -> Guard<'_, T> {
        Guard(self.lock.lock())
    }
    #[inline]
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.lock.try_lock().map(Guard)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
