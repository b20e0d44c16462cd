//! Blocks of memory that free themselves; workloads allocate them. `unsafe`: calls allocators.
//!
//! A block's allocator is part of its type. So calls compile to the same code as in a program that has it as
//! the global allocator.

use crate::subject::Subject;
use std::alloc::{GlobalAlloc, Layout, handle_alloc_error};
use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Alignment of every block in bytes, as for most allocations of a Rust program.
const ALIGN: usize = 8;

/// A block of `BYTES` bytes from an allocator. Its first eight bytes have been written.
#[derive(Debug)]
pub(crate) struct Block<A: Subject, const BYTES: usize> {
    at: NonNull<u8>,
    from: PhantomData<fn() -> A>,
}

// SAFETY: the block has one owner, and an allocator accepts memory from any thread.
unsafe impl<A: Subject, const BYTES: usize> Send for Block<A, BYTES> {}

/// Writes the first word of new memory, as programs do, and hides the memory from the compiler so that the
/// calls are not optimised away.
#[inline(always)]
fn touched(at: *mut u8, layout: Layout) -> NonNull<u8> {
    let Some(at) = NonNull::new(at) else { handle_alloc_error(layout) };
    // SAFETY: every layout here has eight bytes, aligned to eight.
    unsafe { at.cast::<u64>().write(1) };
    black_box(at)
}

impl<A: Subject, const BYTES: usize> Block<A, BYTES> {
    const LAYOUT: Layout = match Layout::from_size_align(BYTES, ALIGN) {
        Ok(layout) if BYTES >= 8 => layout,
        _ => panic!("a block has eight bytes at least"),
    };

    /// Allocates a block.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // SAFETY: the layout has a size.
        let at = unsafe { A::heap().alloc(Self::LAYOUT) };
        Block { at: touched(at, Self::LAYOUT), from: PhantomData }
    }

    /// Allocates a block of zeros.
    #[inline(always)]
    pub(crate) fn zeroed() -> Self {
        // SAFETY: the layout has a size.
        let at = unsafe { A::heap().alloc_zeroed(Self::LAYOUT) };
        Block { at: touched(at, Self::LAYOUT), from: PhantomData }
    }

    /// The block's address.
    pub(crate) fn at(&self) -> *const u8 {
        self.at.as_ptr()
    }
}

impl<A: Subject, const BYTES: usize> Drop for Block<A, BYTES> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: allocated in `new` or `zeroed` with this layout.
        unsafe { A::heap().dealloc(self.at.as_ptr(), Self::LAYOUT) }
    }
}

/// A block whose size is known only at run time.
#[derive(Debug)]
pub(crate) struct AnyBlock<A: Subject> {
    at: NonNull<u8>,
    bytes: usize,
    from: PhantomData<fn() -> A>,
}

// SAFETY: the block has one owner, and an allocator accepts memory from any thread.
unsafe impl<A: Subject> Send for AnyBlock<A> {}

impl<A: Subject> AnyBlock<A> {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, ALIGN).expect("less than the address space")
    }

    /// Allocates a block of `bytes` bytes, at least eight.
    #[inline(always)]
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.max(8);
        let layout = Self::layout(bytes);
        // SAFETY: the layout has a size.
        let at = unsafe { A::heap().alloc(layout) };
        AnyBlock { at: touched(at, layout), bytes, from: PhantomData }
    }

    /// Allocates a block of `bytes` bytes and writes all of it.
    pub(crate) fn filled(bytes: usize) -> Self {
        let block = Self::new(bytes);
        // SAFETY: the block has `block.bytes` bytes.
        unsafe { block.at.write_bytes(1, block.bytes) };
        block
    }

    /// The block's address.
    pub(crate) fn at(&self) -> *const u8 {
        self.at.as_ptr()
    }

    /// The requested size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<A: Subject> Drop for AnyBlock<A> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { A::heap().dealloc(self.at.as_ptr(), Self::layout(self.bytes)) }
    }
}
