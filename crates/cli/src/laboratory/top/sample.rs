//! One look at a process: what each of its caches holds, and its page frames.
//!
//! ```text
//! notes       the heaps and object caches, and the layout of their caches
//! descriptors slabs, objects in use, blocks, free frames: one pass over the descriptors that hold anything
//! areas       objects in the slots: sheaves, queues, arrays, lists
//! barns       full sheaves
//! ```
//!
//! The process runs meanwhile, so counts of one sample may be of different moments. A count that cannot be is
//! taken for one that was read halfway, and left out: nothing here trusts what it reads.

use super::directory::{Bad, Directory, OFFSETS, within};
use super::pins::Pins;
use super::process::Memory;
use slablab_malloc::shared::note::*;
use slablab_slabs::slab::SlabWord;
use std::collections::HashMap;
use std::ops::Range;

/// What a cache holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cache {
    pub(super) name: String,
    /// Bytes of an object that are its holder's.
    pub(super) object_bytes: u64,
    /// Bytes from one object to the next.
    pub(super) slot_bytes: u64,
    pub(super) objects_per_slab: u64,
    pub(super) pages_per_slab: u64,
    pub(super) slabs: u64,
    /// Bytes of the slabs' page frames.
    pub(super) bytes: u64,
    pub(super) objects: u64,
    /// Objects that are not free anywhere.
    pub(super) live: u64,
    /// Free objects in slots.
    pub(super) in_sheaves: u64,
    /// Free objects in barns.
    pub(super) in_barns: u64,
    /// Free objects in slabs.
    pub(super) free: u64,
    pub(super) pins: Pins,
}

impl Cache {
    /// The bytes of free objects that objects in use pin.
    pub(super) fn pinned_bytes(&self) -> u64 {
        self.pins.free.saturating_mul(self.slot_bytes)
    }

    /// Those of slabs of which no more than a quarter is in use.
    pub(super) fn sparse_bytes(&self) -> u64 {
        self.pins.sparse_free.saturating_mul(self.slot_bytes)
    }
}

/// What a process holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) slots_used: u64,
    pub(super) heap_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) free_frame_bytes: u64,
    pub(super) given_back_bytes: u64,
    pub(super) mappings: u64,
    pub(super) mapping_bytes: u64,
    pub(super) caches: Vec<Cache>,
}

/// A cache, and where its counts are.
struct Place {
    cache: Cache,
    /// Its number, by which descriptors name it.
    number: u32,
    is_in_extra: bool,
    /// The offset of its slot in each area.
    slot: Option<u64>,
    spare: u64,
    spare_size: u64,
    sheaf_capacity: u64,
    /// The address of an address for each node; 0 without barns.
    barns: u64,
    full_sheaves: u64,
}

/// Most slots of a process.
const SLOTS_MOST: u64 = 4096;
/// Most caches of a process, and most bytes of them.
const CACHES_MOST: u64 = 16_384;
const CACHES_BYTES: u64 = 64 << 20;
/// Most objects of an array, a list or a barn's sheaves that are believed.
const PARKED_MOST: u64 = 1 << 24;

/// Reads a process.
pub(super) fn take(memory: &impl Memory, directory: &Directory) -> Result<Sample, Bad> {
    let mut places = places(memory, directory)?;
    let frames = frames(memory, directory, &mut places)?;
    let slots_used = slots(memory, directory, &mut places)?;
    let page = directory.page_bytes();
    let kept = memory.word(directory.get(KEPT_AT))?.min(frames.allocated);
    let mut sample = Sample {
        slots_used,
        free_frame_bytes: (frames.resident + kept).saturating_mul(page),
        given_back_bytes: memory.word(directory.get(GIVEN_BACK_AT))?.saturating_mul(page),
        ..Sample::default()
    };
    sample.heap_bytes = (frames.slabs + frames.allocated + frames.resident).saturating_mul(page);
    let entries = directory.get(MAPPINGS_MOST_AT) as usize * 16;
    let entries = memory.read_present(directory.get(MAPPINGS_AT), entries, page)?;
    for entry in entries.as_chunks::<16>().0.iter().filter(|entry| word(*entry, 0) > 1) {
        sample.mappings += 1;
        sample.mapping_bytes = sample.mapping_bytes.saturating_add(word(entry, 8));
    }
    for place in &mut places {
        barns(memory, directory, place)?;
    }
    for Place { mut cache, .. } in places.into_iter().filter(|place| place.cache.slabs > 0) {
        let in_use = cache.live;
        cache.free = cache.objects.saturating_sub(in_use);
        cache.in_sheaves = cache.in_sheaves.min(in_use);
        cache.in_barns = cache.in_barns.min(in_use - cache.in_sheaves);
        cache.live = in_use - cache.in_sheaves - cache.in_barns;
        sample.live_bytes = sample.live_bytes.saturating_add(cache.live.saturating_mul(cache.object_bytes));
        sample.caches.push(cache);
    }
    let metadata = memory.word(directory.get(METADATA_AT))?;
    let in_blocks = (frames.allocated - kept).saturating_mul(page);
    sample.live_bytes = sample.live_bytes.saturating_add(in_blocks).saturating_sub(metadata);
    Ok(sample)
}

/// 8, 4 or 1 bytes at an offset; 0 beyond the end.
fn word(bytes: &[u8], at: u64) -> u64 {
    number::<8>(bytes, at)
}

fn half(bytes: &[u8], at: u64) -> u64 {
    number::<4>(bytes, at)
}

fn number<const BYTES: usize>(bytes: &[u8], at: u64) -> u64 {
    let found = bytes.get(at as usize..).and_then(|bytes| bytes.first_chunk::<BYTES>());
    let mut word = [0; 8];
    word[..BYTES].copy_from_slice(found.unwrap_or(&[0; BYTES]));
    u64::from_le_bytes(word)
}

/// The caches of all tenants.
fn places(memory: &impl Memory, directory: &Directory) -> Result<Vec<Place>, Bad> {
    let bytes = directory.get(NOTE_BYTES_AT) as usize;
    let most = directory.get(NOTES_MOST_AT) as usize;
    let notes = memory.read_present(directory.get(NOTES_AT), most * bytes, directory.page_bytes())?;
    let (mut places, mut bytes_read) = (Vec::new(), 0);
    for (tenant, note) in (0..).zip(notes.chunks_exact(bytes)) {
        let field = |at: usize| word(note, at as u64 * 8);
        if field(COUNT) == 0 {
            continue;
        }
        let count = within("the caches of a tenant", field(COUNT), 1..=directory.get(NUMBERS_AT))?;
        let each = within("the bytes of a cache", field(CACHE_BYTES), 8..=65_536)?;
        for at in GEOMETRY..=FULL_SHEAVES {
            within("an offset in a cache", field(at), OFFSETS)?;
        }
        bytes_read += count * each;
        within("the bytes of all caches", bytes_read, 0..=CACHES_BYTES)?;
        within("the number of caches", places.len() as u64 + count, 0..=CACHES_MOST)?;
        let mut caches = vec![0; (count * each) as usize];
        // An object cache may have gone since its note was read.
        if memory.read(field(CACHES), &mut caches).is_err() {
            continue;
        }
        let name = name(memory, field(NAME), field(NAME_BYTES));
        for (index, cache) in (0..).zip(caches.chunks_exact(each as usize)) {
            let number = tenant * directory.get(NUMBERS_AT) as u32 + index;
            places.extend(place(directory, &field, cache, &name, number));
        }
    }
    Ok(places)
}

/// A tenant's name; empty for a heap, whose caches are named by their sizes.
fn name(memory: &impl Memory, at: u64, bytes: u64) -> String {
    let mut name = vec![0; bytes.min(256) as usize];
    let is_read = at != 0 && memory.read(at, &mut name).is_ok();
    if is_read { String::from_utf8_lossy(&name).into_owned() } else { String::new() }
}

/// A cache by its own bytes. `None` if they are none's.
fn place(
    directory: &Directory,
    note: &impl Fn(usize) -> u64,
    cache: &[u8],
    name: &str,
    number: u32,
) -> Option<Place> {
    let geometry = |at: usize| note(GEOMETRY) + directory.get(at);
    let object_bytes = half(cache, geometry(OBJECT_BYTES_AT));
    let order = number_of_order(cache, geometry(ORDER_AT))?;
    if object_bytes == 0 {
        return None;
    }
    let slot = || half(cache, note(SLOTS) - 1 + directory.get(SLOT_OFFSET_AT));
    let slot = (note(SLOTS) > 0).then(slot).filter(|slot| *slot < directory.get(AREA_BYTES_AT));
    Some(Place {
        cache: Cache {
            name: if name.is_empty() { format!("malloc-{object_bytes}") } else { name.to_string() },
            object_bytes,
            slot_bytes: half(cache, geometry(SLOT_BYTES_AT)),
            objects_per_slab: half(cache, geometry(OBJECTS_AT)),
            pages_per_slab: 1 << order,
            ..Cache::default()
        },
        number,
        is_in_extra: note(IS_IN_EXTRA) != 0,
        slot,
        spare: note(SPARE),
        spare_size: note(SPARE_SIZE),
        sheaf_capacity: if note(SHEAF_CAPACITY) == 0 { 0 } else { half(cache, note(SHEAF_CAPACITY)) },
        barns: if note(BARNS) == 0 { 0 } else { word(cache, note(BARNS) + directory.get(ROW_AT)) },
        full_sheaves: note(FULL_SHEAVES),
    })
}

/// An order that a slab can have.
fn number_of_order(cache: &[u8], at: u64) -> Option<u64> {
    Some(number::<1>(cache, at)).filter(|order| *order < 20)
}

/// Page frames, by their use.
#[derive(Default)]
struct Frames {
    slabs: u64,
    /// In blocks, those of freed blocks that are kept among them.
    allocated: u64,
    /// Free, and maybe backed with memory.
    resident: u64,
}

/// Descriptors that are read at a time.
const PIECE: u64 = 65_536;
/// Larger blocks do not exist.
const LARGEST_ORDER: u8 = 18;

/// Counts slabs and frames: a pass over all descriptors that were ever written.
fn frames(memory: &impl Memory, directory: &Directory, places: &mut [Place]) -> Result<Frames, Bad> {
    let (page, each) = (directory.page_bytes(), directory.get(DESCRIPTOR_BYTES_AT));
    let start = directory.get(MEMMAP_AT);
    let end = start.saturating_add(directory.get(FRAMES_AT) * each);
    let by_number: HashMap<u32, usize> =
        places.iter().enumerate().map(|(index, place)| (place.number, index)).collect();
    let mut frames = Frames::default();
    // The end of the last block. What descriptors inside of it say may be of a block that was there before.
    let mut end_of_block = 0;
    for mapping in memory.mappings()?.iter().filter(|mapping| mapping.is_writable) {
        let (from, to) = (mapping.start.max(start), mapping.end.min(end));
        if from >= to {
            continue;
        }
        // Descriptors are committed for 1,024 frames or more at a time, which are whole pages: none begins in
        // one mapping and ends in another.
        let mut at = start + (from - start).next_multiple_of(each);
        while at < to {
            let bytes = (PIECE * each).min((to - at) / each * each);
            if bytes == 0 {
                break;
            }
            let start = at & !(page - 1);
            let pages = (at + bytes - start).div_ceil(page) as usize;
            if memory.present(start, page, pages).is_some_and(|present| !present.contains(&true)) {
                at += bytes;
                continue;
            }
            let read = memory.read_present(at, bytes as usize, page)?;
            let first = (at - directory.get(MEMMAP_AT)) / each;
            for (frame, descriptor) in (first..).zip(read.chunks_exact(each as usize)) {
                if frame >= end_of_block {
                    let block = count(directory, (frame, descriptor), &by_number, places, &mut frames);
                    end_of_block = frame + block;
                }
            }
            at += bytes;
        }
    }
    Ok(frames)
}

/// Counts the block that a frame is the head of, by the frame's descriptor, and returns the number of its
/// frames; 0 if the frame is no head.
fn count(
    directory: &Directory,
    (frame, descriptor): (u64, &[u8]),
    by_number: &HashMap<u32, usize>,
    places: &mut [Place],
    frames: &mut Frames,
) -> u64 {
    const CACHE: u64 = (1 << 24) - 1;
    let field = |at| word(descriptor, directory.get(at));
    let state = FrameState::unpack(field(STATE_AT));
    if state.order > LARGEST_ORDER {
        return 0;
    }
    let count = 1u64 << state.order;
    if !frame.is_multiple_of(count) {
        return 0;
    }
    match state.kind {
        FrameKind::Allocated | FrameKind::Large => frames.allocated += count,
        FrameKind::Buddy | FrameKind::Pcp => {
            let (from, to) = (field(EXTRA_AT) as u32, (field(EXTRA_AT) >> 32) as u32);
            frames.resident += u64::from(to.saturating_sub(from)).min(count);
        }
        FrameKind::Slab => {
            frames.slabs += count;
            let number = (field(OWNER_AT) & CACHE) as u32;
            let Some(place) = by_number.get(&number).map(|index| &mut places[*index]) else { return count };
            let slab = SlabWord::unpack(field(if place.is_in_extra { EXTRA_AT } else { SLAB_AT }));
            let cache = &mut place.cache;
            cache.slabs += 1;
            cache.bytes = cache.bytes.saturating_add(count * directory.page_bytes());
            let used = slab.inuse.min(slab.objects).into();
            cache.objects += u64::from(slab.objects);
            cache.live += used;
            cache.pins.count(used, slab.objects.into());
        }
        FrameKind::Untouched | FrameKind::Tail | FrameKind::Inside => return 0,
    }
    count
}

/// Counts the free objects in slots. Returns the number of used slots.
fn slots(memory: &impl Memory, directory: &Directory, places: &mut [Place]) -> Result<u64, Bad> {
    let mut used = [0; 2];
    memory.read(directory.get(USED_AT), &mut used)?;
    let used = within("the number of slots", u16::from_le_bytes(used).into(), 0..=SLOTS_MOST)?;
    let slots = directory.get(FIRST_SLOT_AT)..used;
    let length = |place: &Place| directory.get(COLD_AT) + place.spare.max(place.spare_size) + 64;
    let parts = places.iter().filter_map(|place| Some((place.slot?, length(place))));
    let part = parts.fold(None, |all: Option<Range<u64>>, (at, bytes)| {
        let all = all.unwrap_or(at..at);
        Some(all.start.min(at)..all.end.max(at + bytes))
    });
    let count = slots.end.saturating_sub(slots.start);
    let Some(part) = part else { return Ok(count) };
    let bytes = (part.end.min(directory.get(AREA_BYTES_AT)) - part.start) as usize;
    for slot in slots {
        let origin = directory.get(AREAS_AT) + slot * directory.get(AREA_BYTES_AT);
        let area = memory.read_present(origin + part.start, bytes, directory.page_bytes())?;
        for place in places.iter_mut() {
            let Some(at) = place.slot.map(|slot| slot - part.start) else { continue };
            // A held slot has zeros here: its objects are counted as live meanwhile.
            let list = (word(&area, at + directory.get(LIST_AT)) & 0x1_ffff).saturating_sub(1);
            let array = match directory.get(TOP_AT) {
                0 => half(&area, at + directory.get(SIZES_AT)),
                top => match (word(&area, at + top), word(&area, at + directory.get(STORAGE_AT))) {
                    (0, _) | (_, 0) => 0,
                    (top, array) => {
                        let bottom = array.wrapping_add(directory.get(BOTTOM_AT));
                        origin.wrapping_add(top).wrapping_sub(bottom) / 8
                    }
                },
            };
            let spare = at + directory.get(COLD_AT);
            let has_spare = place.sheaf_capacity > 0 && word(&area, spare + place.spare) != 0;
            let spare = if has_spare { half(&area, spare + place.spare_size) } else { 0 };
            let believed = [list, array, spare].into_iter().filter(|count| *count <= PARKED_MOST);
            place.cache.in_sheaves += believed.sum::<u64>();
        }
    }
    Ok(count)
}

/// Counts the free objects in a cache's barns.
fn barns(memory: &impl Memory, directory: &Directory, place: &mut Place) -> Result<(), Bad> {
    if place.barns == 0 || place.sheaf_capacity == 0 || place.cache.slabs == 0 {
        return Ok(());
    }
    for node in 0..directory.get(NODES_AT) {
        // A cache that has gone, or a row that was read halfway, has no barns that count.
        let Ok(barn) = memory.word(place.barns.wrapping_add(node * 8)) else { return Ok(()) };
        if barn == 0 {
            continue;
        }
        let full = memory.word(barn.wrapping_add(place.full_sheaves)).unwrap_or(0);
        let objects = full.saturating_mul(place.sheaf_capacity);
        place.cache.in_barns += if objects <= PARKED_MOST { objects } else { 0 };
    }
    Ok(())
}
