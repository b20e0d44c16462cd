//! Locks that sleep, inside of sections.
//!
//! A fork copies memory while other threads run, and none of them may hold a lock or a slot then. So every
//! lock and every held slot is inside a *section* (`fork::Section`), and a fork waits until no other thread
//! is in one.
//!
//! The lock itself is the standard library's: one word for `futex`, which neither allocates nor is a
//! cancellation point. Its poison is not looked at: a thread that panics releases its locks.

use crate::fork::Section;
use slablab_platform::{Lock, Rank};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A lock without a rank, for state that no engine knows. Its users say what may be locked while it is held.
#[derive(Debug)]
pub struct Sleep<T>(Mutex<T>);

impl<T> Sleep<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Sleep(Mutex::new(value))
    }

    /// Takes the lock; sleeps while another thread holds it.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        let section = Section::enter();
        Held { value: self.0.lock().unwrap_or_else(PoisonError::into_inner), _section: section }
    }

    #[inline]
    fn try_lock(&self) -> Option<Held<'_, T>> {
        let section = Section::enter();
        Some(Held { value: self.try_inside()?, _section: section })
    }

    /// Takes the lock, unless another thread holds it. The caller is in a section.
    #[inline]
    fn try_inside(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A lock held.
#[derive(Debug)]
pub struct Held<'a, T> {
    value: MutexGuard<'a, T>,
    /// Ends after the lock was released: fields are dropped in their order.
    _section: Section,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
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
    #[inline]
    fn try_in_swap<U>(&self, f: impl FnOnce(&mut T) -> U) -> Option<U> {
        self.lock.try_inside().map(|mut value| f(&mut value))
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
