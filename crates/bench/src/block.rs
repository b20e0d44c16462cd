//! Blocks of memory that free themselves; workloads allocate them. `unsafe`: calls allocators.
//!
//! A block's allocator is part of its type. So calls compile to the same code as in a program that has it as
//! the global allocator.

use crate::subject::{Role, Subject};
use slablab_malloc::Given;
use std::alloc::{GlobalAlloc, Layout, handle_alloc_error};
use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
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

/// Frees an optional block, as C programs do: `free(NULL)` where there is none.
#[inline(always)]
pub(crate) fn free<A: Subject>(block: Option<AnyBlock<A>>) {
    match block {
        Some(block) => drop(block),
        None => A::free_null(),
    }
}

/// A null pointer, to be freed.
pub(crate) fn null() -> Given {
    // SAFETY: no allocation starts at null.
    unsafe { Given::new(std::ptr::null_mut()) }
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
        let mut block = Self::untouched(bytes);
        block.touch();
        block
    }

    /// Allocates a block of `bytes` bytes, at least eight, and leaves the first write to [`AnyBlock::touch`].
    #[inline(always)]
    pub(crate) fn untouched(bytes: usize) -> Self {
        let bytes = bytes.max(8);
        let layout = Self::layout(bytes);
        // SAFETY: the layout has a size.
        let at = unsafe { A::heap().alloc(layout) };
        let Some(at) = NonNull::new(at) else { handle_alloc_error(layout) };
        AnyBlock { at, bytes, from: PhantomData }
    }

    /// Writes the first word.
    #[inline(always)]
    pub(crate) fn touch(&mut self) {
        self.at = touched(self.at.as_ptr(), Self::layout(self.bytes));
    }

    /// The block's memory.
    fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the block has `self.bytes` bytes, and `self` owns them.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr().cast(), self.bytes) }
    }

    /// Allocates a block of `bytes` bytes and writes all of it.
    pub(crate) fn filled(bytes: usize) -> Self {
        let mut block = Self::new(bytes);
        block.fill();
        block
    }

    /// Writes all of the block.
    pub(crate) fn fill(&mut self) {
        self.memory().fill(MaybeUninit::new(1));
    }

    /// Allocates a block of `bytes` bytes and writes one byte in each page.
    pub(crate) fn paged(bytes: usize) -> Self {
        const PAGE: usize = 4096;
        let mut block = Self::new(bytes);
        block.memory().iter_mut().step_by(PAGE).for_each(|byte| *byte = MaybeUninit::new(1));
        black_box(&mut block);
        block
    }

    /// Makes the block `bytes` bytes large. It may move.
    pub(crate) fn resize(&mut self, bytes: usize) {
        let bytes = bytes.max(8);
        // SAFETY: the block was allocated with this layout, and the new size is not 0.
        let at = unsafe { A::heap().realloc(self.at.as_ptr(), Self::layout(self.bytes), bytes) };
        self.at = touched(at, Self::layout(bytes));
        self.bytes = bytes;
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

/// Frees the block in a slot, then allocates one of `bytes` bytes in its place.
#[inline(always)]
pub(crate) fn replace<A: Subject>(slot: &mut Option<AnyBlock<A>>, bytes: usize) {
    drop(slot.take());
    *slot = Some(AnyBlock::new(bytes));
}

impl<A: Subject> Drop for AnyBlock<A> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { A::heap().dealloc(self.at.as_ptr(), Self::layout(self.bytes)) }
    }
}

/// A block of any size and alignment, as a recorded program asked for it.
#[derive(Debug)]
pub(crate) struct Recorded<A: Subject> {
    at: NonNull<u8>,
    layout: Layout,
    from: PhantomData<fn() -> A>,
}

// SAFETY: the block has one owner, and an allocator accepts memory from any thread.
unsafe impl<A: Subject> Send for Recorded<A> {}

impl<A: Subject> Recorded<A> {
    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes.max(8), align.max(ALIGN)).expect("less than the address space")
    }

    /// Allocates a block of `bytes` bytes, at least eight, and touches it as programs do: its first word, and
    /// a byte of each 4 KiB.
    #[inline(always)]
    pub(crate) fn new(bytes: usize, align: usize, zeroed: bool) -> Self {
        let layout = Self::layout(bytes, align);
        // SAFETY: the layout has a size.
        let at = unsafe { if zeroed { A::heap().alloc_zeroed(layout) } else { A::heap().alloc(layout) } };
        let mut block = Recorded { at: touched(at, layout), layout, from: PhantomData };
        block.touch_from(0);
        block
    }

    /// Makes the block `bytes` bytes large. It may move.
    #[inline(always)]
    pub(crate) fn resized(mut self, bytes: usize) -> Self {
        if matches!(A::ROLE, Role::Floor) {
            // Blocks of the ring overlap, so they cannot be copied.
            return Self::new(bytes, self.layout.align(), false);
        }
        let (old, layout) = (self.layout.size(), Self::layout(bytes, self.layout.align()));
        // SAFETY: the block was allocated with this layout, and the new size is not 0.
        let at = unsafe { A::heap().realloc(self.at.as_ptr(), self.layout, layout.size()) };
        (self.at, self.layout) = (touched(at, layout), layout);
        self.touch_from(old);
        self
    }

    /// Writes a byte of each 4 KiB behind the first `from` bytes.
    #[inline(always)]
    fn touch_from(&mut self, from: usize) {
        const PAGE: usize = 4096;
        let mut at = from.next_multiple_of(PAGE).max(PAGE);
        while at < self.layout.size() {
            // SAFETY: below the block's size. A volatile write is made although nobody reads it.
            unsafe { self.at.as_ptr().add(at).write_volatile(1) };
            at += PAGE;
        }
    }

    /// The block's address.
    pub(crate) fn at(&self) -> *const u8 {
        self.at.as_ptr()
    }
}

impl<A: Subject> Drop for Recorded<A> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { A::heap().dealloc(self.at.as_ptr(), self.layout) }
    }
}
