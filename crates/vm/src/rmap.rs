//! From a frame to the page table entries that map it.

use crate::frames::Flags;
use crate::ids::{Frame, MappingId, RegionId};
use crate::spaces::Pte;
use crate::state::State;

/// What a look at the entries of a frame found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Entries that map it.
    pub entries: u32,
    /// Of these, accessed since the last look.
    pub accessed: u32,
    /// One of them is of a region whose pages cannot be evicted.
    pub locked: bool,
    /// One of the accessed ones is of a program's text.
    pub exec: bool,
}

impl State {
    /// The entries that map a frame: regions and pages of them.
    pub fn mappers(&self, frame: Frame) -> impl Iterator<Item = (RegionId, u32)> + '_ {
        let index = self.frames.index(frame);
        let maps = move |region: &RegionId| {
            let region = self.spaces.region(*region);
            index < region.pages() && region.pte(index).frame() == Some(frame)
        };
        let regions = if self.frames.mapped(frame) > 0 { self.regions_of(frame) } else { &[] };
        regions.iter().copied().filter(maps).map(move |region| (region, index))
    }

    /// The regions that may map a frame.
    fn regions_of(&self, frame: Frame) -> &[RegionId] {
        let owner = self.frames.owner(frame);
        if self.frames.has(frame, Flags::ANON) {
            self.spaces.members(owner)
        } else {
            &self.mappings.get(MappingId(owner)).regions
        }
    }

    /// Looks at the accessed bits of a frame's entries, and clears them (`page_referenced`).
    pub fn look(&mut self, frame: Frame) -> Looked {
        let mut looked = Looked::default();
        // Nearly every page is mapped once: no list on the heap for it.
        let mut from = 0;
        while looked.entries < self.frames.mapped(frame) {
            let Some((at, region, page)) = self.next_mapper(frame, from) else { break };
            from = at + 1;
            let region = self.spaces.region_mut(region);
            let pte = region.pte(page);
            looked.entries += 1;
            looked.accessed += u32::from(pte.is_accessed());
            looked.locked |= region.locked;
            looked.exec |= region.exec && pte.is_accessed();
            region.mark(page, pte.accessed(false));
        }
        looked
    }

    fn next_mapper(&self, frame: Frame, from: usize) -> Option<(usize, RegionId, u32)> {
        let index = self.frames.index(frame);
        let regions = self.regions_of(frame);
        let maps = |region: &RegionId| {
            let region = self.spaces.region(*region);
            index < region.pages() && region.pte(index).frame() == Some(frame)
        };
        let at = (from..regions.len()).find(|at| maps(&regions[*at]))?;
        Some((at, regions[at], index))
    }

    /// Takes a frame out of all page tables (`try_to_unmap`). Entries of a frame in the swap cache get its
    /// slot, others of tmpfs and files are emptied; dirty entries make the frame dirty. Returns the entries.
    ///
    /// # Panics
    /// An anonymous frame without a slot.
    pub fn unmap_all(&mut self, frame: Frame) -> u32 {
        let (mut entries, mut from) = (0, 0);
        while self.frames.mapped(frame) > 0 {
            let (at, region, page) = self.next_mapper(frame, from).expect("a mapped frame has an entry");
            from = at + 1;
            entries += 1;
            self.unmap_for_eviction(region, page);
        }
        entries
    }

    /// Takes the frame of one entry out of it, so that the page can be evicted. Returns the entry.
    ///
    /// # Panics
    /// No frame there; an anonymous frame without a slot.
    pub fn unmap_for_eviction(&mut self, region: RegionId, page: u32) -> Pte {
        let frame = self.spaces.region(region).pte(page).frame().expect("a frame is mapped");
        let left = match (self.frames.has(frame, Flags::ANON), self.frames.slot(frame)) {
            (true, Some(slot)) => {
                self.swap.hold(slot);
                Pte::swapped(slot)
            }
            (true, None) => panic!("anonymous frame {} has no slot", frame.0),
            (false, _) => Pte::NONE,
        };
        let old = self.unmap(region, page, left);
        if old.is_dirty() {
            self.set_dirty(frame);
        }
        old
    }
}
