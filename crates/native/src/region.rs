//! Addresses turned into references: [`Region`], whose index is checked, and [`HeapAccess`], whose holder
//! promises what it asks for. `unsafe`: that is what this file is for.

use crate::object::Object;
use crate::system;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::with_exposed_provenance;
use std::slice;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// Entries of one type, one after another, in memory that stays.
///
/// Invariant: `len` is 0, or `base` and `len` are what [`Region::new`] asks for, or a part of it.
#[derive(Debug)]
pub(crate) struct Region<T> {
    base: usize,
    len: usize,
    entries: PhantomData<fn() -> T>,
}

impl<T> Clone for Region<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Region<T> {}

impl<T> Region<T> {
    /// A region without entries.
    pub(crate) const fn empty() -> Self {
        Region { base: 0, len: 0, entries: PhantomData }
    }

    /// `len` entries from address `base` on.
    ///
    /// # Safety
    /// - `base` is aligned for `T`, and memory from there on, as large as `len` entries, is mapped for as
    ///   long as the process runs, and was zeros when it was mapped.
    /// - Zeros are a value of `T`, and every part of a `T` is an atomic or a cell.
    /// - The memory is used as entries of `T` alone.
    pub(crate) unsafe fn new(base: usize, len: usize) -> Self {
        Region { base, len, entries: PhantomData }
    }

    /// The entry at `index`; `None` at the region's end and beyond.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<&'static T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: the invariant of `Region`, and `index` is below `len`.
        Some(unsafe { &*with_exposed_provenance::<T>(self.base).add(index) })
    }

    /// `count` entries from `first` on, fewer where the region ends before.
    pub(crate) fn part(self, first: usize, count: usize) -> Self {
        let first = first.min(self.len);
        let len = count.min(self.len - first);
        Region { base: self.base + first * size_of::<T>(), len, entries: PhantomData }
    }

    /// The address of the first entry; 0 where no region was set.
    pub(crate) fn base(self) -> usize {
        self.base
    }

    /// Entries.
    pub(crate) fn len(self) -> usize {
        self.len
    }
}

/// A static's region: empty until it is set, once.
///
/// Invariant: `base` and `len` are 0, or `base` is set and `len` still 0, or both are one region's.
#[derive(Debug)]
pub(crate) struct Table<T> {
    base: AtomicUsize,
    len: AtomicUsize,
    entries: PhantomData<fn() -> T>,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Table { base: AtomicUsize::new(0), len: AtomicUsize::new(0), entries: PhantomData }
    }

    /// Sets the region. A second call changes nothing.
    pub(crate) fn set(&self, region: Region<T>) {
        if self.base.compare_exchange(0, region.base, Relaxed, Relaxed).is_ok() {
            // Release: pairs with `region`, which reads `base` after it.
            self.len.store(region.len, Release);
        }
    }

    #[inline(always)]
    pub(crate) fn region(&self) -> Region<T> {
        // Acquire: pairs with `set`, so that `base` is set where `len` is.
        let len = self.len.load(Acquire);
        // SAFETY: the invariant of `Table`: `set` stored both from one region, which keeps `Region::new`'s
        // promise; with a length of 0 there is none to keep.
        unsafe { Region::new(self.base.load(Relaxed), len) }
    }

    /// The entry at `index`; `None` beyond the region, and before it is set.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<&'static T> {
        self.region().get(index)
    }
}

/// A value in an area, which one thread at a time has to itself. Not an atomic: the compiler may leave out a
/// load whose value it does not need, and a fast path is that long.
#[derive(Debug)]
pub(crate) struct Own<T: Copy>(Cell<T>);

// SAFETY: these are in areas. The thread with an area's slot is the only one that calls `set` (`area::name`)
// and `get` (`area::local_pagemap`, of its own area): `thread::STATES` has one such thread at a time, and its
// exchanges (Acquire, Release) order it with the one before. The refusing areas' are never set.
unsafe impl<T: Copy + Send> Sync for Own<T> {}

impl<T: Copy> Own<T> {
    pub(crate) const fn new(value: T) -> Self {
        Own(Cell::new(value))
    }
    pub(crate) fn set(&self, value: T) {
        self.0.set(value);
    }
    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        self.0.get()
    }
}

/// `count` words, all zeros, in a mapping of their own that is never given back. `None` without memory.
pub(crate) fn words(count: usize) -> Option<&'static [AtomicU64]> {
    let base = system::map_block(count * size_of::<AtomicU64>(), system::page_size())?;
    // SAFETY: `map_block` returned a new mapping of zeros that is large enough, and nothing unmaps it.
    Some(unsafe { slice::from_raw_parts(base.as_ptr().cast_const().cast(), count) })
}

/// Where a cache's lines are in each area, and where its objects keep their link: for the sequences, which
/// check neither.
///
/// Invariant: what [`Cache::new`] asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cache {
    offset: u32,
    link: u32,
}

impl Cache {
    /// # Safety
    /// The lines at `offset` are the cache's in every area and begin with a [`crate::sequence::Hot`]; `link`
    /// is the offset of a word in each of its free objects. Only free objects of the cache, and arrays of
    /// their addresses, come into those lines, by a sequence too.
    pub(crate) unsafe fn new(offset: u32, link: u32) -> Cache {
        Cache { offset, link }
    }
    #[inline(always)]
    pub(crate) fn offset(self) -> u32 {
        self.offset
    }
    #[inline(always)]
    pub(crate) fn link(self) -> u32 {
        self.link
    }
}

/// Leave to use the memory of the heap, by addresses that are not checked.
///
/// Invariant: there is one only where [`HeapAccess::trusted`]'s promise holds. So the address that its
/// functions get is one of an entry or of an object that an engine was handed out by its page allocator, in
/// page frames that `Frames::commit_frames` and `Frames::commit_descriptors` committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapAccess(());

impl HeapAccess {
    /// # Safety
    /// Code that uses it acts for a program that implements [`crate::Trusted`], on addresses that come from
    /// the contract's functions.
    pub(crate) const unsafe fn trusted() -> Self {
        HeapAccess(())
    }

    /// The entry of one of the heap's tables, or the words of free memory of the heap, at `address`; `T` is
    /// of atomics.
    #[inline(always)]
    pub(crate) fn at<'a, T>(self, address: usize) -> &'a T {
        debug_assert!(address.is_multiple_of(align_of::<T>()) && address != 0, "{address:#x}");
        // SAFETY: the invariant of `HeapAccess`.
        unsafe { &*with_exposed_provenance(address) }
    }

    /// Fills bytes of a slab that the caller owns.
    #[inline]
    pub(crate) fn fill(self, object: Object, bytes: u32, value: u8) {
        // SAFETY: the invariant of `HeapAccess`; an engine fills what it owns (`Memory::fill`).
        unsafe { object.as_ptr().write_bytes(value, bytes as usize) };
    }

    /// Bytes of a slab that the caller owns, and that no thread writes while they are looked at.
    pub(crate) fn bytes<'a>(self, object: Object, bytes: u32) -> &'a [u8] {
        // SAFETY: the invariant of `HeapAccess`; an engine compares what it owns (`Memory::differs`).
        unsafe { slice::from_raw_parts(object.as_ptr(), bytes as usize) }
    }

    /// The object at an address of the heap, which does not begin at 0.
    #[inline(always)]
    pub(crate) fn object(self, raw: u64) -> Object {
        // SAFETY: the invariant of `HeapAccess`: the address is in the heap, which `Space::reserve` maps at
        // an address of the kernel's choice, never 0.
        unsafe { Object::from_raw(raw).unwrap_unchecked() }
    }
}
