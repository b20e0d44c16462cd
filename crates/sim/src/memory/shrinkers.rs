//! Caches of slab objects that reclaim can free: dentries, inodes.

use crate::kernel::Kernel;
use slablab_vm::{Shrinker, Shrunk, Vm};
use std::cell::RefCell;
use std::rc::Rc;

/// A cache of objects that reclaim can free. Its program registers it with [`Shrinkers::register`].
pub trait Shrinks {
    /// Its name, and what a call costs.
    fn about(&self) -> Shrinker;
    /// Objects that it could free now.
    fn unused(&self, vm: &Vm) -> u64;
    /// Looks at `n` objects, and frees those that it can.
    fn shrink(&self, vm: &Vm, kernel: &Rc<Kernel>, n: u64) -> Shrunk;
}

/// The caches that reclaim asks.
#[derive(Default)]
pub struct Shrinkers(RefCell<Vec<Rc<dyn Shrinks>>>);

impl Shrinkers {
    /// Reclaim asks this cache for objects from now on, after those that were registered before.
    pub fn register(&self, cache: Rc<dyn Shrinks>) {
        self.0.borrow_mut().push(cache);
    }

    /// The cache of this number.
    pub(super) fn get(&self, number: usize) -> Rc<dyn Shrinks> {
        self.0.borrow()[number].clone()
    }

    /// What each of them is.
    pub(super) fn about(&self) -> Vec<Shrinker> {
        self.0.borrow().iter().map(|cache| cache.about()).collect()
    }
}
