//! The world's mapping, and addresses in it turned into references: [`Region`], whose index is checked, and
//! [`HeapAccess`], whose holder promises what it asks for. `unsafe`: that is what this file is for.

use crate::object::{Object, Real};
use crate::system;
use slablab_platform::Descriptor;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::slice;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering::*};

/// What pages of the mapping are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads and writes of them end the process.
    None,
    /// They read as zeros, and cost nothing.
    Read,
    /// They may be written, and count as data and as committed.
    Write,
}

/// Address space.
///
/// Invariant: no pages, or pages that `system::reserve` mapped for this world.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
}

impl Range {
    /// Whether `bytes` bytes from `at` on are inside.
    fn has(self, at: usize, bytes: usize) -> bool {
        self.start <= at && at <= self.end && bytes <= self.end - at
    }

    /// Gives whole pages an access; `false` if the kernel refuses, or if pages are not inside.
    fn protect(self, at: usize, bytes: usize, access: Access) -> bool {
        let access = match access {
            Access::None => libc::PROT_NONE,
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: `has`: the pages are the world's, so that no other code's references lose an access. An
        // access that the world's own references need and do not have ends the process, and is no undefined
        // behaviour.
        self.has(at, bytes) && unsafe { libc::mprotect(with_exposed_provenance_mut(at), bytes, access) == 0 }
    }

    fn advise(self, at: usize, bytes: usize, advice: libc::c_int) -> bool {
        // SAFETY: `has`: the pages are the world's; what `discard` and `allow_huge_pages` ask for leaves them
        // as they are or makes them zeros, and `HeapAccess` pays for the zeros.
        self.has(at, bytes) && unsafe { libc::madvise(with_exposed_provenance_mut(at), bytes, advice) == 0 }
    }
}

/// Address space that is reserved, without access at first. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Reserved(Range);

impl Reserved {
    /// Reserves whole pages. `None` if the kernel refuses.
    pub(crate) fn new(bytes: usize) -> Option<Reserved> {
        let start = system::reserve(bytes)?.as_ptr().expose_provenance();
        Some(Reserved(Range { start, end: start + bytes }))
    }

    /// The address of the first page.
    pub(crate) fn start(&self) -> usize {
        self.0.start
    }

    /// Gives whole pages an access; `false` if the kernel refuses, or if pages are not inside.
    pub(crate) fn protect(&self, at: usize, bytes: usize, access: Access) -> bool {
        self.0.protect(at, bytes, access)
    }

    /// Keeps the address space for as long as the process runs: it is the world's mapping from here on.
    pub(crate) fn keep(self) -> Parts {
        let Range { start, end } = self.0;
        std::mem::forget(self);
        KEPT[0].store(start, Relaxed);
        // Release: pairs with `kept`, which reads the start after the end.
        KEPT[1].store(end, Release);
        Parts(Range { start, end })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: `new` reserved the range. `keep`, which hands out its addresses, forgets the value.
        unsafe { system::unmap_block(with_exposed_provenance_mut(self.0.start), self.0.end - self.0.start) };
    }
}

/// Start and end of the mapping; 0 before there is one.
static KEPT: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn kept() -> Range {
    // Acquire: pairs with `keep`, so that the start is set where the end is.
    let end = KEPT[1].load(Acquire);
    Range { start: KEPT[0].load(Relaxed).min(end), end }
}

/// Makes pages of the mapping writable; `false` if the kernel refuses.
pub(crate) fn commit(at: usize, bytes: usize) -> bool {
    let page = system::page_size();
    let (start, end) = (at & !(page - 1), (at + bytes).next_multiple_of(page));
    protect(start, end - start, Access::Write)
}

/// Gives whole pages of the mapping an access; `false` if the kernel refuses, or if pages are not of the
/// mapping. The caller owns pages that lose an access: a thread that uses them ends the process.
pub(crate) fn protect(at: usize, bytes: usize, access: Access) -> bool {
    kept().protect(at, bytes, access)
}

/// Allows huge pages for pages of the mapping. `false` if the kernel has none.
pub(crate) fn allow_huge_pages(at: usize, bytes: usize) -> bool {
    kept().advise(at, bytes, libc::MADV_HUGEPAGE)
}

/// Lets memory of pages of the mapping come from a node as long as that has some. The kernel's answer is not
/// looked at: memory from elsewhere serves too.
pub(crate) fn prefer_node(at: usize, bytes: usize, node: u16) {
    let (mask, bits) = (1u64 << node, u64::BITS + 1);
    if !kept().has(at, bytes) {
        return;
    }
    // SAFETY: the kernel reads `mask`, whose bits it counts from 1, and changes where future pages of the
    // range come from, not what the range holds.
    unsafe { libc::syscall(libc::SYS_mbind, at, bytes, libc::MPOL_PREFERRED, &raw const mask, bits, 0) };
}

/// The rest of the mapping, from which parts are cut.
#[derive(Debug)]
pub(crate) struct Parts(Range);

impl Parts {
    /// Cuts `bytes` bytes off, rounded up to whole pages, and returns their address.
    pub(crate) fn cut(&mut self, bytes: usize) -> usize {
        let at = self.0.start;
        self.0.start += bytes.next_multiple_of(system::page_size());
        assert!(self.0.start <= self.0.end, "a part of {bytes} bytes is not in the mapping");
        at
    }

    /// Cuts `len` entries off.
    pub(crate) fn entries<T: Zeros>(&mut self, len: usize) -> Region<T> {
        self.entries_before(len, len * size_of::<T>())
    }

    /// Cuts `bytes` bytes off, of which the first ones are `len` entries.
    pub(crate) fn entries_before<T: Zeros>(&mut self, len: usize, bytes: usize) -> Region<T> {
        const { assert!(align_of::<T>() <= 4096) };
        assert!(len * size_of::<T>() <= bytes, "{len} entries are not in {bytes} bytes");
        Region { base: self.cut(bytes), len, entries: PhantomData }
    }

    /// The first `len` words of the part that is cut next. The caller uses that part from behind them on.
    pub(crate) fn first(&self, len: usize) -> Region<AtomicU64> {
        Region { base: self.0.start, len, entries: PhantomData }
    }
}

/// Types that pages of the mapping may hold.
///
/// # Safety
/// Zeros are a value, whatever the value before; every part is an atomic, or an [`Own`].
pub(crate) unsafe trait Zeros {}

macro_rules! zeros_of {
    ($([$($generics:tt)*] $type:ty,)+) => { $(
        // SAFETY: an atomic, whose zeros are 0; an `Own` of 0 or of a region without entries; or several
        // values that are `Zeros`: `Real` has one field, and a `Descriptor` no other than its words and
        // fields.
        unsafe impl<$($generics)*> Zeros for $type {}
    )+ };
}

zeros_of! {
    [] AtomicU8,
    [] AtomicU16,
    [] AtomicI32,
    [] AtomicU64,
    [] Real,
    [W: Zeros, F: Zeros] Descriptor<W, F>,
    [] Own<u32>,
    [] Own<u64>,
    [] Own<usize>,
    [T: Zeros] Own<Region<T>>,
    [T: Zeros, const N: usize] [T; N],
}

/// Declares a struct that is [`Zeros`]: the type of each field is.
macro_rules! zeros {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)+
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)+
        }

        const _: () = {
            const fn is_zeros<T: $crate::region::Zeros>() {}
            $(is_zeros::<$type>();)+
        };

        // SAFETY: the types of all fields are `Zeros`: the compiler checks the calls of `is_zeros` above.
        #[expect(unsafe_code, reason = "its fields pay for it")]
        unsafe impl $crate::region::Zeros for $name {}
    };
}
pub(crate) use zeros;

/// Entries of one type, one after another, in the mapping.
///
/// Invariant: `len` is 0, or [`Parts`] cut off the `len` entries from address `base` on, or more of which
/// these are a part, and nothing else has them. So they are aligned, stay mapped, and are used as a `T` that
/// is [`Zeros`] alone.
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

    /// The entry at `index`; `None` at the region's end and beyond.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<&'static T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: the invariant of `Region`, and `index` is below `len`: the comparison above.
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
        // By the invariant of `Table`: `set` stored both from one region.
        Region { base: self.base.load(Relaxed), len, entries: PhantomData }
    }

    /// The entry at `index`; `None` beyond the region, and before it is set.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<&'static T> {
        self.region().get(index)
    }
}

/// A value in an area, which one thread at a time has to itself. Not an atomic: the compiler may leave out a
/// load whose value it does not need, or make it a part of the instruction that needs it.
#[derive(Debug)]
pub(crate) struct Own<T: Copy>(Cell<T>);

// SAFETY: these are in areas. The thread with an area's slot is the only one that calls `set`
// (`current::name`, `slots::Held`) and `get` (`FixedSlots`, `memory::PagemapEntry::local`, `slots::Held`, of
// its own area or of a refusing one): `thread::STATES` has one such thread at a time, and its exchanges
// (Acquire, Release) order it with the one before. The refusing areas' are never set.
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
    /// The lines at `offset` are the cache's in every area and begin with a [`crate::hot::Hot`]; `link`
    /// is the offset of a word in each of its free objects. Only free objects of the cache, and arrays of
    /// their addresses, come into those lines, by a sequence too.
    pub(crate) unsafe fn new(offset: u32, link: u32) -> Cache {
        Cache { offset, link }
    }
    /// For the directory: the offset of the offset.
    pub(crate) const OFFSET_AT: usize = std::mem::offset_of!(Cache, offset);

    #[inline(always)]
    pub(crate) fn offset(self) -> u32 {
        self.offset
    }
    #[inline(always)]
    pub(crate) fn link(self) -> u32 {
        self.link
    }
}

/// A program's promise about its use of the native world.
///
/// # Safety
///
/// [`crate::Native`]`<Self>` makes functions safe to call that read and write all memory of the heap, and
/// memory beyond it if their arguments are wrong. The program that implements this trait promises that in it
/// - engines and all other code call the functions of the contract as [`slablab_platform::Memory`] demands of
///   engines;
/// - one page allocator serves all engines over this world, and frees of pages and objects name pages and
///   objects that this allocator and these engines handed out;
/// - the arrays of a cache's slots ([`crate::SlotArrays`]) are used no longer than the cache is there;
/// - safe code outside the program cannot name the type that implements this trait, except by a name that is
///   hidden and documented as not public.
pub unsafe trait Trusted: 'static {}

/// Leave to use the memory of the heap, by addresses that are not checked.
///
/// Invariant: there is one only where a program is [`Trusted`]. So the address that its functions get is one
/// of a part of an area, or one of an entry or of an object that an engine was handed out by its page
/// allocator, in page frames that `Frames::commit_frames` and `Frames::commit_descriptors` committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapAccess(());

impl HeapAccess {
    /// The access of a program that promised what [`Trusted`] asks for.
    #[expect(clippy::extra_unused_type_parameters, reason = "that the type exists is the promise")]
    pub(crate) const fn of<A: Trusted>() -> Self {
        HeapAccess(())
    }

    /// Gives the memory of whole pages back; `false` if the kernel refuses, or if they are not of the
    /// mapping. The page allocator owns the pages, or the entries in them: free blocks and their tables. They
    /// read as zeros from then on.
    pub(crate) fn discard(self, at: usize, bytes: usize) -> bool {
        kept().advise(at, bytes, libc::MADV_DONTNEED)
    }

    /// The entry of one of the heap's tables, the words of free memory of the heap, or the first words of an
    /// area or of a slot in it, at `address`; `T` is of atomics.
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
