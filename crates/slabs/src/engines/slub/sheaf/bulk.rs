//! Many objects at once, sheaf by sheaf (docs/theory/sheaves.md 4.2).
//!
//! Counted like single calls: an object from or to a sheaf is fast, the remainder from slabs is slow.

use super::{NoRoom, Stock};
use crate::backing::Backing;
use crate::damage::hole;
use crate::engines::slub::direct::Busy;
use crate::engines::slub::policy::BulkStrangers;
use crate::engines::slub::runs::{Checks, WINDOW};
use crate::engines::slub::{Slub, Tally};
use crate::lent::word;
use crate::report::Misuse;
use crate::slab::Slab;
use slablab_platform::{Event, Gfp, HotArray, Local, PerCpu, Platform};

impl<P: Platform> Slub<P> {
    /// Fills `out` from sheaves first and then from slabs in one pass. Returns how many objects it got.
    pub(in crate::engines::slub) fn alloc_bulk_from_sheaves(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        out: &mut [Option<P::Ptr>],
    ) -> usize {
        let mut got = 0;
        while got < out.len() {
            match self.take_last(&mut out[got..]) {
                0 if self.next_kept_sheaf() => {}
                0 => break,
                more => got += more,
            }
        }
        if self.policy.cpu_slab {
            while got < out.len()
                && let Some(object) = self.alloc_from_sheaf(backing, gfp, None)
            {
                out[got] = Some(object);
                got += 1;
            }
            return got;
        }
        let rest = (out.len() - got) as u32;
        if rest > 0 {
            let mut places = out[got..].iter_mut();
            let mut put = |object| {
                if let Some(place) = places.next() {
                    *place = Some(object);
                }
            };
            let more = self.gather(backing, gfp, None, rest, Busy::Skip, &mut put);
            self.slots.count(Event::AllocSlowpath, more as u64);
            got += more as usize;
        }
        got
    }

    /// Fills `out` with the last objects of the main sheaf, in the sheaf's order; with maps, where sheaves
    /// are filled from their ends on, the last one first.
    fn take_last(&self, out: &mut [Option<P::Ptr>]) -> usize {
        if self.has_map() {
            let popped = out.iter_mut().map_while(|place| {
                *place = self.slots.pop(Event::AllocFastpath);
                place.as_ref().map(drop)
            });
            return popped.count();
        }
        let Some(mut slot) = self.slots.local() else { return 0 };
        let main = slot.array();
        let Some(sheaf) = main.storage else { return 0 };
        let count = main.size.min(out.len() as u32);
        let left = main.size - count;
        for (place, index) in out.iter_mut().zip(left..main.size) {
            let object = P::storage_load(sheaf, word(index));
            *place = Some(object.unwrap_or_else(|| hole::<P>(self.id, "a sheaf", sheaf, index)));
        }
        slot.set_array(HotArray { size: left, ..main });
        slot.count(Event::AllocFastpath, count.into());
        count as usize
    }

    /// Frees objects of this cache: the local ones to sheaves, the others to their slabs in batches. Returns
    /// the first error, after all other objects.
    pub(in crate::engines::slub) fn free_bulk_to_sheaves(
        &self,
        backing: &Backing<'_, P>,
        objects: &[P::Ptr],
    ) -> Result<(), Misuse> {
        let mut result = Ok(());
        for objects in objects.chunks(WINDOW) {
            result = result.and(self.free_window_to_sheaves(backing, objects));
        }
        result
    }

    /// Frees up to [`WINDOW`] objects.
    fn free_window_to_sheaves(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        match objects.iter().all(|object| self.is_own(*object)) {
            true => self.free_own_to_sheaves(backing, objects),
            false => self.free_mixed(backing, objects),
        }
    }

    /// Frees up to [`WINDOW`] objects, some of other nodes: those go to slabs.
    #[cold]
    #[inline(never)]
    fn free_mixed(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        let Some(first) = objects.first() else { return Ok(()) };
        let mut parted = [*first; WINDOW];
        let parted = &mut parted[..objects.len()];
        parted.copy_from_slice(objects);
        let (own, strangers, batch) = match self.policy.bulk_strangers {
            BulkStrangers::Batched => {
                let (own, strangers) = self.part_by_last(parted);
                (own, strangers, self.policy.sheaf_batch.into())
            }
            BulkStrangers::Swapped => {
                let (own, strangers) = self.part_by_swaps(parted);
                (own, strangers, WINDOW)
            }
        };
        let mut result = Ok(());
        for strangers in strangers.chunks(batch) {
            result = result.and(self.free_many_to_slabs(backing, strangers));
        }
        result.and(self.free_own_to_sheaves(backing, own))
    }

    /// The last object that is left goes to the place of each object of another node; those are in their
    /// order.
    fn part_by_last<'a>(&self, objects: &'a mut [P::Ptr]) -> (&'a [P::Ptr], &'a [P::Ptr]) {
        let (mut next, mut end) = (0, objects.len());
        while next < end {
            if self.is_own(objects[next]) {
                next += 1;
            } else {
                end -= 1;
                objects.swap(next, end);
            }
        }
        let (own, strangers) = objects.split_at_mut(end);
        strangers.reverse();
        (own, strangers)
    }

    /// Each object of another node changes places with the first own one before it.
    fn part_by_swaps<'a>(&self, objects: &'a mut [P::Ptr]) -> (&'a [P::Ptr], &'a [P::Ptr]) {
        let mut strangers = 0;
        for next in 0..objects.len() {
            if !self.is_own(objects[next]) {
                objects.swap(next, strangers);
                strangers += 1;
            }
        }
        let (strangers, own) = objects.split_at(strangers);
        (own, strangers)
    }

    fn is_own(&self, object: P::Ptr) -> bool {
        Slab::<P>::of(object).is_some_and(|(_, state)| self.takes(state))
    }

    /// Frees objects that the CPU's sheaves take. No sheaf is made for them: the rest goes to slabs.
    fn free_own_to_sheaves(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        let mut result = Ok(());
        for (index, object) in objects.iter().enumerate() {
            if self.policy.elastic == 0 && !self.has_room(backing) {
                return result.and(self.free_many_to_slabs(backing, &objects[index..]));
            }
            result = result.and(self.free_to_sheaf(backing, *object));
        }
        result
    }

    /// Whether the main sheaf has room, if only after an exchange with the spare or with the barn.
    fn has_room(&self, backing: &Backing<'_, P>) -> bool {
        let Some(mut slot) = self.slot_with_main(backing) else { return false };
        let main = slot.array();
        if main.size < main.capacity {
            return true;
        }
        match self.swap_out(&mut slot) {
            Ok(()) => true,
            Err(NoRoom::NoSpare(barn)) => {
                let Some(empty) = self.get_empty(barn) else { return false };
                slot.sheaves.spare.set(main.storage.map(|sheaf| Stock { sheaf, size: main.size }));
                slot.set_array(HotArray { storage: Some(empty), size: 0, ..main });
                true
            }
            Err(NoRoom::NoEmpty) => {
                slot.count(Event::BarnPutFail, 1);
                false
            }
            Err(_) => false,
        }
    }

    fn free_many_to_slabs(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        self.free_runs(backing, objects, Checks::Due, Tally::FREE).map_err(|(misuse, _)| misuse)
    }
}
