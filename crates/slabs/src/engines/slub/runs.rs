//! Frees of many objects: those of one slab go back together (docs/theory/slub.md 4.2).
//!
//! From the end of the array on, a *run* is an object and those before it that are of the same slab. The
//! search ends at the third object of another slab. The last object that was passed by goes to the place of
//! one that was found. A run goes back as a chain of links. With maps, [`Sorted`] finds all objects of a
//! slab.

use super::map::{Freed, Wrong};
use super::{Slub, Tally};
use crate::backing::Backing;
use crate::report::Misuse;
use crate::slab::{Chain, Slab};
use slablab_platform::{FrameState, Pfn, Platform};

/// Objects of other slabs at which a search for more objects of a slab ends.
const LOOK_AHEAD: u32 = 3;
/// Objects among which runs are found.
pub(super) const WINDOW: usize = 64;

/// Whether objects are still to be checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Checks {
    /// The cache checked them when a caller freed them, or took them from a slab itself.
    Done,
    Due,
}

/// Objects that are sorted at a time.
const SORTED: usize = u32::BITS as usize;
/// Places of the table that finds a slab's objects: more than [`SORTED`], so that few slabs share one.
const PLACES: usize = 64;
/// No object: a number that none has.
const NONE: u8 = u8::MAX;

/// Up to [`SORTED`] objects, by number, in a list for each slab.
struct Sorted {
    /// The number of the first frame of each object's slab.
    slabs: [u32; SORTED],
    /// The object of the same slab that follows each object.
    next: [u8; SORTED],
    /// The object that came last of those whose slabs share a place.
    last: [u8; PLACES],
    /// A bit for the first object of each list.
    first: u32,
}

impl Sorted {
    fn new() -> Self {
        Sorted { slabs: [0; SORTED], next: [NONE; SORTED], last: [NONE; PLACES], first: 0 }
    }

    /// Puts an object into the list of its slab. Of two slabs that share a place, one may get several lists.
    #[inline]
    fn add(&mut self, number: usize, slab: Pfn) {
        // Knuth's multiplicative hash.
        let last =
            &mut self.last[(slab.0.wrapping_mul(0x9e37_79b9) >> (u32::BITS - PLACES.ilog2())) as usize];
        let before = *last as usize;
        *last = number as u8;
        self.slabs[number] = slab.0;
        self.first |= 1 << number;
        if before < SORTED && self.slabs[before] == slab.0 {
            self.next[number] = before as u8;
            self.first &= !(1 << before);
        }
    }

    /// The numbers of the objects in the list that begins with `first`.
    fn list(&self, first: u32) -> impl Iterator<Item = usize> {
        let some = |number: u8| (number != NONE).then_some(number as usize);
        core::iter::successors(Some(first as usize), move |number| some(self.next[*number]))
    }
}

/// A slab and the state of its first frame.
type Found<P> = (Slab<P>, FrameState);

/// Some objects of a batch, and the order in which they leave it: the last of `order` first.
struct Window<'a, Ptr> {
    objects: &'a [Ptr],
    order: [u8; WINDOW],
    /// How many of `order` are left.
    left: usize,
}

impl<'a, Ptr: Copy> Window<'a, Ptr> {
    fn new(objects: &'a [Ptr]) -> Self {
        const IN_PLACE: [u8; WINDOW] = {
            let mut order = [0; WINDOW];
            let mut index = 0;
            while index < WINDOW {
                order[index] = index as u8;
                index += 1;
            }
            order
        };
        Window { objects, order: IN_PLACE, left: objects.len() }
    }

    fn at(&self, place: usize) -> Ptr {
        self.objects[self.order[place] as usize]
    }

    /// Takes the last object that is left.
    fn take_last(&mut self) -> Option<Ptr> {
        self.left = self.left.checked_sub(1)?;
        Some(self.at(self.left))
    }

    /// Takes the object at a place. The last one that is left goes there.
    fn take(&mut self, place: usize) -> Ptr {
        self.left -= 1;
        self.order.swap(place, self.left);
        self.at(self.left)
    }
}

impl<P: Platform> Slub<P> {
    /// Frees many objects, run by run. With maps, objects that were checked when they came are not checked
    /// again. An error names an object that its slab does not take. The other runs are freed, and with maps
    /// all other objects.
    pub(super) fn free_runs(
        &self,
        backing: &Backing<'_, P>,
        objects: &[P::Ptr],
        checks: Checks,
        tally: Tally,
    ) -> Result<(), Wrong<P>> {
        let mut result = Ok(());
        if self.has_map() {
            for objects in objects.rchunks(SORTED) {
                result = result.and(self.free_to_maps(backing, objects, checks, tally));
            }
            return result;
        }
        for window in objects.rchunks(WINDOW) {
            let mut window = Window::new(window);
            while let Some(last) = window.take_last() {
                result = result.and(self.free_run_as_chain(backing, last, &mut window, tally));
            }
        }
        result
    }

    /// Frees up to [`SORTED`] objects to the maps of their slabs.
    fn free_to_maps(
        &self,
        backing: &Backing<'_, P>,
        objects: &[P::Ptr],
        checks: Checks,
        tally: Tally,
    ) -> Result<(), Wrong<P>> {
        let (mut sorted, mut result) = (Sorted::new(), Ok(()));
        for (number, object) in objects.iter().enumerate() {
            match Slab::<P>::of(*object) {
                Some((slab, _)) => sorted.add(number, slab.pfn()),
                None => result = result.and(Err((Misuse::NotInSlab, *object))),
            }
        }
        let mut first = sorted.first;
        while let Some(number) = first.checked_ilog2() {
            first &= !(1 << number);
            let slab = Slab::at(Pfn(sorted.slabs[number as usize]));
            let mut freed = Freed::none_of(slab);
            for object in sorted.list(number).map(|number| objects[number]) {
                match self.check_in(slab, object, checks) {
                    Ok(offset) => freed.add(self, offset),
                    Err(misuse) => result = result.and(Err((misuse, object))),
                }
            }
            result = result.and(self.free_to_map(backing, freed, tally));
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
        self.each_of_run(found, window, |object| {
            P::set_link(object, self.geometry.link_offset, Some(chain.head));
            chain = Chain { head: object, count: chain.count + 1, ..chain };
        });
        self.free_chain(backing, found.0, found.1, chain, tally).map_err(|misuse| (misuse, last))
    }

    fn slab_of_run(&self, object: P::Ptr) -> Result<Found<P>, Wrong<P>> {
        let (slab, state) = Slab::<P>::of(object).ok_or((Misuse::NotInSlab, object))?;
        self.check(object, slab.pfn(), state).map_err(|misuse| (misuse, object))?;
        Ok((slab, state))
    }

    /// Takes the objects of one slab out of a window, from the window's end on, and passes each object
    /// to `take`. The caller checked the slab. While the slab has an object to
    /// be freed it stays the cache's, so the address of another object alone tells whether it is in the
    /// slab.
    fn each_of_run(
        &self,
        (slab, state): Found<P>,
        window: &mut Window<'_, P::Ptr>,
        mut take: impl FnMut(P::Ptr),
    ) {
        let end = slab.word().objects as u32 * self.geometry.size;
        let mut misses = 0;
        for place in (0..window.left).rev() {
            let offset = slab.offset_of(window.at(place), state.order);
            if offset.is_some_and(|offset| offset < end && self.is_start(offset)) {
                take(window.take(place));
            } else {
                misses += 1;
                if misses == LOOK_AHEAD {
                    return;
                }
            }
        }
    }
}
