#![doc = include_str!("../../../docs/slub.md")]

mod alloc;
mod direct;
mod eras;
mod free;
mod map;
mod node;
mod policy;
mod report;
mod runs;
mod seed;
pub mod sheaf;
mod state;

pub use policy::{
    Barns, CpuPartial, EmptySlab, FirstTry, FreeList, Leftover, Memoryless, MinPartial, NewLinks,
    RcuStrangers, Refill, RefillReads, RemoteRefill, RemoteSearch, SheafRule, Sheaves, SlabUpdate,
    SlubPolicy,
};
pub use sheaf::LARGE_OVER;

use crate::backing::Backing;
use crate::cache::{CacheId, CacheSpec, Geometry, LinkPlace, layout, no_layout, spacing};
use crate::damage::no_such_work;
use crate::engine::{Busy, Engine, Exposed, Idle, Place, Usage, zero_if_asked};
use crate::engines::common;
use crate::front::Front;
use crate::lent::Sheaf;
use crate::order::{MAX_ORDER, OBJECTS_MAX, OrderInput};
use crate::report::Misuse;
use crate::slab::{NewObjects, Slab};
use node::Node;
use runs::Checks;
use slablab_platform::{
    CpuId, Event, FrameState, Gfp, HotList, Local, NodeId, PerCpu, PerNode, Pfn, Platform, Shortcut, SlotOf,
    Starts, Want, Word, Work, WorkKind,
};

/// A SLUB cache. The fields that the fast paths read share the first cache line.
///
/// With native slots, which have 12 bytes, the fields fill 256 bytes without a gap that a field could use. A
/// power of two matters to a caller with an array of caches: the index becomes an address by one shift.
#[repr(C, align(64))]
pub struct Slub<P: Platform> {
    slots: P::PerCpu<CpuState<P>>,
    /// Objects that a sheaf holds; 0 without sheaves.
    sheaf_capacity: u32,
    /// Where objects start in a slab of the preferred order.
    starts: Starts,
    /// [`Starts::end`] of the slab with the fewest objects that this cache ever made: lowered by the first
    /// slab of the smallest order, and never raised again. [`Front::starts_at`] knows no slab's order, so it
    /// compares with this.
    starts_end: P::Word,
    id: CacheId,
    /// Full sheaves in a barn, at most.
    barn_full: u32,
    min_partial: u32,
    /// The limit of the CPU partial list: slabs, or objects until 5.15. 0 without such lists.
    cpu_partial: u32,
    geometry: Geometry,
    policy: SlubPolicy,
    flags: crate::CacheFlags,
    new: NewObjects<P>,
    nodes: P::PerNode<Node<P>>,
    barns: P::PerNode<sheaf::BarnLock<P>>,
}

/// The part of a slot besides its hot list: the CPU slab, the chain of partial slabs, and the sheaves.
pub struct CpuState<P: Platform> {
    /// The CPU slab. The hot list's tag names it too.
    slab: Option<Slab<P>>,
    /// The newest slab of the chain of partial slabs. The others follow through their links.
    partial: Option<Slab<P>>,
    /// Slabs on the chain of partial slabs.
    partial_slabs: u32,
    /// Objects believed free on the chain of partial slabs (until 5.15).
    partial_objects: u32,
    sheaves: sheaf::CpuSheaves<P>,
}

impl<P: Platform> Default for CpuState<P> {
    fn default() -> Self {
        CpuState {
            slab: None,
            partial: None,
            partial_slabs: 0,
            partial_objects: 0,
            sheaves: sheaf::CpuSheaves::default(),
        }
    }
}

/// A new slab with linked objects, which no other CPU can find yet.
struct NewSlab<P: Platform, H> {
    slab: Slab<P>,
    /// The first object of the list; an option where the list may be empty.
    head: H,
    objects: u32,
    /// Whether it has the smallest order, not the preferred one.
    fell_back: bool,
}

/// The events that an operation counts: a caller's call, or the filling or flushing of a sheaf.
#[derive(Clone, Copy)]
struct Tally {
    fast: Event,
    slow: Event,
}

impl Tally {
    const ALLOC: Tally = Tally { fast: Event::AllocFastpath, slow: Event::AllocSlowpath };
    const FREE: Tally = Tally { fast: Event::FreeFastpath, slow: Event::FreeSlowpath };
    const REFILL: Tally = Tally { fast: Event::SheafRefill, slow: Event::SheafRefill };
    const FLUSH: Tally = Tally { fast: Event::SheafFlush, slow: Event::SheafFlush };
}

type Slot<'a, P> = SlotOf<'a, P, CpuState<P>>;

/// The hot list's tag for a CPU slab of the preferred order: the slab's frame above its node.
/// [`Slub::tag_of`] gives the tag for a slab of any order.
#[inline]
fn tag(pfn: Pfn, node: NodeId) -> u64 {
    (pfn.0 as u64) << 16 | node.0 as u64
}

const NODE_OF_TAG: u64 = 0xffff;

/// Slabs of a node that a periodic shrink sorts for a program, in which a caller waits for it: the last ones,
/// where those are that became empty.
const SORTED_A_TURN: u32 = 256;

/// In the tag: the CPU slab has the smallest order, so fewer objects start in it than [`Slub::is_start`]
/// says. The fast free looks for a tag without this bit. It therefore misses, and the slow free asks with it
/// after an exact check.
const FELL_BACK: u64 = 1 << 48;

impl<P: Platform> Slub<P> {
    fn measure(spec: &CacheSpec, policy: &SlubPolicy) -> Option<Geometry> {
        let (size, link_offset) = layout(spec, policy.link);
        let input = OrderInput {
            size,
            page_shift: P::page_shift(),
            cpus: if policy.order_cpus > 0 { policy.order_cpus.into() } else { P::cpus() as u32 },
            min_order: policy.min_order,
            max_order: policy.max_order,
            min_objects: policy.min_objects.into(),
        };
        let min_order = input.fitting_order(size as u64);
        if min_order > MAX_ORDER {
            return None;
        }
        let order = spec.known_order.map_or_else(|| policy.order.order(input), |known| known.max(min_order));
        let order = order.min(MAX_ORDER);
        // A known order may give a slab more objects than its word counts.
        let objects = |order: u8| (input.slab_bytes(order) / size as u64).min(OBJECTS_MAX) as u32;
        Some(Geometry {
            object_size: spec.object_size,
            size,
            spacing: spacing(spec, size),
            link_offset,
            order,
            objects: objects(order),
            min_order,
            min_objects: objects(min_order),
        })
    }

    /// Whether an object starts `offset` bytes into a slab of the preferred order.
    #[inline]
    fn is_start(&self, offset: u32) -> bool {
        self.starts.has(offset)
    }

    /// The hot list's tag while this slab is the CPU slab.
    fn tag_of(&self, slab: Slab<P>, state: FrameState) -> u64 {
        let fell_back = if state.order == self.geometry.order { 0 } else { FELL_BACK };
        tag(slab.pfn(), state.node) | fell_back
    }

    /// Slabs a node keeps although they are empty.
    pub fn min_partial(&self) -> u32 {
        self.min_partial
    }

    /// Objects a sheaf holds; 0 without sheaves.
    pub fn sheaf_capacity(&self) -> u32 {
        self.sheaf_capacity
    }

    /// The CPU partial list's limit: slabs, or objects until 5.15; 0 without such lists.
    pub fn cpu_partial(&self) -> u32 {
        self.cpu_partial
    }
}

impl<P: Platform> Engine<P> for Slub<P> {
    type Policy = SlubPolicy;
    type Common = ();

    fn layout(spec: &CacheSpec, policy: &SlubPolicy) -> Option<Geometry> {
        Self::measure(spec, policy)
    }

    fn create(id: CacheId, spec: &CacheSpec, policy: &SlubPolicy) -> Self {
        let geometry = Self::measure(spec, policy).unwrap_or_else(|| no_layout(spec));
        let sheaf_capacity =
            policy.sheaf_capacity_of(spec, geometry.size, 1 << P::page_shift(), P::cpus().into());
        let starts = Starts::of(geometry.objects, geometry.size);
        Slub {
            id,
            geometry,
            policy: *policy,
            flags: spec.flags,
            min_partial: policy.min_partial_of(geometry.size),
            cpu_partial: policy.cpu_partial_limit(
                geometry.size,
                geometry.objects as u64,
                1 << P::page_shift(),
            ),
            sheaf_capacity,
            barn_full: sheaf::barn_full(policy, sheaf_capacity * geometry.size),
            starts,
            starts_end: P::Word::new(starts.end),
            new: NewObjects::default(),
            slots: P::PerCpu::of_cache(id.0, geometry.link_offset),
            nodes: P::PerNode::new(),
            barns: P::PerNode::new(),
        }
    }

    fn set_new_objects(&mut self, new: NewObjects<P>) {
        self.new = new.fitting(self.flags);
    }

    /// No CPU slabs, no CPU partial lists, no sheaves: objects come one by one from slabs, and go straight
    /// back. The CPU slab of 2.6, which then holds no list of its own, is left out with them.
    fn debugged(policy: &SlubPolicy) -> SlubPolicy {
        SlubPolicy { cpu_slab: false, cpu_partial: CpuPartial::Off, sheaves: Sheaves::Off, ..*policy }
    }

    fn link_place(policy: &SlubPolicy) -> LinkPlace {
        policy.link
    }

    fn owns(&self, object: P::Ptr) -> Result<(), Misuse> {
        let (slab, state) = Slab::<P>::of(object).ok_or(Misuse::NotInSlab)?;
        self.check(object, slab.pfn(), state).map(drop)
    }

    fn id(&self) -> CacheId {
        self.id
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn object_align(&self) -> u32 {
        self.geometry.object_align(0)
    }

    /// Without sheaves, on a hit: the slot, the list's tag and head, one link read, one store, one counter.
    #[inline]
    fn alloc(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        let object = if self.sheaf_capacity > 0 {
            self.alloc_from_sheaf(backing, gfp, node)?
        } else {
            self.alloc_from_slab(backing, gfp, node, Tally::ALLOC)?
        };
        Some(zero_if_asked::<P>(object, self.geometry.object_size, gfp))
    }

    /// A hit needs no check of the cache: the tag names a slab of this cache.
    #[inline]
    fn free(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        if self.sheaf_capacity > 0 {
            return self.free_to_sheaf(backing, object);
        }
        self.free_to_slab(backing, object, Tally::FREE)
    }

    fn alloc_bulk(&self, backing: &Backing<'_, P>, gfp: Gfp, out: &mut [Option<P::Ptr>]) -> usize {
        if self.sheaf_capacity > 0 {
            let got = self.alloc_bulk_from_sheaves(backing, gfp, out);
            if gfp.any(Gfp::ZERO) {
                out.iter().flatten().for_each(|object| P::fill(*object, self.geometry.object_size, 0));
            }
            return got;
        }
        for (got, place) in out.iter_mut().enumerate() {
            *place = self.alloc(backing, gfp, None);
            if place.is_none() {
                return got;
            }
        }
        out.len()
    }

    /// Objects leave in runs of one slab, found from the end of the array. So all addresses are checked
    /// before the first object is freed.
    fn free_bulk(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        let mut found = Ok(());
        let mut is_sound = |object: &&P::Ptr| {
            found = self.owns(**object);
            found.is_ok()
        };
        let sound = &objects[..objects.iter().take_while(&mut is_sound).count()];
        let freed = if self.sheaf_capacity > 0 {
            self.free_bulk_to_sheaves(backing, sound)
        } else {
            self.free_runs(backing, sound, Checks::Due, Tally::FREE).map_err(|(misuse, _)| misuse)
        };
        // Every address was an object's a moment ago. One that is in no slab now was the last of its slab.
        freed.map_err(|_| Misuse::AlreadyFree)?;
        found
    }

    fn free_rcu(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<bool, Misuse> {
        self.collect_rcu(backing, object)
    }

    fn prefill_sheaf(&self, backing: &Backing<'_, P>, gfp: Gfp, objects: u32) -> Option<Sheaf<P>> {
        self.lend(backing, gfp, objects)
    }

    /// Counted like an object of a sheaf of the slot's.
    fn alloc_from_lent(&self, sheaf: &mut Sheaf<P>, gfp: Gfp) -> Option<P::Ptr> {
        let object = sheaf.pop(self.id)?;
        self.slots.count(Event::AllocFastpath, 1);
        Some(zero_if_asked::<P>(object, self.geometry.object_size, gfp))
    }

    fn return_sheaf(&self, backing: &Backing<'_, P>, gfp: Gfp, sheaf: Sheaf<P>) {
        self.take_back(backing, gfp, sheaf);
    }

    fn shrink(&self, backing: &Backing<'_, P>) -> u64 {
        let mut of_nodes = 0;
        let of_cpus = common::shrink(self, || {
            self.flush_cpus(backing, Idle::All, u32::MAX);
            of_nodes = self.shrink_nodes(backing, u32::MAX);
        });
        of_cpus + of_nodes
    }

    fn shrink_idle(&self, backing: &Backing<'_, P>, idle: Idle) -> bool {
        let most = if self.policy.elastic == 0 { u32::MAX } else { sheaf::SHEAVES_A_CALL };
        let more = self.flush_cpus(backing, idle, most);
        if !more {
            let at_most =
                if idle == Idle::Since && self.policy.elastic > 0 { SORTED_A_TURN } else { u32::MAX };
            self.shrink_nodes(backing, at_most);
            if idle == Idle::All && self.policy.elastic > 0 {
                self.note_sinking();
            }
        }
        more
    }

    fn barn_bytes(&self) -> u64 {
        u64::from(self.full_sheaves() * self.sheaf_capacity) * u64::from(self.geometry.size)
    }

    fn destroy(&self, backing: &Backing<'_, P>) -> Result<(), Busy> {
        common::close(self, &self.slots, || {
            self.free_sheaves(backing);
            self.shrink(backing);
        })
    }

    fn work(&self, backing: &Backing<'_, P>, _cpu: CpuId, work: Work) {
        match work.kind {
            WorkKind::FreeSlab => self.return_pages(backing, Slab::at(Pfn(work.argument as u32))),
            WorkKind::FreeSheaf => self.sheaf_waited(backing, work.argument),
            WorkKind::FreeObject | WorkKind::Reap => no_such_work::<P>(self.id, work.kind),
        }
    }

    fn cpu_down(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        if !self.slots.used(cpu) {
            return;
        }
        self.flush_sheaves(backing, cpu);
        if let Some(mut slot) = self.slots.claim(cpu) {
            self.flush_slot(backing, &mut slot);
        }
    }

    fn cpu_up(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        self.start_sheaves(backing, cpu);
    }

    fn seed(&self, backing: &Backing<'_, P>, node: NodeId, place: Place, free: &[u16]) -> Option<P::Ptr> {
        self.seed_slab(backing, node, place, free)
    }

    fn exposed(&self) -> Exposed {
        self.exposed_places()
    }

    fn usage(&self) -> Usage {
        self.report()
    }

    fn usage_on(&self, node: NodeId) -> Usage {
        self.report_on(node)
    }

    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        self.slots.counted(cpu, event)
    }
}

impl<P: Platform> Front<P> for Slub<P>
where
    P::PerCpu<CpuState<P>>: Shortcut<P::Ptr, CpuState<P>>,
{
    #[inline(always)]
    fn alloc_slow_slot(&self) -> Option<P::Ptr> {
        if self.sheaf_capacity == 0 {
            return self.pop_listed();
        }
        // Not every caller tried the fast rung first.
        if let Some(object) = self.slots.pop_first(Event::AllocFastpath) {
            return Some(object);
        }
        if Self::exchanges() { self.pop_exchanged() } else { self.slots.pop(Event::AllocFastpath) }
    }

    #[inline(always)]
    fn alloc_fast(&self) -> Option<P::Ptr> {
        self.slots.pop_first(Event::AllocFastpath)
    }

    #[inline(always)]
    fn free_fast(&self, object: P::Ptr, _slab: Pfn) -> bool {
        self.slots.push_first(object, Event::FreeFastpath)
    }

    #[inline]
    fn starts_at(&self, _slab: Pfn, offset: u32) -> bool {
        self.starts.has_below(offset, self.starts_end.load())
    }

    #[inline]
    fn free_slow_slot(&self, object: P::Ptr, slab: Pfn) -> bool {
        if self.sheaf_capacity == 0 {
            return self.push_listed(object, slab);
        }
        let exchanged = |object| Self::exchanges() && self.push_exchanged(object);
        self.takes_from(slab) && (exchanged(object) || self.slots.push(object, Event::FreeFastpath))
    }

    fn takes_from_anywhere(&self) -> bool {
        // With one node every object is of the right one, and a sheaf asks for nothing else.
        self.sheaf_capacity > 0 && P::nodes() == 1
    }
}

impl<P: Platform> Slub<P> {
    /// The arrays of the slots, for a library whose fast rungs read them without the cache.
    pub fn arrays(&self) -> <P::PerCpu<CpuState<P>> as Shortcut<P::Ptr, CpuState<P>>>::Arrays
    where
        P::PerCpu<CpuState<P>>: Shortcut<P::Ptr, CpuState<P>>,
    {
        self.slots.arrays()
    }

    /// Whether the short exchanges of sheaves are for this world's slots.
    #[inline]
    fn exchanges() -> bool
    where
        P::PerCpu<CpuState<P>>: Shortcut<P::Ptr, CpuState<P>>,
    {
        <P::PerCpu<CpuState<P>> as Shortcut<_, _>>::swaps_arrays()
    }

    /// Whether this CPU's sheaves take the objects of the slab at `slab`, which is not of the reserves.
    #[inline]
    fn takes_from(&self, slab: Pfn) -> bool {
        self.sheaf_capacity > 0 && (P::nodes() == 1 || self.takes_node(Slab::<P>::at(slab).node()))
    }

    /// The fast path of a cache without sheaves. Not in line, so that it costs a cache with sheaves nothing.
    #[inline(never)]
    fn pop_listed(&self) -> Option<P::Ptr> {
        self.slots.pop_if(Want::ANY, Event::AllocFastpath)
    }

    #[inline(never)]
    fn push_listed(&self, object: P::Ptr, slab: Pfn) -> bool {
        let node = if P::nodes() > 1 { Slab::<P>::at(slab).node() } else { NodeId(0) };
        let mine = Want { mask: u64::MAX, value: tag(slab, node) };
        self.slots.push_if(mine, HotList::<P::Ptr>::COUNT_MAX, object, Event::FreeFastpath)
    }

    /// A CPU's slot: that of the current CPU, or one that no thread uses now.
    fn reach(&self, cpu: CpuId) -> Option<Slot<'_, P>> {
        common::reach::<P, _>(&self.slots, cpu)
    }

    /// Empties the slots that can be reached, and the barns, and asks the owners of the others to empty
    /// theirs. Sheaves come first, because their objects go to CPU slabs. At most `most` full sheaves of
    /// barns are emptied: true if there may be more.
    fn flush_cpus(&self, backing: &Backing<'_, P>, idle: Idle, most: u32) -> bool {
        let mut more = false;
        let used = || (0..P::cpus()).map(CpuId).filter(|cpu| self.slots.used(*cpu));
        if self.sheaf_capacity > 0 {
            let idle_slot = |cpu: &CpuId| idle == Idle::All || self.is_slot_idle(*cpu);
            used().filter(idle_slot).for_each(|cpu| self.flush_sheaves(backing, cpu));
            more = self.flush_barns(backing, idle, most);
        }
        for cpu in used() {
            match self.reach(cpu) {
                Some(mut slot) => self.flush_slot(backing, &mut slot),
                None => self.slots.ask(cpu),
            }
        }
        more
    }

    /// Moves a slot's CPU slab and its chain of partial slabs to the nodes' lists.
    fn flush_slot(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        if slot.slab.is_some() {
            slot.count(Event::CpuslabFlush, 1);
            self.deactivate(backing, slot);
        }
        self.drain_all(backing, slot);
    }

    /// Installs a slab that this CPU froze as its CPU slab, with the free list taken from it.
    fn install(&self, slot: &mut Slot<'_, P>, slab: Slab<P>, head: Option<P::Ptr>, count: u32) {
        slot.slab = Some(slab);
        slot.set_list(HotList { head, count, tag: self.tag_of(slab, slab.state()) });
    }

    fn uninstall(&self, slot: &mut Slot<'_, P>) {
        slot.slab = None;
        slot.set_list(HotList::EMPTY);
    }

    #[inline]
    fn wanted(node: Option<NodeId>) -> Want {
        match node {
            None => Want::ANY,
            Some(node) => Want { mask: NODE_OF_TAG, value: node.0 as u64 },
        }
    }

    /// Counts one acquisition of a slab's bit lock, where the era has one.
    #[inline]
    fn slab_locked(&self, slot: &mut impl Local<P::Ptr, CpuState<P>>) {
        if self.policy.update == SlabUpdate::BitLock {
            slot.count(Event::LockSlab, 1);
        }
    }
}
