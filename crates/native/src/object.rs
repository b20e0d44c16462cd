//! Addresses of objects, and words of mapped memory.

use slablab_platform::HotArray;
pub(crate) use slablab_platform::Real;
use std::fmt;
use std::num::NonZeroUsize;

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
