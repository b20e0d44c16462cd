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

use crate::allocator::Pages;
use crate::migrate::MigrateType;
use crate::resident::Resident;
use crate::zone::Held;
use slablab_platform::{NodeId, PerNode, Pfn, Platform};

impl<P: Platform> Held<'_, P> {
    /// The least resident free frames since the last call.
    fn begin_epoch(&mut self) -> u64 {
        let now = self.resident;
        core::mem::replace(&mut self.least_resident, now).min(now)
    }

    /// Takes a free block of at least `order` that has resident frames off its list, the smallest first:
    /// large ones serve more requests. Also returns which frames may be resident.
    fn take_resident(&mut self, order: u8) -> Option<(Pfn, u8, Resident)> {
        for order in order..=self.zone.machine.max_order {
            for index in 0..self.free_area[order as usize].len() {
                if let Some(pfn) = self.listed_resident(order, index) {
                    let resident = self.resident_of(pfn);
                    let ty = MigrateType::from_index(self.state(pfn).migrate_type as u64);
                    self.unlist(pfn, order, ty);
                    self.set_isolated(pfn, order);
                    return Some((pfn, order, resident));
                }
            }
        }
        None
    }

    /// A block with resident frames on a list.
    fn listed_resident(&self, order: u8, index: usize) -> Option<Pfn> {
        let list = self.free_area[order as usize][index];
        let is_resident = |pfn| self.resident_of(pfn) != Resident::NONE;
        // Where they come first, a list whose first block has none has no other.
        if self.zone.machine.policy.resident_first {
            list.first().filter(|pfn| is_resident(*pfn))
        } else {
            list.find::<P>(is_resident)
        }
    }
}

impl<P: Platform> Pages<P> {
    /// The least free frames that may be resident at a time since the last call, or fewer if there are
    /// several zones: nobody needed these since.
    pub fn least_resident(&self) -> u64 {
        let nodes = (0..P::nodes()).map(NodeId).filter(|node| self.nodes.peek(*node).is_some());
        let zones = nodes.flat_map(|node| self.zones_of(node).map(move |index| self.zone(node, index)));
        let zones = zones.filter(|zone| zone.span.frames > 0);
        zones.map(|zone| zone.lock()).map(|mut lists| lists.begin_epoch()).sum()
    }

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

    /// Hands free blocks of at least `order` that have resident frames, the smallest first, to `give_back`,
    /// which makes them read as zeros, until at most `keep` such frames are left, or until `give_back`
    /// returns `false`: that block then stays resident. Returns the number of resident frames given back.
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
