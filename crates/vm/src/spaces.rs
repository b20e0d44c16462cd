//! Address spaces: regions of pages, their page tables, and the order in which 2.4 walks them.
//!
//! A page table is one array a region: a word an entry. A region is anonymous memory of a *family* (the
//! regions that forks made of one, which share pages until one of them writes), or maps a mapping from its
//! start.
//!
//! The processor sets the accessed bit of an entry when it loads it into its TLB, and reclaim clears it
//! without a flush. So an entry that was loaded before and is still in the TLB is not marked again:
//! [`Region::access`] marks an entry once in an *epoch* of its space, and a flush begins a new epoch.

use crate::ahead::{FileAhead, SwapAhead};
use crate::ids::{Frame, MappingId, RegionId, SpaceId};

/// A page table entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pte(pub u32);

impl Pte {
    /// No page, and none in swap.
    pub const NONE: Pte = Pte(0);
    /// The page of zeros, which all read-only entries of it share. It is in none of the frames counted here.
    pub const ZERO: Pte = Pte(Pte::PRESENT | Pte::FRAME);
    const PRESENT: u32 = 1 << 31;
    const ACCESSED: u32 = 1 << 30;
    const DIRTY: u32 = 1 << 29;
    const WRITE: u32 = 1 << 28;
    const FRAME: u32 = (1 << 28) - 1;

    /// An entry that maps a frame.
    pub const fn map(frame: Frame, write: bool) -> Pte {
        assert!(frame.0 < Pte::FRAME);
        Pte(Pte::PRESENT | frame.0 | if write { Pte::WRITE } else { 0 })
    }

    /// An entry of a page that is in swap.
    pub const fn swapped(slot: u32) -> Pte {
        Pte(slot + 1)
    }

    /// The frame that it maps; none if it is the page of zeros.
    #[inline]
    pub const fn frame(self) -> Option<Frame> {
        if self.0 & Pte::PRESENT != 0 && !self.is_zero() { Some(Frame(self.0 & Pte::FRAME)) } else { None }
    }

    /// Whether it maps the page of zeros.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 & Pte::PRESENT != 0 && self.0 & Pte::FRAME == Pte::FRAME
    }

    /// The slot of its page.
    #[inline]
    pub const fn slot(self) -> Option<u32> {
        if self.0 & Pte::PRESENT == 0 && self.0 != 0 { Some(self.0 - 1) } else { None }
    }

    /// Whether the processor accessed the page through it (`pte_young`). No: the page of zeros.
    pub const fn is_accessed(self) -> bool {
        self.0 & Pte::PRESENT != 0 && !self.is_zero() && self.0 & Pte::ACCESSED != 0
    }

    /// Whether the processor wrote to the page through it.
    pub const fn is_dirty(self) -> bool {
        self.0 & Pte::PRESENT != 0 && self.0 & Pte::DIRTY != 0
    }

    /// Whether the processor may write through it.
    pub const fn is_writable(self) -> bool {
        self.0 & Pte::PRESENT != 0 && self.0 & Pte::WRITE != 0
    }

    /// The entry with its accessed bit set or cleared.
    pub const fn accessed(self, accessed: bool) -> Pte {
        Pte(if accessed { self.0 | Pte::ACCESSED } else { self.0 & !Pte::ACCESSED })
    }

    /// The entry with its dirty bit set or cleared.
    pub const fn dirty(self, dirty: bool) -> Pte {
        Pte(if dirty { self.0 | Pte::DIRTY } else { self.0 & !Pte::DIRTY })
    }

    /// The entry with writes allowed or refused.
    pub const fn writable(self, write: bool) -> Pte {
        Pte(if write { self.0 | Pte::WRITE } else { self.0 & !Pte::WRITE })
    }
}

/// What a region's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Anonymous, of this family.
    Anon(u32),
    /// Of a mapping, shared, from its first page on.
    Mapping(MappingId),
}

/// A region.
#[derive(Debug)]
pub struct Region {
    /// Its address space.
    pub space: SpaceId,
    /// What its pages are.
    pub backing: Backing,
    ptes: Vec<u32>,
    /// The epoch in which each entry was last loaded, plus one.
    loaded: Vec<u32>,
    /// Entries that are not [`Pte::NONE`] in each page table of 512.
    tables: Vec<u16>,
    /// The processor loaded an entry of each page table since the last [`Region::clear_table`].
    young: Vec<bool>,
    /// The frame of each page table, plus one; 0: none is allocated.
    table_frames: Vec<u32>,
    /// Page tables in frames.
    pub(crate) built: u32,
    /// Where its faults read ahead in its mapping.
    pub ahead: FileAhead,
    /// Where its faults read ahead in swap, if the device does not rotate.
    pub swap_ahead: SwapAhead,
    /// Entries that map a frame.
    pub resident: u32,
    /// Entries of pages in swap.
    pub swapped: u32,
    /// Its pages cannot be evicted.
    pub locked: bool,
    /// It holds a program's text (`VM_EXEC`).
    pub exec: bool,
}

/// Entries of a page table page.
pub const TABLE: u32 = 512;

impl Region {
    /// Pages of the region.
    pub fn pages(&self) -> u32 {
        self.ptes.len() as u32
    }

    /// An entry.
    #[inline]
    pub fn pte(&self, page: u32) -> Pte {
        Pte(self.ptes[page as usize])
    }

    /// The program accesses a page. Returns whether the entry allows it; if not, it is a fault.
    #[inline]
    pub fn access(&mut self, page: u32, write: bool, epoch: u32) -> bool {
        let pte = &mut self.ptes[page as usize];
        let needed = if write { Pte::PRESENT | Pte::WRITE } else { Pte::PRESENT };
        if *pte & needed != needed {
            return false;
        }
        let loaded = &mut self.loaded[page as usize];
        if *loaded != epoch + 1 {
            *loaded = epoch + 1;
            *pte |= Pte::ACCESSED;
            self.young[(page / TABLE) as usize] = true;
        }
        if write && *pte & Pte::DIRTY == 0 {
            *pte |= Pte::DIRTY | Pte::ACCESSED;
            self.young[(page / TABLE) as usize] = true;
        }
        true
    }

    /// Sets an entry that maps no frame now or before it; frames are counted by [`crate::state::State::map`].
    pub(crate) fn set(&mut self, page: u32, pte: Pte) -> Pte {
        let old = Pte(std::mem::replace(&mut self.ptes[page as usize], pte.0));
        // A new translation is loaded anew.
        if old.frame() != pte.frame() {
            self.loaded[page as usize] = 0;
        }
        // The access that faulted is made again through the new entry.
        if pte.is_accessed() {
            self.young[(page / TABLE) as usize] = true;
        }
        self.resident = self.resident + u32::from(pte.frame().is_some()) - u32::from(old.frame().is_some());
        self.swapped = self.swapped + u32::from(pte.slot().is_some()) - u32::from(old.slot().is_some());
        let table = &mut self.tables[(page / TABLE) as usize];
        *table = *table + u16::from(pte != Pte::NONE) - u16::from(old != Pte::NONE);
        old
    }

    /// Changes the accessed and dirty bits of an entry that maps a frame.
    #[inline]
    pub fn mark(&mut self, page: u32, pte: Pte) {
        debug_assert!(self.pte(page).frame() == pte.frame());
        self.ptes[page as usize] = pte.0;
    }

    /// Clears the accessed bit of the entry that points to a page table (`pmd_young`). Returns whether the
    /// processor had set it: it loaded an entry of the table since.
    pub fn clear_table(&mut self, table: u32) -> bool {
        std::mem::take(&mut self.young[table as usize])
    }

    /// Entries in use of each page table.
    pub fn tables(&self) -> &[u16] {
        &self.tables
    }

    /// The frame of the `at`th page table.
    #[inline]
    pub fn table(&self, at: u32) -> Option<Frame> {
        self.table_frames[at as usize].checked_sub(1).map(Frame)
    }

    /// Says in which frame the `at`th page table is.
    pub(crate) fn set_table(&mut self, at: u32, frame: Frame) {
        assert!(self.table(at).is_none(), "page table {at} is in a frame");
        self.table_frames[at as usize] = frame.0 + 1;
        self.built += 1;
    }
}

/// An address space.
#[derive(Debug)]
pub struct Space {
    /// Its regions, by rising address.
    pub regions: Vec<RegionId>,
    /// Where 2.4's walk goes on: a region's place in `regions`, and a page of it (`swap_address`).
    pub cursor: (u32, u32),
    /// The TLB's epoch.
    pub epoch: u32,
    /// Mapped accesses since the TLB was last flushed.
    pub since_flush: u32,
    /// Mapped accesses after which the program flushes the TLB, so that accessed bits are set again.
    pub flush_every: u32,
}

/// The address spaces of a machine.
#[derive(Debug, Default)]
pub struct Spaces {
    spaces: Vec<Option<Space>>,
    regions: Vec<Option<Region>>,
    /// Regions of each family of anonymous memory.
    families: Vec<Vec<RegionId>>,
    free: (Vec<u32>, Vec<u32>, Vec<u32>),
    /// The spaces in the order of 2.4's walk (`mmlist`).
    pub order: Vec<SpaceId>,
}

fn put<T>(all: &mut Vec<T>, free: &mut Vec<u32>, value: T) -> u32 {
    match free.pop() {
        Some(id) => {
            all[id as usize] = value;
            id
        }
        None => {
            all.push(value);
            all.len() as u32 - 1
        }
    }
}

impl Spaces {
    /// An address space without regions.
    pub fn create(&mut self) -> SpaceId {
        let space = Space { regions: Vec::new(), cursor: (0, 0), epoch: 0, since_flush: 0, flush_every: 512 };
        let id = SpaceId(put(&mut self.spaces, &mut self.free.0, Some(space)));
        self.order.push(id);
        id
    }

    /// A space without regions is forgotten.
    pub fn end(&mut self, id: SpaceId) {
        let space = self.spaces[id.0 as usize].take().expect("the space exists");
        assert!(space.regions.is_empty(), "{id:?} has regions");
        self.order.retain(|other| *other != id);
        self.free.0.push(id.0);
    }

    /// A new family of anonymous memory.
    pub fn family(&mut self) -> u32 {
        put(&mut self.families, &mut self.free.2, Vec::new())
    }

    /// A region of `pages` pages at the end of a space. The caller enters it in its mapping.
    pub fn add(&mut self, space: SpaceId, backing: Backing, pages: u32) -> RegionId {
        let region = Region {
            space,
            backing,
            ptes: vec![0; pages as usize],
            loaded: vec![0; pages as usize],
            tables: vec![0; pages.div_ceil(TABLE) as usize],
            young: vec![false; pages.div_ceil(TABLE) as usize],
            table_frames: vec![0; pages.div_ceil(TABLE) as usize],
            built: 0,
            ahead: FileAhead::default(),
            swap_ahead: SwapAhead::default(),
            resident: 0,
            swapped: 0,
            locked: false,
            exec: false,
        };
        let id = RegionId(put(&mut self.regions, &mut self.free.1, Some(region)));
        self.space_mut(space).regions.push(id);
        if let Backing::Anon(family) = backing {
            self.families[family as usize].push(id);
        }
        id
    }

    /// A region without pages is forgotten. The caller takes it out of its mapping.
    pub fn remove(&mut self, id: RegionId) {
        let region = self.regions[id.0 as usize].take().expect("the region exists");
        assert!(region.resident == 0 && region.swapped == 0, "{id:?} has pages");
        let space = self.space_mut(region.space);
        space.regions.retain(|other| *other != id);
        space.cursor = (0, 0);
        if let Backing::Anon(family) = region.backing {
            let regions = &mut self.families[family as usize];
            regions.retain(|other| *other != id);
            if regions.is_empty() {
                self.free.2.push(family);
            }
        }
        self.free.1.push(id.0);
    }

    /// The regions of a family.
    pub fn members(&self, family: u32) -> &[RegionId] {
        &self.families[family as usize]
    }

    /// A space.
    #[inline]
    pub fn space(&self, id: SpaceId) -> &Space {
        self.spaces[id.0 as usize].as_ref().expect("the space exists")
    }

    /// A space, to change.
    #[inline]
    pub fn space_mut(&mut self, id: SpaceId) -> &mut Space {
        self.spaces[id.0 as usize].as_mut().expect("the space exists")
    }

    /// A region.
    #[inline]
    pub fn region(&self, id: RegionId) -> &Region {
        self.regions[id.0 as usize].as_ref().expect("the region exists")
    }

    /// A region, to change.
    #[inline]
    pub fn region_mut(&mut self, id: RegionId) -> &mut Region {
        self.regions[id.0 as usize].as_mut().expect("the region exists")
    }

    /// Whether there is such a space.
    pub fn exists(&self, id: SpaceId) -> bool {
        self.spaces.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// The program accesses a page of a region of its space. Returns whether the page was there; else it is a
    /// fault.
    #[inline]
    pub fn access(&mut self, id: RegionId, page: u32, write: bool) -> bool {
        self.access_run(id, [page], write) > 0
    }

    /// The program accesses pages of a region one after the other, as [`Spaces::access`] does, until one is a
    /// fault. Returns how many were there.
    #[inline]
    pub fn access_run(&mut self, id: RegionId, pages: impl IntoIterator<Item = u32>, write: bool) -> u32 {
        let region = self.regions[id.0 as usize].as_mut().expect("the region exists");
        let space = self.spaces[region.space.0 as usize].as_mut().expect("the space exists");
        let mut hits = 0;
        for page in pages {
            if !region.access(page, write, space.epoch) {
                break;
            }
            hits += 1;
            space.since_flush += 1;
            if space.since_flush >= space.flush_every {
                (space.since_flush, space.epoch) = (0, space.epoch + 1);
            }
        }
        hits
    }

    /// The TLB of a space is flushed.
    pub fn flush(&mut self, id: SpaceId) {
        let space = self.space_mut(id);
        (space.since_flush, space.epoch) = (0, space.epoch + 1);
    }
}
