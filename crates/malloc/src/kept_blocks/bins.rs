//! The lists of kept blocks: eight for each doubling of their frames. In a list the block that came last is
//! first.
//!
//! The descriptor of a kept block's first frame has its links and, as the owner's word, the epoch in which it
//! came. The last frame's descriptor says how many frames the block has, too: it is found from behind. The
//! pagemap says of both frames that they are of a kept block.

use crate::world::Native;
use slablab_pages::Pages;
use slablab_platform::frames::Links;
use slablab_platform::{Field, Frames, NO_CACHE, NodeId, Pfn};

/// The owner numbers of the first frame of a kept block, and of its last one if that is another. Live blocks
/// have others (`crate::heap::LARGE`).
pub(crate) const FIRST: u32 = NO_CACHE + 2;
pub(crate) const LAST: u32 = FIRST + 1;
/// Blocks of fewer frames have a list for each number.
const EXACT: u32 = 16;
/// Lists for each doubling, from [`EXACT`] on.
const STEPS: u32 = 8;
/// Number of lists; the last has the blocks of 240 Ki frames and more.
const COUNT: usize = 128;
/// How many blocks of a list are looked at.
const TRIES: usize = 8;

/// First and last block of a list; frame 0 is in no block.
#[derive(Clone, Copy)]
struct List {
    first: Option<Pfn>,
    last: Option<Pfn>,
}

/// The lists. The holder of the lock around them owns the descriptors of the blocks on them.
pub(super) struct Bins {
    lists: [List; COUNT],
    /// A bit for each list that has a block.
    used: u128,
}

/// The list for blocks of so many frames.
fn list_of(frames: u32) -> usize {
    if frames < EXACT {
        return frames as usize;
    }
    let log = frames.ilog2();
    let step = frames >> (log - STEPS.ilog2()) & (STEPS - 1);
    ((EXACT + (log - EXACT.ilog2()) * STEPS + step) as usize).min(COUNT - 1)
}

fn links(pfn: Pfn) -> Links {
    Native::with_frame(pfn, |frame| Links::unpack(frame.link.get()))
}

fn set_links(pfn: Pfn, links: Links) {
    Native::with_frame(pfn, |frame| frame.link.set(links.pack()));
}

/// The epoch in which a kept block came.
fn epoch_of(pfn: Pfn) -> u64 {
    Native::with_frame(pfn, |frame| frame.owner.get())
}

pub(super) fn frames_of(pfn: Pfn) -> u32 {
    Pages::<Native>::exact_frames(pfn)
}

/// Whether a kept block begins here.
pub(super) fn begins(pfn: Pfn) -> bool {
    owner_of(pfn) == Some(FIRST)
}

/// The first frame of the kept block that ends with this frame.
pub(super) fn ending(pfn: Pfn) -> Option<Pfn> {
    match owner_of(pfn)? {
        LAST => Some(Pfn(pfn.0 - (frames_of(pfn) - 1))),
        FIRST if frames_of(pfn) == 1 => Some(pfn),
        _ => None,
    }
}

fn owner_of(pfn: Pfn) -> Option<u32> {
    let at = Native::address(pfn, 0);
    Native::location(at.as_ptr()).map(|location| location.cache)
}

impl Bins {
    pub(super) const EMPTY: Bins = Bins { lists: [List { first: None, last: None }; COUNT], used: 0 };

    /// Adds a block, which is of this epoch from now on.
    pub(super) fn insert(&mut self, pfn: Pfn, epoch: u64) {
        let frames = frames_of(pfn);
        let index = list_of(frames);
        let list = &mut self.lists[index];
        set_links(pfn, Links { next: list.first, prev: None });
        match list.first {
            Some(first) => set_links(first, Links { prev: Some(pfn), ..links(first) }),
            None => list.last = Some(pfn),
        }
        list.first = Some(pfn);
        self.used |= 1 << index;
        Native::with_frame(pfn, |frame| frame.owner.set(epoch));
        let end = pfn.plus(frames - 1);
        Native::with_frame(end, |frame| frame.extra.set(u64::from(frames)));
        Native::map_slab(end, 0, 0, LAST);
        Native::map_slab(pfn, 0, 0, FIRST);
    }

    /// Removes a block.
    pub(super) fn remove(&mut self, pfn: Pfn) {
        let frames = frames_of(pfn);
        let index = list_of(frames);
        let list = &mut self.lists[index];
        let gone = links(pfn);
        match gone.prev {
            Some(prev) => set_links(prev, Links { next: gone.next, ..links(prev) }),
            None => list.first = gone.next,
        }
        match gone.next {
            Some(next) => set_links(next, Links { prev: gone.prev, ..links(next) }),
            None => list.last = gone.prev,
        }
        if list.first.is_none() {
            self.used &= !(1 << index);
        }
        Native::unmap_slab(pfn, 0);
        Native::unmap_slab(pfn.plus(frames - 1), 0);
    }

    /// A block of a node with `frames` to `most` frames: the smallest among the first ones of the first
    /// list that has one.
    pub(super) fn find(&self, frames: u32, most: u32, node: NodeId) -> Option<Pfn> {
        let serves = |pfn: &Pfn| {
            (frames..=most).contains(&frames_of(*pfn)) && Pages::<Native>::exact_node(*pfn) == node
        };
        let mut used = self.used & (u128::MAX << list_of(frames));
        while used != 0 {
            let index = used.trailing_zeros() as usize;
            if index > list_of(most) {
                return None;
            }
            let found = self.each(index).take(TRIES).filter(serves).min_by_key(|pfn| frames_of(*pfn));
            if found.is_some() {
                return found;
            }
            used &= used - 1;
        }
        None
    }

    /// The largest block of a node with `frames` frames at most among the first ones of their lists, and at
    /// least half as many.
    pub(super) fn find_below(&self, frames: u32, node: NodeId) -> Option<Pfn> {
        let (low, high) = (list_of(frames / 2), list_of(frames));
        let serves = |pfn: &Pfn| {
            (frames / 2..=frames).contains(&frames_of(*pfn)) && Pages::<Native>::exact_node(*pfn) == node
        };
        (low..=high)
            .rev()
            .find_map(|index| self.each(index).take(TRIES).filter(serves).max_by_key(|pfn| frames_of(*pfn)))
    }

    fn each(&self, index: usize) -> impl Iterator<Item = Pfn> {
        std::iter::successors(self.lists[index].first, |pfn| links(*pfn).next)
    }

    /// A block that came before an epoch.
    pub(super) fn older_than(&self, epoch: u64) -> Option<Pfn> {
        self.lists.iter().filter_map(|list| list.last).find(|pfn| epoch_of(*pfn) < epoch)
    }

    /// One of the largest blocks: the one that came first.
    pub(super) fn largest(&self) -> Option<Pfn> {
        self.lists[self.used.checked_ilog2()? as usize].last
    }

    /// One of the smallest blocks: the one that came first.
    pub(super) fn smallest(&self) -> Option<Pfn> {
        self.lists.get(self.used.trailing_zeros() as usize)?.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_an_eighth_of_a_doubling() {
        let mut least = [u32::MAX; COUNT];
        for frames in 1..1 << 19 {
            let index = list_of(frames);
            least[index] = least[index].min(frames);
            assert!(index == COUNT - 1 || (frames - least[index]) * 8 < frames.max(8), "{frames} frames");
            assert!(index <= list_of(frames + 1), "{frames} frames");
        }
        assert_eq!(
            (list_of(1), list_of(16), list_of(17), list_of(18), list_of(240 << 10)),
            (1, 16, 16, 17, 127)
        );
    }
}
