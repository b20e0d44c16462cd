//! The heap and its tables: addresses of objects, descriptors, pagemap and marks.
//!
//! ```text
//! heap       frame 0 | frame 1 | ...            page size each; the first block is never handed out
//! memmap     descriptor 0 | descriptor 1 | ...  48 bytes each
//! ```
//!
//! Both are mapped once and never unmapped. An unused descriptor is six zero words, as new memory is.

use crate::area::{Area, LocalPagemap};
use crate::arrays::Array;
use crate::object::{Object, Real};
use crate::place::Place;
use crate::region::{self, Access, HeapAccess, Region, Table};
use crate::{area, local, starts, system, topology};
use slablab_platform::{Descriptor, MAP_BYTES, Pfn};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering::*};

/// Where the heap is. Written once, by the thread that starts the world, before any thread has an address in
/// the heap.
struct Places {
    heap: AtomicUsize,
    secret: AtomicU64,
    object_secret: AtomicU64,
    frames: AtomicUsize,
}

static PLACES: Places = Places {
    heap: AtomicUsize::new(0),
    secret: AtomicU64::new(0),
    object_secret: AtomicU64::new(0),
    frames: AtomicUsize::new(0),
};

/// A descriptor for every frame of the heap.
static MEMMAP: Table<Frame> = Table::new();
/// A word for every frame of the heap.
static PAGEMAP: Table<AtomicU64> = Table::new();
/// A bit for every [`MAP_BYTES`] of the heap, for the owners of blocks.
static MAPS: Table<Real> = Table::new();
/// A bit for every 8 bytes of the heap, for debugging.
static MARKS: Table<AtomicU64> = Table::new();

/// The address of each of the tables, and its bytes for a frame of the heap.
fn tables() -> [(usize, usize); 4] {
    let page = system::page_size();
    [
        (MEMMAP.region().base(), size_of::<Frame>()),
        (PAGEMAP.region().base(), 8),
        (MAPS.region().base(), page / (8 * MAP_BYTES as usize)),
        (MARKS.region().base(), page / 64),
    ]
}

pub(crate) type Frame = Descriptor<Real, Real>;

/// log2 of the bytes of a page. On x86-64 there is one answer, which makes addresses cheap.
#[inline]
pub(crate) fn page_shift() -> u32 {
    if cfg!(target_arch = "x86_64") { 12 } else { system::page_size().trailing_zeros() }
}

/// The order of the largest block that the heap can have: 512 MiB at most on pages of 4 KiB.
#[inline]
pub(crate) fn largest_order() -> u8 {
    largest_order_of(frames() as usize, topology::nodes())
}

/// The order of the largest block of a heap of `frames` frames that `nodes` nodes share: each gets eight
/// blocks or more.
pub(crate) fn largest_order_of(frames: usize, nodes: u16) -> u8 {
    let shares = 3 + nodes.next_power_of_two().ilog2();
    (frames.max(1).ilog2().saturating_sub(shares) as u8).min(17)
}

/// The first frame of each node, and above it how many it has. Written when the world starts.
static NODE_FRAMES: [AtomicU64; topology::NODES] = [const { AtomicU64::new(0) }; topology::NODES];

/// The frames of a node.
#[inline]
pub(crate) fn node_frames(node: u16) -> (Pfn, u32) {
    let word = NODE_FRAMES[node as usize].load(Relaxed);
    (Pfn(word as u32), (word >> 32) as u32)
}

/// Finds the frames of a node. The nodes with memory share the heap evenly; the first of them has the
/// `little` block too.
fn share_of_node(node: u16, little: u32) -> (Pfn, u32) {
    let nodes = topology::nodes();
    let before = (0..node).filter(|node| topology::has_memory(*node)).count() as u32;
    let sharers = (0..nodes).filter(|node| topology::has_memory(*node)).count() as u32;
    // Without the first block, so that frame 0 is in no slab: 0 stands for no slab.
    let first = 1 << largest_order();
    if !topology::has_memory(node) {
        return (Pfn(first), 0);
    }
    let each = (frames() - first) / sharers / first * first;
    let little = if before == 0 { little } else { 0 };
    (Pfn(first + before * each - little), each + little)
}

/// Frames of the block in front of the first node's largest blocks, at the end of the one that is never
/// handed out: a small process needs no others. When a largest block is halved down to a slab, the head of
/// each half has its descriptor in another page: eleven pages, and four for this block. The frontier does not
/// commit its descriptors. 0 if the kernel refuses to, and where largest blocks are no larger.
fn commit_little_block() -> u32 {
    let (first, little) = (1 << largest_order(), 1 << LITTLE_ORDER);
    if first <= little || !commit_descriptors(Pfn(first - little), little) { 0 } else { little }
}

const LITTLE_ORDER: u8 = 10;

/// The heap and its tables, as they were reserved.
pub(crate) struct Heap {
    /// The heap's address, a multiple of the largest block.
    pub(crate) at: usize,
    pub(crate) frames: usize,
    /// A descriptor for every frame of the heap.
    pub(crate) memmap: Region<Frame>,
    /// A word for every frame of the heap.
    pub(crate) pagemap: Region<AtomicU64>,
    /// A bit for every [`MAP_BYTES`] of the heap.
    pub(crate) maps: Region<Real>,
    /// A bit for every 8 bytes of the heap.
    pub(crate) marks: Region<AtomicU64>,
}

/// Stores where the heap and its tables are. Called once, when the world starts. Returns the first frame of
/// the little block, if there is one.
pub(crate) fn start(heap: Heap) -> Option<u32> {
    PLACES.heap.store(heap.at, Relaxed);
    MEMMAP.set(heap.memmap);
    PAGEMAP.set(heap.pagemap);
    MAPS.set(heap.maps);
    MARKS.set(heap.marks);
    PLACES.secret.store(system::secret(), Relaxed);
    PLACES.object_secret.store(system::secret(), Relaxed);
    PLACES.frames.store(heap.frames, Release);
    let little = commit_little_block();
    for node in 0..topology::nodes() {
        let (first, count) = share_of_node(node, little);
        NODE_FRAMES[node as usize].store(u64::from(count) << 32 | u64::from(first.0), Release);
    }
    (little > 0).then(|| (1 << largest_order()) - little)
}

/// For the contract's checks, which need an empty world: gives all memory back.
pub(crate) fn forget(access: HeapAccess) {
    let (heap, frames) = (PLACES.heap.load(Relaxed), frames() as usize);
    for (at, bytes_each) in tables().into_iter().chain([(heap, system::page_size())]) {
        access.discard(at, frames * bytes_each);
    }
}

/// Commits the entries of frames in all tables; `false` if the kernel refuses.
pub(crate) fn commit_descriptors(first: Pfn, frames: u32) -> bool {
    tables().iter().all(|(at, bytes_each)| {
        let at = at + first.0 as usize * bytes_each;
        region::commit(at, frames as usize * bytes_each)
    })
}

/// The address of the first descriptor.
pub(crate) fn memmap() -> usize {
    MEMMAP.region().base()
}

/// Frames of the heap, 0 before the start.
pub(crate) fn frames() -> u32 {
    PLACES.frames.load(Relaxed) as u32
}

/// The address `offset` bytes into the block at `pfn`.
#[inline]
pub(crate) fn address(pfn: Pfn, offset: u64) -> Object {
    let at = PLACES.heap.load(Relaxed) + ((pfn.0 as usize) << page_shift()) + offset as usize;
    Object::from_raw(at as u64).expect("the heap is not at address 0")
}

/// The frame that an address of the heap is in, and the offset in the frame.
#[inline]
pub(crate) fn locate(object: Object) -> (Pfn, u32) {
    let at = object.addr() - PLACES.heap.load(Relaxed);
    (Pfn((at >> page_shift()) as u32), at as u32 & ((1 << page_shift()) - 1))
}

impl HeapAccess {
    /// The descriptor of a frame of the heap.
    #[inline]
    pub(crate) fn frame(self, pfn: Pfn) -> &'static Frame {
        debug_assert!(pfn.0 < frames(), "frame {} of {}", pfn.0, frames());
        self.at(MEMMAP.region().base() + pfn.0 as usize * size_of::<Frame>())
    }

    /// A word of the map of the block at `pfn`.
    #[inline]
    pub(crate) fn map_word(self, pfn: Pfn, index: u32) -> &'static Real {
        let first = pfn.0 as usize * (1 << page_shift()) / (8 * MAP_BYTES as usize);
        self.at(MAPS.region().base() + first + index as usize * 8)
    }

    /// The word of an object at `offset`, a multiple of 8.
    #[inline]
    pub(crate) fn word(self, object: Object, offset: u32) -> &'static AtomicU64 {
        self.at(object.addr() + offset as usize)
    }

    /// Half a word of free memory, at an even address.
    #[inline]
    pub(crate) fn half(self, at: Object) -> &'static AtomicU16 {
        self.at(at.addr())
    }
}

/// Marks an object as allocated or not. Returns the mark before.
pub(crate) fn mark_live(object: Object, live: bool) -> bool {
    let index = (object.addr() - PLACES.heap.load(Relaxed)) / 8;
    let word = MARKS.get(index / 64).expect("objects are in the heap");
    let bit = 1 << (index % 64);
    let before = if live { word.fetch_or(bit, Relaxed) } else { word.fetch_and(!bit, Relaxed) };
    before & bit != 0
}

/// The process's random number for encoded links. It never changes.
pub(crate) fn secret() -> u64 {
    PLACES.secret.load(Relaxed)
}

/// The process's random number for keys in free objects, where programs that read freed memory may find it.
/// It never changes.
pub(crate) fn object_secret() -> u64 {
    PLACES.object_secret.load(Relaxed)
}

/// The bytes of a huge page of x86-64, and of arm64 with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// Page frames of the heap that were given back to the kernel since the start; a frame counts each time.
pub(crate) static GIVEN_BACK: AtomicU64 = AtomicU64::new(0);

/// Gives a free block's memory back to the kernel, and the entries of its frames in the tables, except those
/// of the first frame, which is the head of the free block. All of it reads as zeros then. `false` if the
/// kernel refuses the block, which stays as it was.
pub(crate) fn discard(access: HeapAccess, pfn: Pfn, order: u8) -> bool {
    // The block is in the heap, and the page allocator, its owner, does not use it.
    if !access.discard(address(pfn, 0).addr(), system::page_size() << order) {
        return false;
    }
    GIVEN_BACK.fetch_add(1 << order, Relaxed);
    let (first, end) = (pfn.0 as usize + 1, pfn.0 as usize + (1 << order));
    // The marks stay.
    for (at, bytes_each) in &tables()[..3] {
        // Whole pages only.
        let from = (at + first * bytes_each).next_multiple_of(system::page_size());
        let bytes = ((at + end * bytes_each) & !(system::page_size() - 1)).saturating_sub(from);
        if bytes > 0 {
            // Entries of free frames that are not the head of a block: they are written before they are read
            // again.
            access.discard(from, bytes);
        }
    }
    true
}

/// Allows the kernel to back the whole huge pages among a block's frames with huge pages.
pub(crate) fn allow_huge_pages(pfn: Pfn, count: u32) {
    let start = address(pfn, 0).addr().next_multiple_of(HUGE_PAGE);
    let end = (address(pfn, 0).addr() + (count as usize * system::page_size())) & !(HUGE_PAGE - 1);
    if start < end {
        region::allow_huge_pages(start, end - start);
    }
}

/// Makes the caller's page frames inaccessible and gives their memory back to the kernel, or makes them
/// accessible again (`open`). No thread uses the frames. `false` if the kernel refuses.
pub(crate) fn protect(heap: HeapAccess, pfn: Pfn, count: u32, open: bool) -> bool {
    // The caller says that no thread uses the frames.
    if !open {
        heap.discard(address(pfn, 0).addr(), (count as usize) << page_shift());
    }
    set_access(pfn, count, open)
}

/// As [`protect`], but the frames keep their memory.
pub(crate) fn set_access(pfn: Pfn, count: u32, open: bool) -> bool {
    let (at, bytes) = (address(pfn, 0), (count as usize) << page_shift());
    let access = if open { Access::Write } else { Access::None };
    region::protect(at.addr(), bytes, access)
}

/// An address inside a slab or a block of page frames: which one, of which cache, and where in it.
#[derive(Clone, Copy, Debug)]
pub struct Location {
    /// The slab's first frame.
    pub slab: Pfn,
    /// The number of the slab's cache.
    pub cache: u32,
    /// Bytes from the slab's start to the address.
    pub offset: u32,
}

/// The pagemap's word of a page frame. 0 if the frame is in no slab, else:
///
/// ```text
/// bits 56 to 63   the number of the place of the cache's slots, which is the cache's number + 1
/// bits 32 to 55   without such a place: the cache's number + 1
/// bits 0 to 31    the low half of the slab's address
/// ```
///
/// The place is read with the four bits below, which are 0 where there is a place ([`Place`]).
#[inline]
fn pagemap_word(pfn: usize) -> &'static AtomicU64 {
    PAGEMAP.get(pfn).expect("slabs are in the heap")
}

const PLACE_SHIFT: u32 = 56;
const CACHE_SHIFT: u32 = 32;
/// The owners of blocks, caches or others, have lower numbers.
const OWNERS: u32 = (1 << (PLACE_SHIFT - CACHE_SHIFT)) - 1;
const _: () = assert!(area::PLACES == 1 << (u64::BITS - PLACE_SHIFT));

/// The cache's number in a word of the pagemap, as an index; `usize::MAX` if there is none.
#[inline(always)]
fn cache_of(word: u64) -> usize {
    // One of the two is 0.
    ((word >> CACHE_SHIFT) as usize & OWNERS as usize)
        .wrapping_add((word >> PLACE_SHIFT) as usize)
        .wrapping_sub(1)
}

pub(crate) fn map(pfn: Pfn, order: u8, size: u32, cache: u32) {
    let place = Place::of(cache);
    assert!(cache < OWNERS, "the pagemap has room for the owner's number");
    let start = u64::from(address(pfn, 0).addr() as u32);
    let word = match starts::note(place, 1 << (page_shift() + u32::from(order)), size) {
        true => place.to_upper_bits() | start,
        // Frees of its objects take the slower way, which looks the slab up.
        false => (u64::from(cache) + 1) << CACHE_SHIFT | start,
    };
    for at in 0..1usize << order {
        pagemap_word(pfn.0 as usize + at).store(word, Relaxed);
    }
}

/// The first cache number of a heap whose free memory is zeros, + 1, and how many it has; 0 without such a
/// heap.
static ZEROING: AtomicU64 = AtomicU64::new(0);

/// From now on every slab that is unmapped is filled with zeros, except those of the caches with these
/// numbers, whose engine hands back zeros.
pub(crate) fn zero_unmapped(except: Range<u32>) {
    ZEROING.store((u64::from(except.end) << 32) | (u64::from(except.start) + 1), Relaxed);
}

/// Fills a slab that is unmapped with zeros, if there is a heap that needs that.
#[cold]
fn zero(access: HeapAccess, pfn: Pfn, order: u8, zeroing: u64) {
    let cache = cache_of(pagemap_word(pfn.0 as usize).load(Relaxed)) as u32;
    let (first, end) = ((zeroing as u32) - 1, (zeroing >> 32) as u32);
    if !(first..end).contains(&cache) {
        access.fill(address(pfn, 0), 1 << (page_shift() + u32::from(order)), 0);
    }
}

pub(crate) fn unmap(access: HeapAccess, pfn: Pfn, order: u8) {
    let zeroing = ZEROING.load(Relaxed);
    if zeroing != 0 {
        zero(access, pfn, order, zeroing);
    }
    for at in 0..1usize << order {
        pagemap_word(pfn.0 as usize + at).store(0, Relaxed);
    }
}

/// Stores in `local` which part of the heap is memory of a node, and where its pagemap is.
pub(crate) fn set_local_pagemap(node: u16, local: &LocalPagemap) {
    let (first, count) = if topology::nodes() > 1 { node_frames(node) } else { (Pfn(0), frames()) };
    local.heap.set(PLACES.heap.load(Relaxed));
    local.start.set(address(first, 0).addr());
    local.pagemap.set(PAGEMAP.region().part(first.0 as usize, count as usize));
}

/// An address of the heap and the pagemap's word of its page frame, neither checked yet: [`Location`] is the
/// checked form.
#[derive(Clone, Copy, Debug)]
pub struct PagemapEntry {
    /// The page frame's word ([`pagemap_word`]).
    word: u64,
    at: usize,
    /// The heap's address.
    heap: usize,
    /// For `at`, which is in the heap: the pagemap has an entry for it.
    access: HeapAccess,
}

impl PagemapEntry {
    /// The entry of any address; `None` outside the heap.
    #[inline(always)]
    pub(crate) fn at(access: HeapAccess, at: usize) -> Option<PagemapEntry> {
        let heap = PLACES.heap.load(Relaxed);
        let word = PAGEMAP.get(at.wrapping_sub(heap) >> page_shift())?;
        Some(PagemapEntry { word: word.load(Relaxed), at, heap, access })
    }

    /// The entry of an address in memory of this thread's node, and the thread's own area; `None` elsewhere,
    /// and for a thread without a slot of its own.
    #[inline(always)]
    pub(crate) fn local(access: HeapAccess, at: usize) -> Option<(PagemapEntry, &'static Area)> {
        let area = local::area();
        let local = &area.header.pagemap;
        let frame = at.wrapping_sub(local.start.get()) >> page_shift();
        let word = local.pagemap.get().get(frame)?;
        Some((PagemapEntry { word: word.load(Relaxed), at, heap: local.heap.get(), access }, area))
    }

    /// The cache's number; `u32::MAX`, which no cache has, if the address is in no slab.
    #[inline(always)]
    pub fn cache(self) -> u32 {
        cache_of(self.word) as u32
    }

    /// The cache's number as an index; `usize::MAX`, which no cache has, if the address is in no slab.
    #[inline(always)]
    pub fn cache_index(self) -> usize {
        cache_of(self.word)
    }

    /// The slab's first frame, and bytes from the slab's start to the address. Meaningless if the address is
    /// in no slab.
    #[inline(always)]
    pub fn place(self) -> (Pfn, u32) {
        let offset = self.offset();
        let start = self.at.wrapping_sub(self.heap).wrapping_sub(offset as usize);
        (Pfn((start >> page_shift()) as u32), offset)
    }

    /// The place of the cache's slots; no cache's if they have none, and if the address is in no slab.
    #[inline(always)]
    pub fn slots_place(self) -> Place {
        Place::in_upper_bits(self.word)
    }

    /// Bytes from the slab's start to the address. Meaningless if the address is in no slab.
    #[inline(always)]
    fn offset(self) -> u32 {
        (self.at as u32).wrapping_sub(self.word as u32)
    }

    /// Whether an object of a cache with slots at a fixed place starts here. `true` is exact; `false` may
    /// also mean that only a slower look can tell.
    #[inline(always)]
    pub fn is_start_fixed(self) -> bool {
        starts::has(self.slots_place(), self.offset())
    }

    /// As [`PagemapEntry::is_start_fixed`], by what an area, this thread's own or a refusing one, has of it.
    #[inline(always)]
    pub(crate) fn is_start_in(self, area: &'static Area) -> bool {
        Array::fixed(self.access, area, self.slots_place()).hot.starts.has(self.offset())
    }

    /// The address as an object.
    #[inline(always)]
    pub fn object(self) -> Object {
        self.access.object(self.at as u64)
    }
}

/// The slab that any address is in; `None` if it is in none.
#[inline]
pub(crate) fn location(access: HeapAccess, at: usize) -> Option<Location> {
    let entry = PagemapEntry::at(access, at).filter(|entry| entry.word != 0)?;
    let (slab, offset) = entry.place();
    Some(Location { slab, cache: entry.cache(), offset })
}
