//! Addresses of objects, and words of mapped memory.

use slablab_platform::{Field, HotArray, Word};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// An object's address. A number, so that it may go to another thread. Having one permits nothing: only a
/// world [`crate::Native`] reads or writes the bytes at an address, and that takes [`crate::Trusted`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Object(NonZeroUsize);

impl Object {
    /// The object at an address; `None` for null.
    #[inline]
    pub fn at(at: *mut u8) -> Option<Object> {
        NonZeroUsize::new(at.expose_provenance()).map(Object)
    }
    /// Its address.
    #[inline]
    pub fn as_ptr(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0.get())
    }
    /// Its address as a number.
    #[inline]
    pub fn addr(self) -> usize {
        self.0.get()
    }
    #[inline]
    pub(crate) fn from_raw(raw: u64) -> Option<Object> {
        NonZeroUsize::new(raw as usize).map(Object)
    }
    #[inline]
    pub(crate) fn to_raw(object: Option<Object>) -> u64 {
        object.map_or(0, Object::addr) as u64
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Bytes before the first address of an array of addresses.
pub(crate) const FIRST_BYTES: u32 = HotArray::<Object>::HEADER * 8;

/// A word or field of mapped memory.
#[derive(Debug)]
#[repr(transparent)]
pub struct Real(AtomicU64);

impl Word for Real {
    #[inline]
    fn new(value: u64) -> Self {
        Real(AtomicU64::new(value))
    }
    #[inline]
    fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }
    #[inline]
    fn load_acquire(&self) -> u64 {
        self.0.load(Acquire)
    }
    #[inline]
    fn store(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
    #[inline]
    fn store_release(&self, value: u64) {
        self.0.store(value, Release);
    }
    #[inline]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, AcqRel, Acquire)
    }
}

impl Field for Real {
    #[inline]
    fn new(value: u64) -> Self {
        Real(AtomicU64::new(value))
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
