//! The heap of all caches: three lists of partly free pages under one lock.
//!
//! Most page visits belong to searches that find no room: each new page follows a search through a whole
//! list. So a list remembers the last request that found no room, and the number of blocks that the search
//! visited, and updates both as its pages change. The next search for an equal request is counted but not
//! done, unless a page may have room.

use super::SHARED;
use super::ask::{Ask, Block};
use super::page::HeapPage;
use super::policy::AfterFull;
use crate::backing::{Common, Held};
use crate::slab::{Slab, SlabList};
use slablab_pages::Pages;
use slablab_platform::rank;
use slablab_platform::{FrameKind, Gfp, Lock, NodeId, Platform};

/// The heap that all SLOB caches share.
pub struct Heap<P: Platform> {
    lists: P::Lock<rank::Heap, Lists<P>>,
}

/// The lists, and the totals of all pages of the heap.
struct Lists<P: Platform> {
    /// Partly free pages: small, medium, large.
    partial: [Partial<P>; 3],
    /// Pages of the heap, including full ones.
    frames: u64,
    /// Free units in those pages.
    free_units: u64,
}

/// A list of partly free pages.
struct Partial<P> {
    /// The pages. A search begins at the head.
    pages: SlabList<P>,
    /// The last request that found no room.
    sought: Ask,
    /// The number of pages that may have room for `sought`, according to their frames.
    open: u32,
    /// The number of blocks that a search for `sought` visits in the other pages.
    blocks: u64,
}

/// A list, chosen by the size of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListOf {
    Small,
    Medium,
    Large,
}

/// The parameters of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    pub(super) ask: Ask,
    pub(super) list: ListOf,
    /// If set, the search skips pages of other nodes.
    pub(super) node: Option<NodeId>,
    /// Whether the list is rotated so that the next search begins where this one ended.
    pub(super) next_fit: bool,
    /// Where the next search begins if this one fills its page.
    pub(super) after_full: AfterFull,
}

/// The result of a search, and its cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<Ptr> {
    /// The block's address; `None` if no listed page has room.
    pub(super) block: Option<Ptr>,
    pub(super) pages_walked: u64,
    pub(super) blocks_walked: u64,
}

/// The effects of a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freed {
    /// The page was full and is now on a list.
    pub(super) listed: bool,
    /// The page left its list and was returned.
    pub(super) unlisted: bool,
    /// The page was returned.
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

    /// Checks that every list is sound, and that the lists contain all free units.
    fn is_sound(&self) -> bool {
        let lists = self.lists.lock();
        let free = |slab: Slab<P>| HeapPage::load(slab).free_units() as u64;
        let listed: u64 = lists.partial.iter().flat_map(|list| list.pages.iter()).map(free).sum();
        lists.partial.iter().all(Partial::is_sound) && listed == lists.free_units
    }
}

impl<P: Platform> Heap<P> {
    /// Takes a block from a listed page.
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

    /// Takes a block from a new page, and lists the page unless the block fills it.
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

    /// Frees a block. If its page was full, the page goes on `list`. `None` if part of the block is free
    /// already.
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

    /// Makes a page with `objects` adjacent blocks for the request of `search`, as an earlier run would have
    /// left it. Returns the first block's address.
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
        // The engine reads and writes half words here: four of them per link of eight bytes.
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

    /// The list that a page is on. It may differ from the list of the freed size.
    fn list_with(&mut self, slab: Slab<P>) -> &mut Partial<P> {
        &mut self.partial[(slab.owner() >> 24) as usize]
    }

    /// Adds a new page to the heap.
    fn add(&mut self, slab: Slab<P>) -> HeapPage<P> {
        self.frames += 1;
        self.free_units += HeapPage::<P>::page_units() as u64;
        HeapPage::init(slab)
    }

    /// Puts a page at the head of a list.
    fn put(&mut self, slab: Slab<P>, page: &HeapPage<P>, list: ListOf) {
        // The list is stored above the 24 bits in which other engines store the cache: SLOB's pages belong to
        // all caches.
        slab.set_owner((list as u64) << 24);
        let list = self.list(list);
        list.pages.push_head(slab);
        list.count(page);
    }

    /// Removes a page from its list.
    fn take(&mut self, slab: Slab<P>, page: &HeapPage<P>) {
        let list = self.list_with(slab);
        list.uncount(page);
        list.pages.remove(slab);
    }

    /// Accounts for a block taken from a listed page. A page that became full leaves its list. With
    /// `next_fit`, the next search begins at this page; if this one left the list, at the page after it, or
    /// where this search began.
    fn took(&mut self, slab: Slab<P>, page: &HeapPage<P>, search: &Search) {
        self.free_units -= search.ask.units as u64;
        let full = page.free_units() == 0;
        let next = match (full, search.after_full) {
            (false, _) => Some(slab),
            (true, AfterFull::Behind) => slab.next(),
            (true, AfterFull::Stays) => None,
        };
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
    /// The result of a search that needs no page visit, because an equal request found no room and no page
    /// has changed enough. Its counts include the pages that `search` has already visited.
    fn in_vain(&self, search: &Search) -> Option<Found<P::Ptr>> {
        let known = search.node.is_none() && search.ask == self.sought && self.open == 0;
        known.then(|| Found {
            block: None,
            pages_walked: self.pages.len() as u64,
            blocks_walked: self.blocks,
        })
    }

    /// Changes a listed page and updates the list's totals.
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

    /// Checks that every page is sound and neither full nor empty, and that the totals for `sought` are
    /// right.
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
