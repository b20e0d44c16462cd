//! Real memory, for worlds to delegate to: a word, and the operations on objects.
//!
//! A world states where its words are ([`Base`]) and forwards the rest:
//! ```text
//! unsafe impl Memory for Kernel {
//!     delegate! { Kernel => RealMemory<Kernel>: link set_link half set_half storage_attach storage_load
//!         storage_store storage_detach fill differs word set_word mark_live }
//! }
//! ```
//! An operation that the world does better, as `fill` by one instruction, stands there instead.
//!
//! The words are `core`'s atomics. A world of a checker has words of its own, so this file is a part of
//! worlds, and no allocator names it.

use crate::bytes::{Piece, find_other, pieces, put};
use crate::{Field, Memory, Word};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// A word or field of real memory.
#[derive(Debug)]
#[repr(transparent)]
pub struct Real(AtomicU64);

impl Real {
    /// A word with the value `value`, for tables that are statics.
    pub const fn new(value: u64) -> Real {
        Real(AtomicU64::new(value))
    }
}

impl Word for Real {
    #[inline]
    fn new(value: u64) -> Self {
        Real::new(value)
    }
    #[inline]
    fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }
    #[inline]
    fn load_acquire(&self) -> u64 {
        // Pairs with the stores and exchanges below.
        self.0.load(Acquire)
    }
    #[inline]
    fn store(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
    #[inline]
    fn store_release(&self, value: u64) {
        // Pairs with `load_acquire` and a successful exchange.
        self.0.store(value, Release);
    }
    #[inline]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        // Pairs with those of other CPUs and with `store_release`.
        self.0.compare_exchange(current, new, AcqRel, Acquire)
    }
}

impl Field for Real {
    #[inline]
    fn new(value: u64) -> Self {
        Real::new(value)
    }
    #[inline]
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

/// Where a world's words are. Only a world has this: what it promises as [`Memory`] covers these functions.
pub trait Base: Memory {
    /// The word `offset` bytes into an object, at a multiple of 8.
    fn at(object: Self::Ptr, offset: u32) -> &'static Real;
    /// An address as a number, never 0. Two addresses differ by the bytes between them.
    fn to_raw(object: Self::Ptr) -> u64;
    /// The address of a number; `None` for 0.
    fn from_raw(raw: u64) -> Option<Self::Ptr>;
    /// The mark of the object that starts at `object`: a word outside of the objects, and the bit in it.
    fn mark(object: Self::Ptr) -> (&'static Real, u32);
}

/// The functions of [`Memory`], by the same names, over the words of `B`.
#[derive(Clone, Copy, Debug)]
pub struct RealMemory<B>(PhantomData<B>);

#[expect(missing_docs, reason = "`Memory` documents the functions")]
impl<B: Base> RealMemory<B> {
    /// The words of a range of bytes.
    fn words(at: B::Ptr, bytes: u32) -> impl Iterator<Item = (Piece, &'static Real)> {
        let skew = B::to_raw(at) & 7;
        let first = B::from_raw(B::to_raw(at) - skew).unwrap_or(at);
        (0..).step_by(8).zip(pieces(skew as u32, bytes)).map(move |(at, piece)| (piece, B::at(first, at)))
    }

    /// The word of a half, and the half's shift in it.
    #[inline]
    fn half_at(at: B::Ptr) -> (&'static Real, u64) {
        let skew = B::to_raw(at) & 6;
        (B::at(B::from_raw(B::to_raw(at) - skew).unwrap_or(at), 0), skew * 8)
    }

    #[inline]
    pub fn link(object: B::Ptr, offset: u32) -> Option<B::Ptr> {
        B::from_raw(B::at(object, offset).get())
    }
    #[inline]
    pub fn set_link(object: B::Ptr, offset: u32, next: Option<B::Ptr>) {
        B::at(object, offset).set(next.map_or(0, B::to_raw));
    }
    #[inline]
    pub fn half(at: B::Ptr) -> u16 {
        let (word, shift) = Self::half_at(at);
        (word.get() >> shift) as u16
    }
    #[inline]
    pub fn set_half(at: B::Ptr, value: u16) {
        let (word, shift) = Self::half_at(at);
        word.set(word.get() & !(0xffff << shift) | u64::from(value) << shift);
    }
    pub fn storage_attach(object: B::Ptr, words: u32) {
        (0..words).for_each(|index| B::at(object, index * 8).set(0));
    }
    #[inline]
    pub fn storage_load(object: B::Ptr, index: u32) -> Option<B::Ptr> {
        Self::link(object, index * 8)
    }
    #[inline]
    pub fn storage_store(object: B::Ptr, index: u32, value: Option<B::Ptr>) {
        Self::set_link(object, index * 8, value);
    }
    pub fn storage_detach(_object: B::Ptr) {}
    pub fn fill(at: B::Ptr, bytes: u32, value: u8) {
        Self::words(at, bytes).for_each(|(piece, word)| word.set(put(word.get(), piece, value)));
    }
    pub fn differs(at: B::Ptr, bytes: u32, value: u8) -> Option<(u32, u8)> {
        Self::words(at, bytes).find_map(|(piece, word)| find_other(word.get(), piece, value))
    }
    pub fn word(at: B::Ptr) -> u64 {
        B::at(at, 0).get()
    }
    pub fn set_word(at: B::Ptr, value: u64) {
        B::at(at, 0).set(value);
    }
    pub fn mark_live(object: B::Ptr, live: bool) -> bool {
        let (word, bit) = B::mark(object);
        let bit = 1 << bit;
        let before = if live { word.0.fetch_or(bit, Relaxed) } else { word.0.fetch_and(!bit, Relaxed) };
        before & bit != 0
    }
}
