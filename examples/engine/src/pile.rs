//! The engine: each node has one list of slabs with free objects, under one lock. Nothing is kept for a CPU.

use slablab_platform::{
    CpuId, Event, FrameKind, Gfp, Lock, NodeId, PerCpu, PerNode, Pfn, Platform, Starts, Work, rank,
};
use slablab_slabs::cache::{LinkPlace, layout, spacing};
use slablab_slabs::engine::zero_if_asked;
use slablab_slabs::engines::common;
use slablab_slabs::knob::{Knob, Policy, knob};
use slablab_slabs::order::{MAX_ORDER, OBJECTS_MAX, OrderInput, OrderRule};
use slablab_slabs::registered::{Cycles, Guard};
use slablab_slabs::release::ZoneReclaimMode;
use slablab_slabs::slab::{NewObjects, Slab, SlabList, SlabWord};
use slablab_slabs::{
    Backing, Busy, CacheFlags, CacheId, CacheSpec, Engine, Family, Front, Geometry, Misuse, Place, Release,
    Usage,
};

/// The engine in every world.
pub(crate) struct Pile;

impl Family for Pile {
    type Policy = PilePolicy;
    type On<P: Platform> = Cache<P>;
    /// Each path takes the list's lock, which turns interrupts off, at the machine's price; the rest is a
    /// guess.
    const CYCLES: Option<Cycles> = Some(Cycles { alloc: 20, free: 20, slow: 20, guard: Guard::Preemption });
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PilePolicy {
    release: Release,
    /// The largest order of a slab that is larger than its object.
    max_order: u8,
    /// Empty slabs that a node keeps.
    keep: u32,
}

impl Policy for PilePolicy {
    const NAME: &'static str = "pile";
    const PRESETS: &'static [PilePolicy] =
        &[PilePolicy { release: Release::new(7, 1, 0), max_order: 0, keep: 1 }];
    const KNOBS: &'static [Knob<PilePolicy>] = &[
        knob!("max_order", "largest order of a slab of small objects", max_order: number 0 to 10),
        knob!("keep", "empty slabs that a node keeps", keep: number 0 to 65536),
    ];

    fn release(&self) -> Release {
        self.release
    }

    fn zone_reclaim(&self) -> ZoneReclaimMode {
        ZoneReclaimMode::Boot
    }
}

/// A cache.
pub(crate) struct Cache<P: Platform> {
    id: CacheId,
    policy: PilePolicy,
    flags: CacheFlags,
    geometry: Geometry,
    starts: Starts,
    new: NewObjects<P>,
    /// For counts of events only.
    slots: P::PerCpu<()>,
    nodes: P::PerNode<Node<P>>,
}

/// A node's slabs.
struct Node<P: Platform>(P::Lock<rank::NodeList, Slabs<P>>);

struct Slabs<P> {
    /// Those with free objects, the ones without any other at the end.
    partial: SlabList<P>,
    empty: u32,
    all: u64,
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Node(P::Lock::new(Slabs { partial: SlabList::default(), empty: 0, all: 0 }))
    }
}

impl<P: Platform> Cache<P> {
    fn lock(&self, node: NodeId) -> <P::Lock<rank::NodeList, Slabs<P>> as Lock<Slabs<P>>>::Guard<'_> {
        self.slots.count(Event::LockNodeList, 1);
        self.nodes.get(node).0.lock()
    }

    /// Takes an object of a node's first slab.
    fn take(&self, node: NodeId) -> Option<P::Ptr> {
        let mut slabs = self.lock(node);
        let slab = slabs.partial.first()?;
        let word = SlabWord::unpack(slab.extra());
        slabs.empty -= u32::from(word.inuse == 0);
        let (object, is_full) = self.take_of(slab, word)?;
        if is_full {
            slabs.partial.remove(slab);
        }
        Some(object)
    }

    /// Takes the first free object of a slab, and tells whether it was the last one.
    fn take_of(&self, slab: Slab<P>, word: SlabWord) -> Option<(P::Ptr, bool)> {
        let object = slab.object(word.head?);
        let next = P::link(object, self.geometry.link_offset).map(|next| slab.offset(next));
        slab.set_extra(word.taken(1, next).pack());
        Some((object, next.is_none()))
    }

    /// A new slab; its objects are linked.
    fn grow(&self, backing: &Backing<'_, P>, gfp: Gfp, node: NodeId) -> Option<Slab<P>> {
        let Geometry { order, size, spacing, objects, link_offset, .. } = self.geometry;
        let flags = common::page_flags(gfp, order > 0, self.flags);
        let pfn = backing.pages.alloc(flags, order, node, FrameKind::Slab)?;
        self.slots.count(Event::AllocSlab, 1);
        P::map_slab(pfn, order, spacing, self.id.0);
        let slab = Slab::<P>::at(pfn);
        slab.set_owner(self.id.0.into());
        let head = slab.thread(0, size, objects, link_offset, &self.new);
        let word =
            SlabWord { head: Some(slab.offset(head)), inuse: 0, objects: objects as u16, frozen: false };
        slab.set_extra(word.pack());
        Some(slab)
    }

    /// Returns a node's empty slabs beyond `keep`.
    fn trim(&self, backing: &Backing<'_, P>, node: NodeId, keep: u32) {
        while let Some(slab) = {
            let mut slabs = self.lock(node);
            let last = slabs.partial.last().filter(|_| slabs.empty > keep);
            last.inspect(|slab| {
                slabs.partial.remove(*slab);
                slabs.empty -= 1;
                slabs.all -= 1;
            })
        } {
            self.slots.count(Event::FreeSlab, 1);
            common::discard::<P>(self.id, self.flags, slab, |slab| {
                common::return_pages::<P>(backing.pages, slab)
            });
        }
    }

    /// The slab of an object of this cache.
    fn slab_of(&self, object: P::Ptr) -> Result<Slab<P>, Misuse> {
        let (slab, _) = Slab::<P>::of(object).ok_or(Misuse::NotInSlab)?;
        match CacheId(slab.owner() as u32) {
            owner if owner != self.id => Err(Misuse::WrongCache(owner)),
            _ if self.starts.has(slab.bytes_to(object)) => Ok(slab),
            _ => Err(Misuse::NotAnObject),
        }
    }
}

/// `bench` needs it: the parts that a malloc calls first. Without any, it calls those of [`Engine`].
impl<P: Platform> Front<P> for Cache<P> {}

impl<P: Platform> Engine<P> for Cache<P> {
    type Policy = PilePolicy;
    type Common = ();

    fn layout(spec: &CacheSpec, policy: &PilePolicy) -> Option<Geometry> {
        let (size, link_offset) = layout(spec, LinkPlace::Start);
        let input = OrderInput {
            size,
            page_shift: P::page_shift(),
            cpus: P::cpus().into(),
            min_order: 0,
            max_order: policy.max_order,
            min_objects: 0,
        };
        let least = input.fitting_order(size.into());
        let order = spec.known_order.unwrap_or_else(|| OrderRule::of(policy.release).order(input));
        let order = order.clamp(least, MAX_ORDER.max(least));
        let objects = (input.slab_bytes(order) / u64::from(size)).min(OBJECTS_MAX) as u32;
        (least <= MAX_ORDER).then_some(Geometry {
            object_size: spec.object_size,
            size,
            spacing: spacing(spec, size),
            link_offset,
            order,
            objects,
            min_order: order,
            min_objects: objects,
        })
    }

    fn create(id: CacheId, spec: &CacheSpec, policy: &PilePolicy) -> Self {
        let geometry = <Self as Engine<P>>::layout(spec, policy).expect("the creator asked for the layout");
        Cache {
            id,
            policy: *policy,
            flags: spec.flags,
            starts: Starts::of(geometry.objects, geometry.size),
            geometry,
            new: NewObjects::default(),
            slots: P::PerCpu::new(geometry.link_offset),
            nodes: P::PerNode::new(),
        }
    }

    fn set_new_objects(&mut self, new: NewObjects<P>) {
        self.new = new.fitting(self.flags);
    }

    fn owns(&self, object: P::Ptr) -> Result<(), Misuse> {
        self.slab_of(object).map(drop)
    }

    fn id(&self) -> CacheId {
        self.id
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn object_align(&self) -> u32 {
        self.geometry.object_align(0)
    }

    fn alloc(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        self.slots.count(Event::AllocSlowpath, 1);
        let here = P::cpu_memory_node(P::cpu());
        let near = node.filter(|node| gfp.any(Gfp::THISNODE) || P::node_frames(*node).1 > 0).unwrap_or(here);
        let object = self.take(near).or_else(|| {
            let slab = self.grow(backing, gfp, near)?;
            // The page allocator may have taken another node's pages.
            let (object, is_full) = self.take_of(slab, SlabWord::unpack(slab.extra()))?;
            let mut slabs = self.lock(slab.node());
            slabs.all += 1;
            if !is_full {
                slabs.partial.push_head(slab);
            }
            Some(object)
        })?;
        Some(zero_if_asked::<P>(object, self.geometry.object_size, gfp))
    }

    fn free(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        let slab = self.slab_of(object)?;
        let node = slab.node();
        let mut slabs = self.lock(node);
        let word = SlabWord::unpack(slab.extra());
        let after = word.pushed(slab.offset(object), 1).ok_or(Misuse::AlreadyFree)?;
        P::set_link(object, self.geometry.link_offset, word.head.map(|head| slab.object(head)));
        slab.set_extra(after.pack());
        if word.head.is_none() {
            slabs.partial.push_head(slab);
        }
        if after.inuse == 0 {
            slabs.partial.remove(slab);
            slabs.partial.push_tail(slab);
            slabs.empty += 1;
        }
        let is_much = slabs.empty > self.policy.keep;
        drop(slabs);
        self.slots.count(Event::FreeSlowpath, 1);
        if is_much {
            self.trim(backing, node, self.policy.keep);
        }
        Ok(())
    }

    fn shrink(&self, backing: &Backing<'_, P>) -> u64 {
        common::shrink(self, || (0..P::nodes()).for_each(|node| self.trim(backing, NodeId(node), 0)))
    }

    fn destroy(&self, backing: &Backing<'_, P>) -> Result<(), Busy> {
        common::close(self, &self.slots, || {
            (0..P::nodes()).for_each(|node| self.trim(backing, NodeId(node), 0));
        })
    }

    /// A grace period ended: the only work that [`common::discard`] asks for.
    fn work(&self, backing: &Backing<'_, P>, _cpu: CpuId, work: Work) {
        common::return_pages::<P>(backing.pages, Slab::at(Pfn(work.argument as u32)));
    }

    fn cpu_down(&self, _backing: &Backing<'_, P>, _cpu: CpuId) {}

    fn cpu_up(&self, _backing: &Backing<'_, P>, _cpu: CpuId) {}

    fn seed(&self, backing: &Backing<'_, P>, node: NodeId, _: Place, free: &[u16]) -> Option<P::Ptr> {
        let slab = self.grow(backing, Gfp::KERNEL | Gfp::THISNODE, node)?;
        let object = |index: u16| P::address(slab.pfn(), u64::from(index) * u64::from(self.geometry.size));
        for (place, index) in free.iter().enumerate() {
            let next = free.get(place + 1).map(|next| object(*next));
            P::set_link(object(*index), self.geometry.link_offset, next);
        }
        let head = free.first().map(|first| slab.offset(object(*first)));
        let objects = self.geometry.objects as u16;
        let word = SlabWord { head, inuse: objects - free.len() as u16, objects, frozen: false };
        slab.set_extra(word.pack());
        let mut slabs = self.lock(node);
        slabs.all += 1;
        match (head, word.inuse) {
            (None, _) => {}
            (_, 0) => {
                slabs.partial.push_tail(slab);
                slabs.empty += 1;
            }
            _ => slabs.partial.push_head(slab),
        }
        Some(object(0))
    }

    fn usage_on(&self, node: NodeId) -> Usage {
        let Some(Node(slabs)) = self.nodes.peek(node) else { return Usage::default() };
        let slabs = slabs.lock();
        Usage {
            slabs: slabs.all,
            frames: slabs.all << self.geometry.order,
            total_objects: slabs.all * u64::from(self.geometry.objects),
            partial: slabs.partial.len().into(),
            free_in_partial: slabs
                .partial
                .iter()
                .map(|slab| u64::from(SlabWord::unpack(slab.extra()).free()))
                .sum(),
            ..Usage::default()
        }
    }

    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        self.slots.counted(cpu, event)
    }
}
