//! The data of one machine's memory, and the steps that change more than one part of it.

use crate::counters::{Counter, Counters};
use crate::flush::Flush;
use crate::frames::{Flags, Frames};
use crate::host::Place;
use crate::ids::{Frame, MappingId, RegionId, Slot};
use crate::lists::{ListId, Lists};
use crate::mappings::{Entry, Kind, Mappings};
use crate::replacement::Near;
use crate::scanners::Scanners;
use crate::settings::Settings;
use crate::spaces::{Backing, Pte, Spaces};
use crate::swap::Swap;
use crate::trees::Trees;
use std::ops::Range;

/// A zone of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its name, as in /proc/zoneinfo.
    pub name: &'static str,
    /// Its node.
    pub node: u16,
    /// Its place in the node, from the lowest address: its class.
    pub class: u8,
    /// Its frames.
    pub frames: Range<u32>,
    /// Frames that the page allocator manages.
    pub managed: u64,
}

/// The memory of a machine.
#[derive(Debug)]
pub struct State {
    /// Page frames.
    pub frames: Frames,
    /// The policy's lists.
    pub lists: Lists,
    /// The page cache.
    pub mappings: Mappings,
    /// Address spaces.
    pub spaces: Spaces,
    /// Swap.
    pub swap: Swap,
    /// Nodes of the page cache's trees.
    pub trees: Trees,
    /// What was counted.
    pub counters: Counters,
    /// Zones, by node and rising address.
    pub zones: Vec<Zone>,
    /// What the administrator set.
    pub settings: Settings,
    /// What compaction remembers of each zone.
    pub scanners: Vec<Scanners>,
    /// What reclaim before other nodes knows of each zone.
    pub near: Vec<Near>,
    /// Pages of files that are dirty; of these, under writeback; of all pages, under writeback.
    pub dirty: Dirty,
    /// Dirty pages of files in the order in which they became dirty (2.4).
    pub flush: Flush,
}

/// Dirty pages of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Pages of files and devices that are dirty (`nr_dirty`).
    pub file: u64,
    /// Pages under writeback, swap included (`nr_writeback`).
    pub writeback: u64,
    /// Of these, pages of files and devices.
    pub file_writeback: u64,
    /// Pages of tmpfs in frames, all of them dirty, which are in none of these numbers.
    pub tmpfs: u64,
    /// Pages that writers made dirty since one of them was last held back or let through.
    pub since: u32,
    /// How fast disks write.
    pub speed: Speed,
}

/// How fast the disks of files write, averaged over seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Pages a second.
    pub pages: u64,
    /// When it was last computed, in nanoseconds.
    pub at: u64,
    /// Pages of files written until now, and until then.
    pub written: (u64, u64),
}

impl Default for Speed {
    fn default() -> Self {
        // 100 MB/s, the kernel's guess at first (from memory).
        Speed { pages: 25_600, at: 0, written: (0, 0) }
    }
}

impl State {
    /// The memory of a machine with these zones.
    pub fn new(zones: Vec<Zone>, swap: Swap, lists: u16, settings: Settings) -> State {
        let frames = zones.iter().map(|zone| zone.frames.end).max().unwrap_or(0);
        State {
            frames: Frames::new(frames),
            lists: Lists::new(frames, lists),
            scanners: vec![Scanners::default(); zones.len()],
            near: vec![Near::default(); zones.len()],
            mappings: Mappings::default(),
            spaces: Spaces::default(),
            swap,
            trees: Trees::default(),
            counters: Counters::default(),
            zones,
            settings,
            dirty: Dirty::default(),
            flush: Flush::default(),
        }
    }

    /// The zone of a frame: its place in [`State::zones`].
    #[inline]
    pub fn zone_of(&self, frame: Frame) -> usize {
        let holds = |zone: &Zone| zone.frames.contains(&frame.0);
        self.zones.iter().position(holds).expect("a zone has the frame")
    }

    /// Counts an event once.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        self.counters.add(counter, 1);
    }

    /// Counts an event of an anonymous or tmpfs page, or of a file's page.
    pub fn count_by_type(&mut self, frame: Frame, anon: Counter, file: Counter) {
        let is_anon = self.frames.has(frame, Flags::SWAPBACKED);
        self.count(if is_anon { anon } else { file });
    }

    /// Maps a frame: the entry holds none yet. A slot that it holds is dropped.
    pub fn map(&mut self, region: RegionId, page: u32, pte: Pte) {
        let frame = pte.frame().expect("a frame to map");
        let old = self.spaces.region_mut(region).set(page, pte);
        assert!(old.frame().is_none(), "page {page} of {region:?} is mapped");
        self.frames.map(frame, true);
        if self.frames.mapped(frame) == 1 && !self.frames.has(frame, Flags::SWAPBACKED) {
            let zone = self.zone_of(frame);
            self.near[zone].mapped += 1;
        }
        if let Some(slot) = old.slot() {
            self.swap.drop_user(slot);
        }
    }

    /// Takes the frame of an entry out of it, and leaves `left` there. Returns the entry. If it was dirty, an
    /// anonymous page is: other entries may map it, and swap may have older contents.
    pub fn unmap(&mut self, region: RegionId, page: u32, left: Pte) -> Pte {
        let old = self.spaces.region_mut(region).set(page, left);
        let frame = old.frame().expect("a frame is mapped");
        self.frames.map(frame, false);
        if self.frames.mapped(frame) == 0 && !self.frames.has(frame, Flags::SWAPBACKED) {
            let zone = self.zone_of(frame);
            self.near[zone].mapped -= 1;
        }
        if old.is_dirty() && self.frames.has(frame, Flags::ANON) {
            self.frames.set(frame, Flags::DIRTY);
        }
        old
    }

    /// Replaces an entry that maps no frame by one that maps none. A slot that it holds is dropped.
    pub fn forget(&mut self, region: RegionId, page: u32) {
        let old = self.spaces.region_mut(region).set(page, Pte::NONE);
        assert!(old.frame().is_none());
        if let Some(slot) = old.slot() {
            self.swap.drop_user(slot);
        }
    }

    /// Makes a frame hold a page of a mapping, with these flags. Returns what was there: absent or a shadow.
    pub fn enter_mapping(&mut self, frame: Frame, mapping: MappingId, index: u32, flags: Flags) -> Entry {
        self.frames.begin(frame, mapping.0, index, flags);
        let old = self.mappings.get_mut(mapping).set(index, Entry::Frame(frame));
        assert!(matches!(old, Entry::Absent | Entry::Shadow(_)), "page {index} of {mapping:?}: {old:?}");
        self.in_frame(mapping, index);
        old
    }

    /// The page of a frame leaves its mapping; `left` stays there. The frame's list, slot and end are the
    /// caller's.
    pub fn leave_mapping(&mut self, frame: Frame, left: Entry) {
        let (mapping, index) = (MappingId(self.frames.owner(frame)), self.frames.index(frame));
        self.clear_dirty(frame);
        let old = self.mappings.get_mut(mapping).set(index, left);
        assert_eq!(old, Entry::Frame(frame), "page {index} of {mapping:?}");
        self.left_frame(mapping, index);
    }

    /// Changes what evictions left in the place of pages, in files and in the swap cache.
    pub fn change_shadows(&mut self, change: impl Fn(u32) -> u32) {
        self.mappings.change_shadows(&change);
        self.swap.change_shadows(&change);
    }

    /// Gives a frame a swap slot: it is in the swap cache, and dirty. `None` if swap is full.
    pub fn add_to_swap(&mut self, frame: Frame) -> Option<Slot> {
        let slot = self.swap.take(frame)?;
        self.trees.add(Trees::SWAP, slot);
        self.frames.set_slot(frame, slot);
        self.frames.set(frame, Flags::SWAPCACHE | Flags::DIRTY);
        Some(slot)
    }

    /// As [`State::add_to_swap`], but if more than half of swap is used, slots that only the swap cache holds
    /// are taken from their pages, which are dirty then: those that are mapped, and neither busy nor
    /// isolated.
    pub fn add_to_swap_or_reuse(&mut self, frame: Frame) -> Option<Slot> {
        let frames = &self.frames;
        let busy = Flags::LOCKED | Flags::WRITEBACK | Flags::ISOLATED;
        let gives = |held: Frame| frames.mapped(held) > 0 && !frames.flags(held).any(busy);
        let (slot, from) = self.swap.take_from(frame, gives)?;
        if let Some(from) = from {
            self.frames.clear(from, Flags::SWAPCACHE);
            self.frames.set(from, Flags::DIRTY);
        } else {
            self.trees.add(Trees::SWAP, slot);
        }
        self.frames.set_slot(frame, slot);
        self.frames.set(frame, Flags::SWAPCACHE | Flags::DIRTY);
        Some(slot)
    }

    /// A page of tmpfs leaves its file for the slot that it was given: it is in the swap cache.
    pub fn leave_for_slot(&mut self, frame: Frame, slot: Slot) {
        let (mapping, index) = (MappingId(self.frames.owner(frame)), self.frames.index(frame));
        self.mappings.get_mut(mapping).set(index, Entry::Slot(slot));
        self.left_frame(mapping, index);
        self.swap.hold(slot);
    }

    /// A page of tmpfs in the swap cache comes back to its file, and gives its slot up.
    pub fn come_back(&mut self, frame: Frame, mapping: MappingId, index: u32) {
        let slot = self.frames.slot(frame).expect("the frame is in the swap cache");
        self.leave_swap_cache(frame, Entry::Absent);
        self.swap.drop_user(slot);
        self.frames.give(frame, mapping.0, index);
        self.frames.set(frame, Flags::DIRTY);
        self.mappings.get_mut(mapping).set(index, Entry::Frame(frame));
        self.in_frame(mapping, index);
    }

    /// A page of a mapping is in a frame from now on.
    fn in_frame(&mut self, mapping: MappingId, index: u32) {
        self.trees.add(mapping.0, index);
        self.dirty.tmpfs += u64::from(self.mappings.get(mapping).kind == Kind::Tmpfs);
    }

    /// A page of a mapping is in a frame no longer.
    fn left_frame(&mut self, mapping: MappingId, index: u32) {
        self.trees.remove(mapping.0, index);
        self.dirty.tmpfs -= u64::from(self.mappings.get(mapping).kind == Kind::Tmpfs);
    }

    /// Puts a frame into the swap cache for a slot that will be read into it.
    pub fn enter_swap_cache(&mut self, frame: Frame, slot: Slot) {
        self.swap.enter_cache(slot, frame);
        self.trees.add(Trees::SWAP, slot);
        self.frames.set_slot(frame, slot);
        self.frames.set(frame, Flags::SWAPCACHE);
    }

    /// A frame leaves the swap cache; `left` stays there as long as the slot has users.
    pub fn leave_swap_cache(&mut self, frame: Frame, left: Entry) {
        let slot = self.frames.slot(frame).expect("the frame is in the swap cache");
        self.swap.leave_cache(slot, left);
        self.trees.remove(Trees::SWAP, slot);
        self.frames.clear(frame, Flags::SWAPCACHE);
    }

    /// A frame's contents are newer than the disk's. Returns whether it was clean.
    pub fn set_dirty(&mut self, frame: Frame) -> bool {
        if self.frames.has(frame, Flags::DIRTY) {
            return false;
        }
        self.frames.set(frame, Flags::DIRTY);
        if !self.frames.has(frame, Flags::ANON) && !self.frames.has(frame, Flags::SWAPCACHE) {
            let (id, index) = (MappingId(self.frames.owner(frame)), self.frames.index(frame));
            let mapping = self.mappings.get_mut(id);
            if matches!(mapping.kind, Kind::File | Kind::Device) {
                mapping.set_dirty(index, true);
                self.flush.add(id, index);
                self.dirty.file += 1;
                let zone = self.zone_of(frame);
                self.near[zone].dirty += 1;
                self.counters.add(Counter::Dirtied, 1);
            }
        }
        true
    }

    /// A frame's contents are those of the disk, or its page is gone. Returns whether it was dirty.
    pub fn clear_dirty(&mut self, frame: Frame) -> bool {
        if !self.frames.clear(frame, Flags::DIRTY).any(Flags::DIRTY) {
            return false;
        }
        if !self.frames.has(frame, Flags::ANON) && !self.frames.has(frame, Flags::SWAPCACHE) {
            let (id, index) = (MappingId(self.frames.owner(frame)), self.frames.index(frame));
            let mapping = self.mappings.get_mut(id);
            if matches!(mapping.kind, Kind::File | Kind::Device) && mapping.set_dirty(index, false) {
                self.flush.remove(id, index);
                self.dirty.file -= 1;
                let zone = self.zone_of(frame);
                self.near[zone].dirty -= 1;
            }
        }
        true
    }

    /// Puts a frame at the head of a list.
    pub fn push_head(&mut self, list: ListId, frame: Frame) {
        self.lists.push_head(list, frame);
        self.frames.set(frame, Flags::LISTED);
    }

    /// Puts a frame at the tail of a list.
    pub fn push_tail(&mut self, list: ListId, frame: Frame) {
        self.lists.push_tail(list, frame);
        self.frames.set(frame, Flags::LISTED);
    }

    /// Whether a frame's page cannot be evicted: it is locked in memory, or of a mapping whose pages stay.
    pub fn is_pinned(&self, frame: Frame) -> bool {
        self.frames.has(frame, Flags::UNEVICTABLE)
            || !self.frames.has(frame, Flags::ANON) && {
                let mapping = MappingId(self.frames.owner(frame));
                self.mappings.exists(mapping) && self.mappings.get(mapping).kind == Kind::Pinned
            }
    }

    /// Takes a frame out of its list.
    pub fn unlist(&mut self, frame: Frame) -> ListId {
        self.frames.clear(frame, Flags::LISTED);
        self.lists.remove(frame)
    }

    /// A reclaimer takes a frame from its list, and holds it until [`State::let_go`].
    pub fn isolate(&mut self, frame: Frame) -> ListId {
        self.frames.set(frame, Flags::ISOLATED);
        self.unlist(frame)
    }

    /// The reclaimer lets a frame go. Returns whether its page is gone meanwhile: then the frame is in use no
    /// longer, and the reclaimer gives it to the host.
    #[must_use]
    pub fn let_go(&mut self, frame: Frame) -> bool {
        self.frames.clear(frame, Flags::ISOLATED);
        let is_gone = self.frames.has(frame, Flags::GONE);
        if is_gone {
            self.frames.end(frame);
        }
        is_gone
    }

    /// The page of a frame in no list is gone: it left its mapping and the swap cache, and nothing maps it.
    /// Returns whether the caller gives the frame to the host; if a reclaimer holds it, that one does.
    #[must_use]
    pub fn end(&mut self, frame: Frame) -> bool {
        let is_held = self.frames.has(frame, Flags::ISOLATED);
        if is_held {
            self.frames.clear(frame, Flags::DIRTY);
            self.frames.set(frame, Flags::GONE);
        } else {
            self.frames.end(frame);
        }
        !is_held
    }

    /// Every page is in one place and counted once.
    ///
    /// # Errors
    /// What contradicts what.
    pub fn check(&self) -> Result<(), String> {
        let mut mapped = vec![0_u32; self.frames.count() as usize];
        let mut users = vec![0_u32; self.swap.slots() as usize];
        for space in &self.spaces.order {
            for region in &self.spaces.space(*space).regions {
                self.check_region(*region, &mut mapped, &mut users)?;
            }
        }
        for (id, mapping) in self.mappings.iter() {
            for index in 0..mapping.pages() {
                match mapping.entry(index) {
                    Entry::Frame(frame) => self.check_owner(frame, id.0, index)?,
                    Entry::Slot(slot) => users[slot as usize] += 1,
                    Entry::Absent | Entry::Shadow(_) => {}
                }
            }
        }
        for (slot, users) in users.iter().enumerate() {
            if u32::from(self.swap.users(slot as u32)) != *users {
                let says = self.swap.users(slot as u32);
                return Err(format!("slot {slot} has {users} users and says {says}"));
            }
        }
        self.check_counts()?;
        self.check_trees()?;
        self.check_frames(&mapped)
    }

    /// The trees have the pages that are in frames.
    fn check_trees(&self) -> Result<(), String> {
        let in_frames = self.mappings.iter().flat_map(|(id, mapping)| {
            let pages = (0..mapping.pages()).filter(|index| mapping.entry(*index).frame().is_some());
            pages.map(move |index| (id.0, index))
        });
        let slots = (0..self.swap.slots()).filter(|slot| self.swap.cached(*slot).frame().is_some());
        let all_right = self.trees.check(in_frames.chain(slots.map(|slot| (Trees::SWAP, slot))));
        all_right.then_some(()).ok_or_else(|| "nodes of the page cache's trees do not fit the pages".into())
    }

    /// What is counted along the way is what there is.
    fn check_counts(&self) -> Result<(), String> {
        let used = (0..self.swap.slots()).filter(|slot| self.swap.is_used(*slot)).count();
        let dirty: u64 = self.mappings.iter().map(|(_, mapping)| u64::from(mapping.dirtied)).sum();
        let all = (0..self.frames.count()).map(Frame);
        let written = all.filter(|frame| self.frames.has(*frame, Flags::WRITEBACK)).count();
        let of_tmpfs = self.mappings.iter().filter(|(_, mapping)| mapping.kind == Kind::Tmpfs);
        let tmpfs: u64 = of_tmpfs.map(|(_, mapping)| u64::from(mapping.frames)).sum();
        let is = (used, dirty, written, tmpfs);
        if self.flush.is_on() && self.flush.len() as u64 != dirty {
            return Err(format!("{} pages are in the list of dirty buffers, not {dirty}", self.flush.len()));
        }
        let near: u64 = self.near.iter().map(|zone| zone.dirty).sum();
        if near != dirty {
            return Err(format!("zones have {near} dirty pages of files, not {dirty}"));
        }
        let is_of_file = |frame: &Frame| !self.frames.has(*frame, Flags::SWAPBACKED);
        let files = (0..self.frames.count()).map(Frame).filter(is_of_file);
        let mapped = files.filter(|frame| self.frames.mapped(*frame) > 0).count() as u64;
        let near: u64 = self.near.iter().map(|zone| zone.mapped).sum();
        if near != mapped {
            return Err(format!("zones have {near} mapped pages of files, not {mapped}"));
        }
        let dirty = &self.dirty;
        let says = (self.swap.used() as usize, dirty.file, dirty.writeback as usize, dirty.tmpfs);
        let text = || format!("slots, dirty pages, writes, pages of tmpfs: {is:?}, not {says:?}");
        (is == says).then_some(()).ok_or_else(text)
    }

    /// Whether somebody has a page in this frame: a page table, a file, the swap cache, or a reclaimer.
    fn is_owned(&self, frame: Frame) -> bool {
        let flags = self.frames.flags(frame);
        if flags.any(Flags::SWAPCACHE | Flags::ISOLATED) || self.frames.mapped(frame) > 0 {
            return true;
        }
        let (owner, index) = (MappingId(self.frames.owner(frame)), self.frames.index(frame));
        !flags.any(Flags::ANON)
            && self.mappings.exists(owner)
            && self.mappings.get(owner).entry(index) == Entry::Frame(frame)
    }

    fn check_owner(&self, frame: Frame, owner: u32, index: u32) -> Result<(), String> {
        let is = (self.frames.owner(frame), self.frames.index(frame));
        let ours = is == (owner, index) && self.frames.has(frame, Flags::USED);
        ours.then_some(()).ok_or_else(|| format!("page {index} of {owner} is in frame {frame:?} of {is:?}"))
    }

    fn check_region(&self, id: RegionId, mapped: &mut [u32], users: &mut [u32]) -> Result<(), String> {
        let region = self.spaces.region(id);
        for page in 0..region.pages() {
            let pte = region.pte(page);
            if let Some(slot) = pte.slot() {
                users[slot as usize] += 1;
            }
            let Some(frame) = pte.frame() else { continue };
            mapped[frame.0 as usize] += 1;
            let owner = match region.backing {
                Backing::Anon(family) => family,
                Backing::Mapping(mapping) => mapping.0,
            };
            self.check_owner(frame, owner, page)?;
        }
        Ok(())
    }

    fn check_frames(&self, mapped: &[u32]) -> Result<(), String> {
        for frame in (0..self.frames.count()).map(Frame) {
            let flags = self.frames.flags(frame);
            if flags != Flags::default() && !self.is_owned(frame) {
                return Err(format!("nobody has the page of frame {}: {flags:?}", frame.0));
            }
            let (says, is) = (self.frames.mapped(frame), mapped[frame.0 as usize]);
            if says != is {
                return Err(format!("frame {} is mapped {is} times and says {says}", frame.0));
            }
            if flags.has(Flags::LISTED) != self.lists.of(frame).is_some() {
                return Err(format!("frame {}: {flags:?} and list {:?}", frame.0, self.lists.of(frame)));
            }
            let cached = self.frames.slot(frame).map(|slot| self.swap.cached(slot));
            if cached.is_some_and(|entry| entry != Entry::Frame(frame)) {
                return Err(format!("frame {} is not in the swap cache: {cached:?}", frame.0));
            }
        }
        Ok(())
    }
}

impl State {
    /// Begins a write of a frame that is locked or isolated: it is clean, and under writeback.
    pub fn begin_write(&mut self, frame: Frame) {
        assert!(!self.frames.has(frame, Flags::WRITEBACK), "frame {} is written", frame.0);
        self.clear_dirty(frame);
        self.frames.set(frame, Flags::WRITEBACK);
        self.dirty.writeback += 1;
        if !self.frames.has(frame, Flags::SWAPBACKED) {
            self.dirty.file_writeback += 1;
            let frames = &self.frames;
            self.flush.lock(frame, |frame| frames.has(frame, Flags::WRITEBACK));
        }
    }

    /// The contents at a place of a disk: the `at`th page from there.
    pub(crate) fn stored(&self, place: Place, at: u32) -> u32 {
        match place {
            Place::Swap(slot) => self.swap.content(slot + at),
            Place::Mapping(mapping, index) => self.mappings.get(mapping).stored(index + at),
        }
    }

    /// Changes them. A mapping that is gone meanwhile keeps none.
    pub(crate) fn store(&mut self, place: Place, at: u32, content: u32) {
        match place {
            Place::Swap(slot) => self.swap.set_content(slot + at, content),
            Place::Mapping(mapping, index) if self.mappings.exists(mapping) => {
                self.mappings.get_mut(mapping).store(index + at, content);
            }
            Place::Mapping(..) => {}
        }
    }
}
