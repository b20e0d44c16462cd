#![doc = include_str!("../../../docs/slab.md")]

mod alloc;
mod free;
mod list;
mod policy;
mod reap;
mod report;
mod seed;
mod shape;
mod times;

pub use policy::{Fresh, GrowFlags, Limits, Management, Memoryless, Reap, Requeue, SlabPolicy, Surplus};
pub use shape::Tunables;

use crate::backing::Backing;
use crate::cache::{CacheId, CacheSpec, Geometry, LinkPlace, layout, no_layout, spacing};
use crate::damage::no_such_work;
use crate::engine::{Busy, Engine, Exposed, Place, Reapable, Usage, address, zero_if_asked};
use crate::engines::common;
use crate::front::Front;
use crate::report::Misuse;
use crate::slab::{NewObjects, Slab};
use list::{Node, Owner};
use shape::Layout;
use slablab_platform::{
    CpuId, Event, Gfp, NodeId, PerCpu, PerNode, Pfn, Platform, SlotOf, Starts, Work, WorkKind,
};

/// A SLAB cache.
pub struct SlabEngine<P: Platform> {
    id: CacheId,
    geometry: Geometry,
    policy: SlabPolicy,
    flags: crate::CacheFlags,
    tunables: Tunables,
    shape: Layout,
    starts: Starts,
    new: NewObjects<P>,
    slots: P::PerCpu<CpuState>,
    nodes: P::PerNode<Node<P>>,
    /// The reaper's first visit of the nodes.
    first_reap_ns: u64,
}

/// State of a slot besides its array of objects, which is the slot's hot array.
#[derive(Default)]
pub(crate) struct CpuState {
    /// True if a refill used the slot after the reaper's last visit.
    touched: bool,
    /// The counter of allocation hits at the reaper's last visit.
    hits_seen: u64,
    /// The node whose alien array the reaper visits next.
    rotor: u16,
    /// True while a visit of the reaper is scheduled for this CPU.
    reaping: bool,
    /// When that visit is due.
    due_ns: u64,
    /// When the CPU came online, if it did after its first use of the cache.
    up_ns: u64,
}

/// The first visit of the nodes of a cache that is made now.
fn first_reap_ns<P: Platform>(id: CacheId, policy: &SlabPolicy) -> u64 {
    match (policy.reap_interval_ns, policy.node_reap_ms) {
        (0, _) => 0,
        (interval, None) => times::first_of_nodes(id.0, P::now(), interval),
        (interval, Some(ms)) => P::now().saturating_add(2 * interval + ms as u64 * 1_000_000),
    }
}

type Slot<'a, P> = SlotOf<'a, P, CpuState>;

impl<P: Platform> SlabEngine<P> {
    /// The capacities of the arrays, and the number of objects that move at once.
    pub fn tunables(&self) -> Tunables {
        self.tunables
    }

    /// Size in bytes of an off-slab free list, which is an object of another cache; 0 if the list is in the
    /// slab.
    pub fn off_slab_bytes(&self) -> u32 {
        self.shape.management
    }

    fn measure(spec: &CacheSpec, policy: &SlabPolicy) -> Option<(Geometry, Layout)> {
        let (size, link_offset) = layout(spec, LinkPlace::Start);
        let shape = Layout::new(spec, size, P::page_shift(), policy)?;
        let geometry = Geometry {
            object_size: spec.object_size,
            size,
            spacing: spacing(spec, size),
            link_offset,
            order: shape.order,
            objects: shape.objects,
            // SLAB does not retry with a smaller order.
            min_order: shape.order,
            min_objects: shape.objects,
        };
        Some((geometry, shape))
    }

    /// The node that counts as local for allocations of `cpu`.
    #[inline]
    fn home(&self, cpu: CpuId) -> NodeId {
        match self.policy.memoryless {
            Memoryless::AsAsked => P::cpu_node(cpu),
            Memoryless::AllocNearest | Memoryless::Nearest => P::cpu_memory_node(cpu),
        }
    }

    /// The node that counts as local for frees of `cpu`.
    #[inline]
    fn free_home(&self, cpu: CpuId) -> NodeId {
        match self.policy.memoryless {
            Memoryless::AsAsked | Memoryless::AllocNearest => P::cpu_node(cpu),
            Memoryless::Nearest => P::cpu_memory_node(cpu),
        }
    }
}

impl<P: Platform> Engine<P> for SlabEngine<P> {
    type Policy = SlabPolicy;
    type Common = ();

    fn layout(spec: &CacheSpec, policy: &SlabPolicy) -> Option<Geometry> {
        Self::measure(spec, policy).map(|(geometry, _)| geometry)
    }

    fn create(id: CacheId, spec: &CacheSpec, policy: &SlabPolicy) -> Self {
        let (geometry, shape) = Self::measure(spec, policy).unwrap_or_else(|| no_layout(spec));
        SlabEngine {
            id,
            geometry,
            policy: *policy,
            flags: spec.flags,
            tunables: Tunables::new(geometry.size, P::page_shift(), P::cpus(), policy),
            shape,
            starts: Starts::of(geometry.objects, geometry.size),
            new: NewObjects::default(),
            slots: P::PerCpu::new(geometry.link_offset),
            nodes: P::PerNode::new(),
            first_reap_ns: first_reap_ns::<P>(id, policy),
        }
    }

    fn set_new_objects(&mut self, new: NewObjects<P>) {
        self.new = new.fitting(self.flags);
    }

    /// Limits the arrays to 32 objects, as the kernel does for debugged caches (docs/theory/slab.md 2).
    fn debugged(policy: &SlabPolicy) -> SlabPolicy {
        SlabPolicy { limit_max: Tunables::DEBUG_LIMIT, ..*policy }
    }

    fn owns(&self, object: P::Ptr) -> Result<(), Misuse> {
        let (slab, _) = Slab::of(object).ok_or(Misuse::NotInSlab)?;
        self.check(object, slab)
    }

    fn id(&self) -> CacheId {
        self.id
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn object_align(&self) -> u32 {
        self.geometry.object_align(self.shape.first_step())
    }

    /// A hit reads the slot and the last address of its array, then does one store and increments one
    /// counter.
    #[inline]
    fn alloc(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        let object = self.alloc_object(backing, gfp, node)?;
        Some(zero_if_asked::<P>(object, self.geometry.object_size, gfp))
    }

    /// A hit reads the slab's node and cache and computes the object's index; then it stores one address and
    /// one array size, and increments one counter.
    #[inline]
    fn free(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        self.free_object(backing, object)
    }

    fn shrink(&self, backing: &Backing<'_, P>) -> u64 {
        common::shrink(self, || self.empty_all(backing))
    }

    fn look_to_reap(&self, backing: &Backing<'_, P>) -> Option<Reapable> {
        (self.policy.reap == Reap::Clock).then(|| self.reapable(backing)).flatten()
    }

    fn reap_empty(&self, backing: &Backing<'_, P>, slabs: u32) -> u64 {
        self.return_empty(backing, slabs)
    }

    fn destroy(&self, backing: &Backing<'_, P>) -> Result<(), Busy> {
        common::close(self, &self.slots, || self.empty_all(backing))?;
        self.drop_arrays(backing);
        Ok(())
    }

    fn work(&self, backing: &Backing<'_, P>, cpu: CpuId, work: Work) {
        match work.kind {
            WorkKind::Reap => self.reap(backing, cpu),
            WorkKind::FreeSlab => self.return_pages(backing, Slab::at(Pfn(work.argument as u32))),
            WorkKind::FreeSheaf | WorkKind::FreeObject => no_such_work::<P>(self.id, work.kind),
        }
    }

    fn cpu_down(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        self.retire(backing, cpu);
    }

    /// The reaper starts to visit a CPU at the CPU's first slow path.
    fn cpu_up(&self, _backing: &Backing<'_, P>, cpu: CpuId) {
        self.arrive(cpu);
    }

    fn seed(&self, backing: &Backing<'_, P>, node: NodeId, _place: Place, free: &[u16]) -> Option<P::Ptr> {
        self.seed_slab(backing, node, free)
    }

    fn seed_arrays(&self, backing: &Backing<'_, P>, in_array: u32, in_shared: u32) {
        self.fill_arrays(backing, in_array, in_shared);
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
            // The world counts a hot operation as one event; the kernel calls that event a hit.
            Event::SlabAllocHit => counted(Event::AllocFastpath),
            Event::SlabFreeHit => counted(Event::FreeFastpath),
            Event::SlabGrown => counted(Event::AllocSlab),
            _ => counted(event),
        }
    }
}

impl<P: Platform> Front<P> for SlabEngine<P> {
    #[inline(always)]
    fn alloc_slow_slot(&self) -> Option<P::Ptr> {
        self.slots.pop(Event::AllocFastpath)
    }

    #[inline]
    fn starts_at(&self, slab: Pfn, offset: u32) -> bool {
        self.is_start(Owner::unpack(Slab::<P>::at(slab).owner()), offset)
    }

    #[inline]
    fn free_slow_slot(&self, object: P::Ptr, slab: Pfn) -> bool {
        (P::nodes() == 1 || self.takes(Slab::<P>::at(slab).node()))
            && self.slots.push(object, Event::FreeFastpath)
    }
}
