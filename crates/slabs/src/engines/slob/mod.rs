#![doc = include_str!("../../../docs/slob.md")]

mod ask;
mod frame;
mod heap;
mod large;
mod page;
mod policy;
mod report;

pub use heap::Heap;
pub use policy::{AfterFull, KmallocAlign, Readd, SlobPolicy};

use crate::backing::Backing;
use crate::cache::{CACHE_LINE, CacheFlags, CacheId, CacheSpec, Geometry, LARGEST_BLOCK, WORD, no_layout};
use crate::damage::no_such_work;
use crate::engine::{Busy, Engine, Place, Usage, zero_if_asked};
use crate::order::MAX_ORDER;
use crate::report::Misuse;
use crate::slab::{NewObjects, Slab};
use ask::{Block, Request};
use heap::{ListOf, Search};
use page::HeapPage;
use report::Tally;
use slablab_pages::Pages;
use slablab_platform::{
    CpuId, Event, FrameKind, Gfp, NO_CACHE, NodeId, PerCpu, PerNode, Platform, Work, WorkKind,
};

/// A SLOB cache: a size, an alignment and a constructor. Its objects are in the heap that all caches share.
pub struct Slob<P: Platform> {
    id: CacheId,
    policy: SlobPolicy,
    flags: CacheFlags,
    geometry: Geometry,
    /// The request to the heap for one object; `None` for objects of a page or more.
    request: Option<Request>,
    new: NewObjects<P>,
    /// Used for event counters only: SLOB has no state per CPU.
    slots: P::PerCpu<()>,
    nodes: P::PerNode<Tally<P>>,
}

/// Replaces the cache number in SLOB's pages, because every cache may have objects in them.
const SHARED: u32 = NO_CACHE;

/// Size of the header before a kmalloc object, which holds the object's size; also the minimum alignment of
/// objects.
const HEADER: u32 = WORD;
/// Bytes after an object that readers may use after its free: space for the grace period's callback.
const RCU_FOOTER: u32 = 24;

impl<P: Platform> Slob<P> {
    fn page_bytes() -> u32 {
        1 << P::page_shift()
    }

    /// The request for a kmalloc of `bytes` bytes; `None` if the page allocator serves it.
    #[inline]
    fn kmalloc_request(policy: &SlobPolicy, bytes: u32) -> Option<Request> {
        let align = match policy.kmalloc_align {
            KmallocAlign::PowersOfTwo if bytes.is_power_of_two() => bytes.max(WORD),
            KmallocAlign::PowersOfTwo | KmallocAlign::Word => WORD,
        };
        (bytes < Self::page_bytes() - HEADER).then(|| Request { bytes: bytes + HEADER, align, lead: HEADER })
    }

    /// Size of an object in bytes, including the space for its grace period.
    fn object_bytes(spec: &CacheSpec) -> u32 {
        spec.object_size.clamp(1, LARGEST_BLOCK)
            + if spec.flags.has(CacheFlags::TYPESAFE_BY_RCU) { RCU_FOOTER } else { 0 }
    }

    /// The request for one object of a cache.
    fn object_request(spec: &CacheSpec) -> Option<Request> {
        let bytes = Self::object_bytes(spec);
        let line = if spec.flags.has(CacheFlags::HWCACHE_ALIGN) { CACHE_LINE } else { 0 };
        let align = spec.align.max(WORD).max(line).min(Self::page_bytes()).next_power_of_two();
        (bytes < Self::page_bytes()).then_some(Request { bytes, align, lead: 0 })
    }

    fn list_of(&self, bytes: u32) -> ListOf {
        if bytes < self.policy.small_below {
            ListOf::Small
        } else if bytes < self.policy.medium_below {
            ListOf::Medium
        } else {
            ListOf::Large
        }
    }

    fn request_of(spec: &CacheSpec, policy: &SlobPolicy) -> Option<Request> {
        match spec.flags.has(CacheFlags::KMALLOC) {
            true => Self::kmalloc_request(policy, spec.object_size),
            false => Self::object_request(spec),
        }
    }

    fn measure(spec: &CacheSpec, request: Option<&Request>) -> Option<Geometry> {
        let page = Self::page_bytes();
        let (size, order, objects) = match request {
            Some(Request { bytes, align, lead }) => {
                // Units are smaller than any alignment, so adjacent objects are multiples of the alignment
                // apart.
                let size = bytes.next_multiple_of(*align);
                let first = lead.next_multiple_of(*align) - lead;
                (size, 0, 1 + (page - first - bytes) / size)
            }
            None => {
                let bytes = Self::object_bytes(spec);
                (bytes, Self::order_of(bytes), 1)
            }
        };
        (order <= MAX_ORDER && spec.is_possible()).then_some(Geometry {
            object_size: spec.object_size,
            size,
            spacing: size,
            link_offset: 0,
            order,
            objects,
            min_order: order,
            min_objects: objects,
        })
    }

    fn search(&self, request: Request, node: Option<NodeId>) -> Search {
        let ask = request.ask(HeapPage::<P>::unit_shift());
        let SlobPolicy { next_fit, after_full, .. } = self.policy;
        Search { ask, list: self.list_of(request.bytes), node, next_fit, after_full }
    }

    /// Allocates a block: from a listed page, else from a new one.
    fn alloc_block(
        &self,
        backing: &Backing<'_, P, Heap<P>>,
        request: Request,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        let search = self.search(request, node);
        self.slots.count(Event::LockHeap, 1);
        let found = backing.common.search(&search);
        let mut blocks_walked = found.blocks_walked;
        let block = match found.block {
            Some(block) => {
                self.slots.count(Event::AllocFromPartial, 1);
                Some(block)
            }
            None => {
                let home = P::cpu_node(P::cpu());
                let block = backing.common.grow(backing.pages, &search, gfp, home, &mut blocks_walked);
                if block.is_some() {
                    self.slots.count(Event::AllocSlab, 1);
                    self.slots.count(Event::LockHeap, 1);
                }
                block
            }
        };
        self.slots.count(Event::SlobPagesWalked, found.pages_walked);
        self.slots.count(Event::SlobBlocksWalked, blocks_walked);
        let bytes = Self::rounded(request.bytes);
        block.inspect(|block| self.tally(*block).add_shared(1, bytes))
    }

    /// The bytes of the units that a block of `bytes` bytes takes.
    fn rounded(bytes: u32) -> i64 {
        (HeapPage::<P>::units_of(bytes) << HeapPage::<P>::unit_shift()) as i64
    }

    fn kmalloc(
        &self,
        backing: &Backing<'_, P, Heap<P>>,
        bytes: u32,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        let Some(request) = Self::kmalloc_request(&self.policy, bytes) else {
            return self.alloc_pages(backing, bytes, gfp, node);
        };
        let block = self.alloc_block(backing, request, gfp, node)?;
        P::set_half(block, bytes as u16);
        let (pfn, at) = P::locate(block);
        Some(P::address(pfn, (at + HEADER) as u64))
    }

    fn alloc_object(
        &self,
        backing: &Backing<'_, P, Heap<P>>,
        bytes: u32,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        self.slots.count(Event::AllocSlowpath, 1);
        let object = match self.request {
            _ if self.flags.has(CacheFlags::KMALLOC) => self.kmalloc(backing, bytes.max(1), gfp, node),
            Some(request) => self.alloc_block(backing, request, gfp, node),
            None => self.alloc_pages(backing, self.geometry.size, gfp, node),
        }?;
        self.new.make(object);
        Some(zero_if_asked::<P>(object, bytes, gfp))
    }

    /// The block of an object in its page, and the size that was requested.
    fn block_of(&self, object: P::Ptr) -> Result<(Block, u32), Misuse> {
        let (pfn, at) = P::locate(object);
        let (start, bytes) = if self.flags.has(CacheFlags::KMALLOC) {
            let start = at.checked_sub(HEADER).ok_or(Misuse::NotAnObject)?;
            let header = |start: u32| P::half(P::address(pfn, start as u64)) as u32 + HEADER;
            (start, if start.is_multiple_of(WORD) { header(start) } else { 0 })
        } else {
            (at, self.request.map_or(0, |request| request.bytes))
        };
        if bytes == 0 || !start.is_multiple_of(WORD) || start + bytes > Self::page_bytes() {
            return Err(Misuse::NotAnObject);
        }
        let at = start >> HeapPage::<P>::unit_shift();
        Ok((Block { at, units: HeapPage::<P>::units_of(bytes) }, bytes))
    }

    /// Frees an object's block.
    fn free_block(&self, backing: &Backing<'_, P, Heap<P>>, placed: &Placed<P>) -> Result<(), Misuse> {
        let list = match self.policy.readd {
            Readd::Small => ListOf::Small,
            Readd::BySize => self.list_of(placed.bytes),
        };
        // Look up the node first: the page may be returned by the free.
        let tally = self.nodes.get(placed.node);
        self.slots.count(Event::LockHeap, 1);
        let freed = backing.common.free(backing.pages, placed.slab, placed.block, list);
        let freed = freed.ok_or(Misuse::AlreadyFree)?;
        self.slots.count(Event::SlobBlocksWalked, freed.blocks_walked);
        self.slots.count(Event::FreeAddPartial, freed.listed as u64);
        self.slots.count(Event::FreeRemovePartial, freed.unlisted as u64);
        self.slots.count(Event::FreeSlab, freed.page as u64);
        tally.add_shared(0, -Self::rounded(placed.bytes));
        Ok(())
    }

    /// Checks, as far as SLOB can, that an object is of this cache, and finds its block in the heap.
    /// `Ok(None)` if the object has whole pages of its own.
    fn place(&self, object: P::Ptr) -> Result<Option<Placed<P>>, Misuse> {
        let (pfn, state) = Pages::<P>::block_of(object).ok_or(Misuse::NotInSlab)?;
        match state.kind {
            FrameKind::Large => self.check_large(object, pfn).map(|()| None),
            _ if self.request.is_none() && !self.flags.has(CacheFlags::KMALLOC) => Err(Misuse::NotAnObject),
            _ => {
                let (block, bytes) = self.block_of(object)?;
                Ok(Some(Placed { slab: Slab::at(pfn), node: state.node, block, bytes }))
            }
        }
    }
}

/// An object in the heap.
struct Placed<P> {
    slab: Slab<P>,
    node: NodeId,
    block: Block,
    /// The requested size.
    bytes: u32,
}

impl<P: Platform> Engine<P> for Slob<P> {
    type Policy = SlobPolicy;
    type Common = Heap<P>;
    const KNOWS_OWNERS: bool = false;

    fn layout(spec: &CacheSpec, policy: &SlobPolicy) -> Option<Geometry> {
        Self::measure(spec, Self::request_of(spec, policy).as_ref())
    }

    fn create(id: CacheId, spec: &CacheSpec, policy: &SlobPolicy) -> Self {
        let request = Self::request_of(spec, policy);
        Slob {
            id,
            policy: *policy,
            flags: spec.flags,
            geometry: Self::measure(spec, request.as_ref()).unwrap_or_else(|| no_layout(spec)),
            request,
            new: NewObjects::default(),
            slots: P::PerCpu::new(0),
            nodes: P::PerNode::new(),
        }
    }

    fn set_new_objects(&mut self, new: NewObjects<P>) {
        self.new = new.fitting(self.flags);
    }

    /// Does not read the object. SLOB does not know the cache of an object in a shared page, and the header
    /// of a freed object may belong to another block. So every address in a shared page is accepted.
    fn owns(&self, object: P::Ptr) -> Result<(), Misuse> {
        let (pfn, state) = Pages::<P>::block_of(object).ok_or(Misuse::NotInSlab)?;
        match state.kind {
            FrameKind::Large => self.check_large(object, pfn),
            FrameKind::Slab if P::locate(object).1.is_multiple_of(WORD) => Ok(()),
            FrameKind::Slab => Err(Misuse::NotAnObject),
            _ => Err(Misuse::NotInSlab),
        }
    }

    fn id(&self) -> CacheId {
        self.id
    }

    /// The geometry of a page that contains objects of this cache only.
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn object_align(&self) -> u32 {
        match &self.request {
            Some(request) if request.lead > 0 => WORD,
            Some(request) => request.align,
            None => Self::page_bytes(),
        }
    }

    fn alloc(&self, backing: &Backing<'_, P, Heap<P>>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        self.alloc_object(backing, self.geometry.object_size, gfp, node)
    }

    fn alloc_sized(
        &self,
        backing: &Backing<'_, P, Heap<P>>,
        bytes: u32,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        self.alloc_object(
            backing,
            if self.flags.has(CacheFlags::KMALLOC) { bytes } else { self.geometry.object_size },
            gfp,
            node,
        )
    }

    fn free(&self, backing: &Backing<'_, P, Heap<P>>, object: P::Ptr) -> Result<(), Misuse> {
        let placed = self.place(object)?;
        let tally = self.tally(object);
        if self.flags.has(CacheFlags::TYPESAFE_BY_RCU) {
            let (pfn, at) = P::locate(object);
            let argument = ((pfn.0 as u64) << P::page_shift()) + at as u64;
            P::after_grace_period(Work { kind: WorkKind::FreeObject, cache: self.id.0, argument });
        } else if let Some(placed) = &placed {
            self.free_block(backing, placed)?;
        } else {
            self.free_pages(backing, object);
        }
        self.slots.count(Event::FreeSlowpath, 1);
        match placed {
            Some(_) => tally.add_shared(-1, 0),
            None => tally.add_large(-1),
        }
        Ok(())
    }

    /// SLOB holds no memory that could be returned.
    fn shrink(&self, _backing: &Backing<'_, P, Heap<P>>) -> u64 {
        0
    }

    fn destroy(&self, _backing: &Backing<'_, P, Heap<P>>) -> Result<(), Busy> {
        self.usage().all_free()
    }

    fn work(&self, backing: &Backing<'_, P, Heap<P>>, _cpu: CpuId, work: Work) {
        match work.kind {
            WorkKind::FreeObject => self.free_after_grace(backing, work.argument),
            kind => no_such_work::<P>(self.id, kind),
        }
    }

    /// SLOB has no state per CPU.
    fn cpu_down(&self, _backing: &Backing<'_, P, Heap<P>>, _cpu: CpuId) {}

    /// SLOB has no periodic work.
    fn cpu_up(&self, _backing: &Backing<'_, P, Self::Common>, _cpu: CpuId) {}

    /// Seeds a page with objects of this cache only. Its list depends on their size; other caches may use its
    /// free blocks. SLOB has no empty pages.
    fn seed(
        &self,
        backing: &Backing<'_, P, Heap<P>>,
        node: NodeId,
        _place: Place,
        free: &[u16],
    ) -> Option<P::Ptr> {
        self.seed_page(backing, node, free)
    }

    fn usage_on(&self, node: NodeId) -> Usage {
        self.nodes.peek(node).map_or(Usage::default(), Tally::usage)
    }

    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        self.slots.counted(cpu, event)
    }
}
