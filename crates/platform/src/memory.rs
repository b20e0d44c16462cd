//! Memory: the bytes of objects. `unsafe`: declares the trait of memory, and implements it for worlds of safe
//! code.

use crate::Frames;

/// Links, storage and bytes of objects, reached by address.
///
/// Engines reach the memory of objects through these functions alone, so a world can charge, order or check
/// every access here. All addresses are the world's own [`Frames::Ptr`].
///
/// # Safety
///
/// The functions are safe to call because engines contain no `unsafe` blocks; so the `unsafe` stands here,
/// once, and two parties have to be right.
///
/// A **world** that implements this trait promises:
/// - a read returns what was last written to the same bytes, by whichever of the functions; a write changes
///   no other byte; a function does not keep a reference into an object after it returned;
/// - [`Frames::address`] and [`Frames::locate`] are inverse, and two frames share no byte;
/// - if the functions reach real memory, then safe code outside the engines cannot call them: the use of the
///   world's type takes an `unsafe` of its own (as `slablab_native::Trusted` does).
///
/// A world of safe code has nothing to promise, and uses [`safe_memory!`](crate::safe_memory).
///
/// An **engine** that calls the functions owes, and the world may rely on:
/// - the bytes lie in one block between its [`Frames::map_slab`] and [`Frames::unmap_slab`];
/// - no caller of the engine owns the bytes: the object is free, is the engine's own storage, is being made
///   for its caller, or the bytes are the slab's padding;
/// - words are at multiples of 8 bytes, halves at multiples of 2; `index` is below the `words` of
///   [`Memory::storage_attach`]; a read follows a write, but for zeroed storage;
/// - accesses by two CPUs are ordered by a [`crate::Word`], a [`crate::Lock`] or a slot.
///
/// A wrong engine is memory-unsafe where memory is real. The checking worlds report each breach as a panic.
pub unsafe trait Memory: Frames {
    /// The link in a free object, `offset` bytes into it: an object's address or none.
    fn link(object: Self::Ptr, offset: u32) -> Option<Self::Ptr>;
    /// Writes the link in a free object.
    fn set_link(object: Self::Ptr, offset: u32, next: Option<Self::Ptr>);
    /// Reads 16 bits of free memory at an even address, in a block mapped for objects of 8 bytes: for engines
    /// whose pieces are smaller than a link. Where links are written, halves are not, until the block is
    /// unmapped.
    fn half(at: Self::Ptr) -> u16;
    /// Writes 16 bits of free memory; the bytes beside them keep their values.
    fn set_half(at: Self::Ptr, value: u16);
    /// Turns an allocated object into storage of `words` words, all none. The object stays allocated.
    fn storage_attach(object: Self::Ptr, words: u32);
    /// Reads word `index` of storage.
    fn storage_load(object: Self::Ptr, index: u32) -> Option<Self::Ptr>;
    /// Writes word `index` of storage.
    fn storage_store(object: Self::Ptr, index: u32, value: Option<Self::Ptr>);
    /// Ends the use as storage; the engine may free the object afterwards.
    fn storage_detach(object: Self::Ptr);
    /// Fills `bytes` bytes with `value`; 0 for `__GFP_ZERO`. `at` may be any address in a mapped block.
    fn fill(at: Self::Ptr, bytes: u32, value: u8);
    /// The first of `bytes` bytes that is not `value`: its offset and its value. Only for bytes written since
    /// their block was mapped that are no link, half or storage now.
    fn differs(at: Self::Ptr, bytes: u32, value: u8) -> Option<(u32, u8)>;
    /// Reads 8 bytes at a multiple of 8, written since their block was mapped.
    fn word(at: Self::Ptr) -> u64;
    /// Writes 8 bytes at a multiple of 8.
    fn set_word(at: Self::Ptr, value: u64);
    /// Marks the object that starts at `object` as handed out or not, and returns whether it was; of two CPUs
    /// that do so at once one is first. For debugging. One bit per 8 bytes, kept outside of the objects,
    /// unmarked at first.
    fn mark_live(object: Self::Ptr, live: bool) -> bool;
}

/// Implements [`Memory`] for a world that is written in safe code: a simulation, or a wrapper around another
/// world. What its functions reach is no more than safe code can reach, so neither a wrong world nor a wrong
/// engine breaks memory.
/// ```text
/// safe_memory! { impl[K: Kit] Checked<K>;
///     fn link(object: Address, offset: u32) -> Option<Address> { .. }
///     ..
/// }
/// ```
#[macro_export]
macro_rules! safe_memory {
    (impl[$($generics:tt)*] $world:ty; $($function:item)*) => {
        // SAFETY: the functions are safe code of the crate that calls the macro, which this file cannot make
        // unsafe.
        unsafe impl<$($generics)*> $crate::Memory for $world { $($function)* }
    };
}
