//! [`Linux`]: a cache of a tree's allocator, and what the image asks of the world while a call of it runs.

use super::locks::{Held, Kept, LockKind, LockOf, site_of};
use super::shared::{Block, Shared};
use crate::image::call::Outside;
use crate::image::{Booting, Finding, said};
use slablab_engines::ended;
use slablab_platform::{
    CpuId, Field, FrameKind, FrameState, Gfp, NodeId, Pfn, Platform, Word, Work, WorkKind,
};
use slablab_slabs::{Backing, CacheId, Geometry, Place};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of the smallest cache line that the machine keeps of frames.
const LINE: u32 = 64;

/// Objects of slabs of an earlier life that are to be freed, the last one handed out first: where, and which.
pub(super) type Seeds = Vec<(Place, NodeId, Vec<u64>)>;

/// A cache of a tree's allocator.
#[derive(Debug)]
pub struct Linux<P: Platform> {
    pub(super) shared: Rc<Shared<P>>,
    /// The address of its `struct kmem_cache`.
    pub(super) cache: u64,
    pub(super) id: CacheId,
    pub(super) geometry: Geometry,
    /// Objects that callers hold, by node.
    pub(super) live: Vec<Cell<u64>>,
    /// How often each CPU took a lock of the cache's nodes, and one of its barns.
    pub(super) locks: Vec<[Cell<u64>; 2]>,
    /// What the locks are of that its calls have taken, by their addresses.
    pub(super) kinds: RefCell<HashMap<u64, LockKind>>,
    /// The lock that was taken last, and what it is of.
    pub(super) last_kind: Cell<Option<(u64, LockKind)>>,
    pub(super) seeds: RefCell<Seeds>,
    /// Objects of slabs that are not yet whole in [`Linux::seed_slab`]: by the slab's first frame.
    pub(super) loose: RefCell<HashMap<u64, Vec<u64>>>,
    /// The size of SLOB's requests, for a cache of kmalloc.
    pub(super) kmalloc: Option<u32>,
}

/// A cache with what its call may use: the image's calls of the program.
struct Running<'a, P: Platform> {
    cache: &'a Linux<P>,
    backing: &'a Backing<'a, P>,
    /// The locks that the call holds, by their addresses.
    held: RefCell<Vec<(u64, Held<'a, P>)>>,
    /// The CPU that it was moved to while it slept.
    moved: Cell<Option<CpuId>>,
}

impl<P: Platform> Linux<P> {
    /// Runs a function of the image on a CPU. A finding ends the run.
    #[inline]
    pub(super) fn run(&self, backing: &Backing<'_, P>, cpu: u16, function: u64, arguments: [u64; 5]) -> u64 {
        let ended = |finding: Finding| ended(finding.to_string());
        let running = Running { cache: self, backing, held: RefCell::default(), moved: Cell::new(None) };
        self.shared.image.run(cpu, function, arguments, &running).unwrap_or_else(ended)
    }

    /// An object of the world, from an address of the image.
    #[inline]
    pub(super) fn object(&self, address: u64) -> P::Ptr {
        let (pfn, offset) = self.shared.image.frame_of(address);
        P::address(Pfn(pfn as u32), offset)
    }

    /// The address in the image.
    #[inline]
    pub(super) fn address(&self, object: P::Ptr) -> u64 {
        let (pfn, offset) = P::locate(object);
        self.shared.image.address_of(pfn.0.into(), offset.into())
    }

    /// Counts an object that a caller got, or gave back, on its frame's node.
    #[inline]
    pub(super) fn held(&self, object: P::Ptr, change: i64) {
        let live = &self.live[self.shared.node_of(P::locate(object).0)];
        live.set(live.get().wrapping_add_signed(change));
    }

    /// What a lock of the tree is of. Most calls take the lock that the last one took.
    fn lock_kind(&self, lock: u64) -> LockKind {
        if let Some((_, kind)) = self.last_kind.get().filter(|(last, _)| *last == lock) {
            return kind;
        }
        let kind = *self.kinds.borrow_mut().entry(lock).or_insert_with(|| {
            let (image, arguments) = (&self.shared.image, [lock, self.cache, 0, 0, 0]);
            LockKind::of(image.run(0, image.functions.lock_kind, arguments, &Booting(image)).unwrap_or(0))
        });
        self.last_kind.set(Some((lock, kind)));
        kind
    }

    /// The world's lock of a lock of the tree.
    fn kept(&self, lock: u64) -> &Kept<P> {
        let kind = self.lock_kind(lock);
        self.shared.locks.at(lock, || Kept::new(kind.of, site_of::<P>(&self.shared.image, lock)))
    }

    /// Counts a lock of the cache's. Those of the caches that sheaves are made of are these caches' own.
    fn count_lock(&self, lock: u64) {
        let kind = self.lock_kind(lock);
        if !P::charges() {
            P::count(kind.event(), 1);
        }
        if kind.is_own {
            let of_barn = usize::from(kind.of == LockOf::Barn);
            self.locks[P::cpu().0 as usize][of_barn].update(|count| count + 1);
        }
    }

    pub(super) fn file(&self, name: &str) -> super::files::Said {
        self.shared.file(self.cache, name).unwrap_or_default()
    }

    /// The first number of a file of the cache: for all CPUs and nodes. `None`: the tree has no such file.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.shared.file(self.cache, name).map(|said| said.total)
    }

    /// Frames of the cache's blocks, on one node or on all.
    pub(super) fn frames(&self, node: Option<u16>) -> u64 {
        let blocks = self.shared.blocks.borrow();
        let own = blocks
            .values()
            .filter(|block| block.cache == self.id.0 && node.is_none_or(|node| node == block.node));
        own.map(|block| 1 << block.order).sum()
    }
}

impl<P: Platform> Outside for Running<'_, P> {
    fn pages_alloc(&self, gfp: u32, order: u32, node: Option<u16>) -> Option<(u32, u16)> {
        let node = NodeId(node.unwrap_or_else(|| P::cpu_node(P::cpu()).0));
        let order = u8::try_from(order).ok()?;
        let (since, cpu) = (P::now(), P::cpu());
        let pfn = self.backing.pages.alloc(Gfp(gfp), order, node, FrameKind::Slab);
        self.cache.shared.costs.paged::<P>(since);
        self.moved.set(Some(P::cpu()).filter(|now| *now != cpu));
        let (pfn, id) = (pfn?, self.cache.id.0);
        let spacing = self.cache.geometry.spacing;
        // What the code reports is of single lines.
        P::map_slab(pfn, order, if P::charges() { spacing.min(LINE) } else { spacing }, id);
        let node = P::aside(|| {
            P::with_frame(pfn, |frame| {
                frame.owner.set(id.into());
                FrameState::unpack(frame.state.load()).node.0
            })
        });
        self.cache.shared.blocks.borrow_mut().insert(pfn.0.into(), Block { cache: id, order, node });
        Some((pfn.0, node))
    }

    fn pages_free(&self, pfn: u64, order: u32) {
        if self.cache.shared.image.is_own(pfn) {
            return;
        }
        if let Some(block) = self.cache.shared.blocks.borrow_mut().remove(&pfn) {
            self.cache.shared.gave(block.cache, P::cpu());
        }
        P::unmap_slab(Pfn(pfn as u32), order as u8);
        let since = P::now();
        self.backing.pages.free(Pfn(pfn as u32));
        self.cache.shared.costs.paged::<P>(since);
    }

    fn lock(&self, lock: u64, caller: u64) {
        if !P::charges() {
            return self.cache.count_lock(lock);
        }
        let (kept, since) = (self.cache.kept(lock), P::now());
        let held = kept.lock();
        self.cache.shared.costs.locked::<P>(&self.cache.shared.image, caller, since);
        self.cache.count_lock(lock);
        self.held.borrow_mut().push((lock, held));
    }

    fn try_lock(&self, lock: u64, caller: u64) -> bool {
        if !P::charges() {
            self.lock(lock, caller);
            return true;
        }
        let (kept, since) = (self.cache.kept(lock), P::now());
        let Some(held) = kept.try_lock() else { return false };
        self.cache.shared.costs.locked::<P>(&self.cache.shared.image, caller, since);
        self.cache.count_lock(lock);
        self.held.borrow_mut().push((lock, held));
        true
    }

    fn unlock(&self, lock: u64) {
        let at = self.held.borrow().iter().rposition(|(held, _)| *held == lock);
        let held = at.map(|at| self.held.borrow_mut().remove(at));
        drop(held);
    }

    fn after_grace_period(&self, head: u64, function: u64) {
        let shared = &self.cache.shared;
        let pfn = shared.image.frame_of_struct_page(head);
        // The head is in the struct page of a slab, or in an object of SLOB's.
        let object = || shared.image.frame_of(head);
        let argument = pfn.unwrap_or_else(|| object().0 << 12 | object().1);
        shared.waiting.borrow_mut().insert(argument, (head, function));
        let block = pfn.and_then(|pfn| shared.blocks.borrow_mut().remove(&pfn));
        block.into_iter().for_each(|block| shared.gave(block.cache, P::cpu()));
        let cache = block.map_or(self.cache.id.0, |block| block.cache);
        let kind = if pfn.is_some() { WorkKind::FreeSlab } else { WorkKind::FreeObject };
        P::after_grace_period(Work { kind, cache, argument });
    }

    fn barrier(&self) {}

    fn said(&self, kind: u32, text: String, caller: u64) {
        said(&self.cache.shared.image, kind, text, caller);
    }

    fn jiffies(&self) -> u64 {
        P::now() / 4_000_000
    }

    fn random(&self) -> u32 {
        P::random()
    }

    fn defer(&self, cpu: u16, work: u64, delay_ns: u64) {
        self.cache.shared.defer(self.cache.id.0, cpu, work, delay_ns);
    }

    fn is_of(&self, pfn: u64, cache: u64) {
        self.cache.shared.is_of(pfn, cache);
    }

    fn moved(&self) -> Option<u64> {
        self.moved.take().map(|cpu| self.cache.shared.image.gs_of(cpu.0))
    }

    fn reported(&self) {
        self.cache.shared.costs.charge::<P>(&self.cache.shared.image);
    }
}
