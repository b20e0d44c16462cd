//! Cases for engines that keep objects per CPU: a cache on the modelled machine, steps, and what is counted then.

#![allow(dead_code, reason = "each test binary takes other steps")]

use Expected::{Counted, FreeInSlabs, Live, Parked, PartialSlabs, Slabs};
use Step::{Alloc, AllocOn, Churn, Down, Feed, Free, FreeNewest, PingPong, Reap, Shrink, Up};
use slablab_model::{Addr, Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, Gfp, NodeId, Platform};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Metadata};
use std::collections::VecDeque;

pub(crate) const MIB: u64 = 1 << 20;

/// One step of a case. Objects are held oldest first; `Free` takes the oldest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// So many objects on a CPU.
    Alloc(u16, u32),
    /// So many on a CPU from a node.
    AllocOn(u16, u16, u32),
    /// The oldest so many are freed on a CPU.
    Free(u16, u32),
    /// The newest so many are freed on a CPU.
    FreeNewest(u16, u32),
    /// An object is allocated and freed on a CPU, so many times.
    PingPong(u16, u32),
    /// An object is allocated on the first CPU and freed on the second, so many times.
    Feed(u16, u16, u32),
    /// On a CPU, so many times: one object is allocated, then the oldest freed.
    Churn(u16, u32),
    /// The reaper's interval passes so often.
    Reap(u32),
    /// Everything that can go back goes back.
    Shrink,
    /// A CPU goes down.
    Down(u16),
    /// A CPU comes up.
    Up(u16),
}

/// What is looked at after the steps, and what it must be; of two numbers between which, both included.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    Counted(Event, u64),
    Slabs(u64, u64),
    /// Slabs on partial and free lists.
    PartialSlabs(u64),
    FreeInSlabs(u64),
    /// Objects that are neither a user's nor free in a slab.
    Parked(u64, u64),
    Live(u64),
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) machine: MachineSpec,
    pub(crate) presets: &'static [&'static str],
    pub(crate) size: u32,
    pub(crate) steps: &'static [Step],
    pub(crate) expected: &'static [Expected],
}

/// What the cases have to know of an engine.
pub(crate) trait Tested: Engine<Model, Common = ()> {
    /// Time between two visits of the reaper.
    const REAP_NS: u64;
    /// Bytes of the objects that serve as the cache's own metadata; `None` if it has none.
    const METADATA_BYTES: Option<u32>;

    fn policy(preset: &str) -> Self::Policy;
}

/// Pages, and the cache that metadata comes from.
pub(crate) struct Memory<E> {
    pub(crate) pages: Pages<Model>,
    metadata: Option<E>,
}

/// A cache on a machine, and the objects its users hold.
pub(crate) struct Heap<E> {
    pub(crate) memory: Memory<E>,
    pub(crate) cache: E,
    pub(crate) held: VecDeque<Addr>,
}

impl<E: Tested> Memory<E> {
    fn metadata(&self) -> &E {
        self.metadata.as_ref().expect("the engine has metadata")
    }
}

impl<E: Tested> Metadata<Model> for Memory<E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Addr> {
        assert!(Some(bytes) <= E::METADATA_BYTES, "{bytes} bytes of metadata");
        self.metadata().alloc(&Backing::pages(&self.pages), gfp, None)
    }

    fn free(&self, object: Addr) {
        let freed = self.metadata().free(&Backing::pages(&self.pages), object);
        freed.expect("metadata is an object of its cache");
    }
}

impl<E: Tested> Heap<E> {
    pub(crate) fn new(preset: &str, spec: &CacheSpec) -> Heap<E> {
        Heap::with_policy(&E::policy(preset), spec)
    }

    pub(crate) fn with_policy(policy: &E::Policy, spec: &CacheSpec) -> Heap<E> {
        let metadata = |bytes| E::create(CacheId(4), &CacheSpec::of_size(bytes), policy);
        Heap {
            memory: Memory {
                pages: Pages::new(PagesPolicy::for_release(2, 6, 29)),
                metadata: E::METADATA_BYTES.map(metadata),
            },
            cache: E::create(CacheId(3), spec, policy),
            held: VecDeque::new(),
        }
    }

    /// What the cache stands on.
    pub(crate) fn backing(&self) -> Backing<'_, Model> {
        let metadata = self.memory.metadata.as_ref().map(|_| &self.memory as &dyn Metadata<Model>);
        Backing { metadata, ..Backing::pages(&self.memory.pages) }
    }

    pub(crate) fn alloc(&mut self, cpu: u16, node: Option<u16>) -> Addr {
        Model::run_on(CpuId(cpu));
        let object = self.cache.alloc(&self.backing(), Gfp::KERNEL, node.map(NodeId));
        let object = object.expect("memory is left");
        self.held.push_back(object);
        object
    }

    pub(crate) fn free(&mut self, cpu: u16, object: Option<Addr>) {
        Model::run_on(CpuId(cpu));
        let object = object.expect("the case holds so many");
        self.cache.free(&self.backing(), object).expect("the object is the cache's");
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Alloc(cpu, n) => (0..n).for_each(|_| _ = self.alloc(cpu, None)),
            AllocOn(cpu, node, n) => (0..n).for_each(|_| _ = self.alloc(cpu, Some(node))),
            Free(cpu, n) => (0..n).for_each(|_| {
                let oldest = self.held.pop_front();
                self.free(cpu, oldest);
            }),
            FreeNewest(cpu, n) => (0..n).for_each(|_| {
                let newest = self.held.pop_back();
                self.free(cpu, newest);
            }),
            PingPong(cpu, n) => self.step(Feed(cpu, cpu, n)),
            Feed(from, to, n) => (0..n).for_each(|_| {
                self.step(Alloc(from, 1));
                self.step(FreeNewest(to, 1));
            }),
            Churn(cpu, n) => (0..n).for_each(|_| {
                self.step(Alloc(cpu, 1));
                self.step(Free(cpu, 1));
            }),
            Reap(n) => (0..n).for_each(|_| {
                Model::advance_to(Model::now() + E::REAP_NS);
                self.due();
            }),
            Shrink => drop(self.cache.shrink(&self.backing())),
            Down(cpu) => {
                Model::set_online(CpuId(cpu), false);
                self.cache.cpu_down(&self.backing(), CpuId(cpu));
            }
            Up(cpu) => {
                Model::set_online(CpuId(cpu), true);
                self.cache.cpu_up(CpuId(cpu));
            }
        }
    }

    /// Runs the work that is due, each on its CPU.
    pub(crate) fn due(&self) {
        while let Some((cpu, work)) = Model::next_due() {
            Model::run_on(cpu);
            if work.cache == self.cache.id().0 {
                self.cache.work(&self.backing(), cpu, work);
            } else {
                self.memory.metadata().work(&Backing::pages(&self.memory.pages), cpu, work);
            }
        }
    }

    fn look(&self, expected: Expected) -> Result<(), String> {
        let usage = self.cache.usage();
        let (found, least, most) = match expected {
            Counted(event, n) => (self.cache.counted(event), n, n),
            Slabs(least, most) => (usage.slabs, least, most),
            PartialSlabs(n) => (usage.partial, n, n),
            FreeInSlabs(n) => (usage.free_in_partial, n, n),
            Parked(least, most) => (usage.parked, least, most),
            Live(n) => (usage.live_objects(), n, n),
        };
        if (least..=most).contains(&found) { Ok(()) } else { Err(format!("{expected:?}: found {found}")) }
    }

    /// Frees what is held; then every page must be back, and all metadata.
    pub(crate) fn end(mut self) {
        while let Some(object) = self.held.pop_front() {
            self.free(0, Some(object));
        }
        assert_eq!(self.cache.destroy(&self.backing()), Ok(()));
        // Slabs whose objects outlive their free go back when the readers are gone.
        Model::advance_to(Model::now() + 60_000_000_000);
        self.due();
        let metadata = self.memory.metadata.as_ref();
        let left = metadata.map_or(Ok(()), |cache| cache.destroy(&Backing::pages(&self.memory.pages)));
        assert_eq!(left, Ok(()), "metadata is left");
        assert_eq!(self.cache.usage().slabs, 0, "slabs are left");
        self.memory.pages.check().expect("pages balance");
        let taken = self.cache.counted(Event::AllocSlab);
        assert_eq!(taken, self.cache.counted(Event::FreeSlab), "slabs taken and returned");
    }
}

pub(crate) fn check<E: Tested>(case: &Case) {
    for preset in case.presets {
        let mut machine = Machine::new(case.machine.clone()).expect("the spec is right");
        machine.enter(|| {
            let mut heap = Heap::<E>::new(preset, &CacheSpec::of_size(case.size));
            case.steps.iter().for_each(|step| heap.step(*step));
            for expected in case.expected {
                if let Err(wrong) = heap.look(*expected) {
                    panic!("{}, {preset}: {wrong}", case.name);
                }
            }
            heap.end();
        });
    }
}

/// CPUs 0 and 1 on node 0, 2 and 3 on node 1.
pub(crate) fn two_nodes() -> MachineSpec {
    MachineSpec::uniform(4, 2, 256 * MIB)
}
