//! Slots: one per CPU, with a tagged list and a bounded array for the fast paths.
//!
//! Each operation of the fast path tests its conditions and commits with one store, so that a world can make
//! it a restartable sequence. Between operations a slot's hot part is plain data: [`HotList`] and
//! [`HotArray`].

use crate::{CpuId, Event};
use core::ops::{Deref, DerefMut};

/// The condition under which a tagged list serves: `tag & mask == value`.
///
/// SLUB's tag is the CPU slab and its node: a free wants that slab, an allocation wants any slab or one of a
/// node. SLQB wants nothing of the tag and bounds the count instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Bits of the tag that matter.
    pub mask: u64,
    /// The value of these bits.
    pub value: u64,
}

impl Want {
    /// Met by every tag.
    pub const ANY: Want = Want { mask: 0, value: 0 };

    /// Whether `tag` satisfies the condition.
    #[inline]
    pub const fn met(self, tag: u64) -> bool {
        tag & self.mask == self.value
    }
}

/// A list of free objects linked through [`Memory::link`](crate::Memory::link), last in, first out.
///
/// The native world packs `count` with the head (16 and 48 bits), so it never exceeds [`HotList::COUNT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotList<Ptr> {
    /// The object popped next.
    pub head: Option<Ptr>,
    /// Objects on the list.
    pub count: u32,
    /// The owner's label of the list; `pop_if` and `push_if` test it.
    pub tag: u64,
}

impl<Ptr> HotList<Ptr> {
    /// Most objects a list may hold.
    pub const COUNT_MAX: u32 = u16::MAX as u32;
    /// No objects, tag 0.
    pub const EMPTY: HotList<Ptr> = HotList { head: None, count: 0, tag: 0 };
}

/// A bounded array of object addresses that lives in an object (a sheaf, an array cache) and is reached
/// through the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotArray<Ptr> {
    /// The object that holds the array: words [`HotArray::HEADER`].. are addresses. A world may write the
    /// last word of the header.
    pub storage: Option<Ptr>,
    /// Addresses in it.
    pub size: u32,
    /// Addresses it can hold; 0 without storage, so that `pop` and `push` need one test.
    pub capacity: u32,
}

impl<Ptr> HotArray<Ptr> {
    /// Words before the first address: a sheaf's header of 32 bytes (docs/theory/sheaves.md 1).
    pub const HEADER: u32 = 4;
    /// No storage: every `pop` and `push` fails.
    pub const NONE: HotArray<Ptr> = HotArray { storage: None, size: 0, capacity: 0 };
}

/// One slot per CPU: a tagged list, a bounded array, an engine's cold state `T`, and counters.
///
/// The hot operations run on the current CPU's slot. They fail, without effect, when their condition does not
/// hold or while the slot is held by [`PerCpu::local`].
pub trait PerCpu<Ptr, T: Default>: Sized {
    /// A slot held exclusively.
    type Local<'a>: Local<Ptr, T>
    where
        Self: 'a,
        T: 'a;
    /// Slots with empty hot parts and `T::default()`. `link_offset` is the offset of the link in an object.
    fn new(link_offset: u32) -> Self;
    /// As [`PerCpu::new`], for the cache with this number. The worlds of programs have a place for the slots
    /// of some numbers.
    fn of_cache(_cache: u32, link_offset: u32) -> Self {
        Self::new(link_offset)
    }
    /// Takes the head of the current CPU's list if its tag meets `want`, and counts `event`.
    fn pop_if(&self, want: Want, event: Event) -> Option<Ptr>;
    /// Adds `object` to the current CPU's list if the tag meets `want` and the list has fewer than `limit`
    /// objects; counts `event`.
    fn push_if(&self, want: Want, limit: u32, object: Ptr, event: Event) -> bool;
    /// Takes the last address of the current CPU's array, and counts `event`.
    fn pop(&self, event: Event) -> Option<Ptr>;
    /// Adds an address to the current CPU's array unless it is full, and counts `event`.
    fn push(&self, object: Ptr, event: Event) -> bool;
    /// Holds the current CPU's slot exclusively; `None` when the caller was interrupted or moved, or the slot
    /// is held.
    fn local(&self) -> Option<Self::Local<'_>>;
    /// Holds the slot of a CPU that cannot use it now, because the CPU is down or the whole world stands
    /// still; `None` when the slot is live.
    fn claim(&self, cpu: CpuId) -> Option<Self::Local<'_>>;
    /// With `true`: no other caller uses the cache from now on, so every slot can be claimed, live ones too.
    /// With `false`: that has ended.
    fn close(&self, _closed: bool) {}
    /// Asks the owner of a live slot to empty it on the owner's next slow path; [`Local::asked`] tells the
    /// owner.
    fn ask(&self, cpu: CpuId);
    /// Counts an event on the current CPU without holding the slot.
    fn count(&self, event: Event, n: u64);
    /// How often an event was counted on a CPU.
    fn counted(&self, cpu: CpuId, event: Event) -> u64;
    /// Whether a CPU's slot was ever used. An unused slot is empty and has counted no event.
    fn used(&self, cpu: CpuId) -> bool;
}

/// The cheap first parts of the array's operations. Not part of the contract: only the slots of a world that
/// a malloc runs on implement it, because only the functions that a malloc inlines call it.
pub trait Shortcut<Ptr, T: Default>: PerCpu<Ptr, T> {
    /// The arrays of the slots alone. A library that keeps them in a place of its own reads one word less for
    /// [`Shortcut::pop_first`] and [`Shortcut::push_first`]. They must not be used after the cache is gone.
    type Arrays: Copy;
    /// The arrays of these slots.
    fn arrays(&self) -> Self::Arrays;
    /// The cheap first part of [`PerCpu::pop`]. `None` means "call `pop`", not "empty".
    #[inline(always)]
    fn pop_first(&self, event: Event) -> Option<Ptr> {
        self.pop(event)
    }
    /// The cheap first part of [`PerCpu::push`]. `false` means "call `push`", not "full".
    #[inline(always)]
    fn push_first(&self, object: Ptr, event: Event) -> bool {
        self.push(object, event)
    }
    /// Whether [`Shortcut::swap_array`] calls its function here: slots are threads', and no thread is moved
    /// away from its own.
    #[inline]
    fn swaps_arrays() -> bool {
        false
    }
    /// Gives the slot another array without holding the slot. `f` sees the engine's state and the array, and
    /// returns the array that follows, and the answer. `None` if `f` returns `None`, which must have changed
    /// nothing, and where the slot can only be held: then `f` is not called.
    ///
    /// `f` must not wait for a lock, allocate or free. No fork copies the process meanwhile.
    #[inline]
    fn swap_array<R>(&self, f: impl FnOnce(&T, HotArray<Ptr>) -> Option<(HotArray<Ptr>, R)>) -> Option<R> {
        let _ = f;
        None
    }
}

/// A slot held exclusively. Dereferences to the engine's cold state. Dropping it lets go of the slot.
pub trait Local<Ptr, T>: Deref<Target = T> + DerefMut {
    /// The CPU whose slot it is.
    fn cpu(&self) -> CpuId;
    /// The tagged list.
    fn list(&self) -> HotList<Ptr>;
    /// Replaces the tagged list.
    fn set_list(&mut self, list: HotList<Ptr>);
    /// The bounded array.
    fn array(&self) -> HotArray<Ptr>;
    /// Replaces the bounded array.
    fn set_array(&mut self, array: HotArray<Ptr>);
    /// Bytes that [`Local::reserve`] counted on this CPU, in the slots of all caches; 0 where nobody counts.
    fn reserved(&self) -> u64 {
        0
    }
    /// Counts bytes of objects that the slot's array may hold from now on; negative ones are taken off.
    fn reserve(&mut self, bytes: i64) {
        let _ = bytes;
    }
    /// Whether another CPU asked for the slot to be emptied since the last call.
    fn asked(&mut self) -> bool;
    /// Counts an event in this slot.
    fn count(&mut self, event: Event, n: u64);
}
