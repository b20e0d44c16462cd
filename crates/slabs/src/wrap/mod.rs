//! Debugging and hardening around any engine.
//!
//! [`Debugged`] is an engine that forwards to another engine and adds its checks before and after. So every
//! engine has the checks in every world, and an engine without the wrapper pays nothing. [`crate::zones`] has
//! the zones around objects.
//!
//! ```text
//! alloc   engine ── was it free? ── zones, poison intact? ── red zones of a live object ── record ── zero
//! free    of this cache? ── allocated? ── zones intact? ── red zones and poison of a free object ── record
//!           └─ quarantine, first in first out ── poison intact? ── engine
//! ```
//!
//! | state of an object | mark | red zones | contents | owner |
//! |---|---|---|---|---|
//! | never used | no | inactive | poison | the engine |
//! | allocated | yes | active | the caller's | the caller |
//! | in quarantine | no | inactive | poison | the quarantine; the engine counts it as allocated |
//! | free | no | inactive | poison | the engine |
//!
//! At rest: objects that the engine counts as allocated = marked objects + objects in quarantine.
//!
//! Unlike SLUB, the wrapper does not walk free lists to find an object's state. The state is a bit outside
//! the object ([`Memory::mark_live`](slablab_platform::Memory::mark_live)): it costs no byte in the object,
//! and it also works for engines whose free objects are in queues and arrays. A damaged zone is reported and
//! repaired, and the operation continues. A free of an object that is not allocated is reported and refused.
//! The cache stores the reports ([`Engine::reports`]) and calls the function set by [`Engine::tell`]. Nothing
//! is printed here.

mod hardened;
mod policy;
mod quarantine;

pub use hardened::{Hardened, HardenedSlots};
pub use policy::{Around, Wrap};

use crate::backing::Backing;
use crate::cache::{
    CacheFlags, CacheId, CacheSpec, Geometry, LinkPlace, WORD, alignment, common_align, layout, no_layout,
};
use crate::damage::kept_wrong;
use crate::engine::{Busy, Engine, Exposed, Idle, Place, Reapable, Usage, address, free_each};
use crate::front::Front;
use crate::report::{Fault, Misuse, Overwritten, Report, Reports, User};
use crate::slab::NewObjects;
use crate::zones::{Track, Zones, ahead};
use quarantine::Quarantine;
use slablab_pages::Pages;
use slablab_platform::rank::Debug;
use slablab_platform::{CpuId, Event, FrameKind, Gfp, Lock, NodeId, PerCpu, Platform, Work};

/// A cache of engine `E` with the additions that [`Wrap`] selects.
pub struct Debugged<P: Platform, E> {
    engine: E,
    geometry: Geometry,
    wrap: Wrap,
    zones: Option<Zones>,
    /// The offset at which the quarantine links objects.
    link_offset: u32,
    /// Whether an object's contents survive a free. If they do, nothing may be written into a free object.
    survives: bool,
    /// Capacity of the quarantine in objects. One more releases the oldest.
    quarantine_max: u64,
    /// Used for event counters only.
    slots: P::PerCpu<()>,
    state: P::Lock<Debug, State<P::Ptr>>,
    /// The function that receives every report.
    told: Option<fn(&Report)>,
}

/// The state that CPUs share.
struct State<Ptr> {
    quarantine: Quarantine<Ptr>,
    reports: Reports,
}

/// What a wrapper asks of the engine inside.
struct Inner<Policy> {
    /// The zones around each object, if there are any.
    zones: Option<Zones>,
    /// Whether the cache is debugged.
    debugged: bool,
    /// The specification of the engine's cache.
    spec: CacheSpec,
    /// The engine's policies.
    policy: Policy,
}

impl<P: Platform, E: Engine<P>> Debugged<P, E> {
    /// The zones for a cache, and whether the cache is debugged at all.
    fn zones_of(spec: &CacheSpec, around: &Around<E::Policy>) -> (Option<Zones>, bool) {
        let letters = around.wrap.letters;
        let place = E::link_place(&around.engine);
        let zones = Zones::new(spec, place, letters, around.release);
        let order = |size: u32| size.div_ceil(1 << P::page_shift()).next_power_of_two();
        let grows = |zones: &Zones| order(zones.size) > order(layout(spec, place).0);
        if letters.keep_orders && zones.as_ref().is_some_and(grows) {
            return (None, false);
        }
        (zones.map(|zones| if around.wrap.zero_on_free { zones.zeroing() } else { zones }), letters.is_on())
    }

    /// What the engine inside is asked for. `None` if an object of this size cannot be in any slab.
    fn inner_of(spec: &CacheSpec, around: &Around<E::Policy>) -> Option<Inner<E::Policy>> {
        if !spec.is_possible() {
            return None;
        }
        let (zones, debugged) = Self::zones_of(spec, around);
        let policy = if debugged { E::debugged(&around.engine) } else { around.engine.clone() };
        let mut inner = *spec;
        if let Some(zones) = zones {
            // For the engine, the whole slot is the object, and its contents survive a free.
            let flags = (spec.flags | CacheFlags::CONSTRUCTOR).with(CacheFlags::HWCACHE_ALIGN, false);
            let (object_size, known_size) = (zones.size, 0);
            inner = CacheSpec {
                object_size,
                known_size,
                align: alignment(spec),
                slot: Some(zones.slot()),
                flags,
                ..*spec
            };
        } else if around.wrap.quarantine_bytes > 0 {
            inner.object_size = inner.object_size.max(WORD);
        }
        Some(Inner { zones, debugged, spec: inner, policy })
    }

    /// The object in the slot that starts at `start`.
    fn object_of(&self, start: P::Ptr) -> P::Ptr {
        self.zones.map_or(start, |zones| ahead::<P>(start, zones.left))
    }

    /// The start of the slot that would contain `object`. Does not read the slot.
    fn start_of(&self, object: P::Ptr) -> Result<P::Ptr, Misuse> {
        let (head, state) = Pages::<P>::block_of(object).ok_or(Misuse::NotInSlab)?;
        if !matches!(state.kind, FrameKind::Slab | FrameKind::Large) {
            return Err(Misuse::NotInSlab);
        }
        let (pfn, offset) = P::locate(object);
        let inside = ((pfn.0 - head.0) as u64) << P::page_shift() | offset as u64;
        let left = self.zones.map_or(0, |zones| zones.left) as u64;
        match inside.checked_sub(left) {
            Some(start) => Ok(P::address(head, start)),
            // No object of this cache begins there, but an object of another cache may.
            None => self.engine.owns(object).and(Err(Misuse::NotAnObject)),
        }
    }

    fn user(backing: &Backing<'_, P, E::Common>) -> User {
        User { site: backing.site, cpu: P::cpu(), at_ns: P::now() }
    }

    #[cold]
    fn report(
        &self,
        backing: &Backing<'_, P, E::Common>,
        fault: Fault,
        object: P::Ptr,
        start: Option<P::Ptr>,
    ) {
        let (pfn, offset) = P::locate(object);
        let mut state = self.state.lock();
        let user = |track| self.zones?.user::<P>(start?, track);
        let report = Report {
            fault,
            cache: self.engine.id(),
            object: ((pfn.0 as u64) << P::page_shift()) + offset as u64,
            by: Self::user(backing),
            allocated: user(Track::Alloc),
            freed: user(Track::Free),
        };
        state.reports.add(report);
        drop(state);
        if let Some(told) = self.told {
            told(&report);
        }
    }

    /// If a check of the zones found damage, reports it and repairs the zones.
    fn look(&self, backing: &Backing<'_, P, E::Common>, found: Option<Overwritten>, start: P::Ptr) {
        if let (Some(over), Some(zones)) = (found, &self.zones) {
            self.report(backing, Fault::Overwritten(over), self.object_of(start), Some(start));
            zones.repair::<P>(start);
        }
    }

    /// Turns an object from the engine into an allocated object for a request of `bytes` bytes.
    fn hand_out(&self, backing: &Backing<'_, P, E::Common>, start: P::Ptr, bytes: u32, gfp: Gfp) -> P::Ptr {
        let object = self.object_of(start);
        if self.wrap.letters.checks && P::mark_live(start, true) {
            self.report(backing, Fault::HandedOutTwice, object, Some(start));
        }
        if let Some(zones) = &self.zones {
            self.look(backing, zones.check_free::<P>(start), start);
            zones.set_allocated::<P>(start, bytes);
            if zones.has_records() {
                let _held = self.state.lock();
                zones.set_user::<P>(start, Track::Alloc, Self::user(backing));
            }
        }
        if gfp.any(Gfp::ZERO) || (self.wrap.zero_on_alloc && !self.survives) {
            P::fill(object, self.usable(object), 0);
        }
        object
    }

    /// Clears an object's mark and records the free. On an error, also returns the start of the slot if the
    /// address is an object's. Records are read and written under the lock, because a second free reads the
    /// record that the first free writes.
    fn claim(
        &self,
        backing: &Backing<'_, P, E::Common>,
        object: P::Ptr,
    ) -> Result<P::Ptr, (Misuse, Option<P::Ptr>)> {
        let start = self.start_of(object).map_err(|misuse| (misuse, None))?;
        self.engine.owns(start).map_err(|misuse| (misuse, None))?;
        let zones = self.zones.filter(Zones::has_records);
        let _held = zones.map(|_| self.state.lock());
        if self.wrap.letters.checks && !P::mark_live(start, false) {
            // Only an engine that knows its objects can tell that a record belongs to this object.
            return Err((Misuse::AlreadyFree, E::KNOWS_OWNERS.then_some(start)));
        }
        if let Some(zones) = zones {
            zones.set_user::<P>(start, Track::Free, Self::user(backing));
        }
        Ok(start)
    }

    /// Checks that an object is allocated and intact, and makes it free. Returns the start of its slot.
    fn take_back(&self, backing: &Backing<'_, P, E::Common>, object: P::Ptr) -> Result<P::Ptr, Misuse> {
        let start = self.claim(backing, object).map_err(|(misuse, start)| {
            self.report(backing, Fault::Misuse(misuse), object, start);
            misuse
        })?;
        if let Some(zones) = &self.zones {
            self.look(backing, zones.check_allocated::<P>(start), start);
            zones.set_free::<P>(start);
        }
        if self.wrap.zero_on_free && !self.survives && !self.zones.is_some_and(|zones| zones.knows_contents())
        {
            P::fill(object, self.geometry.object_size, 0);
        }
        Ok(start)
    }

    /// Adds an object to the quarantine, and releases the oldest ones beyond its capacity.
    fn hold_back(&self, backing: &Backing<'_, P, E::Common>, start: P::Ptr) {
        self.slots.count(Event::QuarantineHold, 1);
        self.state.lock().quarantine.push::<P>(start, self.link_offset);
        self.release(backing, self.quarantine_max);
    }

    /// Releases the oldest objects until `keep` are left. Returns the number of released objects.
    fn release(&self, backing: &Backing<'_, P, E::Common>, keep: u64) -> u64 {
        let mut released = 0;
        loop {
            let oldest = {
                let mut state = self.state.lock();
                let quarantine = &mut state.quarantine;
                if quarantine.count() > keep { quarantine.pop::<P>(self.link_offset) } else { None }
            };
            let Some(start) = oldest else { return released };
            if let Some(zones) = &self.zones
                && let found @ Some(_) = zones.check_free::<P>(start)
            {
                self.look(backing, found, start);
                zones.set_free::<P>(start);
            }
            self.slots.count(Event::QuarantineRelease, 1);
            if let Err(misuse) = self.engine.free(backing, start) {
                kept_wrong::<P>(self.engine.id(), "quarantine", start, misuse);
            }
            released += 1;
        }
    }

    /// Empties the quarantine.
    fn release_all(&self, backing: &Backing<'_, P, E::Common>) -> u64 {
        self.release(backing, 0)
    }

    /// Allocates from the engine. If that fails, empties the quarantine and tries once more.
    fn alloc_start(
        &self,
        backing: &Backing<'_, P, E::Common>,
        alloc: impl Fn() -> Option<P::Ptr>,
    ) -> Option<P::Ptr> {
        alloc().or_else(|| {
            if self.release_all(backing) == 0 {
                return None;
            }
            self.slots.count(Event::QuarantineFlush, 1);
            alloc()
        })
    }
}

/// No fast paths: every call must go through the wrapper.
impl<P: Platform, E: Engine<P>> Front<P> for Debugged<P, E> {}

impl<P: Platform, E: Engine<P>> Engine<P> for Debugged<P, E> {
    type Policy = Around<E::Policy>;
    type Common = E::Common;
    const KNOWS_OWNERS: bool = E::KNOWS_OWNERS;
    const GUARDS: bool = true;

    fn layout(spec: &CacheSpec, around: &Self::Policy) -> Option<Geometry> {
        let Inner { spec: inner, policy, .. } = Self::inner_of(spec, around)?;
        E::layout(&inner, &policy).map(|geometry| Geometry { object_size: spec.object_size, ..geometry })
    }

    fn create(id: CacheId, spec: &CacheSpec, around: &Self::Policy) -> Self {
        let Some(Inner { zones, debugged, spec: inner, policy }) = Self::inner_of(spec, around) else {
            no_layout(spec)
        };
        let survives = spec.flags.keeps_contents();
        let mut wrap = around.wrap;
        wrap.letters.checks = wrap.letters.checks && debugged || wrap.checked;
        let mut engine = E::create(id, &inner, &policy);
        engine.set_new_objects(NewObjects { zones, shuffled: wrap.shuffled, ..NewObjects::default() });
        let geometry = Geometry { object_size: spec.object_size, ..*engine.geometry() };
        Debugged {
            geometry,
            zones,
            link_offset: zones.map_or(geometry.link_offset, |zones| zones.link),
            survives,
            quarantine_max: wrap.quarantine_bytes / geometry.size as u64,
            wrap,
            engine,
            slots: P::PerCpu::new(geometry.link_offset),
            told: None,
            state: P::Lock::new(State { quarantine: Quarantine::default(), reports: Reports::default() }),
        }
    }

    fn set_name(&mut self, name: &str) {
        self.engine.set_name(name);
    }

    fn set_new_objects(&mut self, new: NewObjects<P>) {
        let (zones, shuffled) = (self.zones, new.shuffled || self.wrap.shuffled);
        self.engine.set_new_objects(NewObjects { zones, shuffled, ..new });
    }

    fn debugged(around: &Self::Policy) -> Self::Policy {
        Around { engine: E::debugged(&around.engine), ..around.clone() }
    }

    fn tell(&mut self, told: fn(&Report)) {
        self.told = Some(told);
    }

    fn link_place(around: &Self::Policy) -> LinkPlace {
        E::link_place(&around.engine)
    }

    fn owns(&self, object: P::Ptr) -> Result<(), Misuse> {
        self.engine.owns(self.start_of(object)?)
    }

    /// A mark can only be exchanged, not read. So this function sets it, and clears it again if it was not
    /// set.
    fn check_live(&self, object: P::Ptr) -> Result<(), Misuse> {
        let start = self.start_of(object)?;
        self.engine.owns(start)?;
        if !self.wrap.letters.checks || P::mark_live(start, true) {
            return Ok(());
        }
        P::mark_live(start, false);
        Err(Misuse::AlreadyFree)
    }

    fn id(&self) -> CacheId {
        self.engine.id()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn object_align(&self) -> u32 {
        common_align(self.engine.object_align(), self.zones.map_or(0, |zones| zones.left))
    }

    fn usable(&self, object: P::Ptr) -> u32 {
        let asked = |zones: &Zones| Some(zones.asked::<P>(self.start_of(object).ok()?));
        self.zones.as_ref().and_then(asked).unwrap_or(self.geometry.object_size)
    }

    fn alloc(&self, backing: &Backing<'_, P, E::Common>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        let start = self.alloc_start(backing, || self.engine.alloc(backing, gfp & !Gfp::ZERO, node))?;
        Some(self.hand_out(backing, start, self.geometry.object_size, gfp))
    }

    /// With zones, an object always gets its whole class. The bytes that were not requested become part of
    /// the red zone, which also records the requested size.
    fn alloc_sized(
        &self,
        backing: &Backing<'_, P, E::Common>,
        bytes: u32,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        let gfp_inside = gfp & !Gfp::ZERO;
        let start = self.alloc_start(backing, || match self.zones {
            Some(_) => self.engine.alloc(backing, gfp_inside, node),
            None if self.wrap.quarantine_bytes > 0 => {
                self.engine.alloc_sized(backing, bytes.max(WORD), gfp_inside, node)
            }
            None => self.engine.alloc_sized(backing, bytes, gfp_inside, node),
        })?;
        Some(self.hand_out(backing, start, bytes, gfp))
    }

    fn free(&self, backing: &Backing<'_, P, E::Common>, object: P::Ptr) -> Result<(), Misuse> {
        let start = self.take_back(backing, object)?;
        if self.wrap.quarantine_bytes > 0 {
            self.hold_back(backing, start);
            return Ok(());
        }
        self.engine.free(backing, start)
    }

    fn alloc_bulk(&self, backing: &Backing<'_, P, E::Common>, gfp: Gfp, out: &mut [Option<P::Ptr>]) -> usize {
        let got = self.engine.alloc_bulk(backing, gfp & !Gfp::ZERO, out);
        out.iter_mut().flatten().for_each(|place| {
            *place = self.hand_out(backing, *place, self.geometry.object_size, gfp);
        });
        got
    }

    fn free_bulk(&self, backing: &Backing<'_, P, E::Common>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        free_each(objects, |object| self.free(backing, object))
    }

    fn shrink(&self, backing: &Backing<'_, P, E::Common>) -> u64 {
        self.release_all(backing);
        self.engine.shrink(backing)
    }

    fn look_to_reap(&self, backing: &Backing<'_, P, E::Common>) -> Option<Reapable> {
        self.engine.look_to_reap(backing)
    }

    fn reap_empty(&self, backing: &Backing<'_, P, E::Common>, slabs: u32) -> u64 {
        self.engine.reap_empty(backing, slabs)
    }

    fn shrink_idle(&self, backing: &Backing<'_, P, E::Common>, idle: Idle) -> bool {
        self.engine.shrink_idle(backing, idle)
    }

    fn barn_bytes(&self) -> u64 {
        self.engine.barn_bytes()
    }

    fn destroy(&self, backing: &Backing<'_, P, E::Common>) -> Result<(), Busy> {
        self.release_all(backing);
        self.engine.destroy(backing)
    }

    fn work(&self, backing: &Backing<'_, P, E::Common>, cpu: CpuId, work: Work) {
        self.engine.work(backing, cpu, work);
    }

    fn cpu_down(&self, backing: &Backing<'_, P, E::Common>, cpu: CpuId) {
        self.engine.cpu_down(backing, cpu);
    }

    fn cpu_up(&self, backing: &Backing<'_, P, E::Common>, cpu: CpuId) {
        self.engine.cpu_up(backing, cpu);
    }

    fn seeded(&self, backing: &Backing<'_, P, E::Common>) {
        self.engine.seeded(backing);
    }

    fn seed_arrays(&self, backing: &Backing<'_, P, E::Common>, in_array: u32, in_shared: u32) {
        self.engine.seed_arrays(backing, in_array, in_shared);
    }

    fn seed(
        &self,
        backing: &Backing<'_, P, E::Common>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<P::Ptr> {
        let first = self.engine.seed(backing, node, place, free)?;
        let mut is_free = [0u64; (u16::MAX as usize + 1) / 64];
        free.iter().for_each(|index| is_free[*index as usize / 64] |= 1 << (index % 64));
        let live =
            (0..self.geometry.objects).filter(|index| is_free[*index as usize / 64] >> (index % 64) & 1 == 0);
        for index in live {
            let start = ahead::<P>(first, index * self.geometry.size);
            if let Some(zones) = &self.zones {
                zones.make::<P>(start);
                zones.set_allocated::<P>(start, self.geometry.object_size);
            }
            if self.wrap.letters.checks {
                P::mark_live(start, true);
            }
        }
        Some(self.object_of(first))
    }

    fn usage(&self) -> Usage {
        let quarantined = self.state.lock().quarantine.count();
        Usage { quarantined, ..self.engine.usage() }
    }

    /// Without objects in quarantine: those belong to the cache as a whole, not to a node.
    fn usage_on(&self, node: NodeId) -> Usage {
        self.engine.usage_on(node)
    }

    fn exposed(&self) -> Exposed {
        Exposed { geometry: address(&self.geometry), ..self.engine.exposed() }
    }

    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        self.engine.counted_on(cpu, event) + self.slots.counted(cpu, event)
    }

    fn reports(&self) -> Reports {
        self.state.lock().reports
    }
}
