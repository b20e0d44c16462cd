//! The heap of all caches: three lists of partly free pages under one lock.
//!
//! Most pages that are ever looked at are looked at by searches that find nothing: a whole list, for every new page. So a
//! list remembers what was sought in vain and how many blocks that took, and keeps both true as its pages change. The next
//! search for the same is counted and not done, as long as no page may have room.

use super::SHARED;
use super::ask::{Ask, Block};
use super::page::HeapPage;
use crate::backing::{Common, Held};
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
    /// Partly free pages: small, medium, large.
    partial: [Partial<P>; 3],
    /// Pages of the heap, full ones included.
    frames: u64,
    /// Units free in them.
    free_units: u64,
}

/// A list of partly free pages.
struct Partial<P> {
    /// A search begins at the head.
    pages: SlabList<P>,
    /// What was last sought in vain.
    sought: Ask,
    /// Pages that may have room for it, as far as their frames know.
    open: u32,
    /// Blocks that a search for it looks at in the others.
    blocks: u64,
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
    pub(super) ask: Ask,
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
        let partial = core::array::from_fn(|_| Partial::default());
        Heap { lists: P::Lock::new(Lists { partial, frames: 0, free_units: 0 }) }
    }
}

impl<P: Platform> Common for Heap<P> {
    const SHARES_PAGES: bool = true;

    fn held(&self) -> Held {
        let lists = self.lists.lock();
        Held { frames: lists.frames, free_bytes: lists.free_units << HeapPage::<P>::unit_shift() }
    }

    /// Every list is sound, and the lists have all that is free.
    fn is_sound(&self) -> bool {
        let lists = self.lists.lock();
        let free = |slab: Slab<P>| HeapPage::load(slab).free_units() as u64;
        let listed: u64 = lists.partial.iter().flat_map(|list| list.pages.iter()).map(free).sum();
        lists.partial.iter().all(Partial::is_sound) && listed == lists.free_units
    }
}

impl<P: Platform> Heap<P> {
    /// A block of a listed page.
    pub(super) fn search(&self, search: &Search) -> Found<P::Ptr> {
        let mut lists = self.lists.lock();
        let list = lists.list(search.list);
        let mut found = Found { block: None, pages_walked: 0, blocks_walked: 0 };
        let mut next = list.pages.first();
        while let Some(slab) = next {
            if let Some(found) = list.in_vain(search) {
                return found;
            }
            found.pages_walked += 1;
            let (mut page, after) = HeapPage::load_with_next(slab);
            next = after;
            if search.node.is_some_and(|node| node != slab.node()) {
                continue;
            }
            if let Some(blocks) = page.barren(search.ask) {
                found.blocks_walked += blocks;
                continue;
            }
            let place = list.change(&mut page, |page| page.alloc(search.ask, &mut found.blocks_walked));
            if let Some(at) = place {
                lists.took(slab, &page, search);
                found.block = Some(Self::address(slab, at));
                return found;
            }
        }
        if search.node.is_none() {
            (list.sought, list.open, list.blocks) = (search.ask, 0, found.blocks_walked);
        }
        found
    }

    /// A block of a new page, which is listed unless the block fills it.
    pub(super) fn grow(
        &self,
        pages: &Pages<P::Ground>,
        search: &Search,
        gfp: Gfp,
        home: NodeId,
        blocks_walked: &mut u64,
    ) -> Option<P::Ptr> {
        let slab = Self::new_page(pages, gfp, search.node.unwrap_or(home))?;
        let mut lists = self.lists.lock();
        let mut page = lists.add(slab);
        lists.put(slab, &page, search.list);
        let place = lists.list(search.list).change(&mut page, |page| page.alloc(search.ask, blocks_walked));
        lists.took(slab, &page, search);
        Some(Self::address(slab, place?))
    }

    /// Gives a block back; `list` is where its page goes if it was full. `None`: some of it is free already.
    pub(super) fn free(
        &self,
        pages: &Pages<P::Ground>,
        slab: Slab<P>,
        block: Block,
        list: ListOf,
    ) -> Option<Freed> {
        let mut lists = self.lists.lock();
        let mut page = HeapPage::load(slab);
        let was_full = page.free_units() == 0;
        if page.is_last(block) {
            if !page.is_allocated(block) {
                return None;
            }
            if !was_full {
                lists.take(slab, &page);
            }
            lists.frames -= 1;
            lists.free_units -= page.free_units() as u64;
            drop(lists);
            P::unmap_slab(slab.pfn(), 0);
            pages.free(slab.pfn());
            return Some(Freed { listed: false, unlisted: !was_full, page: true, blocks_walked: 0 });
        }
        let blocks_walked = if was_full {
            let sought = lists.list(list).sought;
            let walked = page.free(block, sought)?;
            lists.put(slab, &page, list);
            walked
        } else {
            let list = lists.list_with(slab);
            let sought = list.sought;
            list.change(&mut page, |page| page.free(block, sought))?
        };
        lists.free_units += block.units as u64;
        Some(Freed { listed: was_full, unlisted: false, page: false, blocks_walked })
    }

    /// A page of its own for objects side by side: `objects` times what is asked, as an earlier life would have left them.
    /// Answers the first block's address.
    pub(super) fn seed(
        &self,
        pages: &Pages<P::Ground>,
        search: &Search,
        node: NodeId,
        objects: u32,
    ) -> Option<P::Ptr> {
        let slab = Self::new_page(pages, Gfp::KERNEL | Gfp::THISNODE, node)?;
        let mut lists = self.lists.lock();
        let mut page = lists.add(slab);
        let mut walked = 0;
        let first = page.alloc(search.ask, &mut walked)?;
        for _ in 1..objects {
            page.alloc(search.ask, &mut walked)?;
        }
        lists.free_units -= objects as u64 * search.ask.units as u64;
        if page.free_units() > 0 {
            lists.put(slab, &page, search.list);
        }
        Some(Self::address(slab, first))
    }

    fn new_page(pages: &Pages<P::Ground>, gfp: Gfp, node: NodeId) -> Option<Slab<P>> {
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
    fn list(&mut self, list: ListOf) -> &mut Partial<P> {
        &mut self.partial[list as usize]
    }

    /// The list a page is on, which need not be that of what is freed.
    fn list_with(&mut self, slab: Slab<P>) -> &mut Partial<P> {
        &mut self.partial[(slab.owner() >> 24) as usize]
    }

    /// A fresh page belongs to the heap.
    fn add(&mut self, slab: Slab<P>) -> HeapPage<P> {
        self.frames += 1;
        self.free_units += HeapPage::<P>::page_units() as u64;
        HeapPage::init(slab)
    }

    /// Lists a page, as the first to be searched.
    fn put(&mut self, slab: Slab<P>, page: &HeapPage<P>, list: ListOf) {
        // Above the 24 bits in which other engines name a slab's cache: the pages are all caches'.
        slab.set_owner((list as u64) << 24);
        let list = self.list(list);
        list.pages.push_head(slab);
        list.count(page);
    }

    /// Takes a page off its list.
    fn take(&mut self, slab: Slab<P>, page: &HeapPage<P>) {
        let list = self.list_with(slab);
        list.uncount(page);
        list.pages.remove(slab);
    }

    /// A block was taken from a listed page: a full one leaves its list, and the next search begins at the page, or behind
    /// one that left.
    fn took(&mut self, slab: Slab<P>, page: &HeapPage<P>, search: &Search) {
        self.free_units -= search.ask.units as u64;
        let full = page.free_units() == 0;
        let next = if full { slab.next() } else { Some(slab) };
        if full {
            self.take(slab, page);
        }
        if let (true, Some(next)) = (search.next_fit, next) {
            self.list(search.list).pages.begin_at(next);
        }
    }
}

impl<P: Platform> Default for Partial<P> {
    fn default() -> Self {
        Partial { pages: SlabList::default(), sought: Ask::NEVER, open: 0, blocks: 0 }
    }
}

impl<P: Platform> Partial<P> {
    /// What a search finds out without looking at the pages: the number it has looked at already included.
    fn in_vain(&self, search: &Search) -> Option<Found<P::Ptr>> {
        let known = search.node.is_none() && search.ask == self.sought && self.open == 0;
        known.then(|| Found {
            block: None,
            pages_walked: self.pages.len() as u64,
            blocks_walked: self.blocks,
        })
    }

    /// Changes a listed page.
    fn change<T>(&mut self, page: &mut HeapPage<P>, change: impl FnOnce(&mut HeapPage<P>) -> T) -> T {
        self.uncount(page);
        let answer = change(page);
        self.count(page);
        answer
    }

    fn count(&mut self, page: &HeapPage<P>) {
        match page.barren(self.sought) {
            Some(blocks) => self.blocks += blocks,
            None => self.open += 1,
        }
    }

    fn uncount(&mut self, page: &HeapPage<P>) {
        match page.barren(self.sought) {
            Some(blocks) => self.blocks -= blocks,
            None => self.open -= 1,
        }
    }

    /// Whether every page is sound and neither full nor empty, and what is known of a search in vain is so.
    fn is_sound(&self) -> bool {
        let sound = |slab: Slab<P>| {
            let page = HeapPage::load(slab);
            let partly_free = page.free_units() > 0 && page.free_units() < HeapPage::<P>::page_units();
            page.is_sound() && partly_free
        };
        let barren = |slab: Slab<P>| HeapPage::load(slab).barren(self.sought);
        let open = self.pages.iter().filter(|slab| barren(*slab).is_none()).count();
        let blocks: u64 = self.pages.iter().filter_map(barren).sum();
        self.pages.iter().all(sound) && (open, blocks) == (self.open as usize, self.blocks)
    }
}
