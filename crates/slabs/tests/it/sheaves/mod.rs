//! Sheaves against docs/theory/sheaves.md, on the modelled machine, by counters.
//!
//! Every case is data for [`check`]: a preset, steps, and the expected counters. These tests cannot show
//! races (the schedules in crates/check do), times, or whether a kernel did the same, because no counters of
//! one are available.

mod elastic;
mod eras;
mod memoryless;
mod orders;
mod real;
mod reserves;
mod slabs;
mod ways;

use crate::heap::{FromCache, Ptr};
use Event::*;
use Expected::{Counted, CpuSlabs, Live, Parked};
use Step::{
    Alloc, AllocAtomic, AllocBare, AllocOn, AllocReserve, Bulk, Down, Exhaust, Fail, Feed, Free, FreeBulk,
    FreeEvery, FreeRcu, Grace, Lend, Mark, Return, Same, Shrink, Use,
};
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, FrameKind, Gfp, NodeId, Pfn, Time, Topology};
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Engine, Idle, Sheaf, Usage};

const MIB: u64 = 1 << 20;

/// One step of a case. Objects are held oldest first; frees take the oldest. Fields: CPU, then node, then
/// number.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Allocates this many objects on a CPU.
    Alloc(u16, u32),
    /// Allocates this many objects on a CPU with flags that do not allow sleeping.
    AllocAtomic(u16, u32),
    /// Allocates this many objects on a CPU from a node.
    AllocOn(u16, u16, u32),
    /// Allocates this many objects on a CPU with flags that allow the reserves (`__GFP_MEMALLOC`).
    AllocReserve(u16, u32),
    /// Takes all pages except the reserves.
    Exhaust,
    /// An ordinary allocation on a CPU that must fail.
    Fail(u16),
    /// Allocates one object, which must be the one that the allocation with this number returned. The first
    /// allocation has number 0.
    Same(u16, usize),
    /// Allocates this many objects on a CPU while memory for sheaves can be neither allocated nor freed.
    AllocBare(u16, u32),
    /// Allocates this many objects in one call.
    Bulk(u16, u32),
    Free(u16, u32),
    /// Frees the first object of every group of this many.
    FreeEvery(u16, usize),
    /// Frees this many objects in one call.
    FreeBulk(u16, u32),
    /// Frees this many objects after a grace period. Objects that no sheaf accepts are freed at the next
    /// `Grace`.
    FreeRcu(u16, u32),
    /// Allocates an object on the first CPU and frees it on the second, this many times.
    Feed(u16, u16, u32),
    /// Ends a grace period.
    Grace,
    /// Lends a sheaf with at least this many objects.
    Lend(u16, u32),
    /// Uses this many objects of the sheaf that was lent last.
    Use(u32),
    /// Returns the sheaf that was lent last, on a CPU.
    Return(u16),
    /// Takes a CPU offline.
    Down(u16),
    /// A periodic shrink on the first CPU.
    Shrink(Idle),
    /// Counters in `expected` count from here.
    Mark,
}

/// A value to check after the steps.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Counted(Event, u64),
    Parked(u64),
    CpuSlabs(u64),
    Live(u64),
}

struct Case<'a> {
    name: &'static str,
    machine: fn() -> MachineSpec,
    presets: &'static [&'static str],
    spec: CacheSpec,
    steps: &'a [Step],
    expected: &'a [Expected],
}

type Heap = crate::heap::Heap<Slub<Model>, Own>;

/// What the cases of sheaves need besides a heap.
#[derive(Default)]
struct Own {
    /// Objects that no sheaf accepted, to be freed when the readers have ended.
    waiting: Vec<Ptr>,
    lent: Vec<Sheaf<Model>>,
    /// Pages that the test holds, so that the engine cannot have them.
    hogged: Vec<Pfn>,
    /// The counters at the last `Mark`.
    zero: Vec<u64>,
}

fn policy(preset: &str) -> SlubPolicy {
    match Preset::parse(preset) {
        Ok(Preset::Slub(policy)) => policy,
        other => panic!("{preset}: {other:?}"),
    }
}

impl Heap {
    fn new(preset: &str, spec: &CacheSpec) -> Heap {
        let mut heap = Heap::of(&policy(preset), PagesPolicy::for_release(6, 18, 0), spec);
        heap.own.zero = vec![0; Event::COUNT];
        heap
    }

    fn step(&mut self, step: Step) {
        let metadata = FromCache(&self.metadata, &self.pages);
        let backing = Backing { metadata: Some(&metadata), ..Backing::pages(&self.pages) };
        let mut alloc = |cpu: u16, n: u32, gfp: Gfp, node: Option<u16>| {
            Model::run_on(CpuId(cpu));
            for _ in 0..n {
                let object = self.cache.alloc(&backing, gfp, node.map(NodeId)).expect("memory is left");
                self.held.push_back(object);
                self.ever.push(object);
            }
        };
        match step {
            Alloc(cpu, n) => alloc(cpu, n, Gfp::KERNEL, None),
            AllocAtomic(cpu, n) => alloc(cpu, n, Gfp::ATOMIC, None),
            AllocOn(cpu, node, n) => alloc(cpu, n, Gfp::KERNEL, Some(node)),
            AllocReserve(cpu, n) => alloc(cpu, n, Gfp::ATOMIC | Gfp::MEMALLOC, None),
            Exhaust => {
                let page = || self.pages.alloc(Gfp::ATOMIC, 0, NodeId(0), FrameKind::Allocated);
                self.own.hogged.extend(std::iter::from_fn(page));
            }
            Fail(cpu) => {
                Model::run_on(CpuId(cpu));
                assert_eq!(self.cache.alloc(&backing, Gfp::KERNEL, None), None, "only reserves are left");
            }
            Same(cpu, nth) => {
                alloc(cpu, 1, Gfp::KERNEL, None);
                assert_eq!(self.ever.last(), Some(&self.ever[nth]), "{step:?}");
            }
            AllocBare(cpu, n) => {
                Model::run_on(CpuId(cpu));
                let bare = Backing::pages(&self.pages);
                let one = || self.cache.alloc(&bare, Gfp::KERNEL, None).expect("memory is left");
                self.held.extend((0..n).map(|_| one()));
            }
            Bulk(cpu, n) => {
                Model::run_on(CpuId(cpu));
                let mut objects = vec![None; n as usize];
                assert_eq!(self.cache.alloc_bulk(&backing, Gfp::KERNEL, &mut objects), n as usize);
                self.held.extend(objects.into_iter().flatten());
            }
            Free(cpu, n) => self.free_oldest(cpu, n),
            FreeEvery(cpu, n) => {
                Model::run_on(CpuId(cpu));
                let all = self.held.len();
                let (freed, held): (Vec<_>, Vec<_>) = self
                    .held
                    .drain(..)
                    .enumerate()
                    .partition(|(place, _)| place % n == 0 && place + n <= all);
                self.held.extend(held.into_iter().map(|(_, object)| object));
                freed.into_iter().for_each(|(_, object)| {
                    self.cache.free(&backing, object).expect("the cache's object");
                });
            }
            FreeBulk(cpu, n) => {
                Model::run_on(CpuId(cpu));
                let objects: Vec<_> = self.held.drain(..n as usize).collect();
                self.cache.free_bulk(&backing, &objects).expect("the cache's objects");
            }
            FreeRcu(cpu, n) => {
                Model::run_on(CpuId(cpu));
                for object in self.held.drain(..n as usize) {
                    if !self.cache.free_rcu(&backing, object).expect("the cache's object") {
                        self.own.waiting.push(object);
                    }
                }
            }
            Feed(from, to, n) => (0..n).for_each(|_| {
                self.step(Alloc(from, 1));
                self.step(Free(to, 1));
            }),
            Grace => {
                Model::advance_to(Model::now() + 1_000_000_000);
                self.due();
                let freed = self.own.waiting.drain(..);
                freed.for_each(|object| self.cache.free(&backing, object).expect("the cache's object"));
            }
            Lend(cpu, n) => {
                Model::run_on(CpuId(cpu));
                let sheaf = self.cache.prefill_sheaf(&backing, Gfp::KERNEL, n).expect("memory is left");
                assert!(sheaf.size() >= n, "too few in the sheaf");
                self.own.lent.push(sheaf);
            }
            Use(n) => {
                let sheaf = self.own.lent.last_mut().expect("a sheaf is lent");
                let mut one = || self.cache.alloc_from_lent(sheaf, Gfp::KERNEL).expect("not used up");
                self.held.extend((0..n).map(|_| one()));
            }
            Return(cpu) => {
                Model::run_on(CpuId(cpu));
                let sheaf = self.own.lent.pop().expect("a sheaf is lent");
                self.cache.return_sheaf(&backing, Gfp::KERNEL, sheaf);
            }
            Down(cpu) => self.down(cpu),
            Shrink(idle) => {
                Model::run_on(CpuId(0));
                while self.cache.shrink_idle(&backing, idle) {}
            }
            Mark => self.own.zero = Event::ALL.iter().map(|event| self.cache.counted(*event)).collect(),
        }
    }

    fn look(&self, expected: Expected) -> Result<(), String> {
        let usage = self.cache.usage();
        let (found, right) = match expected {
            Counted(event, n) => (self.cache.counted(event) - self.own.zero[event as usize], n),
            Parked(n) => (usage.parked, n),
            CpuSlabs(n) => (usage.cpu_slabs, n),
            Live(n) => (usage.live_objects(), n),
        };
        if found == right { Ok(()) } else { Err(format!("{expected:?}: found {found}")) }
    }

    /// Frees all allocated objects. Then every page must be back, including those of the sheaves.
    fn end(mut self) {
        self.own.hogged.drain(..).for_each(|page| self.pages.free(page));
        self.step(Free(0, self.held.len() as u32));
        while !self.own.lent.is_empty() {
            self.step(Return(0));
        }
        self.cache.flush_rcu();
        self.step(Grace);
        self.finish(|heap| {
            let made = heap.cache.counted(SheafAlloc);
            assert_eq!(made, heap.cache.counted(SheafFree), "sheaves allocated and freed");
        });
    }
}

fn check(case: &Case<'_>) {
    for preset in case.presets {
        let mut machine = Machine::new((case.machine)()).expect("the spec is right");
        machine.enter(|| {
            let mut heap = Heap::new(preset, &case.spec);
            case.steps.iter().for_each(|step| heap.step(*step));
            for expected in case.expected {
                if let Err(wrong) = heap.look(*expected) {
                    panic!("{}, {preset}: {wrong}", case.name);
                }
            }
            let mut by_node = Usage::default();
            (0..Model::nodes()).for_each(|node| by_node += heap.cache.usage_on(NodeId(node)));
            assert_eq!(
                heap.cache.usage(),
                by_node,
                "{}, {preset}: of all nodes, and each by itself",
                case.name
            );
            heap.end();
        });
    }
}

fn one_node() -> MachineSpec {
    MachineSpec::uniform(2, 1, 256 * MIB)
}

/// CPUs 0 and 1 on node 0, 2 and 3 on node 1.
fn two_nodes() -> MachineSpec {
    MachineSpec::uniform(4, 2, 256 * MIB)
}

/// CPUs 0 and 1 on node 0, which has no memory; 2 and 3 on node 1; 4 and 5 on node 2. The kernel has
/// CONFIG_HAVE_MEMORYLESS_NODES.
fn memoryless() -> MachineSpec {
    let node = |bytes| NodeSpec { bytes };
    MachineSpec { nodes: vec![node(0), node(256 * MIB), node(256 * MIB)], ..MachineSpec::uniform(6, 3, MIB) }
}

/// The machine of [`memoryless`] under a kernel without CONFIG_HAVE_MEMORYLESS_NODES.
fn own_memory_nodes() -> MachineSpec {
    MachineSpec { memoryless_nodes: false, ..memoryless() }
}

const SMALL: CacheSpec = CacheSpec::of_size(64);
const BOTH: &[&str] = &["slub@7.0", "slub@7.1"];

#[test]
fn sheaf_capacity_by_size() {
    fn check(preset: &str, spec: CacheSpec, page_shift: u32, capacity: u32) {
        let mut machine = Machine::new(MachineSpec { page_shift, ..one_node() }).expect("the spec is right");
        let found =
            machine.enter(|| Slub::<Model>::create(CacheId(1), &spec, &policy(preset)).sheaf_capacity());
        assert_eq!(found, capacity, "{preset}, {} bytes", spec.object_size);
    }
    let asks = |sheaf_capacity, size| CacheSpec { sheaf_capacity, ..CacheSpec::of_size(size) };
    for (size, capacity) in
        [(8, 60), (248, 60), (256, 28), (1016, 28), (1024, 12), (4088, 12), (4096, 4), (8192, 4)]
    {
        check("slub@7.0", CacheSpec::of_size(size), 12, capacity);
        check("slub@6.18", CacheSpec::of_size(size), 12, 0);
        check("slub@6.18,sheaves=off", asks(32, size), 12, 0);
        check("slub@6.18", asks(32, size), 12, 32);
        check("slub@7.0", asks(32, size), 12, capacity.max(32));
    }
    check("slub@7.0", CacheSpec::of_size(8192), 16, 12);
    check("slub@7.0", CacheSpec::of_size(65536), 16, 4);
    check("slub@7.0", asks(100, 64), 12, 100);
    let flags = CacheFlags::NO_SHEAVES;
    check("slub@7.0", CacheSpec { flags, ..CacheSpec::of_size(64) }, 12, 0);
}

/// What Linux has as constants, and as a rule of size.
#[test]
fn sizes_of_sheaves_are_knobs() {
    let capacity = |preset: &str, cpus: u16, bytes: u32| {
        let mut machine = Machine::new(MachineSpec::uniform(cpus, 1, 64 * MIB)).expect("the spec is right");
        let spec = CacheSpec::of_size(bytes);
        machine.enter(|| Slub::<Model>::create(CacheId(1), &spec, &policy(preset)).sheaf_capacity())
    };
    for (preset, cpus, bytes, expected) in [
        ("slub@7.3", 8, 64, 60),
        ("slub@7.3,sheaf_capacity=100", 8, 64, 100),
        ("slub@7.3,sheaf_capacity=100,sheaf_factor=2", 8, 4096, 100),
        ("slub@7.3,sheaf_factor=2", 8, 64, 120),
        ("slub@7.3,sheaf_factor=64", 8, 64, 1020),
        ("slub@7.3,sheaf_rule=size-and-cpus", 1, 64, 24),
        ("slub@7.3,sheaf_rule=size-and-cpus", 15, 64, 60),
        ("slub@7.3,sheaf_rule=size-and-cpus", 16, 64, 72),
        ("slub@7.3,sheaf_rule=size-and-cpus", 512, 64, 132),
        ("slub@7.3,sheaf_rule=size-and-cpus", 512, 4096, 8),
        ("slub@6.18,sheaf_capacity=100", 8, 64, 0),
    ] {
        assert_eq!(capacity(preset, cpus, bytes), expected, "{preset}, {cpus} CPUs, {bytes} bytes");
    }
    let case = |name, presets, steps, expected| {
        check(&Case { name, machine: one_node, presets, spec: SMALL, steps, expected });
    };
    let all = &[Alloc(0, 720), Mark, Free(0, 720)];
    case("two full sheaves", &["slub@7.3,max_full_sheaves=2"], all, &[Parked(240), Counted(BarnPut, 2)]);
    let grace = &[Alloc(0, 1320), Mark, FreeRcu(0, 1320), Grace];
    let few = &[Counted(BarnPut, 10), Counted(SheafFree, 9)];
    case("three empty sheaves", &["slub@7.3,max_empty_sheaves=3"], grace, few);
    let flush = &[Alloc(0, 1), Mark, Shrink(Idle::All)];
    let by_ten = &["slub@7.3,sheaf_batch=10,max_order=0,update=bit-lock"];
    case("59 objects of a slab, by tens", by_ten, flush, &[Counted(SheafFlush, 59), Counted(LockSlab, 6)]);
}

/// Main, spare and ten sheaves in the barn hold 720 objects of 64 bytes: no slab is used for them.
#[test]
fn sheaves_and_barn_absorb_720_objects() {
    let case = |name, steps, expected| {
        check(&Case { name, machine: one_node, presets: BOTH, spec: SMALL, steps, expected });
    };
    let quiet = &[
        Counted(FreeFastpath, 720),
        Counted(FreeSlowpath, 0),
        Counted(SheafFlush, 0),
        Counted(SheafAlloc, 10),
        Counted(LockNodeList, 0),
        Counted(BarnPut, 10),
        Parked(720),
        Live(60),
    ];
    case("720 are absorbed", &[Alloc(0, 780), Mark, Free(0, 720)], quiet);
    let flushed = &[
        Counted(FreeFastpath, 721),
        Counted(SheafFlush, 60),
        Counted(BarnPutFail, 1),
        Counted(SheafAlloc, 10),
    ];
    // The barn is full and has no empty sheaf. "Full" decides, so no sheaf is allocated.
    case("one more flushes the spare", &[Alloc(0, 780), Mark, Free(0, 721)], flushed);
    case(
        "720 are allocated again",
        &[Alloc(0, 780), Free(0, 720), Mark, Alloc(0, 720)],
        &[
            Counted(AllocFastpath, 720),
            Counted(SheafRefill, 0),
            Counted(BarnGet, 10),
            Counted(LockNodeList, 0),
        ],
    );
    case(
        "the next allocation refills",
        &[Alloc(0, 780), Free(0, 720), Alloc(0, 720), Mark, Alloc(0, 1)],
        &[Counted(BarnGetFail, 1), Counted(SheafRefill, 60), Parked(59)],
    );
}

/// One CPU allocates the objects that another frees: one barn exchange per sheaf, 1/60 of all calls, and no
/// slab.
#[test]
fn one_barn_exchange_per_sheaf() {
    check(&Case {
        name: "producer and consumer",
        machine: one_node,
        presets: BOTH,
        spec: SMALL,
        steps: &[Feed(0, 1, 600), Mark, Feed(0, 1, 6000)],
        expected: &[
            Counted(AllocFastpath, 6000),
            Counted(FreeFastpath, 6000),
            Counted(BarnGet, 100),
            Counted(BarnPut, 100),
            Counted(LockBarn, 200),
            Counted(BarnPutFail, 0),
            Counted(SheafRefill, 0),
            Counted(SheafFlush, 0),
            Counted(LockNodeList, 0),
        ],
    });
}
