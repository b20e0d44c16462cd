//! SLQB: per-CPU queues of objects of any slab, pages with an owner, objects handed home in batches.
//!
//! # Theory
//!
//! Nick Piggin, 2009; never in a release (reference/slqb.md). A CPU frees to and allocates from one *queue*, last in,
//! first out, whatever page an object is of, as long as the memory is of the CPU's node. A queue above *hiwater* flushes a
//! *batch* of its hottest objects: into their pages if the CPU owns them, else to the *remote list*, which is sent to the
//! owner's *remote_free* a batch at a time. The owner claims it when its queue is empty and somebody flagged it.
//!
//! States of an object:
//!
//! | state | where | who may take it |
//! |---|---|---|
//! | allocated | with a user | the user |
//! | queued | a CPU's queue, or a node's | the CPU; the holder of the node's `list_lock` |
//! | on the way | a CPU's remote list, all for one destination | that CPU |
//! | handed back | the owner's `remote_free`, under its lock | the owner |
//! | free | in its page | the holder of the owner's `page_lock`; in January 2009 the owner |
//!
//! States of a page: partial (on its owner's list), full (on none), gone: an emptied page goes back at once. All that is
//! kept for later is kept as objects.
//!
//! What always holds, per page: `objects = inuse + free objects in it`; per cache: the `inuse` of all pages = allocated +
//! queued + on the way + handed back. `alloc = alloc_fastpath + slow allocations`, of which `alloc_slab_fill` took an
//! object from a partial page and `alloc_slab_new` a new page; the rest found the queue filled by a claim.
//!
//! Unusual: the owner matters to a flush, not to a free; a page of 64 objects can have each in another queue; and
//! a node's own list, which keeps what landed elsewhere, is looked at only by requests for that node and by the reaper -
//! which is the leak of September 2009 on nodes without memory ([`Memoryless`]).
//!
//! `alloc_fastpath` and `free_fastpath` are ours: served by the queue, without a claim, a page or a flush. The kernel's
//! `alloc` and `free` contain them.
//!
//! ```text
//! alloc ── pop_if                                        fast: the queue
//!   └─ alloc_slow ── pop_claimed ── claim                what others handed back
//!        ├─ take_from_own_page                                one object of the first partial page
//!        ├─ new_page ── Pages::alloc                     to the own list, or to the list of the node it landed on
//!        ├─ alloc_on ── take_from_node_list, take_from_zonelist    another node was asked for, or memory is exhausted
//!        └─ alloc_slotless                               the slot refused: a page of the own list under page_lock
//! free ── push_if                                        fast: the queue, below hiwater
//!   └─ free_slow ── flush_free_list ── put_object        a batch into own pages; emptied ones go back
//!        ├─ free_to_remote ── flush_remote_free_cache    another node's: the remote list, then
//!        │                      splice or put_object       to its owner, or past an owner that does not pick up
//!        └─ free_slotless                                the slot refused: into the page under page_lock
//! work ── reap                                           every 3 s: one batch of each queue
//! ```

mod alloc;
mod free;
mod list;
mod policy;
mod reap;
mod report;
mod seed;

pub use policy::{Memoryless, SlqbPolicy};

use crate::cache::{CACHE_LINE, CacheId, CacheSpec, Geometry, LinkPlace, alignment, layout};
use crate::engine::{Backing, Busy, Engine, Misuse, Place, Usage};
use crate::order::{MAX_ORDER, OrderInput, OrderRule};
use crate::slab::{Constructor, Slab};
use list::{ListId, Node, PageList, Queue, Shared};
use slablab_platform::{
    CpuId, CpuShared, Event, Gfp, HotList, NodeId, PerCpu, PerNode, Pfn, Platform, Work, WorkKind,
};

/// An SLQB cache.
pub struct Slqb<P: Platform> {
    id: CacheId,
    geometry: Geometry,
    policy: SlqbPolicy,
    flags: crate::CacheFlags,
    freebatch: u32,
    hiwater: u32,
    /// 2^32 / size, rounded up: finds an object's index without a division.
    reciprocal: u64,
    colours: Colours,
    construct: Option<Constructor<P>>,
    slots: P::PerCpu<CpuState<P>>,
    lists: P::CpuShared<Shared<P>>,
    nodes: P::PerNode<Node<P>>,
}

/// What a slot holds besides the queue, which is its hot list.
pub(crate) struct CpuState<P: Platform> {
    /// The CPU's pages, where there is no `page_lock`.
    pages: PageList<P>,
    /// Objects to be sent home.
    rlist: Queue<P>,
    /// Where they go; `None` while there are none.
    remote_cache_list: Option<ListId>,
    /// The next page's colour.
    colour_next: u16,
    /// Whether the reaper visits this CPU.
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

type Slot<'a, P> = <<P as Platform>::PerCpu<CpuState<P>> as PerCpu<P, CpuState<P>>>::Local<'a>;

/// Where pages' first objects start, so that those of different pages do not share cache lines.
#[derive(Clone, Copy, Debug)]
struct Colours {
    /// Bytes between two colours.
    offset: u32,
    /// How many there are, at least 1.
    count: u16,
}

impl Colours {
    fn new(spec: &CacheSpec, geometry: &Geometry, page_shift: u32) -> Colours {
        let offset = CACHE_LINE.max(alignment(spec));
        let count = geometry.tail(page_shift).div_ceil(offset).clamp(1, u16::MAX as u32);
        Colours { offset, count: count as u16 }
    }

    #[inline]
    fn bytes(self, colour: u16) -> u32 {
        colour as u32 * self.offset
    }
}

impl<P: Platform> Slqb<P> {
    /// Most objects in a queue: one below what a hot list counts, so that a push may exceed it and then flush.
    const QUEUE_MAX: u32 = HotList::<P::Ptr>::COUNT_MAX - 1;

    fn measure(spec: &CacheSpec, policy: &SlqbPolicy) -> Geometry {
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
        let order = known.unwrap_or_else(|| OrderRule::Slqb.order(input));
        // A page counts its objects in 16 bits; only a minimum order set by hand can exceed them.
        let objects = (input.slab_bytes(order) / size as u64).min(u16::MAX as u64) as u32;
        Geometry {
            object_size: spec.object_size,
            size,
            link_offset,
            order,
            objects,
            // There is no second try at a smaller order.
            min_order: order,
            min_objects: objects,
        }
    }

    /// Objects flushed at once: four pages of them, at least 256 as long as that is not more than 64 pages.
    fn freebatch_of(size: u32, policy: &SlqbPolicy) -> u32 {
        let page = 1u32 << P::page_shift();
        let rule = (4 * page / size).max((64 * page / size).min(256));
        policy.freebatch.unwrap_or(rule).max(1)
    }

    /// Objects flushed at once.
    pub fn freebatch(&self) -> u32 {
        self.freebatch
    }

    /// Objects a queue holds before it is flushed.
    pub fn hiwater(&self) -> u32 {
        self.hiwater
    }

    /// The node whose memory a CPU takes for its own.
    #[inline]
    fn home(&self, cpu: CpuId) -> NodeId {
        match self.policy.memoryless {
            Memoryless::Nearest => P::cpu_memory_node(cpu),
            Memoryless::AsAsked | Memoryless::RemoteFirst | Memoryless::FreeAsLocal => P::cpu_node(cpu),
        }
    }

    /// Whether a node is what the current CPU calls its own.
    #[inline]
    fn is_here(&self, node: NodeId) -> bool {
        self.is_here_on(P::cpu(), node)
    }

    #[inline]
    fn is_here_on(&self, cpu: CpuId, node: NodeId) -> bool {
        node == P::cpu_node(cpu)
            || (self.policy.memoryless == Memoryless::Nearest && node == P::cpu_memory_node(cpu))
    }

    /// Whether a CPU's queue takes objects of every node.
    #[inline]
    fn mixes_nodes(&self, cpu: CpuId) -> bool {
        self.policy.memoryless == Memoryless::FreeAsLocal && P::node_frames(P::cpu_node(cpu)).1 == 0
    }
}

impl<P: Platform> Engine<P> for Slqb<P> {
    type Policy = SlqbPolicy;
    type Common = ();

    fn create(id: CacheId, spec: &CacheSpec, policy: &SlqbPolicy) -> Self {
        let geometry = Self::measure(spec, policy);
        assert!(geometry.objects >= 1, "an object of {} bytes fits no slab", geometry.size);
        let freebatch = Self::freebatch_of(geometry.size, policy);
        Slqb {
            id,
            geometry,
            policy: *policy,
            flags: spec.flags,
            freebatch,
            hiwater: policy.hiwater.unwrap_or(4 * freebatch).min(Self::QUEUE_MAX),
            reciprocal: (1u64 << 32).div_ceil(geometry.size as u64),
            colours: Colours::new(spec, &geometry, P::page_shift()),
            construct: None,
            slots: P::PerCpu::new(geometry.link_offset),
            lists: P::CpuShared::new(),
            nodes: P::PerNode::new(),
        }
    }

    fn set_constructor(&mut self, construct: Constructor<P>) {
        assert!(self.flags.constructor, "the cache was made without room for a constructor's work");
        self.construct = Some(construct);
    }

    fn id(&self) -> CacheId {
        self.id
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// On a hit: the slot, the list's head, one link read, one store, one counter.
    #[inline]
    fn alloc(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        let object = self.alloc_object(backing, gfp, node)?;
        if gfp.any(Gfp::ZERO) {
            P::zero(object, self.geometry.object_size);
        }
        Some(object)
    }

    /// On a hit: the page's node and cache, then one link write, one store, one counter.
    #[inline]
    fn free(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        self.free_object(backing, object)
    }

    fn alloc_bulk(&self, backing: &Backing<'_, P>, gfp: Gfp, out: &mut [Option<P::Ptr>]) -> usize {
        for (got, place) in out.iter_mut().enumerate() {
            *place = self.alloc(backing, gfp, None);
            if place.is_none() {
                return got;
            }
        }
        out.len()
    }

    /// One by one: the queue is where a bulk would go.
    fn free_bulk(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        objects.iter().try_for_each(|object| self.free(backing, *object))
    }

    fn shrink(&self, backing: &Backing<'_, P>) -> u64 {
        let before = self.counted(Event::FreeSlab);
        self.empty_all(backing);
        self.counted(Event::FreeSlab) - before
    }

    fn destroy(&self, backing: &Backing<'_, P>) -> Result<(), Busy> {
        self.empty_all(backing);
        match self.usage().live_objects() {
            0 => {
                self.stop_reaping();
                Ok(())
            }
            live_objects => Err(Busy { live_objects }),
        }
    }

    fn work(&self, backing: &Backing<'_, P>, cpu: CpuId, work: Work) {
        match work.kind {
            WorkKind::Reap => self.reap(backing, cpu),
            WorkKind::FreeSlab => self.return_pages(backing, Slab::at(Pfn(work.argument as u32))),
            WorkKind::FreeSheaf | WorkKind::FreeObject => unreachable!("SLQB asks for no {:?}", work.kind),
        }
    }

    /// Moves nothing: the CPU's pages stay its own, and objects for them beyond half of hiwater go to them directly.
    fn cpu_down(&self, _backing: &Backing<'_, P>, _cpu: CpuId) {}

    /// A CPU never used is visited from its first slow path on.
    fn cpu_up(&self, cpu: CpuId) {
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

    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for node in 0..P::nodes() {
            usage += self.usage_on(NodeId(node));
        }
        usage
    }

    fn usage_on(&self, node: NodeId) -> Usage {
        self.report_on(node)
    }

    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        let counted = |event| self.slots.counted(cpu, event);
        match event {
            // A hot operation counts one event: the kernel's own contain it.
            Event::SlqbAlloc => counted(Event::SlqbAlloc) + counted(Event::AllocFastpath),
            Event::SlqbFree => counted(Event::SlqbFree) + counted(Event::FreeFastpath),
            _ => counted(event),
        }
    }
}
