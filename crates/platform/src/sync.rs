//! Words, locks, and values per node and per CPU: what CPUs share.

use crate::{CpuId, NodeId};
use core::fmt::Debug;
use core::ops::DerefMut;

/// A word that other CPUs may write at the same time. Each method names its ordering.
pub trait Word: Debug {
    /// A word with the value `value`.
    fn new(value: u64) -> Self;
    /// Relaxed load.
    fn load(&self) -> u64;
    /// Acquire load: pairs with a `store_release` or a successful `compare_exchange`.
    fn load_acquire(&self) -> u64;
    /// Relaxed store.
    fn store(&self, value: u64);
    /// Release store.
    fn store_release(&self, value: u64);
    /// Acquire and release on success, acquire on failure. Strong: fails only when the word's value is not
    /// `current`.
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64>;
}

/// A word that a lock or an owner protects.
pub trait Field: Debug {
    /// A field with the value `value`.
    fn new(value: u64) -> Self;
    /// Reads the field.
    fn get(&self) -> u64;
    /// Writes the field.
    fn set(&self, value: u64);
}

/// Mutual exclusion around a value.
pub trait Lock<T> {
    /// Access to the value; dropping it unlocks.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;
    /// An unlocked lock around `value`.
    fn new(value: T) -> Self;
    /// Takes the lock; waits while another CPU holds it.
    ///
    /// The call may be suspended here: a world that runs calls as coroutines switches to another call, on
    /// this CPU or another. The caller may hold locks of lower rank, and a slot, which refuses other calls
    /// meanwhile.
    fn lock(&self) -> Self::Guard<'_>;
    /// Takes the lock unless it is held. Never waits.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
    /// Calls `f` with the value, unless the lock is held. For functions that [`crate::Shortcut::swap_array`]
    /// calls: no fork copies the process meanwhile, so the lock itself need not keep one from it.
    #[inline]
    fn try_in_swap<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_lock().map(|mut value| f(&mut value))
    }
}

/// One value per node, made by `T::default()` when first asked for.
pub trait PerNode<T: Default> {
    /// No value is made yet.
    fn new() -> Self;
    /// The node's value.
    fn get(&self, node: NodeId) -> &T;
    /// The node's value if [`PerNode::get`] made it before.
    fn peek(&self, node: NodeId) -> Option<&T>;
}

/// One value per CPU that every CPU may reach, made by `T::default()` when first asked for: what other CPUs
/// leave for a CPU, because they may not reach into its live slot. The value brings its own locks and words.
pub trait CpuShared<T: Default> {
    /// No value is made yet.
    fn new() -> Self;
    /// The CPU's value.
    fn get(&self, cpu: CpuId) -> &T;
    /// The CPU's value if [`CpuShared::get`] made it before.
    fn peek(&self, cpu: CpuId) -> Option<&T>;
}
