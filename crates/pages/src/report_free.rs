//! Free page reporting: free memory that may be resident goes back to the world.
//!
//! Linux tells a hypervisor which free blocks it need not keep (5.7, `page_reporting`); here the allocator
//! tells the world. A frame that was used is *resident* until it was reported. The head of a free block says
//! in its `extra` field which of the block's frames may be resident: a range, so that a small used block that
//! merges with a large untouched one keeps a small range. Merging takes the range around the ranges of both
//! halves; cutting gives each half its part.
//!
//! A block is reported outside `zone->lock`: it leaves its list as if it were allocated, and comes back not
//! resident.

use crate::Pages;
use crate::zone::Held;
use slablab_platform::{Field, NodeId, PerNode, Pfn, Platform};

/// The frames of a block that may be resident, counted from its head; the others are as the world made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    from: u32,
    to: u32,
}

impl Resident {
    pub(crate) const NONE: Resident = Resident { from: 0, to: 0 };

    /// All frames of a block.
    pub(crate) fn all(order: u8) -> Resident {
        Resident { from: 0, to: 1 << order }
    }

    pub(crate) fn pack(self) -> u64 {
        (self.to as u64) << 32 | self.from as u64
    }

    pub(crate) fn unpack(word: u64) -> Resident {
        Resident { from: word as u32, to: (word >> 32) as u32 }
    }

    pub(crate) fn frames(self) -> u64 {
        (self.to - self.from) as u64
    }

    /// The part of the range among `count` frames from `first` on, counted from `first`.
    pub(crate) fn part(self, first: u32, count: u32) -> Resident {
        let from = self.from.clamp(first, first + count) - first;
        let to = self.to.clamp(first, first + count) - first;
        if from < to { Resident { from, to } } else { Resident::NONE }
    }

    /// The range around this one and `other`, whose frames begin `count` frames after the first.
    pub(crate) fn before(self, other: Resident, count: u32) -> Resident {
        let other = Resident { from: other.from + count, to: other.to + count };
        match (self.frames(), other.frames()) {
            (_, 0) => self,
            (0, _) => other,
            _ => Resident { from: self.from, to: other.to },
        }
    }
}

impl<P: Platform> Held<'_, P> {
    /// The frames of a free block that may be resident.
    pub(crate) fn resident_of(&self, pfn: Pfn) -> Resident {
        P::with_frame(pfn, |frame| Resident::unpack(frame.extra.get()))
    }

    pub(crate) fn set_resident(&self, pfn: Pfn, resident: Resident) {
        P::with_frame(pfn, |frame| frame.extra.set(resident.pack()));
    }

    /// Takes a free block of at least `order` that has resident frames off its list, the largest first; also
    /// returns which frames may be resident.
    fn take_resident(&mut self, order: u8) -> Option<(Pfn, u8, Resident)> {
        for order in (order..=self.zone.machine.max_order).rev() {
            for index in 0..self.free_area[order as usize].len() {
                let list = self.free_area[order as usize][index];
                if let Some(pfn) = list.find::<P>(|pfn| self.resident_of(pfn) != Resident::NONE) {
                    let resident = self.resident_of(pfn);
                    let ty = crate::MigrateType::from_index(self.state(pfn).migrate_type as u64);
                    self.unlist(pfn, order, ty);
                    self.set_isolated(pfn, order);
                    return Some((pfn, order, resident));
                }
            }
        }
        None
    }
}

impl<P: Platform> Pages<P> {
    /// Free frames that may be resident, as a hint: those used and not reported since, and the frames between
    /// them.
    pub fn resident_free_frames(&self) -> u64 {
        (0..P::nodes()).flat_map(|node| self.zones_of(NodeId(node)).map(move |zone| (node, zone))).fold(
            0,
            |sum, (node, zone)| match self.nodes.peek(NodeId(node)) {
                Some(state) => sum + state.zones[zone as usize].resident(),
                None => sum,
            },
        )
    }

    /// Hands free blocks of at least `order` that have resident frames to `give_back`, which makes them read
    /// as zeros, until at most `keep` such frames are left, or until `give_back` returns `false`: that block
    /// then stays resident. Returns the number of resident frames given back.
    pub fn report_free(&self, order: u8, keep: u64, mut give_back: impl FnMut(Pfn, u8) -> bool) -> u64 {
        let mut reported = 0;
        for node in (0..P::nodes()).map(NodeId) {
            for index in self.zones_of(node) {
                let zone = self.zone(node, index);
                while zone.span.frames > 0 && self.resident_free_frames() > keep {
                    let taken = zone.lock().take_resident(order);
                    let Some((pfn, order, resident)) = taken else { break };
                    if !give_back(pfn, order) {
                        zone.lock().give_as(pfn, order, resident);
                        return reported;
                    }
                    zone.lock().give_as(pfn, order, Resident::NONE);
                    reported += resident.frames();
                }
            }
        }
        reported
    }
}
