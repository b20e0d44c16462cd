//! What each CPU keeps of each cache, and locks. `unsafe`: says that CPUs share them.
//!
//! The slots are the plain ones of `slablab-platform`, which turn interrupts off for the few instructions of
//! a hot operation. A lock keeps interrupts off, so no handler finds a lock that its own CPU holds.

use crate::cpu::{self, CPUS, Off};
use crate::world::Kernel;
use core::cell::{RefCell, RefMut};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use slablab_platform::{CpuId, CpuShared, Hooks, Interrupts, Lock, NodeId, PerNode, PlainSlots, Rank};

/// A slot for each CPU, of one cache.
pub type Slots<T> = PlainSlots<Kernel, T, CPUS>;

impl Interrupts for Kernel {
    type Off = Off;
    #[inline]
    fn off() -> Off {
        Off::new()
    }
    fn stands_still(cpu: CpuId) -> bool {
        !cpu::is_online(cpu.0 as usize) || Kernel::is_stopped()
    }
}

/// Values for nodes or CPUs, made at once; `get` says that one is in use.
pub struct Made<T, const N: usize>([(T, AtomicBool); N]);

impl<T: Default, const N: usize> Made<T, N> {
    fn new() -> Self {
        Made(core::array::from_fn(|_| (T::default(), AtomicBool::new(false))))
    }
    fn get(&self, index: u16) -> &T {
        let (value, asked) = &self.0[index as usize];
        asked.store(true, Relaxed);
        value
    }
    fn peek(&self, index: u16) -> Option<&T> {
        let (value, asked) = &self.0[index as usize];
        asked.load(Relaxed).then_some(value)
    }
}

impl<T: Default> PerNode<T> for Made<T, 1> {
    fn new() -> Self {
        Made::new()
    }
    fn get(&self, node: NodeId) -> &T {
        self.get(node.0)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.peek(node.0)
    }
}

impl<T: Default> CpuShared<T> for Made<T, CPUS> {
    fn new() -> Self {
        Made::new()
    }
    fn get(&self, cpu: CpuId) -> &T {
        self.get(cpu.0)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.peek(cpu.0)
    }
}

/// A lock: spins with interrupts off.
pub struct Spin<R, T> {
    /// 0, or the holder's number plus 1.
    holder: AtomicUsize,
    value: RefCell<T>,
    rank: PhantomData<fn() -> R>,
}

/// A lock held. The fields end in this order: the value's use, the lock, interrupts off.
pub struct Guard<'a, T> {
    value: RefMut<'a, T>,
    _unlock: Unlock<'a>,
    _off: Off,
}

struct Unlock<'a>(&'a AtomicUsize);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

impl<R, T> Spin<R, T> {
    pub const fn around(value: T) -> Self {
        Spin { holder: AtomicUsize::new(0), value: RefCell::new(value), rank: PhantomData }
    }
    fn attempt(&self) -> Option<Guard<'_, T>> {
        let off = Off::new();
        self.holder.compare_exchange(0, cpu::current() + 1, Acquire, Relaxed).ok()?;
        Some(Guard { value: self.value.borrow_mut(), _unlock: Unlock(&self.holder), _off: off })
    }
    pub fn wait(&self, name: &str) -> Guard<'_, T> {
        loop {
            if let Some(guard) = self.attempt() {
                return guard;
            }
            let me = cpu::current() + 1;
            assert!(self.holder.load(Relaxed) != me, "CPU {} takes {name} twice", me - 1);
            core::hint::spin_loop();
        }
    }
}

impl<R: Rank, T> Lock<T> for Spin<R, T> {
    type Guard<'a>
        = Guard<'a, T>
    where
        R: 'a,
        T: 'a;

    fn new(value: T) -> Self {
        Spin::around(value)
    }
    fn lock(&self) -> Guard<'_, T> {
        let guard = self.wait(R::NAME);
        Kernel::count(R::EVENT, 1);
        guard
    }
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        let guard = self.attempt()?;
        Kernel::count(R::EVENT, 1);
        Some(guard)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// What all CPUs use at once.
pub struct AllCpus<T>(pub T);

impl<T> AllCpus<T> {
    pub fn get(&self) -> &T {
        &self.0
    }
}

// SAFETY: for heaps, caches and the checks' values alone. What they share is in words, locks and slots. A
// slot's cells are for its CPU with interrupts off, or for its holder; a lock's value is for its holder.
unsafe impl<T> Sync for AllCpus<T> {}
