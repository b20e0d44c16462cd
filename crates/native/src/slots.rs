//! The hot part of a cache in an area. `unsafe`: reaches into areas.
//!
//! | word | while idle | while held, or never used |
//! |---|---|---|
//! | `list` | head shifted by 16, count + 1 in the 17 bits below (objects are aligned to words) | 0: a pop finds nothing, a push no room |
//! | `sizes` | size (32), capacity (32) | 0: likewise |
//!
//! So neither being held nor having no slot costs the fast path a test.

use crate::section::Section;
use crate::thread::{self, Claim};
use crate::world::{Native, Object};
use crate::{lines, memory};
use slablab_platform::{CpuId, Event, HotArray, HotList, Local, PerCpu, Platform, Want};
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::*, compiler_fence};

/// A cache's lines in all areas.
#[derive(Debug)]
pub struct Slots<T> {
    offset: usize,
    link_offset: u32,
    cold: PhantomData<fn() -> T>,
}

/// A cache's lines in one area. Zeros are a slot that was never used.
#[repr(C, align(64))]
struct Slot<T> {
    sizes: Cell<u64>,
    storage: Cell<u64>,
    list: Cell<u64>,
    tag: Cell<u64>,
    asked: AtomicBool,
    held: Cell<bool>,
    /// Whether `cold` was made.
    used: Cell<bool>,
    cold: UnsafeCell<MaybeUninit<T>>,
}

const HEAD_SHIFT: u32 = 16;
const COUNT_MASK: u64 = (1 << 17) - 1;

#[inline]
fn head(list: u64) -> u64 {
    list >> HEAD_SHIFT & !7
}

const CAPACITY: u32 = 32;

/// Where an array's address is in its storage, in bytes.
const fn word_at(index: u32) -> u32 {
    (HotArray::<Object>::HEADER + index) * 8
}

impl<T> Slots<T> {
    #[inline(always)]
    fn at(&self, area: usize) -> &Slot<T> {
        // SAFETY: the lines at `offset` are this cache's in every area, areas are never unmapped, and zeros are a slot.
        unsafe { &*std::ptr::with_exposed_provenance(area + self.offset) }
    }

    #[inline(always)]
    fn mine(&self) -> &Slot<T> {
        self.at(thread::area())
    }

    /// Makes a slot that was never used serve; whether it was one.
    #[cold]
    fn open(&self) -> bool
    where
        T: Default,
    {
        let unused = thread::enter() && !self.mine().used.get();
        unused && self.mine().hold(thread::slot(), None).is_some()
    }

    fn of(&self, cpu: CpuId) -> &Slot<T> {
        self.at(thread::area_of(cpu))
    }
}

impl<T: Default> Slot<T> {
    /// Holds the slot, unless this thread was interrupted while it held it.
    fn hold(&self, cpu: CpuId, claim: Option<Claim>) -> Option<Held<'_, T>> {
        let section = Section::enter();
        if self.held.replace(true) {
            return None;
        }
        compiler_fence(SeqCst);
        let (mut list, sizes) = (self.list.take(), self.sizes.take());
        if !self.used.replace(true) {
            // SAFETY: nobody else reaches `cold` of a held slot.
            unsafe { (*self.cold.get()).write(T::default()) };
            list = 1;
        }
        Some(Held { slot: self, cpu, list, sizes, _claim: claim, _section: section })
    }
}

impl<T: Default> PerCpu<Native, T> for Slots<T> {
    type Local<'a>
        = Held<'a, T>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        let offset = lines::take(size_of::<Slot<T>>()).expect("areas have room for this cache");
        Slots { offset, link_offset, cold: PhantomData }
    }

    #[inline]
    fn pop_if(&self, want: Want, _event: Event) -> Option<Object> {
        let slot = self.mine();
        let list = slot.list.get();
        let object = Object::from_raw(head(list))?;
        if !want.met(slot.tag.get()) {
            return None;
        }
        let next = memory::word(object, self.link_offset).load(Relaxed);
        slot.list.set(next << HEAD_SHIFT | ((list & COUNT_MASK) - 1));
        Some(object)
    }

    #[inline]
    fn push_if(&self, want: Want, limit: u32, object: Object, _event: Event) -> bool {
        let slot = self.mine();
        let list = slot.list.get();
        if !want.met(slot.tag.get()) || ((list & COUNT_MASK) as u32).wrapping_sub(1) >= limit {
            return list == 0 && self.open() && self.push_if(want, limit, object, _event);
        }
        memory::word(object, self.link_offset).store(head(list), Relaxed);
        slot.list.set(Object::to_raw(Some(object)) << HEAD_SHIFT | ((list & COUNT_MASK) + 1));
        true
    }

    #[inline]
    fn pop(&self, _event: Event) -> Option<Object> {
        let slot = self.mine();
        let sizes = slot.sizes.get();
        let size = (sizes as u32).checked_sub(1)?;
        let storage = Object::from_raw(slot.storage.get())?;
        let object = memory::word(storage, word_at(size)).load(Relaxed);
        slot.sizes.set(sizes - 1);
        Object::from_raw(object)
    }

    #[inline]
    fn push(&self, object: Object, _event: Event) -> bool {
        let slot = self.mine();
        let sizes = slot.sizes.get();
        let size = sizes as u32;
        if size >= (sizes >> CAPACITY) as u32 {
            return false;
        }
        let Some(storage) = Object::from_raw(slot.storage.get()) else { return false };
        memory::word(storage, word_at(size)).store(Object::to_raw(Some(object)), Relaxed);
        slot.sizes.set(sizes + 1);
        true
    }

    fn local(&self) -> Option<Held<'_, T>> {
        if !thread::enter() {
            return None;
        }
        self.mine().hold(thread::slot(), None)
    }

    fn claim(&self, cpu: CpuId) -> Option<Held<'_, T>> {
        let claim = Claim::new(cpu)?;
        self.of(cpu).hold(cpu, Some(claim))
    }

    fn ask(&self, cpu: CpuId) {
        self.of(cpu).asked.store(true, Release);
    }

    #[inline]
    fn count(&self, _event: Event, _n: u64) {}

    fn counted(&self, _cpu: CpuId, _event: Event) -> u64 {
        0
    }

    fn used(&self, cpu: CpuId) -> bool {
        self.of(cpu).used.get()
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        for cpu in (0..Native::cpus()).map(CpuId) {
            let slot = self.of(cpu);
            if slot.used.get() {
                // SAFETY: whoever drops a cache is alone with it; `used` says that `cold` was made; zeros are an unused slot.
                unsafe {
                    (*slot.cold.get()).assume_init_drop();
                    std::ptr::from_ref(slot).cast_mut().write_bytes(0, 1);
                }
            }
        }
        lines::give(self.offset, size_of::<Slot<T>>());
    }
}

/// A slot held exclusively: the hot part's words are here, and put back when dropped.
pub struct Held<'a, T> {
    slot: &'a Slot<T>,
    cpu: CpuId,
    list: u64,
    sizes: u64,
    /// Let go after the words were put back: fields are dropped after `drop` ran.
    _claim: Option<Claim>,
    _section: Section,
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.slot.list.set(self.list);
        self.slot.sizes.set(self.sizes);
        compiler_fence(SeqCst);
        self.slot.held.set(false);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the slot is held, and was made when it was first held.
        unsafe { (*self.slot.cold.get()).assume_init_ref() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { (*self.slot.cold.get()).assume_init_mut() }
    }
}

impl<T> Local<Native, T> for Held<'_, T> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }
    fn list(&self) -> HotList<Object> {
        let count = (self.list & COUNT_MASK) - 1;
        HotList { head: Object::from_raw(head(self.list)), count: count as u32, tag: self.slot.tag.get() }
    }
    fn set_list(&mut self, list: HotList<Object>) {
        self.list = Object::to_raw(list.head) << HEAD_SHIFT | (list.count as u64 + 1);
        self.slot.tag.set(list.tag);
    }
    fn array(&self) -> HotArray<Object> {
        let (size, capacity) = (self.sizes as u32, (self.sizes >> CAPACITY) as u32);
        HotArray { storage: Object::from_raw(self.slot.storage.get()), size, capacity }
    }
    fn set_array(&mut self, array: HotArray<Object>) {
        self.slot.storage.set(Object::to_raw(array.storage));
        self.sizes = (array.capacity as u64) << CAPACITY | array.size as u64;
    }
    fn asked(&mut self) -> bool {
        self.slot.asked.swap(false, Acquire)
    }
    fn count(&mut self, _event: Event, _n: u64) {}
}
