#![doc = include_str!("../../../docs/slqb.md")]

mod alloc;
mod free;
mod list;
mod policy;
mod reap;
mod report;
mod seed;

pub use policy::{Memoryless, SlqbPolicy};

use crate::backing::Backing;
use crate::cache::{
    CACHE_LINE, CacheId, CacheSpec, Geometry, LinkPlace, alignment, layout, no_layout, spacing,
};
use crate::damage::no_such_work;
use crate::engine::{Busy, Engine, Exposed, Place, Usage, address, zero_if_asked};
use crate::engines::common;
use crate::front::Front;
use crate::order::{MAX_ORDER, OrderInput, OrderRule};
use crate::report::Misuse;
use crate::slab::{NewObjects, Slab};
use list::{ListId, Node, Owner, PageList, Queue, Shared};
use slablab_platform::{
    CpuId, CpuShared, Event, Gfp, HotList, NodeId, PerCpu, PerNode, Pfn, Platform, SlotOf, Starts, Want,
    Work, WorkKind,
};

/// A SLQB cache.
pub struct Slqb<P: Platform> {
    id: CacheId,
    geometry: Geometry,
    policy: SlqbPolicy,
    flags: crate::CacheFlags,
    freebatch: u32,
    hiwater: u32,
    starts: Starts,
    colours: Colours,
    new: NewObjects<P>,
    slots: P::PerCpu<CpuState<P>>,
    lists: P::CpuShared<Shared<P>>,
    nodes: P::PerNode<Node<P>>,
}

/// State of a slot besides its queue, which is the slot's hot list.
pub(crate) struct CpuState<P: Platform> {
    /// The CPU's pages, if there is no `page_lock`.
    pages: PageList<P>,
    /// The remote list: objects to send to another list.
    rlist: Queue<P>,
    /// The destination of the remote list; `None` if it is empty.
    remote_cache_list: Option<ListId>,
    /// The colour of the next page.
    colour_next: u16,
    /// True while a visit of the reaper is scheduled for this CPU.
    reaping: bool,
}

impl<P: Platform> Default for CpuState<P> {
    fn default() -> Self {
        CpuState {
            pages: PageList::default(),
            rlist: Queue::default(),
            remote_cache_list: None,
            colour_next: 0,
            reaping: false,
        }
    }
}

type Slot<'a, P> = SlotOf<'a, P, CpuState<P>>;

/// Offsets of the first objects of pages, chosen so that different pages use different cache lines.
#[derive(Clone, Copy, Debug)]
struct Colours {
    /// Bytes between two colours.
    offset: u32,
    /// The number of colours, at least 1.
    count: u16,
}

impl Colours {
    fn new(spec: &CacheSpec, geometry: &Geometry, page_shift: u32) -> Colours {
        let offset = CACHE_LINE.max(alignment(spec));
        let count = geometry.tail(page_shift).div_ceil(offset).clamp(1, u16::MAX as u32);
        Colours { offset, count: count as u16 }
    }

    /// What divides the offsets of all colours, in bytes; 0 if there is one colour.
    fn step(self) -> u32 {
        if self.count > 1 { self.offset } else { 0 }
    }

    #[inline]
    fn bytes(self, colour: u16) -> u32 {
        colour as u32 * self.offset
    }
}

impl<P: Platform> Slqb<P> {
    /// Largest queue: one less than the count of a hot list allows, so that a push may exceed `hiwater`
    /// before the flush.
    const QUEUE_MAX: u32 = HotList::<P::Ptr>::COUNT_MAX - 1;

    fn measure(spec: &CacheSpec, policy: &SlqbPolicy) -> Option<Geometry> {
        let (size, link_offset) = layout(spec, LinkPlace::Start);
        let input = OrderInput {
            size,
            page_shift: P::page_shift(),
            cpus: P::cpus() as u32,
            min_order: policy.min_order,
            max_order: MAX_ORDER,
            min_objects: policy.min_objects,
        };
        let known = spec.known_order.map(|known| known.max(input.fitting_order(size as u64)));
        if input.fitting_order(size as u64) > MAX_ORDER {
            return None;
        }
        let order = known.unwrap_or_else(|| OrderRule::Slqb.order(input)).min(MAX_ORDER);
        // A page counts its objects in 16 bits. Only a minimum order set by hand can give it more objects.
        let objects = (input.slab_bytes(order) / size as u64).min(u16::MAX as u64) as u32;
        Some(Geometry {
            object_size: spec.object_size,
            size,
            spacing: spacing(spec, size),
            link_offset,
            order,
            objects,
            // SLQB does not retry with a smaller order.
            min_order: order,
            min_objects: objects,
        })
    }

    /// The objects of one flush: those of four pages, or 256 if that is more and they need at most 64 pages.
    fn freebatch_of(size: u32, policy: &SlqbPolicy) -> u32 {
        let page = 1u32 << P::page_shift();
        let rule = (4 * page / size).max((64 * page / size).min(256));
        policy.freebatch.unwrap_or(rule).max(1)
    }

    /// The number of objects in one flush.
    pub fn freebatch(&self) -> u32 {
        self.freebatch
    }

    /// The largest number of objects in a queue. A longer queue is flushed.
    pub fn hiwater(&self) -> u32 {
        self.hiwater
    }

    /// The node that counts as local for `cpu`.
    #[inline]
    fn home(&self, cpu: CpuId) -> NodeId {
        match self.policy.memoryless {
            Memoryless::Nearest => P::cpu_memory_node(cpu),
            Memoryless::AsAsked | Memoryless::RemoteFirst | Memoryless::FreeAsLocal => P::cpu_node(cpu),
        }
    }

    /// Whether `node` counts as local for the current CPU.
    #[inline]
    fn is_here(&self, node: NodeId) -> bool {
        self.is_here_on(P::cpu(), node)
    }

    #[inline]
    fn is_here_on(&self, cpu: CpuId, node: NodeId) -> bool {
        node == P::cpu_node(cpu)
            || (self.policy.memoryless == Memoryless::Nearest && node == P::cpu_memory_node(cpu))
    }

    /// Whether the queue of `cpu` accepts objects of every node.
    #[inline]
    fn mixes_nodes(&self, cpu: CpuId) -> bool {
        self.policy.memoryless == Memoryless::FreeAsLocal && P::node_frames(P::cpu_node(cpu)).1 == 0
    }
}

impl<P: Platform> Engine<P> for Slqb<P> {
    type Policy = SlqbPolicy;
    type Common = ();

    fn layout(spec: &CacheSpec, policy: &SlqbPolicy) -> Option<Geometry> {
        Self::measure(spec, policy)
    }

    fn create(id: CacheId, spec: &CacheSpec, policy: &SlqbPolicy) -> Self {
        let geometry = Self::measure(spec, policy).unwrap_or_else(|| no_layout(spec));
        let freebatch = Self::freebatch_of(geometry.size, policy);
        Slqb {
            id,
            geometry,
            policy: *policy,
            flags: spec.flags,
            freebatch,
            hiwater: policy.hiwater.unwrap_or(4 * freebatch).min(Self::QUEUE_MAX),
            starts: Starts::of(geometry.objects, geometry.size),
            colours: Colours::new(spec, &geometry, P::page_shift()),
            new: NewObjects::default(),
            slots: P::PerCpu::new(geometry.link_offset),
            lists: P::CpuShared::new(),
            nodes: P::PerNode::new(),
        }
    }

    fn set_new_objects(&mut self, new: NewObjects<P>) {
        self.new = new.fitting(self.flags);
    }

    /// Makes queues empty after every free: each freed object goes to its page at once.
    fn debugged(policy: &SlqbPolicy) -> SlqbPolicy {
        SlqbPolicy { freebatch: Some(1), hiwater: Some(0), ..*policy }
    }

    fn owns(&self, object: P::Ptr) -> Result<(), Misuse> {
        let (slab, _) = Slab::of(object).ok_or(Misuse::NotInSlab)?;
        self.check(object, slab).map(drop)
    }

    fn id(&self) -> CacheId {
        self.id
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn object_align(&self) -> u32 {
        self.geometry.object_align(self.colours.step())
    }

    /// A hit reads the slot, the list's head and one link, then does one store and increments one counter.
    #[inline]
    fn alloc(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        let object = self.alloc_object(backing, gfp, node)?;
        Some(zero_if_asked::<P>(object, self.geometry.object_size, gfp))
    }

    /// A hit reads the page's node and cache, writes one link and one word, and increments one counter.
    #[inline]
    fn free(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        self.free_object(backing, object)
    }

    fn shrink(&self, backing: &Backing<'_, P>) -> u64 {
        common::shrink(self, || self.empty_all(backing))
    }

    fn destroy(&self, backing: &Backing<'_, P>) -> Result<(), Busy> {
        common::close(self, &self.slots, || self.empty_all(backing))?;
        self.stop_reaping();
        Ok(())
    }

    fn work(&self, backing: &Backing<'_, P>, cpu: CpuId, work: Work) {
        match work.kind {
            WorkKind::Reap => self.reap(backing, cpu),
            WorkKind::FreeSlab => self.return_pages(backing, Slab::at(Pfn(work.argument as u32))),
            WorkKind::FreeSheaf | WorkKind::FreeObject => no_such_work::<P>(self.id, work.kind),
        }
    }

    /// Moves nothing. The CPU still owns its pages. Other CPUs that free objects of those pages hand them
    /// back until half of `hiwater` is unclaimed, and then put them into the pages directly.
    fn cpu_down(&self, _backing: &Backing<'_, P>, _cpu: CpuId) {}

    /// The reaper starts to visit a CPU at the CPU's first slow path.
    fn cpu_up(&self, _backing: &Backing<'_, P>, cpu: CpuId) {
        if self.policy.reap_interval_ns > 0
            && self.slots.used(cpu)
            && let Some(mut slot) = self.reach(cpu)
        {
            slot.reaping = true;
            drop(slot);
            self.reap_later(cpu);
        }
    }

    fn seed(&self, backing: &Backing<'_, P>, node: NodeId, place: Place, free: &[u16]) -> Option<P::Ptr> {
        self.seed_page(backing, node, place, free)
    }

    fn exposed(&self) -> Exposed {
        let (geometry, slots) = (address(&self.geometry), address(&self.slots));
        Exposed { geometry, slots, is_in_extra: true, ..Exposed::default() }
    }

    fn usage_on(&self, node: NodeId) -> Usage {
        self.report_on(node)
    }

    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        let counted = |event| self.slots.counted(cpu, event);
        match event {
            // The world counts a hot operation as one event. The kernel's counters include hot operations.
            Event::SlqbAlloc => counted(Event::SlqbAlloc) + counted(Event::AllocFastpath),
            Event::SlqbFree => counted(Event::SlqbFree) + counted(Event::FreeFastpath),
            _ => counted(event),
        }
    }
}

impl<P: Platform> Front<P> for Slqb<P> {
    #[inline(always)]
    fn alloc_slow_slot(&self) -> Option<P::Ptr> {
        self.slots.pop_if(Want::ANY, Event::AllocFastpath)
    }

    #[inline]
    fn starts_at(&self, slab: Pfn, offset: u32) -> bool {
        self.is_start(Owner::unpack(Slab::<P>::at(slab).owner()), offset)
    }

    #[inline]
    fn free_slow_slot(&self, object: P::Ptr, slab: Pfn) -> bool {
        (P::nodes() == 1 || self.is_local(Slab::<P>::at(slab).node()))
            && self.slots.push_if(Want::ANY, self.hiwater, object, Event::FreeFastpath)
    }
}
