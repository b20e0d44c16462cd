//! Random programs over one cache, and a dumb reference that watches them.
//!
//! The same [`Program`] feeds the oracle, the schedules of shuttle and, as bytes, a fuzzer. The reference knows nothing
//! of slabs: it keeps the live ranges of addresses in a map, and says when two overlap, one is misaligned, one is on the
//! wrong node, or something is left at the end. It cannot show that a policy is right, only that memory is.

use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Event, Gfp, NodeId, Platform};
use slablab_slabs::cache::alignment;
use slablab_slabs::{Backing, CacheId, CacheSpec, Common, Engine, Metadata, Misuse};
use std::collections::BTreeMap;

/// One step. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variant's line names its fields")]
pub enum Op {
    /// An object on a CPU, perhaps from a node, perhaps insisting on it.
    Alloc { cpu: u8, node: Option<u8>, insist: bool },
    /// The `which`-th live object is freed on a CPU.
    Free { cpu: u8, which: u16 },
    /// Several objects at once.
    AllocBulk { cpu: u8, count: u8 },
    /// Several live objects at once.
    FreeBulk { cpu: u8, count: u8 },
    /// Everything that can go back goes back.
    Shrink { cpu: u8 },
    /// A CPU goes down, if others are up; one that is down goes up. What steps want of it while it is down, the next CPU
    /// that is up does.
    Plug { cpu: u8 },
    /// Time passes; due work runs.
    Pass { ms: u16 },
    /// Another cache's object is freed to this one.
    Misuse { cpu: u8 },
}

/// A sequence of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(pub Vec<Op>);

impl Program {
    /// A program of `len` steps by a seed. It swings between growing and shrinking, so that slabs fill and empty.
    pub fn random(seed: u64, len: usize) -> Program {
        let mut random = Random(seed);
        let mut ops = Vec::with_capacity(len);
        let mut growing = true;
        for _ in 0..len {
            if random.below(60) == 0 {
                growing = !growing;
            }
            ops.push(Op::random(&mut random, growing));
        }
        Program(ops)
    }

    /// A program from bytes: what a fuzzer has.
    pub fn from_bytes(bytes: &[u8]) -> Program {
        let op = |chunk: &[u8]| {
            let seed = chunk.iter().fold(0, |seed, byte| seed << 8 | *byte as u64);
            Op::random(&mut Random(seed), chunk[0] & 1 == 0)
        };
        Program(bytes.chunks(4).map(op).collect())
    }
}

impl Op {
    fn random(random: &mut Random, growing: bool) -> Op {
        let cpu = random.below(256) as u8;
        let which = random.below(65536) as u16;
        match random.below(100) {
            dice if dice < if growing { 62 } else { 25 } => Op::Alloc {
                cpu,
                node: (random.below(4) == 0).then(|| random.below(256) as u8),
                insist: random.below(4) == 0,
            },
            dice if dice < 86 => Op::Free { cpu, which },
            dice if dice < 90 => Op::AllocBulk { cpu, count: random.below(40) as u8 },
            dice if dice < 94 => Op::FreeBulk { cpu, count: random.below(40) as u8 },
            94 => Op::Shrink { cpu },
            95 => Op::Plug { cpu },
            96 | 97 => Op::Pass { ms: random.below(4000) as u16 },
            _ => Op::Misuse { cpu },
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// What a program did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Objects allocated.
    pub allocs: u64,
    /// Allocations without memory.
    pub failed: u64,
    /// Most objects live at once.
    pub live_max: u64,
    /// Slabs taken from the page allocator.
    pub slabs: u64,
    /// Frees of another cache's objects.
    pub misuses: u64,
    /// Violations that a debugging cache reported.
    pub reports: u64,
}

/// The reference: live ranges by address.
struct Reference<P: Platform> {
    live: BTreeMap<u64, P::Ptr>,
    size: u64,
    align: u64,
}

impl<P: Platform> Reference<P> {
    fn key(object: P::Ptr) -> u64 {
        let (pfn, offset) = P::locate(object);
        ((pfn.0 as u64) << P::page_shift()) + offset as u64
    }

    fn add(&mut self, object: P::Ptr, only: Option<NodeId>) -> Result<(), String> {
        let key = Self::key(object);
        if key % self.align != 0 {
            return Err(format!("{key:#x} is not aligned to {}", self.align));
        }
        let below = self.live.range(..=key).next_back().filter(|(other, _)| *other + self.size > key);
        let above = self.live.range(key..).next().filter(|(other, _)| key + self.size > **other);
        if let Some((other, _)) = below.or(above) {
            return Err(format!("{key:#x} overlaps {other:#x}, which is live"));
        }
        let node = Pages::<P>::block_of(object).map(|(_, state)| state.node);
        if let (Some(only), Some(node)) = (only, node)
            && only != node
        {
            return Err(format!("{key:#x} is on node {}, THISNODE asked for {}", node.0, only.0));
        }
        self.live.insert(key, object);
        Ok(())
    }

    fn take(&mut self, which: u16) -> Option<P::Ptr> {
        let index = which as usize % self.live.len().max(1);
        let key = *self.live.keys().nth(index)?;
        self.live.remove(&key)
    }
}

/// A run of a program over one cache.
pub struct Runner<P: Platform, E: Engine<P>> {
    pages: Pages<P>,
    common: E::Common,
    cache: E,
    sheaves: E,
    reference: Reference<P>,
    ran: Ran,
    spec: CacheSpec,
    /// Whether each CPU is up.
    up: Vec<bool>,
}

/// The CPU itself, or the next that is up.
fn stand_in(up: &[bool], cpu: u16) -> CpuId {
    let cpus = up.len() as u16;
    let next = (0..cpus).map(|step| (cpu % cpus + step) % cpus).find(|cpu| up[*cpu as usize]);
    CpuId(next.expect("one CPU stays up"))
}

struct FromCache<'a, P: Platform, E: Engine<P>>(&'a E, Backing<'a, P, E::Common>);

impl<P: Platform, E: Engine<P>> Metadata<P> for FromCache<'_, P, E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<P::Ptr> {
        assert!(bytes <= self.0.geometry().object_size, "{bytes} bytes of metadata");
        self.0.alloc(&self.1, gfp, None)
    }
    fn free(&self, object: P::Ptr) {
        self.0.free(&self.1, object).expect("metadata is an object of its cache");
    }
}

impl<P: Testable, E: Engine<P>> Runner<P, E> {
    /// An empty cache on untouched pages.
    pub fn new(spec: &CacheSpec, policy: &E::Policy, kernel: (u32, u32, u32)) -> Self {
        let runner = Runner {
            pages: Pages::new(PagesPolicy::for_release(kernel.0, kernel.1, kernel.2)),
            common: E::Common::default(),
            cache: E::create(CacheId(7), spec, policy),
            // Room for the largest: SLAB's shared array of 480 addresses.
            sheaves: E::create(CacheId(8), &CacheSpec::of_size(4096), policy),
            reference: Reference {
                live: BTreeMap::new(),
                size: spec.object_size as u64,
                align: alignment(spec) as u64,
            },
            ran: Ran::default(),
            spec: *spec,
            up: vec![true; P::cpus() as usize],
        };
        for cpu in 0..P::cpus() {
            runner.cache.cpu_up(CpuId(cpu));
        }
        runner
    }

    /// Runs a program to its end, frees what is left and looks that nothing stayed.
    ///
    /// # Errors
    /// The step and what was wrong with it.
    pub fn run(mut self, program: &Program) -> Result<Ran, String> {
        let untouched = Self::free_frames(&self.pages);
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

    fn step(&mut self, op: Op) -> Result<(), String> {
        let metadata = FromCache(&self.sheaves, Backing::new(&self.pages, &self.common));
        let backing = Backing { metadata: Some(&metadata), ..metadata.1 };
        let up = &self.up;
        let cpu = |cpu: u8| stand_in(up, cpu as u16);
        match op {
            Op::Alloc { cpu: on, node, insist } => {
                let node = node.map(|node| NodeId(node as u16 % P::nodes()));
                let only = node.filter(|_| insist);
                let gfp = if only.is_some() { Gfp::KERNEL | Gfp::THISNODE } else { Gfp::KERNEL };
                match P::on_cpu(cpu(on), || self.cache.alloc(&backing, gfp, node)) {
                    // A request for a node without memory may be read as one for any node.
                    Some(object) => {
                        self.reference.add(object, only.filter(|node| P::node_frames(*node).1 > 0))?
                    }
                    None => self.ran.failed += 1,
                }
                self.ran.allocs += 1;
                self.ran.live_max = self.ran.live_max.max(self.reference.live.len() as u64);
            }
            Op::Free { cpu: on, which } => {
                if let Some(object) = self.reference.take(which) {
                    P::on_cpu(cpu(on), || self.cache.free(&backing, object))
                        .map_err(|wrong| format!("{wrong:?}"))?;
                }
            }
            Op::AllocBulk { cpu: on, count } => {
                let mut objects = vec![None; count as usize];
                let got = P::on_cpu(cpu(on), || self.cache.alloc_bulk(&backing, Gfp::KERNEL, &mut objects));
                if objects.iter().flatten().count() != got {
                    return Err(format!(
                        "bulk says {got} objects, gave {}",
                        objects.iter().flatten().count()
                    ));
                }
                objects.into_iter().flatten().try_for_each(|object| self.reference.add(object, None))?;
            }
            Op::FreeBulk { cpu: on, count } => {
                let objects: Vec<_> =
                    (0..count).filter_map(|which| self.reference.take(which as u16 * 7)).collect();
                P::on_cpu(cpu(on), || self.cache.free_bulk(&backing, &objects))
                    .map_err(|wrong| format!("{wrong:?}"))?;
            }
            Op::Shrink { cpu: on } => {
                P::on_cpu(cpu(on), || P::still(|| self.cache.shrink(&backing)));
            }
            Op::Plug { cpu } => self.plug(CpuId(cpu as u16 % P::cpus())),
            Op::Pass { ms } => {
                P::advance(ms as u64 * 1_000_000);
                self.due();
            }
            Op::Misuse { cpu: on } if E::KNOWS_OWNERS => return self.misuse(cpu(on)),
            Op::Misuse { .. } => {}
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
            self.cache.cpu_up(cpu);
            self.sheaves.cpu_up(cpu);
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

    /// An engine must refuse another cache's object, and nothing may have happened.
    fn misuse(&mut self, cpu: CpuId) -> Result<(), String> {
        let backing = Backing::new(&self.pages, &self.common);
        let sheaf = P::on_cpu(cpu, || self.sheaves.alloc(&backing, Gfp::KERNEL, None));
        if let Some(foreign) = sheaf {
            let found = P::on_cpu(cpu, || self.cache.free(&backing, foreign));
            self.ran.misuses += 1;
            if found != Err(Misuse::WrongCache(CacheId(8))) {
                return Err(format!("another cache's object was taken: {found:?}"));
            }
            P::on_cpu(cpu, || self.sheaves.free(&backing, foreign)).map_err(|wrong| format!("{wrong:?}"))?;
        }
        Ok(())
    }

    fn due(&self) {
        let metadata = FromCache(&self.sheaves, Backing::new(&self.pages, &self.common));
        let backing = Backing { metadata: Some(&metadata), ..metadata.1 };
        while let Some((cpu, work)) = P::due() {
            P::on_cpu(stand_in(&self.up, cpu.0), || {
                P::still(|| {
                    if work.cache == 7 {
                        self.cache.work(&backing, cpu, work)
                    } else {
                        self.sheaves.work(&backing, cpu, work)
                    }
                })
            });
        }
    }

    /// What the cache says it holds is what the reference holds.
    fn consistent(&self) -> Result<(), String> {
        P::still(|| {
            let usage = self.cache.usage();
            let live = self.reference.live.len() as u64;
            if P::SERVES && usage.live_objects() != live {
                return Err(format!(
                    "the cache says {} objects are live, {live} are: {usage:?}",
                    usage.live_objects()
                ));
            }
            let held = self.common.held();
            let in_objects = usage.shared_bytes + self.sheaves.usage().shared_bytes;
            if in_objects + held.free_bytes != held.frames << P::page_shift() || !self.common.is_sound() {
                return Err(format!("{held:?} does not fit {in_objects} bytes in objects, or is not sound"));
            }
            self.pages.check().map_err(|imbalance| format!("pages: {imbalance:?}"))
        })
    }

    fn end(&mut self, untouched: u64) -> Result<(), String> {
        self.consistent()?;
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
                self.cache.free(&backing, object).map_err(|wrong| format!("{wrong:?}"))?;
            }
            P::still(|| self.cache.destroy(&backing)).map_err(|busy| format!("{busy:?}"))?;
            // Slabs that wait for readers may have their lists in objects of the other cache.
            P::end_grace_period();
            self.due();
            P::still(|| self.sheaves.destroy(&Backing::new(&self.pages, &self.common)))
                .map_err(|busy| format!("sheaves: {busy:?}"))?;
        }
        self.ran.reports = self.cache.reports().total;
        self.ran.slabs = self.cache.counted(Event::AllocSlab);
        let usage = self.cache.usage();
        let held = self.common.held();
        if usage.slabs != 0 || held.frames != 0 {
            return Err(format!("slabs are left: {usage:?}, {held:?}"));
        }
        self.pages.check().map_err(|imbalance| format!("pages: {imbalance:?}"))?;
        let free = Self::free_frames(&self.pages);
        if free != untouched {
            return Err(format!(
                "{free} frames are free, {untouched} were at the start (spec {:?})",
                self.spec
            ));
        }
        Ok(())
    }

    /// Free frames, those on per-CPU lists included.
    fn free_frames(pages: &Pages<P>) -> u64 {
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
