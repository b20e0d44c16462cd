//! A list of blocks, linked through the descriptors of their head frames.
//!
//! The owner of the list (the holder of `zone->lock`, or of a CPU's slot) owns the `link` field of every
//! frame on it. A block is on one list at most: both links of a frame fit its one field.

use slablab_platform::frames::Links;
use slablab_platform::{Field, Pfn, Platform};

/// A doubly linked list of blocks: the head is taken next, the tail is coldest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    head: Option<Pfn>,
    tail: Option<Pfn>,
    /// Blocks on it.
    pub(crate) count: u32,
}

impl List {
    /// The block that would be taken next.
    pub(crate) fn first(&self) -> Option<Pfn> {
        self.head
    }

    /// Puts a block at the head.
    pub(crate) fn push_front<P: Platform>(&mut self, pfn: Pfn) {
        set_links::<P>(pfn, Links { next: self.head, prev: None });
        match self.head {
            Some(head) => set_links::<P>(head, Links { prev: Some(pfn), ..links::<P>(head) }),
            None => self.tail = Some(pfn),
        }
        self.head = Some(pfn);
        self.count += 1;
    }

    /// Puts a block at the tail.
    pub(crate) fn push_back<P: Platform>(&mut self, pfn: Pfn) {
        set_links::<P>(pfn, Links { next: None, prev: self.tail });
        match self.tail {
            Some(tail) => set_links::<P>(tail, Links { next: Some(pfn), ..links::<P>(tail) }),
            None => self.head = Some(pfn),
        }
        self.tail = Some(pfn);
        self.count += 1;
    }

    /// Takes the head.
    pub(crate) fn pop_front<P: Platform>(&mut self) -> Option<Pfn> {
        let pfn = self.head?;
        self.remove::<P>(pfn);
        Some(pfn)
    }

    /// Takes the tail.
    pub(crate) fn pop_back<P: Platform>(&mut self) -> Option<Pfn> {
        let pfn = self.tail?;
        self.remove::<P>(pfn);
        Some(pfn)
    }

    /// Takes a block that is on this list out of it.
    pub(crate) fn remove<P: Platform>(&mut self, pfn: Pfn) {
        let gone = links::<P>(pfn);
        match gone.prev {
            Some(prev) => set_links::<P>(prev, Links { next: gone.next, ..links::<P>(prev) }),
            None => self.head = gone.next,
        }
        match gone.next {
            Some(next) => set_links::<P>(next, Links { prev: gone.prev, ..links::<P>(next) }),
            None => self.tail = gone.prev,
        }
        self.count -= 1;
    }

    /// The first block from the head that meets a condition.
    pub(crate) fn find<P: Platform>(&self, meets: impl Fn(Pfn) -> bool) -> Option<Pfn> {
        core::iter::successors(self.head, |pfn| links::<P>(*pfn).next).find(|pfn| meets(*pfn))
    }

    /// Calls `f` with every block, head first.
    pub(crate) fn each<P: Platform>(&self, mut f: impl FnMut(Pfn)) {
        let mut at = self.head;
        while let Some(pfn) = at {
            at = links::<P>(pfn).next;
            f(pfn);
        }
    }
}

fn links<P: Platform>(pfn: Pfn) -> Links {
    P::with_frame(pfn, |frame| Links::unpack(frame.link.get()))
}

fn set_links<P: Platform>(pfn: Pfn, links: Links) {
    P::with_frame(pfn, |frame| frame.link.set(links.pack()));
}
