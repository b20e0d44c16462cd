//! Locks of the model.
//!
//! At level `count` a lock is never contended, because one CPU runs at a time; at level `cost` calls wait for
//! it. The order in which locks are taken is checked at both.

use crate::state::Entered;
use slablab_platform::{Lock, Rank};
use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A lock that checks its place in the order and counts.
pub struct Ranked<L: Entered, R, T> {
    value: RefCell<T>,
    lines: L::LockLines,
    waiters: L::Waiters,
    rank: PhantomData<fn() -> R>,
}

/// A lock held.
pub struct Guard<'a, L: Entered, R: Rank, T> {
    value: RefMut<'a, T>,
    held: L::Held<'a>,
    rank: PhantomData<fn() -> R>,
}

impl<L: Entered, R: Rank, T> Lock<T> for Ranked<L, R, T> {
    type Guard<'a>
        = Guard<'a, L, R, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Ranked {
            value: RefCell::new(value),
            lines: L::lock_lines(),
            waiters: L::Waiters::default(),
            rank: PhantomData,
        }
    }

    fn lock(&self) -> Guard<'_, L, R, T> {
        let held = L::lock::<R>(&self.waiters, self.lines);
        self.taken(held).unwrap_or_else(|| panic!("{} taken twice: deadlock", R::NAME))
    }

    fn try_lock(&self) -> Option<Guard<'_, L, R, T>> {
        self.taken(L::try_lock::<R>(&self.waiters, self.lines)?)
    }
}

impl<L: Entered, R: Rank, T> Ranked<L, R, T> {
    fn taken<'a>(&'a self, held: L::Held<'a>) -> Option<Guard<'a, L, R, T>> {
        let value = self.value.try_borrow_mut().ok()?;
        if !L::TIMED {
            L::with(|state| state.take_rank::<R>());
        }
        Some(Guard { value, held, rank: PhantomData })
    }
}

impl<L: Entered, R: Rank, T> Drop for Guard<'_, L, R, T> {
    fn drop(&mut self) {
        if L::TIMED {
            L::unlock::<R>(self.held);
        } else {
            L::with(|state| state.drop_rank::<R>());
        }
    }
}

impl<L: Entered, R: Rank, T> Deref for Guard<'_, L, R, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<L: Entered, R: Rank, T> DerefMut for Guard<'_, L, R, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
