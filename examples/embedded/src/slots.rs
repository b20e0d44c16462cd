//! What the CPU keeps for itself of each cache, values made when first asked for, and locks.
//!
//! The slots are the plain ones of `slablab-platform`: their hot operations turn interrupts off for a few
//! instructions, and a slot that is held lets interrupts in, and refuses them.

use crate::cpu::{Off, asked};
use crate::world::Kernel;
use core::cell::{OnceCell, RefCell, RefMut};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use slablab_platform::{
    CpuId, CpuShared, Hooks, Interrupts, Lock, NodeId, PerNode, PlainSlots, Rank, Topology,
};

/// The CPU's slot of one cache.
pub(crate) type Slots<T> = PlainSlots<Kernel, T, 1>;

impl Interrupts for Kernel {
    type Off = Off;
    fn off() -> Off {
        Off::new()
    }
    fn stands_still(cpu: CpuId) -> bool {
        !Kernel::cpu_online(cpu)
    }
    #[inline(always)]
    fn asked() {
        asked();
    }
    fn refused() {
        #[cfg(test)]
        crate::tests::machine::refused();
    }
}

/// A value made when first asked for: there is one node, and one CPU.
#[derive(Debug)]
pub struct Made<T>(OnceCell<T>);

impl<T: Default> Made<T> {
    fn made(&self) -> &T {
        asked();
        // An interrupt must not come while it is made and ask for it.
        self.0.get().unwrap_or_else(|| {
            let _off = Off::new();
            self.0.get_or_init(T::default)
        })
    }
}

impl<T: Default> PerNode<T> for Made<T> {
    fn new() -> Self {
        Made(OnceCell::new())
    }
    fn get(&self, _node: NodeId) -> &T {
        self.made()
    }
    fn peek(&self, _node: NodeId) -> Option<&T> {
        self.0.get()
    }
}

impl<T: Default> CpuShared<T> for Made<T> {
    fn new() -> Self {
        Made(OnceCell::new())
    }
    fn get(&self, _cpu: CpuId) -> &T {
        self.made()
    }
    fn peek(&self, _cpu: CpuId) -> Option<&T> {
        self.0.get()
    }
}

/// A lock. On one CPU it is interrupts turned off; who finds it held has a fault.
#[derive(Debug)]
pub struct Quiet<R, T>(RefCell<T>, PhantomData<fn() -> R>);

/// A lock held. The value is let go first, then interrupts come.
#[derive(Debug)]
pub struct Guard<'a, T>(RefMut<'a, T>, Off);

impl<R: Rank, T> Lock<T> for Quiet<R, T> {
    type Guard<'a>
        = Guard<'a, T>
    where
        R: 'a,
        T: 'a;

    fn new(value: T) -> Self {
        Quiet(RefCell::new(value), PhantomData)
    }
    fn lock(&self) -> Guard<'_, T> {
        self.try_lock().unwrap_or_else(|| panic!("{} is held: by whoever asks for it", R::NAME))
    }
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        asked();
        let off = Off::new();
        let value = self.0.try_borrow_mut().ok()?;
        Kernel::count(R::EVENT, 1);
        Some(Guard(value, off))
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
