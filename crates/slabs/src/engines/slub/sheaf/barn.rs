//! A node's barn: whole sheaves, full ones and empty ones, under one spinlock (docs/theory/sheaves.md 1).
//!
//! A sheaf in a barn needs no memory but its own: the first word of its header links it to the next.

use crate::engine::address;
use slablab_platform::{Lock, Platform, Word, rank};

/// The word of a sheaf's header that links it while it is in a barn.
const LINK: u32 = 0;

/// Sheaves on one another, through their headers.
pub(super) struct Pile<P: Platform> {
    top: Option<P::Ptr>,
}

impl<P: Platform> Pile<P> {
    const NONE: Self = Pile { top: None };

    fn is_empty(&self) -> bool {
        self.top.is_none()
    }

    fn push(&mut self, sheaf: P::Ptr) {
        P::storage_store(sheaf, LINK, self.top);
        self.top = Some(sheaf);
    }

    pub(super) fn pop(&mut self) -> Option<P::Ptr> {
        let sheaf = self.top?;
        self.top = P::storage_load(sheaf, LINK);
        Some(sheaf)
    }

    /// The sheaves, the last one first.
    fn iter(&self) -> impl Iterator<Item = P::Ptr> {
        core::iter::successors(self.top, |sheaf| P::storage_load(*sheaf, LINK))
    }
}

/// Sheaves by how long nobody needed them. The youngest are taken first.
struct Aged<P: Platform> {
    /// Those that came since the period began.
    young: Pile<P>,
    /// Those that were there when it began.
    old: Pile<P>,
    /// Those that were there all through the period before.
    idle: Pile<P>,
    /// How many there are.
    len: u32,
}

impl<P: Platform> Aged<P> {
    const NONE: Self = Aged { young: Pile::NONE, old: Pile::NONE, idle: Pile::NONE, len: 0 };

    fn push(&mut self, sheaf: P::Ptr) {
        self.young.push(sheaf);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<P::Ptr> {
        let sheaf = self.young.pop().or_else(|| self.old.pop()).or_else(|| self.idle.pop())?;
        self.len -= 1;
        Some(sheaf)
    }

    fn pop_idle(&mut self) -> Option<P::Ptr> {
        let sheaf = self.idle.pop()?;
        self.len -= 1;
        Some(sheaf)
    }

    /// Ends a period, unless sheaves are left that were idle when the last one ended.
    fn end_period(&mut self) {
        if self.idle.is_empty() {
            let young = core::mem::replace(&mut self.young, Pile::NONE);
            self.idle = core::mem::replace(&mut self.old, young);
        }
    }
}

/// How many full sheaves a barn may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// At any time.
    pub(super) most: u32,
    /// If no CPU drew any lately; more if one did ([`Demand`]). As many as `most` where the room is fixed.
    pub(super) undrawn: u32,
}

/// How many full sheaves CPUs drew from a barn in a row: the deepest fall of their number from its last
/// highest. Sheaves that leave for slabs are not drawn, unless CPUs missed them.
struct Demand {
    /// The highest number of full sheaves since the period began, less those that left for slabs.
    top: u32,
    /// The deepest fall in this period, and in the one before.
    drawn: u32,
    drawn_before: u32,
    /// Full sheaves that went to slabs because there was no room, and that no CPU missed.
    passed: u32,
    /// Those of them that CPUs missed: they found the barn empty. They count as drawn.
    missed: u32,
}

impl Demand {
    const NONE: Self = Demand { top: 0, drawn: 0, drawn_before: 0, passed: 0, missed: 0 };

    /// The full sheaves that the barn may hold: what no CPU draws is little, and each draw makes room for
    /// twice as much. So a program that frees many objects and allocates them again soon has all of them
    /// here, and one that frees them for good leaves few.
    fn room(&self, of: Room) -> u32 {
        let drawn = self.drawn.max(self.drawn_before);
        of.undrawn.saturating_add(drawn.saturating_mul(2)).min(of.most)
    }

    /// A full sheaf came, and there are `len`.
    fn came(&mut self, len: u32) {
        self.top = self.top.max(len);
        if self.missed > 0 {
            (self.passed, self.missed) = (0, 0);
        }
    }

    /// A CPU found the barn empty.
    fn missed(&mut self) {
        if self.passed > 0 {
            self.passed -= 1;
            self.missed += 1;
            self.drawn = self.drawn.max(self.top.saturating_add(self.missed));
        }
    }

    /// A CPU drew a full sheaf, and there are `len` left.
    fn drew(&mut self, len: u32) {
        self.drawn = self.drawn.max(self.top.saturating_sub(len));
    }

    /// A full sheaf left for slabs.
    fn left(&mut self) {
        self.top = self.top.saturating_sub(1);
    }

    fn end_period(&mut self, len: u32) {
        *self = Demand { top: len, drawn_before: self.drawn, ..Demand::NONE };
    }
}

/// A node's sheaves.
pub(super) struct Barn<P: Platform> {
    full: Aged<P>,
    demand: Demand,
    empty: Aged<P>,
    /// Empty sheaves of any capacity, until a call that has metadata memory gives them back.
    outgrown: Pile<P>,
}

/// Why a barn takes no full sheaf in exchange for an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The barn is at its limit of full sheaves: `E2BIG`.
    TooMany,
    /// The barn has no empty sheaf: `ENOMEM`.
    NoEmpty,
}

impl<P: Platform> Default for Barn<P> {
    fn default() -> Self {
        Barn { full: Aged::NONE, demand: Demand::NONE, empty: Aged::NONE, outgrown: Pile::NONE }
    }
}

impl<P: Platform> Barn<P> {
    /// Gives a full sheaf for an empty one. The limit of empty sheaves does not apply: the number of sheaves
    /// stays.
    pub(super) fn replace_empty(&mut self, empty: P::Ptr) -> Option<P::Ptr> {
        let full = self.full.pop()?;
        self.demand.drew(self.full.len);
        self.empty.push(empty);
        Some(full)
    }

    /// Gives an empty sheaf for a full one. Fails first if the barn has no room for a full sheaf, then if it
    /// has no empty one.
    pub(super) fn replace_full(&mut self, full: P::Ptr, room: Room) -> Result<P::Ptr, Refused> {
        if self.full.len >= self.demand.room(room) {
            return Err(Refused::TooMany);
        }
        let empty = self.empty.pop().ok_or(Refused::NoEmpty)?;
        self.push_full(full);
        Ok(empty)
    }

    /// A full sheaf goes to slabs instead: the barn had no room.
    pub(super) fn pass_on(&mut self) {
        self.demand.passed = self.demand.passed.saturating_add(1);
    }

    /// A CPU wanted a full sheaf, and there was none.
    pub(super) fn miss(&mut self) {
        self.demand.missed();
    }

    pub(super) fn put_full(&mut self, full: P::Ptr, room: Room) -> bool {
        let has_room = self.full.len < self.demand.room(room);
        if has_room {
            self.push_full(full);
        }
        has_room
    }

    fn push_full(&mut self, full: P::Ptr) {
        self.full.push(full);
        self.demand.came(self.full.len);
    }

    /// Ends a period: full and empty sheaves that nobody needed since it began are idle from now on.
    pub(super) fn end_period(&mut self) {
        self.full.end_period();
        self.empty.end_period();
        self.demand.end_period(self.full.len);
    }

    pub(super) fn has_idle_full(&self) -> bool {
        !self.full.idle.is_empty()
    }

    pub(super) fn get_idle_full(&mut self) -> Option<P::Ptr> {
        self.full.pop_idle().inspect(|_| self.demand.left())
    }

    pub(super) fn get_idle_empty(&mut self) -> Option<P::Ptr> {
        self.empty.pop_idle()
    }

    pub(super) fn put_empty(&mut self, empty: P::Ptr, most: u32) -> bool {
        let room = self.empty.len < most;
        if room {
            self.empty.push(empty);
        }
        room
    }

    /// All full sheaves, and if `also_empty` all empty ones, of a barn whose sheaves are never idle.
    pub(super) fn take_all(&mut self, also_empty: bool) -> [Pile<P>; 2] {
        let take = |sheaves: &mut Aged<P>| {
            sheaves.len = 0;
            core::mem::replace(&mut sheaves.young, Pile::NONE)
        };
        [take(&mut self.full), if also_empty { take(&mut self.empty) } else { Pile::NONE }]
    }

    /// Keeps an empty sheaf beyond the limit, for a call that has no metadata memory to give it back to.
    pub(super) fn force_empty(&mut self, empty: P::Ptr) {
        self.empty.push(empty);
    }

    /// Keeps an empty sheaf that is too small to be used again.
    pub(super) fn put_outgrown(&mut self, sheaf: P::Ptr) {
        self.outgrown.push(sheaf);
    }

    pub(super) fn get_outgrown(&mut self) -> Option<P::Ptr> {
        self.outgrown.pop()
    }

    pub(super) fn get_full(&mut self) -> Option<P::Ptr> {
        self.full.pop().inspect(|_| self.demand.left())
    }

    pub(super) fn get_empty(&mut self) -> Option<P::Ptr> {
        self.empty.pop()
    }

    /// The full sheaves, so that a report can count their objects.
    pub(super) fn full(&self) -> impl Iterator<Item = P::Ptr> {
        let Aged { young, old, idle, .. } = &self.full;
        [young, old, idle].into_iter().flat_map(Pile::iter)
    }
}

/// A barn's lock, one per node, and its limits, readable without the lock.
pub(in crate::engines::slub) struct BarnLock<P: Platform> {
    barn: P::Lock<rank::Barn, Barn<P>>,
    /// Full and empty sheaves: hints, written under the lock.
    nr_full: P::Word,
    nr_empty: P::Word,
    /// Not 0 while the cache sinks.
    sinks: P::Word,
}

impl<P: Platform> Default for BarnLock<P> {
    fn default() -> Self {
        let zero = || P::Word::new(0);
        BarnLock { barn: P::Lock::new(Barn::default()), nr_full: zero(), nr_empty: zero(), sinks: zero() }
    }
}

impl<P: Platform> BarnLock<P> {
    pub(super) fn lock(&self) -> <P::Lock<rank::Barn, Barn<P>> as Lock<Barn<P>>>::Guard<'_> {
        self.barn.lock()
    }

    /// Calls `f` with the barn under its lock.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Barn<P>) -> T) -> T {
        self.with_locked(&mut self.barn.lock(), f)
    }

    /// As [`BarnLock::with`], for a function that `swap_array` calls; `None` if the lock is not free, or if
    /// `f` says so.
    #[inline]
    pub(super) fn try_in_swap<T>(&self, f: impl FnOnce(&mut Barn<P>) -> Option<T>) -> Option<T> {
        self.barn.try_in_swap(|barn| self.with_locked(barn, f))?
    }

    #[inline]
    fn with_locked<T>(&self, barn: &mut Barn<P>, f: impl FnOnce(&mut Barn<P>) -> T) -> T {
        let (full, empty) = (barn.full.len, barn.empty.len);
        let result = f(barn);
        if barn.full.len != full {
            self.nr_full.store(barn.full.len.into());
        }
        if barn.empty.len != empty {
            self.nr_empty.store(barn.empty.len.into());
        }
        result
    }

    /// Whether the cache sinks: its slabs on the node hold few objects, and CPUs free more of them.
    pub(super) fn sinks(&self) -> bool {
        self.sinks.load() != 0
    }

    pub(super) fn set_sinks(&self, sinks: bool) {
        if self.sinks() != sinks {
            self.sinks.store(sinks.into());
        }
    }

    /// The address of the number of full sheaves.
    pub(super) fn full_at(&self) -> usize {
        address(&self.nr_full)
    }

    /// How many full sheaves there probably are.
    pub(super) fn full(&self) -> u32 {
        self.nr_full.load() as u32
    }

    /// Whether there is probably a full sheaf.
    pub(super) fn has_full(&self) -> bool {
        self.nr_full.load() > 0
    }

    /// Whether there is probably an empty sheaf.
    pub(super) fn has_empty(&self) -> bool {
        self.nr_empty.load() > 0
    }

    /// Whether a full sheaf would probably be taken.
    pub(super) fn takes_full(&self, most: u32) -> bool {
        self.nr_full.load() < most.into()
    }

    /// Whether an empty sheaf would probably be taken.
    pub(super) fn takes_empty(&self, most: u32) -> bool {
        self.nr_empty.load() < most.into()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use slablab_model::{Addr, Machine, MachineSpec, Model};
    use slablab_pages::{Pages, PagesPolicy};
    use slablab_platform::{FrameKind, Frames, Gfp, Memory, NodeId};
    use std::vec::Vec;

    /// Calls `f` with storage for sheaves.
    fn with_sheaves(f: impl FnOnce(&[Addr])) {
        const BYTES: u32 = 512;
        const COUNT: u32 = 32;
        Machine::new(MachineSpec::uniform(1, 1, 64 << 20)).expect("the spec is right").enter(|| {
            let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 18, 0));
            let block = pages.alloc(Gfp::KERNEL, 2, NodeId(0), FrameKind::Slab).expect("memory is left");
            Model::map_slab(block, 2, BYTES, 1);
            let sheaves: Vec<Addr> =
                (0..COUNT).map(|index| Model::address(block, u64::from(index * BYTES))).collect();
            sheaves.iter().for_each(|sheaf| Model::storage_attach(*sheaf, BYTES / 8));
            f(&sheaves);
        });
    }

    fn fixed(most: u32) -> Room {
        Room { most, undrawn: most }
    }

    /// A barn with so many sheaves.
    fn barn(sheaves: &[Addr], full: usize, empty: usize) -> Barn<Model> {
        let mut barn = Barn::default();
        sheaves[..full].iter().for_each(|sheaf| assert!(barn.put_full(*sheaf, fixed(u32::MAX))));
        sheaves[full..full + empty].iter().for_each(|sheaf| barn.force_empty(*sheaf));
        barn
    }

    /// docs/theory/sheaves.md 1: what a barn does with one more sheaf.
    #[test]
    fn a_barn_at_its_limit_takes_no_more() {
        with_sheaves(|sheaves| {
            let more = sheaves[31];
            for (empty, taken) in [(0, true), (9, true), (10, false), (11, false)] {
                assert_eq!(barn(sheaves, 0, empty).put_empty(more, 10), taken, "{empty} empty sheaves");
            }
            for (full, most, taken) in [(0, 1, true), (9, 10, true), (10, 10, false), (11, 10, false)] {
                assert_eq!(
                    barn(sheaves, full, 0).put_full(more, fixed(most)),
                    taken,
                    "{full} full ones of {most}"
                );
            }
            let refused = [
                ((10, 0), Some(Refused::TooMany)),
                ((10, 1), Some(Refused::TooMany)),
                ((9, 0), Some(Refused::NoEmpty)),
                ((9, 1), None),
            ];
            for ((full, empty), why) in refused {
                let found = barn(sheaves, full, empty).replace_full(more, fixed(10)).err();
                assert_eq!(found, why, "{full} full and {empty} empty sheaves");
            }
        });
    }
}
