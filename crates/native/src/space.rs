//! The world's address space: one mapping, reserved when the world starts, cut into parts.
//!
//! ```text
//! heap | memmap | pagemap | maps | marks | areas | a page | directory, boot memory
//! ```
//!
//! The page in front of the directory is never committed.
//!
//! Either all parts are reserved, or nothing is, and the next start tries again.
//!
//! A limit of data (`RLIMIT_DATA`) and the kernel's strict accounting (`vm.overcommit_memory=2`) count
//! private writable memory. Reserved address space must not count, so no part is writable at first. The heap
//! and boot memory have no access; descriptors, the other tables and areas read as zeros, which is what an
//! unused entry is. Before memory is first used it is *committed*: made writable, by steps.
//!
//! | part | committed when | by steps of |
//! |---|---|---|
//! | heap | the page allocator hands out frames | what is committed so far, 4 MiB to 64 MiB |
//! | memmap, pagemap, maps, marks | the page allocator's frontier moves on; at the start for the little block in front of it | a largest block's entries |
//! | areas | a slot is first used | what is committed so far, 8 to 64 areas |
//! | boot memory | less than 1 MiB of the committed part is left | 2 MiB, 8 MiB at first |

use crate::area::{AREA_BYTES, Area, SLOTS, SLOTS_MIN};
use crate::boot_memory::BOOT_BYTES_AT_FIRST;
use crate::directory;
use crate::memory::{self, Frame, Heap, page_shift};
use crate::region::{Access, Region, Reserved, commit};
use crate::system;
use slablab_platform::{MAP_BYTES, Pfn};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes of the heap: without a limit of address space 1 TiB; with less than the minimum the world does not
/// start.
const HEAP_BYTES: usize = 1 << 40;
const HEAP_BYTES_MIN: usize = 1 << 20;
/// Bytes of boot memory, likewise.
const BOOT_BYTES: usize = 1 << 32;
const BOOT_BYTES_MIN: usize = 1 << 18;

/// Bytes of the directory.
const DIRECTORY_BYTES: usize = directory::WORDS * size_of::<AtomicU64>();

/// Addresses of the parts.
pub(crate) struct Space {
    pub(crate) heap: Heap,
    pub(crate) areas: Region<Area>,
    pub(crate) directory: Region<AtomicU64>,
    pub(crate) boot_memory: usize,
    pub(crate) boot_bytes: usize,
}

impl Space {
    /// Reserves as much as possible, trying halves: for the heap at most half of what the process may still
    /// map, and at most its limit of data; a 16th for areas, a 64th for boot memory. `None`, and nothing
    /// reserved, if the minimum is not available.
    pub(crate) fn reserve() -> Option<Space> {
        let left = system::address_space_left();
        let mut heap = HEAP_BYTES.min(left / 2).min(system::data());
        let mut slots = SLOTS.min(left / 16 / AREA_BYTES).max(SLOTS_MIN);
        let mut boot_bytes = BOOT_BYTES.min(left / 64).max(BOOT_BYTES_MIN);
        while heap >= HEAP_BYTES_MIN {
            if let Some(space) = Space::reserve_exactly(heap, slots, boot_bytes) {
                return Some(space);
            }
            heap /= 2;
            slots = (slots / 2).max(SLOTS_MIN);
            boot_bytes = (boot_bytes / 2).max(BOOT_BYTES_MIN);
        }
        None
    }

    fn reserve_exactly(heap_bytes: usize, slots: usize, boot_bytes: usize) -> Option<Space> {
        // The heap is some largest blocks, the first of which begins at a multiple of its size.
        let block = memory::largest_order_of(heap_bytes >> page_shift(), 1);
        let align = 1 << page_shift() << block;
        let heap_bytes = heap_bytes & !(align - 1);
        let frames = heap_bytes >> page_shift();
        let parts = [
            heap_bytes + align,
            frames * size_of::<Frame>(),
            frames * 8,
            heap_bytes / (8 * MAP_BYTES as usize),
            heap_bytes / 64,
            // With a page that is never committed, so that the directory begins a mapping in /proc/PID/maps.
            slots * AREA_BYTES + system::page_size(),
            boot_bytes,
        ]
        .map(|bytes| bytes.next_multiple_of(system::page_size()));
        let whole = Reserved::new(parts.iter().sum())?;
        let memmap = whole.start() + parts[0];
        let boot_memory = whole.start() + parts[..6].iter().sum::<usize>();
        let at_first = BOOT_BYTES_AT_FIRST.min(boot_bytes);
        if !whole.protect(memmap, boot_memory - memmap, Access::Read)
            || !whole.protect(boot_memory, at_first, Access::Write)
        {
            return None;
        }
        let mut rest = whole.keep();
        Some(Space {
            heap: Heap {
                at: rest.cut(parts[0]).next_multiple_of(align),
                frames,
                memmap: rest.entries(frames),
                pagemap: rest.entries(frames),
                maps: rest.entries(heap_bytes / (64 * MAP_BYTES as usize)),
                marks: rest.entries(heap_bytes / 512),
            },
            areas: rest.entries_before(slots, parts[5]),
            directory: rest.first(directory::WORDS),
            boot_memory: rest.cut(boot_bytes) + DIRECTORY_BYTES,
            boot_bytes: boot_bytes - DIRECTORY_BYTES,
        })
    }
}

/// Least and most bytes of the heap that are committed at a time. Between them the step is the number of
/// bytes that are committed already.
const STEP_MIN: usize = 4 << 20;
const STEP_MAX: usize = 64 << 20;

/// Largest blocks there can be: 1 TiB of 512 MiB each. A smaller heap is less than 16 times the nodes.
const BLOCKS: usize = 2048;
/// Frames of each largest block of the heap that are committed, from its start.
static COMMITTED: [AtomicU32; BLOCKS] = [const { AtomicU32::new(0) }; BLOCKS];
/// Bytes of the heap that are committed.
static COMMITTED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Says that frames before `from` of the first largest block are never handed out, so that those behind are
/// committed without them.
pub(crate) fn begin_first_block(from: u32) {
    COMMITTED[0].store(from, Relaxed);
}

/// Commits `frames` frames of the heap from `first` on; `false` if the kernel refuses.
#[inline]
pub(crate) fn commit_frames(first: Pfn, frames: u32) -> bool {
    parts(first, frames).all(|(block, until)| committed_of(block) >= until || extend(block, until))
}

/// Whether `frames` frames of the heap from `first` on are committed.
pub(crate) fn is_committed(first: Pfn, frames: u32) -> bool {
    parts(first, frames).all(|(block, until)| committed_of(block) >= until)
}

/// The largest blocks that frames are in: number, and before which frame of it they end.
#[inline]
fn parts(first: Pfn, frames: u32) -> impl Iterator<Item = (u32, u32)> {
    let order = memory::largest_order();
    let (first, end) = (first.0, first.0 + frames);
    let blocks = first >> order..(end + (1 << order) - 1) >> order;
    blocks.map(move |block| (block, (end - (block << order)).min(1 << order)))
}

/// Frames of a largest block that are committed, from its start. Relaxed: the count says what the kernel did.
/// No memory is published by it.
#[inline]
fn committed_of(block: u32) -> u32 {
    COMMITTED[block as usize].load(Relaxed)
}

/// Commits the frames of a largest block before its frame `until`, and a step more if the kernel allows it.
/// Two threads may do this at once: both make the same pages writable.
#[cold]
fn extend(block: u32, until: u32) -> bool {
    let (order, shift) = (memory::largest_order(), page_shift());
    let committed = &COMMITTED[block as usize];
    let from = committed_of(block);
    let step = COMMITTED_BYTES.load(Relaxed).clamp(STEP_MIN, STEP_MAX) >> shift;
    let stepped = (from + step as u32).max(until).next_multiple_of((STEP_MIN >> shift) as u32);
    let at = memory::address(Pfn((block << order) + from), 0).addr();
    for until in [stepped.min(1 << order), until] {
        let bytes = (until.saturating_sub(from) as usize) << shift;
        if commit(at, bytes) {
            committed.fetch_max(until, Relaxed);
            COMMITTED_BYTES.fetch_add(bytes, Relaxed);
            return true;
        }
    }
    false
}
