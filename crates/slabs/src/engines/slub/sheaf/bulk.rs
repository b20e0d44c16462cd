//! Many objects at once, sheaf by sheaf (docs/theory/sheaves.md 4.2).
//!
//! Counted like single calls: an object from or to a sheaf is fast, the remainder from slabs is slow.

use super::{BATCH_MAX, NoRoom, Stock};
use crate::backing::Backing;
use crate::engines::slub::direct::Busy;
use crate::engines::slub::runs::Checks;
use crate::engines::slub::{Slub, Tally};
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
            match self.slots.pop(Event::AllocFastpath) {
                Some(object) => {
                    out[got] = Some(object);
                    got += 1;
                }
                None if self.next_kept_sheaf() => {}
                None => break,
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

    /// Frees objects of this cache: the local ones to sheaves, the others to their slabs in batches. Returns
    /// the first error, after all other objects.
    pub(in crate::engines::slub) fn free_bulk_to_sheaves(
        &self,
        backing: &Backing<'_, P>,
        objects: &[P::Ptr],
    ) -> Result<(), Misuse> {
        let Some(first) = objects.first() else { return Ok(()) };
        let (mut remote, mut count) = ([*first; BATCH_MAX], 0);
        let mut result = Ok(());
        for (index, object) in objects.iter().enumerate() {
            if Slab::<P>::of(*object).is_some_and(|(_, state)| self.takes(state)) {
                if self.policy.elastic == 0 && !self.has_room(backing) {
                    // No sheaf is made for many objects: the rest goes to slabs.
                    result = result.and(self.free_remote(backing, &objects[index..]));
                    break;
                }
                result = result.and(self.free_to_sheaf(backing, *object));
                continue;
            }
            remote[count] = *object;
            count += 1;
            if count == BATCH_MAX {
                result = result.and(self.free_remote(backing, &remote));
                count = 0;
            }
        }
        result.and(self.free_remote(backing, &remote[..count]))
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
            Err(_) => false,
        }
    }

    fn free_remote(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        self.free_runs(backing, objects, Checks::Due, Tally::FREE).map_err(|(misuse, _)| misuse)
    }
}
