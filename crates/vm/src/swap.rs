//! Swap: slots, how many users each has, and the swap cache.
//!
//! A slot is *used* while page tables or a tmpfs file hold it, or the swap cache does. Which free slot a page
//! gets, and which neighbours are read with one, are rules by era.

use crate::ahead::SwapAhead;
use crate::ids::{Frame, Slot};
use crate::mappings::{Entry, change_shadows};

/// How a free slot is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotRule {
    /// The next free one; after each 256 the first run of 256 free ones from the lowest free slot, else the
    /// first free one. Rotating disks of all releases.
    Clusters,
    /// The next free one from where the last was found, and around.
    Next,
}

/// Slots that are handed out before a new run is looked for (`SWAPFILE_CLUSTER`).
const CLUSTER: u32 = 256;

/// The swap areas of a machine, as one range of slots.
#[derive(Debug)]
pub struct Swap {
    /// Users of each slot, the swap cache not counted.
    users: Vec<u8>,
    /// The swap cache: a frame, a shadow, or nothing, for each slot.
    cache: Vec<u32>,
    /// The contents of each slot, for checks.
    content: Vec<u32>,
    rule: SlotRule,
    used: u32,
    /// The lowest slot that may be free.
    lowest: u32,
    next: u32,
    /// Slots left of the run.
    left: u32,
    /// The window of its read-ahead.
    pub ahead: SwapAhead,
}

impl Swap {
    /// `slots` free slots.
    pub fn new(slots: u32, rule: SlotRule) -> Swap {
        Swap {
            users: vec![0; slots as usize],
            cache: vec![0; slots as usize],
            content: vec![0; slots as usize],
            rule,
            used: 0,
            lowest: 0,
            next: 0,
            left: 0,
            ahead: SwapAhead::default(),
        }
    }

    /// All slots.
    pub fn slots(&self) -> u32 {
        self.users.len() as u32
    }

    /// Slots in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Free slots.
    pub fn free(&self) -> u32 {
        self.slots() - self.used
    }

    /// Whether more than half is used (`vm_swap_full` since 2.6; docs/theory/vm.md 2.6).
    pub fn is_half_full(&self) -> bool {
        self.free() * 2 < self.slots()
    }

    /// Users of a slot, the swap cache not counted.
    pub fn users(&self, slot: Slot) -> u8 {
        self.users[slot as usize]
    }

    /// What the swap cache has of a slot.
    pub fn cached(&self, slot: Slot) -> Entry {
        Entry::unpack(self.cache[slot as usize])
    }

    /// Changes the shadows of pages that were in the swap cache.
    pub(crate) fn change_shadows(&mut self, change: impl Fn(u32) -> u32) {
        change_shadows(&mut self.cache, change);
    }

    /// Whether a slot is used.
    pub fn is_used(&self, slot: Slot) -> bool {
        self.users[slot as usize] > 0 || matches!(self.cached(slot), Entry::Frame(_))
    }

    /// The contents of a slot.
    pub fn content(&self, slot: Slot) -> u32 {
        self.content[slot as usize]
    }

    /// Changes the contents of a slot.
    pub fn set_content(&mut self, slot: Slot, content: u32) {
        self.content[slot as usize] = content;
    }

    /// Takes a free slot for a frame: it is in the swap cache, and has no user yet. `None` if all are used.
    pub fn take(&mut self, frame: Frame) -> Option<Slot> {
        self.take_from(frame, |_| false).map(|(slot, _)| slot)
    }

    /// Takes a slot for a frame, as [`Swap::take`]. If more than half of swap is used, this can be a slot
    /// that only the swap cache holds, for a frame that `gives` it up: that frame is in the swap cache no
    /// longer, and is returned too (`__try_to_reclaim_swap`; docs/theory/vm.md 2.6).
    pub fn take_from(
        &mut self,
        frame: Frame,
        gives: impl Fn(Frame) -> bool,
    ) -> Option<(Slot, Option<Frame>)> {
        if self.free() == 0 {
            return None;
        }
        if self.rule == SlotRule::Clusters {
            self.begin_run();
        }
        let is_full = self.is_half_full();
        let slot = self.find(self.next, |slot| {
            let cached = self.cached(slot).frame();
            self.users(slot) == 0 && cached.is_none_or(|frame| is_full && gives(frame))
        });
        let from = self.cached(slot).frame();
        self.next = slot + 1;
        self.used += u32::from(from.is_none());
        self.cache[slot as usize] = Entry::Frame(frame).pack();
        Some((slot, from))
    }

    /// Goes on in the run of free slots, or looks for the next one (docs/theory/vm.md 2.6).
    fn begin_run(&mut self) {
        if self.left == 0 {
            self.lowest = self.find(self.lowest, |slot| !self.is_used(slot));
            self.left = CLUSTER;
            self.next = self.free_run().unwrap_or(self.lowest);
        }
        self.left -= 1;
    }

    /// The first slot at or after `from`, and around, that is `free`. There is one.
    fn find(&self, from: Slot, free: impl Fn(Slot) -> bool) -> Slot {
        let from = from.min(self.slots());
        (from..self.slots()).chain(0..from).find(|slot| free(*slot)).expect("a slot is free")
    }

    /// The start of the first run of free slots from the lowest on.
    fn free_run(&self) -> Option<Slot> {
        let mut start = self.lowest;
        for slot in self.lowest..self.slots() {
            if self.is_used(slot) {
                start = slot + 1;
            } else if slot + 1 - start == CLUSTER {
                return Some(start);
            }
        }
        None
    }

    /// A page table entry or a tmpfs file uses the slot (`swap_duplicate`).
    pub fn hold(&mut self, slot: Slot) {
        self.users[slot as usize] += 1;
    }

    /// A user gives the slot up. Returns whether the slot is free now; a shadow in it is forgotten.
    pub fn drop_user(&mut self, slot: Slot) -> bool {
        assert!(self.users[slot as usize] > 0, "slot {slot} has no user");
        self.users[slot as usize] -= 1;
        self.freed(slot)
    }

    /// Puts a frame that was read, or will be, into the swap cache.
    pub fn enter_cache(&mut self, slot: Slot, frame: Frame) {
        assert!(self.users(slot) > 0 && self.cached(slot).frame().is_none(), "slot {slot}");
        self.cache[slot as usize] = Entry::Frame(frame).pack();
    }

    /// The page of a slot in the swap cache moved to another frame.
    pub(crate) fn replace_cached(&mut self, slot: Slot, frame: Frame) {
        assert!(self.cached(slot).frame().is_some(), "slot {slot} is not in the swap cache");
        self.cache[slot as usize] = Entry::Frame(frame).pack();
    }

    /// The swap cache gives the slot up, and leaves `left` behind. Returns whether the slot is free now.
    pub fn leave_cache(&mut self, slot: Slot, left: Entry) -> bool {
        assert!(self.cached(slot).frame().is_some(), "slot {slot} is not in the swap cache");
        self.cache[slot as usize] = left.pack();
        self.freed(slot)
    }

    fn freed(&mut self, slot: Slot) -> bool {
        if self.is_used(slot) {
            return false;
        }
        self.cache[slot as usize] = 0;
        self.used -= 1;
        self.lowest = self.lowest.min(slot);
        true
    }
}
