//! Frees of many objects: those of one slab go back together (docs/theory/slub.md 4.2).
//!
//! From the end of the array on, a *run* is an object and those before it that are of the same slab. The
//! search ends at the third object of another slab. A run goes back as a chain of links, or to the slab's
//! map.

use super::map::Freed;
use super::{Slub, Tally};
use crate::backing::Backing;
use crate::report::Misuse;
use crate::slab::{Chain, Slab};
use slablab_platform::{FrameState, Platform};

/// Objects of other slabs at which a search for more objects of a slab ends.
const LOOK_AHEAD: u32 = 3;
/// Objects among which runs are found: as many as a word has bits.
const WINDOW: usize = u64::BITS as usize;

/// A slab and the state of its first frame.
type Found<P> = (Slab<P>, FrameState);
/// What is wrong, and with which object.
pub(super) type Wrong<P> = (Misuse, <P as slablab_platform::Frames>::Ptr);

/// Some objects of a batch, a bit of `left` for each that no run took.
struct Window<'a, Ptr> {
    objects: &'a [Ptr],
    left: u64,
}

impl<'a, Ptr: Copy> Window<'a, Ptr> {
    fn new(objects: &'a [Ptr]) -> Self {
        Window { objects, left: u64::MAX >> (WINDOW - objects.len()) }
    }

    /// Takes the last object that is left.
    fn take_last(&mut self) -> Option<Ptr> {
        let last = self.left.checked_ilog2()?;
        self.left &= !(1 << last);
        Some(self.objects[last as usize])
    }
}

impl<P: Platform> Slub<P> {
    /// Frees many objects, run by run. An error names the first object that its slab does not take. The other
    /// runs are freed, and with maps the other objects of its run.
    pub(super) fn free_runs(
        &self,
        backing: &Backing<'_, P>,
        objects: &[P::Ptr],
        tally: Tally,
    ) -> Result<(), Wrong<P>> {
        let mut result = Ok(());
        for window in objects.rchunks(WINDOW) {
            let mut window = Window::new(window);
            while let Some(last) = window.take_last() {
                let freed = if self.has_map() {
                    self.free_run_to_map(backing, last, &mut window, tally)
                } else {
                    self.free_run_as_chain(backing, last, &mut window, tally)
                };
                result = result.and(freed);
            }
        }
        result
    }

    fn free_run_as_chain(
        &self,
        backing: &Backing<'_, P>,
        last: P::Ptr,
        window: &mut Window<'_, P::Ptr>,
        tally: Tally,
    ) -> Result<(), Wrong<P>> {
        let found = self.slab_of_run(last)?;
        let mut chain = Chain { head: last, tail: last, count: 1 };
        self.each_of_run(found, window, |object, _| {
            P::set_link(object, self.geometry.link_offset, Some(chain.head));
            chain = Chain { head: object, count: chain.count + 1, ..chain };
        });
        self.free_chain(backing, found.0, found.1, chain, tally).map_err(|misuse| (misuse, last))
    }

    fn free_run_to_map(
        &self,
        backing: &Backing<'_, P>,
        last: P::Ptr,
        window: &mut Window<'_, P::Ptr>,
        tally: Tally,
    ) -> Result<(), Wrong<P>> {
        let found = self.slab_of_run(last)?;
        let mut freed = Freed::none_of(found.0);
        freed.add(self, found.0.bytes_to(last));
        self.each_of_run(found, window, |_, offset| freed.add(self, offset));
        self.free_to_map(backing, found.1, freed, tally)
    }

    fn slab_of_run(&self, object: P::Ptr) -> Result<Found<P>, Wrong<P>> {
        let (slab, state) = Slab::<P>::of(object).ok_or((Misuse::NotInSlab, object))?;
        self.check(object, slab.pfn(), state).map_err(|misuse| (misuse, object))?;
        Ok((slab, state))
    }

    /// Takes the objects of one slab out of a window, from the window's end on, and passes each object
    /// and its offset in the slab to `take`. The caller checked the slab. While the slab has an object to
    /// be freed it stays the cache's, so the address of another object alone tells whether it is in the
    /// slab.
    fn each_of_run(
        &self,
        (slab, state): Found<P>,
        window: &mut Window<'_, P::Ptr>,
        mut take: impl FnMut(P::Ptr, u32),
    ) {
        let end = slab.word().objects as u32 * self.geometry.size;
        let mut misses = 0;
        let mut unseen = window.left;
        while let Some(index) = unseen.checked_ilog2() {
            unseen &= !(1 << index);
            let object = window.objects[index as usize];
            let offset = slab.offset_of(object, state.order);
            if let Some(offset) = offset.filter(|offset| *offset < end && self.is_start(*offset)) {
                window.left &= !(1 << index);
                take(object, offset);
            } else {
                misses += 1;
                if misses == LOOK_AHEAD {
                    return;
                }
            }
        }
    }
}
