//! Runs a program over one cache of any engine in any world.

mod misuse;

use super::reference::Reference;
use super::{Op, Program};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Event, Gfp, NodeId, Platform, Work, WorkKind};
use slablab_slabs::cache::alignment;
use slablab_slabs::slab::{Constructor, NewObjects};
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Common, Engine, Metadata, Sheaf};
use std::collections::VecDeque;

/// The cache that programs test.
const CACHE: CacheId = CacheId(7);
/// The cache that sheaves and arrays are objects of.
const SHEAVES: CacheId = CacheId(8);
/// The number in the work of an object that waits for its readers. No cache has this number.
const READERS: CacheId = CacheId(9);

/// The first bytes of an object that a constructor made.
const CONSTRUCTED: u8 = 0xC7;
const CONSTRUCTED_BYTES: u32 = 8;
/// What a holder writes over its whole object.
const HELD: u8 = 0x6B;

/// Counts of one program's run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Objects allocated.
    pub allocs: u64,
    /// Allocations that failed.
    pub failed: u64,
    /// Most objects live at once.
    pub live_max: u64,
    /// Objects allocated from prefilled sheaves.
    pub lent: u64,
    /// Objects that the engine collected to wait for their readers.
    pub collected: u64,
    /// Slabs taken from the page allocator.
    pub slabs: u64,
    /// Frees of addresses that are not the start of an object of the cache, single frees and bulks.
    pub misuses: u64,
    /// Violations that a debugging cache reported.
    pub reports: u64,
}

impl std::ops::AddAssign for Ran {
    fn add_assign(&mut self, other: Ran) {
        self.allocs += other.allocs;
        self.failed += other.failed;
        self.live_max = self.live_max.max(other.live_max);
        self.lent += other.lent;
        self.collected += other.collected;
        self.slabs += other.slabs;
        self.misuses += other.misuses;
        self.reports += other.reports;
    }
}

/// A byte that is not the expected one: its place in an object, and its value.
pub type Difference = Option<(u32, u8)>;

/// What of an engine its world does not have: a kernel tree's allocator has its own memory.
pub struct Beside<P: Platform, E> {
    /// Writes a value over the first bytes of an object.
    pub fill: fn(&E, P::Ptr, u32, u8),
    /// The first of so many bytes of an object that is not the value, and what it is.
    pub differs: fn(&E, P::Ptr, u32, u8) -> Difference,
    /// Frames that the engine keeps for itself, with no cache left.
    pub kept: fn(&E) -> u64,
    /// Whether the counts are a tree's: [`Engine::Common`] knows no shared pages, and objects that the engine
    /// collects are not live any more.
    pub counts_itself: bool,
}

impl<P: Testable, E> Beside<P, E> {
    /// Of an engine that has all in its world.
    const NOTHING: Self = Beside {
        fill: |_, object, bytes, value| P::fill(object, bytes, value),
        differs: |_, object, bytes, value| P::differs(object, bytes, value),
        kept: |_| 0,
        counts_itself: false,
    };
}

/// A run of a program over one cache.
pub struct Runner<P: Platform, E: Engine<P>> {
    pages: Pages<P::Ground>,
    common: E::Common,
    cache: E,
    sheaves: E,
    reference: Reference<P>,
    /// Prefilled sheaves that the runner has, oldest first.
    lent: VecDeque<Sheaf<P>>,
    /// Objects that the engine may still count as live although their readers have ended: it collects them
    /// and frees several at once.
    collected: u64,
    ran: Ran,
    spec: CacheSpec,
    /// Whether each CPU is online.
    up: Vec<bool>,
    beside: Beside<P, E>,
}

/// `cpu` if it is online, else the next CPU that is.
fn stand_in(up: &[bool], cpu: u16) -> CpuId {
    let cpus = up.len() as u16;
    let next = (0..cpus).map(|step| (cpu % cpus + step) % cpus).find(|cpu| up[*cpu as usize]);
    CpuId(next.expect("one CPU stays up"))
}

pub(crate) struct FromCache<'a, P: Platform, E: Engine<P>>(
    pub(crate) &'a E,
    pub(crate) Backing<'a, P, E::Common>,
);

impl<P: Platform, E: Engine<P>> Metadata<P> for FromCache<'_, P, E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<P::Ptr> {
        // An engine whose arrays are larger runs without them, as it does when memory is short.
        if bytes > self.0.geometry().object_size {
            return None;
        }
        self.0.alloc(&self.1, gfp, None)
    }
    fn free(&self, object: P::Ptr) {
        self.0.free(&self.1, object).expect("metadata is an object of its cache");
    }
}

impl<P: Testable, E: Engine<P>> Runner<P, E> {
    /// An empty cache on untouched pages.
    pub fn new(spec: &CacheSpec, policy: &E::Policy, kernel: (u32, u32, u32)) -> Self {
        let mut cache = E::create(CACHE, spec, policy);
        if spec.flags.has(CacheFlags::CONSTRUCTOR) {
            let construct: Constructor<P> = |object| P::fill(object, CONSTRUCTED_BYTES, CONSTRUCTED);
            cache.set_new_objects(NewObjects { construct: Some(construct), ..NewObjects::default() });
        }
        Runner {
            pages: Pages::new(PagesPolicy::for_release(kernel.0, kernel.1, kernel.2)),
            common: E::Common::default(),
            cache,
            // 4096 bytes hold the largest of these objects: SLAB's shared array of 480 addresses.
            sheaves: E::create(SHEAVES, &CacheSpec::of_size(4096), policy),
            reference: Reference::new(spec.object_size, alignment(spec)),
            lent: VecDeque::new(),
            collected: 0,
            ran: Ran::default(),
            spec: *spec,
            up: vec![true; P::cpus() as usize],
            beside: Beside::NOTHING,
        }
    }

    /// With an engine that has part of what it is beside its world.
    pub fn beside(self, beside: Beside<P, E>) -> Self {
        Runner { beside, ..self }
    }

    /// Runs a program to its end, frees the remaining objects, and checks that no page stayed allocated.
    ///
    /// # Errors
    /// The step that failed, and the reason.
    pub fn run(mut self, program: &Program) -> Result<Ran, String> {
        let untouched = Self::free_frames(&self.pages);
        for cpu in 0..P::cpus() {
            let metadata = FromCache(&self.sheaves, Backing::new(&self.pages, &self.common));
            self.cache.cpu_up(&Backing { metadata: Some(&metadata), ..metadata.1 }, CpuId(cpu));
        }
        for (step, op) in program.0.iter().enumerate() {
            self.step(*op).map_err(|wrong| format!("step {step}, {op:?}: {wrong}"))?;
            if step % 64 == 0 {
                self.consistent().map_err(|wrong| format!("after step {step}, {op:?}: {wrong}"))?;
            }
        }
        P::on_cpu(stand_in(&self.up, 0), || self.end(untouched))
            .map_err(|wrong| format!("at the end: {wrong}"))?;
        for cpu in (0..P::cpus()).map(CpuId) {
            P::set_online(cpu, true);
        }
        Ok(self.ran)
    }

    /// Whether the next allocation asks for zeros: some do, in a cache without a constructor.
    fn zero(&self) -> Gfp {
        let asks = self.ran.allocs % 3 == 1 && !self.spec.flags.has(CacheFlags::CONSTRUCTOR);
        if asks { Gfp::ZERO } else { Gfp::default() }
    }

    /// Checks the bytes of a new object, and writes over them as a holder does.
    fn hold(
        (cache, beside): (&E, &Beside<P, E>),
        spec: &CacheSpec,
        object: P::Ptr,
        zero: Gfp,
    ) -> Result<(), String> {
        if spec.flags.has(CacheFlags::CONSTRUCTOR) {
            // The holder leaves the object as it was constructed, and so must the engine.
            return match (beside.differs)(cache, object, CONSTRUCTED_BYTES, CONSTRUCTED) {
                None => Ok(()),
                Some((at, byte)) => Err(format!(
                    "byte {at} of an object is {byte:#x}, its constructor wrote {CONSTRUCTED:#x} \
                     (`set_new_objects`)"
                )),
            };
        }
        if zero.any(Gfp::ZERO)
            && let Some((at, byte)) = (beside.differs)(cache, object, spec.object_size, 0)
        {
            return Err(format!("byte {at} of an object is {byte:#x}, and __GFP_ZERO asked for zeros"));
        }
        (beside.fill)(cache, object, spec.object_size, HELD);
        Ok(())
    }

    fn step(&mut self, op: Op) -> Result<(), String> {
        let zero = self.zero();
        let metadata = FromCache(&self.sheaves, Backing::new(&self.pages, &self.common));
        let backing = Backing { metadata: Some(&metadata), ..metadata.1 };
        let up = &self.up;
        let cpu = |cpu: u8| stand_in(up, cpu as u16);
        match op {
            Op::Alloc { cpu: on, node, insist } => {
                let node = node.map(|node| NodeId(node as u16 % P::nodes()));
                let only = node.filter(|_| insist);
                let gfp = if only.is_some() { Gfp::KERNEL | Gfp::THISNODE } else { Gfp::KERNEL };
                match P::on_cpu(cpu(on), || self.cache.alloc(&backing, gfp | zero, node)) {
                    // An engine may serve a request for a node without memory from any node.
                    Some(object) => {
                        self.reference.add(object, only.filter(|node| P::node_frames(*node).1 > 0))?;
                        Self::hold((&self.cache, &self.beside), &self.spec, object, zero)?;
                    }
                    None => self.ran.failed += 1,
                }
                self.ran.allocs += 1;
                self.ran.live_max = self.ran.live_max.max(self.reference.live());
            }
            Op::Free { cpu: on, which } => {
                if let Some(object) = self.reference.take(which) {
                    P::on_cpu(cpu(on), || self.cache.free(&backing, object))
                        .map_err(|misuse| misuse.to_string())?;
                }
            }
            Op::AllocBulk { cpu: on, count } => {
                let mut objects = vec![None; count as usize];
                let got =
                    P::on_cpu(cpu(on), || self.cache.alloc_bulk(&backing, Gfp::KERNEL | zero, &mut objects));
                if objects.iter().flatten().count() != got {
                    return Err(format!(
                        "bulk says {got} objects, gave {}",
                        objects.iter().flatten().count()
                    ));
                }
                for object in objects.into_iter().flatten() {
                    self.reference.add(object, None)?;
                    Self::hold((&self.cache, &self.beside), &self.spec, object, zero)?;
                }
            }
            Op::FreeBulk { cpu: on, count } => {
                let objects: Vec<_> =
                    (0..count).filter_map(|which| self.reference.take(which as u16 * 7)).collect();
                P::on_cpu(cpu(on), || self.cache.free_bulk(&backing, &objects))
                    .map_err(|misuse| misuse.to_string())?;
            }
            Op::FreeRcu { cpu: on, which } => {
                if let Some(object) = self.reference.take(which) {
                    let collected = P::on_cpu(cpu(on), || self.cache.free_rcu(&backing, object))
                        .map_err(|misuse| misuse.to_string())?;
                    let argument = self.reference.wait(object, collected);
                    P::on_cpu(cpu(on), || {
                        P::after_grace_period(Work {
                            kind: WorkKind::FreeObject,
                            cache: READERS.0,
                            argument,
                        });
                    });
                    self.ran.collected += collected as u64;
                }
            }
            Op::Lend { cpu: on, count } => {
                let sheaf =
                    P::on_cpu(cpu(on), || self.cache.prefill_sheaf(&backing, Gfp::KERNEL, count as u32));
                if let Some(sheaf) = &sheaf
                    && sheaf.size() < count as u32
                {
                    return Err(format!("a sheaf of {} objects", sheaf.size()));
                }
                self.lent.extend(sheaf);
            }
            Op::UseLent { cpu: on, count } => {
                let Some(sheaf) = self.lent.back_mut() else { return Ok(()) };
                for _ in 0..sheaf.size().min(count as u32) {
                    let object = P::on_cpu(cpu(on), || self.cache.alloc_from_lent(sheaf, Gfp::KERNEL | zero));
                    let object = object.ok_or("a lent sheaf was used up before its time")?;
                    self.reference.add(object, None)?;
                    Self::hold((&self.cache, &self.beside), &self.spec, object, zero)?;
                    self.ran.lent += 1;
                }
            }
            Op::Return { cpu: on } => {
                if let Some(sheaf) = self.lent.pop_front() {
                    P::on_cpu(cpu(on), || self.cache.return_sheaf(&backing, Gfp::KERNEL, sheaf));
                }
            }
            Op::Shrink { cpu: on } => {
                P::on_cpu(cpu(on), || P::still(|| self.cache.shrink(&backing)));
            }
            Op::Plug { cpu } => self.plug(CpuId(cpu as u16 % P::cpus())),
            Op::Pass { ms } => {
                P::advance(ms as u64 * 1_000_000);
                P::end_grace_period();
                self.due()?;
            }
            Op::Misuse { cpu: on } if E::KNOWS_OWNERS => return self.misuse(cpu(on)),
            Op::Misuse { .. } => {}
            Op::MisuseBulk { cpu: on, count, at } => return self.misuse_bulk(cpu(on), count, at),
        }
        Ok(())
    }

    fn plug(&mut self, cpu: CpuId) {
        let metadata = FromCache(&self.sheaves, Backing::new(&self.pages, &self.common));
        let backing = Backing { metadata: Some(&metadata), ..metadata.1 };
        let up = &mut self.up[cpu.0 as usize];
        *up = !*up;
        if *up {
            P::set_online(cpu, true);
            self.cache.cpu_up(&backing, cpu);
            self.sheaves.cpu_up(&metadata.1, cpu);
        } else if self.up.contains(&true) {
            P::set_online(cpu, false);
            P::on_cpu(stand_in(&self.up, cpu.0), || {
                P::still(|| {
                    self.cache.cpu_down(&backing, cpu);
                    self.sheaves.cpu_down(&metadata.1, cpu);
                    self.pages.cpu_down(cpu);
                });
            });
        } else {
            self.up[cpu.0 as usize] = true;
        }
    }

    fn due(&mut self) -> Result<(), String> {
        while let Some((cpu, work)) = P::due() {
            let cpu_now = stand_in(&self.up, cpu.0);
            let metadata = FromCache(&self.sheaves, Backing::new(&self.pages, &self.common));
            let backing = Backing { metadata: Some(&metadata), ..metadata.1 };
            match CacheId(work.cache) {
                READERS => {
                    let waiting = self.reference.readers_ended(work.argument);
                    if waiting.collected {
                        self.collected += 1;
                    } else {
                        P::on_cpu(cpu_now, || self.cache.free(&backing, waiting.object))
                            .map_err(|misuse| format!("{misuse}, when the readers had ended"))?;
                    }
                }
                CACHE => P::on_cpu(cpu_now, || P::still(|| self.cache.work(&backing, cpu, work))),
                _ => P::on_cpu(cpu_now, || P::still(|| self.sheaves.work(&backing, cpu, work))),
            }
        }
        Ok(())
    }

    /// Checks that the cache's counts agree with the reference.
    fn consistent(&self) -> Result<(), String> {
        P::still(|| {
            let usage = self.cache.usage();
            let lent: u32 = self.lent.iter().map(Sheaf::size).sum();
            let counts_itself = self.beside.counts_itself;
            let live = self.reference.live() + self.reference.waiting(!counts_itself) + lent as u64;
            if P::SERVES && !(live..=live + self.collected).contains(&usage.live_objects()) {
                return Err(format!(
                    "the cache says {} objects are live, {live} are, and {} were collected: {usage:?}",
                    usage.live_objects(),
                    self.collected
                ));
            }
            let held = self.common.held();
            let in_objects = usage.shared_bytes + self.sheaves.usage().shared_bytes;
            let fits = counts_itself || in_objects + held.free_bytes == held.frames << P::page_shift();
            if !fits || !self.common.is_sound() {
                return Err(format!("{held:?} does not fit {in_objects} bytes in objects, or is not sound"));
            }
            self.pages.check().map_err(|imbalance| format!("pages: {imbalance:?}"))
        })
    }

    /// Returns all prefilled sheaves and ends all grace periods. Afterwards every object is free or
    /// allocated.
    fn settle(&mut self) -> Result<(), String> {
        while !self.lent.is_empty() {
            self.step(Op::Return { cpu: 0 })?;
        }
        self.step(Op::Shrink { cpu: 0 })?;
        P::end_grace_period();
        self.due()?;
        self.collected = 0;
        self.consistent()
    }

    fn end(&mut self, untouched: u64) -> Result<(), String> {
        self.consistent()?;
        self.settle()?;
        let taken: Vec<_> = std::iter::from_fn(|| self.reference.take(0)).collect();
        {
            let metadata = FromCache(&self.sheaves, Backing::new(&self.pages, &self.common));
            let backing = Backing { metadata: Some(&metadata), ..metadata.1 };
            if !taken.is_empty() {
                let busy = P::still(|| self.cache.destroy(&backing));
                if busy.is_ok() {
                    return Err(format!("destroyed while {} objects are live", taken.len()));
                }
            }
            for object in taken {
                self.cache.free(&backing, object).map_err(|misuse| misuse.to_string())?;
            }
            P::still(|| self.cache.destroy(&backing)).map_err(|busy| format!("{busy:?}"))?;
        }
        // A slab that waits for a grace period may have its free list in an object of the other cache.
        P::end_grace_period();
        self.due()?;
        P::still(|| self.sheaves.destroy(&Backing::new(&self.pages, &self.common)))
            .map_err(|busy| format!("sheaves: {busy:?}"))?;
        self.ran.reports = self.cache.reports().total;
        self.ran.slabs = self.cache.counted(Event::AllocSlab);
        let usage = self.cache.usage();
        let held = self.common.held();
        if usage.slabs != 0 || held.frames != 0 {
            return Err(format!("slabs are left: {usage:?}, {held:?}"));
        }
        self.pages.check().map_err(|imbalance| format!("pages: {imbalance:?}"))?;
        let (free, kept) = (Self::free_frames(&self.pages), (self.beside.kept)(&self.cache));
        if free + kept != untouched {
            return Err(format!(
                "{free} frames are free, {kept} are the engine's own, {untouched} were free at the start"
            ));
        }
        Ok(())
    }

    /// The number of free frames, including the frames on per-CPU lists.
    fn free_frames(pages: &Pages<P::Ground>) -> u64 {
        let parked = |node: NodeId, cpu: u16| -> u64 {
            pages
                .zones_of(node)
                .filter_map(|zone| pages.pcp_frames(CpuId(cpu), node, zone))
                .map(u64::from)
                .sum()
        };
        let all =
            |node: NodeId| pages.free_frames(node) + (0..P::cpus()).map(|cpu| parked(node, cpu)).sum::<u64>();
        P::still(|| (0..P::nodes()).map(NodeId).map(all).sum())
    }
}
