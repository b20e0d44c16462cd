//! The heap of all caches: three lists of partly free pages under one lock.

use super::SHARED;
use super::page::{Block, HeapPage, Request};
use crate::engine::{Common, Held};
use crate::slab::{Slab, SlabList};
use slablab_pages::Pages;
use slablab_platform::rank;
use slablab_platform::{FrameKind, Gfp, Lock, NodeId, Platform};

/// What all SLOB caches share.
pub struct Heap<P: Platform> {
    lists: P::Lock<rank::Heap, Lists<P>>,
}

/// The lists, and how much is in their pages and in full ones.
struct Lists<P: Platform> {
    /// Partly free pages: small, medium, large. A search begins at the head.
    pages: [SlabList<P>; 3],
    /// Pages of the heap, full ones included.
    frames: u64,
    /// Units free in them.
    free_units: u64,
}

/// Which list: by the request's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListOf {
    Small,
    Medium,
    Large,
}

/// What a search is told beside the size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    pub(super) request: Request,
    pub(super) list: ListOf,
    /// Pages of other nodes are skipped.
    pub(super) node: Option<NodeId>,
    /// The list is turned so that the next search begins where this one ended.
    pub(super) next_fit: bool,
}

/// What a search found, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<Ptr> {
    /// The block's address; `None` if no listed page has room.
    pub(super) block: Option<Ptr>,
    pub(super) pages_walked: u64,
    pub(super) blocks_walked: u64,
}

/// What a free did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freed {
    /// The page was full, and is on a list now.
    pub(super) listed: bool,
    /// The page was taken off its list, and went back.
    pub(super) unlisted: bool,
    /// The page went back.
    pub(super) page: bool,
    pub(super) blocks_walked: u64,
}

impl<P: Platform> Default for Heap<P> {
    fn default() -> Self {
        let pages = [SlabList::default(), SlabList::default(), SlabList::default()];
        Heap { lists: P::Lock::new(Lists { pages, frames: 0, free_units: 0 }) }
    }
}

impl<P: Platform> Common for Heap<P> {
    const SHARES_PAGES: bool = true;

    fn held(&self) -> Held {
        let lists = self.lists.lock();
        Held { frames: lists.frames, free_bytes: lists.free_units << HeapPage::<P>::unit_shift() }
    }

    /// Every listed page is sound and neither full nor empty, and the lists have all that is free.
    fn is_sound(&self) -> bool {
        let lists = self.lists.lock();
        let sound = |slab: Slab<P>| {
            let page = HeapPage::load(slab);
            let partly_free = page.free_units() > 0 && page.free_units() < HeapPage::<P>::page_units();
            page.is_sound() && partly_free
        };
        let free = |slab: Slab<P>| HeapPage::load(slab).free_units() as u64;
        let listed: u64 = lists.pages.iter().flat_map(SlabList::iter).map(free).sum();
        lists.pages.iter().flat_map(SlabList::iter).all(sound) && listed == lists.free_units
    }
}

impl<P: Platform> Heap<P> {
    /// A block of a listed page.
    pub(super) fn search(&self, search: &Search) -> Found<P::Ptr> {
        let mut found = Found { block: None, pages_walked: 0, blocks_walked: 0 };
        let units = HeapPage::<P>::units_of(search.request.bytes);
        let asked = search.request.asked(HeapPage::<P>::unit_shift());
        let mut lists = self.lists.lock();
        let mut next = lists.list(search.list).first();
        while let Some(slab) = next {
            found.pages_walked += 1;
            let (mut page, after) = HeapPage::load_with_next(slab);
            next = after;
            if search.node.is_some_and(|node| node != slab.node())
                || !page.may_have_room(asked, &mut found.blocks_walked)
            {
                continue;
            }
            if let Some(at) = page.alloc(&search.request, &mut found.blocks_walked) {
                lists.took(slab, &page, units, search);
                found.block = Some(Self::address(slab, at));
                break;
            }
        }
        found
    }

    /// A block of a new page, which is listed unless the block fills it.
    pub(super) fn grow(
        &self,
        pages: &Pages<P>,
        search: &Search,
        gfp: Gfp,
        home: NodeId,
        blocks_walked: &mut u64,
    ) -> Option<P::Ptr> {
        let slab = Self::new_page(pages, gfp, search.node.unwrap_or(home))?;
        let mut lists = self.lists.lock();
        let mut page = lists.add(slab);
        lists.put(slab, search.list);
        let at = page.alloc(&search.request, blocks_walked).expect("an empty page has room");
        lists.took(slab, &page, HeapPage::<P>::units_of(search.request.bytes), search);
        Some(Self::address(slab, at))
    }

    /// Gives a block back; `list` is where its page goes if it was full. `None`: some of it is free already.
    pub(super) fn free(&self, pages: &Pages<P>, slab: Slab<P>, block: Block, list: ListOf) -> Option<Freed> {
        let mut lists = self.lists.lock();
        let mut page = HeapPage::load(slab);
        let was_full = page.free_units() == 0;
        if page.is_last(block) {
            if !page.is_allocated(block) {
                return None;
            }
            if !was_full {
                lists.take(slab);
            }
            lists.frames -= 1;
            lists.free_units -= page.free_units() as u64;
            drop(lists);
            P::unmap_slab(slab.pfn(), 0);
            pages.free(slab.pfn());
            return Some(Freed { listed: false, unlisted: !was_full, page: true, blocks_walked: 0 });
        }
        let blocks_walked = page.free(block)?;
        lists.free_units += block.units as u64;
        if was_full {
            lists.put(slab, list);
        }
        Some(Freed { listed: was_full, unlisted: false, page: false, blocks_walked })
    }

    /// A page of its own for objects side by side: `objects` times what is asked, as an earlier life would have left them.
    /// Answers the first block's address.
    pub(super) fn seed(
        &self,
        pages: &Pages<P>,
        search: &Search,
        node: NodeId,
        objects: u32,
    ) -> Option<P::Ptr> {
        let slab = Self::new_page(pages, Gfp::KERNEL | Gfp::THISNODE, node)?;
        let units = HeapPage::<P>::units_of(search.request.bytes);
        let mut lists = self.lists.lock();
        let mut page = lists.add(slab);
        let mut walked = 0;
        let first = page.alloc(&search.request, &mut walked).expect("an empty page has room");
        for _ in 1..objects {
            page.alloc(&search.request, &mut walked).expect("as many as an empty page has room for");
        }
        lists.free_units -= objects as u64 * units as u64;
        if page.free_units() > 0 {
            lists.put(slab, search.list);
        }
        Some(Self::address(slab, first))
    }

    fn new_page(pages: &Pages<P>, gfp: Gfp, node: NodeId) -> Option<Slab<P>> {
        let pfn = pages.alloc(gfp, 0, node, FrameKind::Slab)?;
        // The engine's pieces are halves, which come four to a link of eight bytes.
        P::map_slab(pfn, 0, 8, SHARED);
        Some(Slab::at(pfn))
    }

    fn address(slab: Slab<P>, at: u32) -> P::Ptr {
        P::address(slab.pfn(), (at << HeapPage::<P>::unit_shift()) as u64)
    }
}

impl<P: Platform> Lists<P> {
    fn list(&mut self, list: ListOf) -> &mut SlabList<P> {
        &mut self.pages[list as usize]
    }

    /// A fresh page belongs to the heap.
    fn add(&mut self, slab: Slab<P>) -> HeapPage<P> {
        self.frames += 1;
        self.free_units += HeapPage::<P>::page_units() as u64;
        HeapPage::init(slab)
    }

    /// Lists a page, as the first to be searched.
    fn put(&mut self, slab: Slab<P>, list: ListOf) {
        slab.set_owner(list as u64);
        self.list(list).push_head(slab);
    }

    /// Takes a page off the list it is on, which need not be that of what is freed.
    fn take(&mut self, slab: Slab<P>) {
        self.pages[slab.owner() as usize].remove(slab);
    }

    /// A block was taken from a listed page: a full one leaves its list, and the next search begins at the page, or behind
    /// one that left.
    fn took(&mut self, slab: Slab<P>, page: &HeapPage<P>, units: u32, search: &Search) {
        self.free_units -= units as u64;
        let full = page.free_units() == 0;
        let next = if full { slab.next() } else { Some(slab) };
        if full {
            self.take(slab);
        }
        if let (true, Some(next)) = (search.next_fit, next) {
            self.list(search.list).begin_at(next);
        }
    }
}
