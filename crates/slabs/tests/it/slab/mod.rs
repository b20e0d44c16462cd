//! SLAB against docs/theory/slab.md, on the modelled machine, by counters.
//!
//! Every case is data for [`check`]: a preset, steps, and the expected counters. These tests cannot show
//! races (the schedules in crates/check do), or whether a kernel did the same (crates/replay/tests/it/real.rs
//! does).

mod arrays;
mod era24;
mod lists;
mod nodes;
mod reaper;
mod sizes;

use Expected::{Counted, FreeInSlabs, Live, Parked, PartialSlabs, Slabs};
use Step::{
    Alloc, AllocOn, Churn, Down, Feed, Free, FreeNewest, FreeNth, Insist, Reap, Refused, Same, SameSlab,
    Seed, SeedArrays, Shrink, Up, Wait,
};
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, FrameKind, Frames, Gfp, NodeId, Time};
use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
use slablab_slabs::preset::Preset;
use slablab_slabs::{CacheId, CacheSpec, Engine, Place};

const MIB: u64 = 1 << 20;
const OLD: &str = "slab@2.6.29";
const NEW: &str = "slab@6.1";

/// One step of a case. Objects are held oldest first; `Free` takes the oldest. Fields: CPU, then node, then
/// number.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Allocates this many objects on a CPU.
    Alloc(u16, u32),
    /// Allocates this many objects on a CPU from a node.
    AllocOn(u16, u16, u32),
    /// Allocates this many objects on a CPU from a node with `__GFP_THISNODE`.
    Insist(u16, u16, u32),
    /// An allocation on a CPU from a node with `__GFP_THISNODE` that must fail.
    Refused(u16, u16),
    /// Allocates one object on a CPU, which must be the one that the allocation with this number returned.
    /// The first allocation has number 0.
    Same(u16, usize),
    /// Allocates one object on a CPU, which must be in the slab of the object with this number.
    SameSlab(u16, usize),
    /// Frees the oldest objects on a CPU, this many.
    Free(u16, u32),
    /// Frees the newest objects on a CPU, this many.
    FreeNewest(u16, u32),
    /// Frees the object with this number on a CPU.
    FreeNth(u16, usize),
    /// Allocates an object on the first CPU and frees it on the second, this many times.
    Feed(u16, u16, u32),
    /// Allocates one object and frees the oldest on a CPU, this many times.
    Churn(u16, u32),
    /// Lets the reaper's interval pass, this many times.
    Reap(u32),
    /// Lets this many milliseconds pass.
    Wait(u64),
    /// Returns everything that can be returned.
    Shrink,
    /// Makes a slab on a node as an earlier life left it: this many objects free, the others allocated.
    Seed(u16, u16),
    /// Moves free objects into the array of a CPU, and into the shared array of its node.
    SeedArrays(u16, u32, u32),
    /// Takes a CPU offline.
    Down(u16),
    /// Brings a CPU online.
    Up(u16),
}

/// A value to check after the steps.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Counted(Event, u64),
    Slabs(u64),
    /// Slabs on the partial and free lists.
    PartialSlabs(u64),
    FreeInSlabs(u64),
    /// Objects in arrays.
    Parked(u64),
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

type Heap = crate::heap::Heap<SlabEngine<Model>>;

fn policy(preset: &str) -> SlabPolicy {
    match Preset::parse(preset) {
        Ok(Preset::Slab(policy)) => policy,
        other => panic!("{preset}: {other:?}"),
    }
}

impl Heap {
    fn new(preset: &str, spec: &CacheSpec) -> Heap {
        Heap::of(&policy(preset), PagesPolicy::for_release(2, 6, 29), spec)
    }

    /// Allocates one more object. Returns it, and the object with the number `nth`.
    fn alloc_again(&mut self, cpu: u16, nth: usize) -> [<Model as Frames>::Ptr; 2] {
        let wanted = self.ever[nth];
        [self.request(cpu, Gfp::KERNEL, None).expect("memory is left"), wanted]
    }

    fn step(&mut self, step: Step) {
        match step {
            Alloc(cpu, n) => self.requests(cpu, Gfp::KERNEL, None, n),
            AllocOn(cpu, node, n) => self.requests(cpu, Gfp::KERNEL, Some(node), n),
            Insist(cpu, node, n) => self.requests(cpu, Gfp::KERNEL | Gfp::THISNODE, Some(node), n),
            Refused(cpu, node) => {
                assert_eq!(self.request(cpu, Gfp::KERNEL | Gfp::THISNODE, Some(node)), None, "{step:?}");
            }
            Same(cpu, nth) => {
                let [found, wanted] = self.alloc_again(cpu, nth);
                assert_eq!(found, wanted, "{step:?}");
            }
            SameSlab(cpu, nth) => {
                let [found, wanted] = self.alloc_again(cpu, nth).map(|object| Model::locate(object).0);
                assert_eq!(found, wanted, "{step:?}");
            }
            Free(cpu, n) => self.free_oldest(cpu, n),
            FreeNewest(cpu, n) => self.free_newest(cpu, n),
            FreeNth(cpu, nth) => {
                let place = self.held.iter().position(|object| *object == self.ever[nth]);
                let object = self.held.remove(place.expect("the case holds it"));
                self.free(cpu, object);
            }
            Feed(from, to, n) => (0..n).for_each(|_| {
                self.step(Alloc(from, 1));
                self.step(FreeNewest(to, 1));
            }),
            Churn(cpu, n) => (0..n).for_each(|_| {
                self.step(Alloc(cpu, 1));
                self.step(Free(cpu, 1));
            }),
            Reap(n) => (0..n).for_each(|_| self.step(Wait(2000))),
            Wait(ms) => {
                let end = Model::now() + ms * 1_000_000;
                while Model::now() < end {
                    Model::advance_to(Model::next_timer_ns().min(end));
                    self.due();
                }
            }
            Shrink => drop(self.with(|cache, backing| cache.shrink(backing))),
            Seed(node, free) => self.seed(NodeId(node), free),
            SeedArrays(cpu, in_array, in_shared) => {
                Model::run_on(CpuId(cpu));
                self.with(|cache, backing| cache.seed_arrays(backing, in_array, in_shared));
            }
            Down(cpu) => self.down(cpu),
            Up(cpu) => self.up(cpu),
        }
    }

    fn seed(&mut self, node: NodeId, free: u16) {
        let indexes: Vec<u16> = (0..free).collect();
        let first = self.with(|cache, backing| cache.seed(backing, node, Place::Node, &indexes));
        let (pfn, offset) = Model::locate(first.expect("memory is left"));
        let (size, objects) = (u64::from(self.cache.geometry().size), self.cache.geometry().objects);
        for index in u64::from(free)..u64::from(objects) {
            self.held.push_back(Model::address(pfn, u64::from(offset) + index * size));
        }
    }

    fn look(&self, expected: Expected) -> Result<(), String> {
        let usage = self.cache.usage();
        let (found, wanted) = match expected {
            Counted(event, n) => (self.cache.counted(event), n),
            Slabs(n) => (usage.slabs, n),
            PartialSlabs(n) => (usage.partial, n),
            FreeInSlabs(n) => (usage.free_in_partial, n),
            Parked(n) => (usage.parked, n),
            Live(n) => (usage.live_objects(), n),
        };
        if found == wanted { Ok(()) } else { Err(format!("{expected:?}: found {found}")) }
    }

    fn end(self) {
        self.finish(|_| ());
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

fn one_node() -> MachineSpec {
    MachineSpec::uniform(2, 1, 256 * MIB)
}

/// CPUs 0 and 1 on node 0, 2 and 3 on node 1.
fn two_nodes() -> MachineSpec {
    MachineSpec::uniform(4, 2, 256 * MIB)
}

/// CPU n on node n, which has memory.
fn three_cpus() -> MachineSpec {
    MachineSpec::uniform(3, 3, 256 * MIB)
}

/// CPU 0 on node 0 without memory, CPU 1 on node 1, CPU 2 on node 2.
fn three_nodes() -> MachineSpec {
    let nodes = [0, 256 * MIB, 256 * MIB].map(|bytes| NodeSpec { bytes }).to_vec();
    MachineSpec { cpu_node: vec![0, 1, 2], nodes, ..MachineSpec::uniform(3, 3, 256 * MIB) }
}

/// CPU 0 on node 0 without memory, CPU 1 on node 1 with all of it.
fn memoryless() -> MachineSpec {
    let nodes = [0, 512 * MIB].map(|bytes| NodeSpec { bytes }).to_vec();
    MachineSpec { cpu_node: vec![0, 1], nodes, ..MachineSpec::uniform(2, 2, 512 * MIB) }
}
