//! Which object an address is.
//!
//! An object gets a dense id at its allocation: the one freed last, or a new one when none is free. So ids
//! stay below the largest number of objects live at once, plus one for a free of an unseen object, which has
//! an id only in its row.
//!
//! An address is in [`Pairing::objects`] while its object lives, and afterwards as *freed*, so that a second
//! free shows that the allocation between was not traced.

use rustc_hash::FxHashMap;
use slablab_readers::{Name, Names};
use slablab_trace::{CacheCounts, Counts, NONE, Table};

use super::pages::Pages;

/// Addresses remembered as freed, at 40 bytes each.
pub const FREED_LIMIT: usize = 1 << 22;

/// Kmalloc sizes counted apart; kernels have a few hundred.
const SIZES_LIMIT: usize = 1 << 12;

/// A live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// [`NONE`] marks a freed address.
    pub(super) id: u32,
    /// Where it is counted.
    pub(super) slot: u32,
    pub(super) bytes_req: u32,
    pub(super) bytes_alloc: u32,
    pub(super) cpu: u32,
}

/// One line of the counts: a cache, a kmalloc size, or slot 0 for what is not known.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The cache's id, [`NONE`] for a size.
    pub(super) cache: u32,
    /// Its directory in /sys/kernel/slab, as the recorder joined it first.
    pub(super) directory: Option<Name>,
    pub(super) bytes_alloc: u64,
    pub(super) counts: Counts,
}

pub(super) struct Pairing {
    objects: FxHashMap<u64, Object>,
    freed: usize,
    free_ids: Vec<u32>,
    next_id: u32,
    slots: Vec<Slot>,
    by_cache: Vec<u32>,
    by_size: FxHashMap<u32, u32>,
    pub(super) pages: Pages,
    pub(super) forgotten: u64,
    freed_limit: usize,
}

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unseen,
    Live(Object),
    Freed,
}

impl Pairing {
    pub(super) fn new(freed_limit: usize) -> Pairing {
        let (objects, free_ids, by_cache, by_size) = Default::default();
        let slots = vec![Slot { cache: NONE, ..Slot::default() }];
        let pages = Pages::new();
        Pairing {
            objects,
            freed: 0,
            free_ids,
            next_id: 0,
            slots,
            by_cache,
            by_size,
            pages,
            forgotten: 0,
            freed_limit,
        }
    }

    pub(super) fn state(&self, address: u64) -> State {
        match self.objects.get(&address) {
            None => State::Unseen,
            Some(object) if object.id == NONE => State::Freed,
            Some(&object) => State::Live(object),
        }
    }

    /// The slot of a cache, or without one that of a size; size 0 is not known either.
    pub(super) fn slot(&mut self, cache: u32, bytes_alloc: u32) -> u32 {
        let new = self.slots.len() as u32;
        if cache != NONE {
            let index = cache as usize;
            if self.by_cache.len() <= index {
                self.by_cache.resize(index + 1, NONE);
            }
            if self.by_cache[index] == NONE {
                self.by_cache[index] = new;
                self.slots.push(Slot { cache, ..Slot::default() });
            }
            return self.by_cache[index];
        }
        if bytes_alloc == 0 {
            return 0;
        }
        match self.by_size.get(&bytes_alloc) {
            Some(&slot) => slot,
            None if self.by_size.len() >= SIZES_LIMIT => 0,
            None => {
                self.by_size.insert(bytes_alloc, new);
                let bytes_alloc = bytes_alloc.into();
                self.slots.push(Slot { cache: NONE, bytes_alloc, ..Slot::default() });
                new
            }
        }
    }

    pub(super) fn at(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// An object is born at an address that is not live.
    pub(super) fn alloc(
        &mut self,
        address: u64,
        slot: u32,
        bytes_req: u32,
        bytes_alloc: u32,
        cpu: u32,
    ) -> Object {
        let object = Object { id: self.take_id(), slot, bytes_req, bytes_alloc, cpu };
        if let Some(old) = self.objects.insert(address, object) {
            assert!(old.id == NONE, "object {} was live at {address:#x} when it was allocated", old.id);
            self.freed -= 1;
        }
        self.pages.born(cpu, address);
        let line = &mut self.slots[slot as usize];
        line.bytes_alloc = bytes_alloc.into();
        line.counts.allocs += 1;
        line.counts.live_end += 1;
        line.counts.live_max = line.counts.live_max.max(line.counts.live_end);
        object
    }

    /// The live object at `address` dies.
    pub(super) fn free(&mut self, address: u64) -> Object {
        let entry = self.objects.get_mut(&address).expect("the caller found it live");
        let object = std::mem::replace(entry, Object { id: NONE, ..*entry });
        assert!(object.id != NONE, "the object at {address:#x} was already free");
        self.note_freed();
        self.free_ids.push(object.id);
        self.pages.died(address);
        self.slots[object.slot as usize].counts.live_end -= 1;
        object
    }

    /// An unseen object dies; its id is for this row only.
    pub(super) fn free_unseen(&mut self, address: u64) -> u32 {
        let freed = Object { id: NONE, slot: 0, bytes_req: 0, bytes_alloc: 0, cpu: 0 };
        if self.objects.insert(address, freed).is_none() {
            self.note_freed();
        }
        let id = self.take_id();
        self.free_ids.push(id);
        id
    }

    fn take_id(&mut self) -> u32 {
        self.free_ids.pop().unwrap_or_else(|| {
            let id = self.next_id;
            assert!(id < NONE, "more than 4 thousand million objects live at once");
            self.next_id += 1;
            id
        })
    }

    fn note_freed(&mut self) {
        self.freed += 1;
        if self.freed > self.freed_limit {
            self.objects.retain(|_, object| object.id != NONE);
            (self.freed, self.forgotten) = (0, self.forgotten + 1);
        }
    }

    /// The live addresses in the pages of a block; `None` while it is not known where pages are.
    pub(super) fn residents(&self, pfn: u64, order: u32) -> Option<Vec<u64>> {
        /// No cache of a 64-bit kernel aligns objects to less.
        const ALIGN: usize = 8;
        let mut found = Vec::new();
        for range in self.pages.inhabited(pfn, order)? {
            let left = self.pages.live_at(range.start) as usize;
            let live = |address: &u64| matches!(self.state(*address), State::Live(_));
            found.extend(range.step_by(ALIGN).filter(live).take(left));
        }
        Some(found)
    }

    /// The counts: of the caches in the order of their ids, of kmalloc sizes, and of what is not known.
    pub(super) fn counts(
        &self,
        caches: &Table,
        names: &Names,
    ) -> (Vec<CacheCounts>, Vec<CacheCounts>, Counts) {
        let line = |slot: &Slot, name: &str| CacheCounts {
            name: name.into(),
            directory: slot.directory.map(|directory| names.text(directory).into()),
            bytes_alloc: slot.bytes_alloc,
            counts: slot.counts,
        };
        let empty = Slot { cache: NONE, ..Slot::default() };
        let of_cache = |(id, name): (usize, &str)| {
            let slot = self.by_cache.get(id).filter(|&&slot| slot != NONE);
            line(slot.map_or(&empty, |&slot| &self.slots[slot as usize]), name)
        };
        let sizes = self.slots.iter().skip(1).filter(|slot| slot.cache == NONE);
        let mut sizes: Vec<CacheCounts> = sizes.map(|slot| line(slot, "")).collect();
        sizes.sort_by_key(|size| size.bytes_alloc);
        (caches.iter().enumerate().map(of_cache).collect(), sizes, self.slots[0].counts)
    }
}
