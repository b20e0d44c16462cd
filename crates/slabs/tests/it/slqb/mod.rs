//! SLQB against docs/theory/slqb.md, on the modelled machine, by counters.
//!
//! Every case is data for [`check`]: a preset, steps, and the expected counters. These tests cannot show
//! races (the schedules in crates/check do), or whether a kernel did the same, because no recording of one
//! exists.

mod life;
mod nodes;
mod programs;
mod queues;
mod sizes;

use Expected::{Counted, FreeInPages, Live, Pages, Parked, PartialPages};
use Step::{Alloc, AllocOn, Churn, Down, Feed, Free, FreeNewest, PingPong, Reap, Shrink, Up};
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_pages::PagesPolicy;
use slablab_platform::{CpuId, Event, Frames, Gfp, NodeId, Pfn, Time};
use slablab_slabs::engines::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, Busy, CacheFlags, CacheId, CacheSpec, Engine, Misuse, Place, Usage};
use std::collections::VecDeque;

const MIB: u64 = 1 << 20;
const REAP_NS: u64 = 3_000_000_000;
const JANUARY: &str = "slqb@2009-01";
const SEPTEMBER: &str = "slqb@2009-09";

/// One step of a case. Objects are held oldest first; `Free` takes the oldest. Fields: CPU, then node, then
/// number.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Allocates this many objects on a CPU.
    Alloc(u16, u32),
    /// Allocates this many objects on a CPU from a node.
    AllocOn(u16, u16, u32),
    /// Frees the oldest objects on a CPU, this many.
    Free(u16, u32),
    /// Frees the newest objects on a CPU, this many.
    FreeNewest(u16, u32),
    /// Allocates and frees one object on a CPU, this many times.
    PingPong(u16, u32),
    /// Allocates an object on the first CPU and frees it on the second, this many times.
    Feed(u16, u16, u32),
    /// Allocates one object and frees the oldest on a CPU, this many times.
    Churn(u16, u32),
    /// Lets the reaper's interval pass, this many times.
    Reap(u32),
    /// Returns everything that can be returned.
    Shrink,
    /// Takes a CPU offline.
    Down(u16),
    /// Brings a CPU online.
    Up(u16),
}

/// A value to check after the steps: the smallest and the largest allowed value.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Counted(Event, u64),
    /// All pages of the cache.
    Pages(u64, u64),
    PartialPages(u64),
    FreeInPages(u64),
    /// Objects in queues, on remote lists and in `remote_free`.
    Parked(u64, u64),
    Live(u64),
}

struct Case {
    name: &'static str,
    machine: MachineSpec,
    presets: &'static [&'static str],
    size: u32,
    steps: &'static [Step],
    expected: &'static [Expected],
}

impl Case {
    /// 64-byte objects: 64 per page, batches of 256, queues of 1024.
    fn new(
        name: &'static str,
        machine: MachineSpec,
        presets: &'static [&'static str],
        steps: &'static [Step],
        expected: &'static [Expected],
    ) -> Case {
        Case { name, machine, presets, size: 64, steps, expected }
    }
}

type Heap = crate::heap::Heap<Slqb<Model>>;

fn policy(preset: &str) -> SlqbPolicy {
    match Preset::parse(preset) {
        Ok(Preset::Slqb(policy)) => policy,
        other => panic!("{preset}: {other:?}"),
    }
}

impl Heap {
    fn new(preset: &str, spec: &CacheSpec) -> Heap {
        Heap::of(&policy(preset), PagesPolicy::for_release(2, 6, 29), spec)
    }

    fn backing(&self) -> Backing<'_, Model> {
        Backing::pages(&self.pages)
    }

    fn alloc(&mut self, cpu: u16, node: Option<u16>) -> <Model as Frames>::Ptr {
        self.request(cpu, Gfp::KERNEL, node).expect("memory is left")
    }

    fn step(&mut self, step: Step) {
        match step {
            Alloc(cpu, n) => self.requests(cpu, Gfp::KERNEL, None, n),
            AllocOn(cpu, node, n) => self.requests(cpu, Gfp::KERNEL, Some(node), n),
            Free(cpu, n) => self.free_oldest(cpu, n),
            FreeNewest(cpu, n) => self.free_newest(cpu, n),
            PingPong(cpu, n) => self.step(Feed(cpu, cpu, n)),
            Feed(from, to, n) => (0..n).for_each(|_| {
                self.step(Alloc(from, 1));
                self.step(FreeNewest(to, 1));
            }),
            Churn(cpu, n) => (0..n).for_each(|_| {
                self.step(Alloc(cpu, 1));
                self.step(Free(cpu, 1));
                self.due();
            }),
            Reap(n) => (0..n).for_each(|_| {
                Model::advance_to(Model::now() + REAP_NS);
                self.due();
            }),
            Shrink => drop(self.cache.shrink(&self.backing())),
            Down(cpu) => self.down(cpu),
            Up(cpu) => self.up(cpu),
        }
    }

    fn look(&self, expected: Expected) -> Result<(), String> {
        let usage = self.cache.usage();
        let (found, least, most) = match expected {
            Counted(event, n) => (self.cache.counted(event), n, n),
            Pages(least, most) => (usage.slabs, least, most),
            PartialPages(n) => (usage.partial, n, n),
            FreeInPages(n) => (usage.free_in_partial, n, n),
            Parked(least, most) => (usage.parked, least, most),
            Live(n) => (usage.live_objects(), n, n),
        };
        if (least..=most).contains(&found) { Ok(()) } else { Err(format!("{expected:?}: found {found}")) }
    }

    /// The reaper of a destroyed cache ends at its next visit.
    fn end(self) {
        self.finish(|heap| {
            Model::advance_to(Model::now() + 60_000_000_000);
            heap.due();
        });
    }
}

fn check(case: &Case) {
    for preset in case.presets {
        let mut machine = Machine::new(case.machine.clone()).expect("the spec is right");
        machine.enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(case.size));
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
fn two_nodes() -> MachineSpec {
    MachineSpec::uniform(4, 2, 256 * MIB)
}

/// CPUs 0 and 1 on node 0, 2 and 3 on node 1. Node 0 has no memory.
fn memoryless() -> MachineSpec {
    MachineSpec { nodes: vec![NodeSpec { bytes: 0 }, NodeSpec { bytes: 256 * MIB }], ..two_nodes() }
}
