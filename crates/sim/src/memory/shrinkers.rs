//! Caches of slab objects that reclaim can free: dentries, inodes.

use super::Memory;
use slablab_vm::{Shrinker, Shrunk};
use std::rc::Rc;

/// A cache of objects that reclaim can free. Its program registers it with [`Memory::register_shrinker`].
pub trait Shrinks {
    /// Its name, and what a call costs.
    fn about(&self) -> Shrinker;
    /// Objects that it could free now.
    fn unused(&self, memory: &Memory) -> u64;
    /// Looks at `n` objects, and frees those that it can.
    fn shrink(&self, memory: &Memory, n: u64) -> Shrunk;
}

impl Memory {
    /// Reclaim asks this cache for objects from now on, after those that were registered before.
    pub fn register_shrinker(&self, cache: Rc<dyn Shrinks>) {
        self.shrinkers.borrow_mut().push(cache);
    }

    pub(super) fn shrinker(&self, number: usize) -> Rc<dyn Shrinks> {
        self.shrinkers.borrow()[number].clone()
    }
}
