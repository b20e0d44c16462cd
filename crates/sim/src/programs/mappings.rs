//! will-it-scale's programs that change the mappings of their process: mmap1, brk1 and page_fault1.
//!
//! | program | an operation |
//! |---|---|
//! | mmap1 | maps 128 MiB of anonymous memory and unmaps it, without touching it |
//! | brk1 | moves the heap's end up by a page, or down again, without touching the page |
//! | page_fault1 | a fault: 128 MiB of anonymous memory are mapped, each page touched, and unmapped |
//!
//! Huge pages are off.

use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program};
use super::repeat::{Repeat, Repeats};
use super::repeated::{self, METRICS};
use crate::kernel::Task;
use crate::kernel::era::Era;
use crate::kernel::objects::Object;
use crate::kernel::tally::Failed;
use crate::params::{self, Parameter, params};
use crate::process::Kind;
use crate::process::mappings::{self, AddressSpace};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{LockTimes, MachineSpec};
use slablab_slabs::Release;

/// Bytes of the mapping of mmap1, and of page_fault1 itself.
const BYTES: u64 = 128 << 20;

/// Time before the window. What the tree of mappings drops is freed after a grace period, on all CPUs at
/// once. Speed rises and falls with that, so whole grace periods pass before the window and in it.
const WARM_UP: Parameter = Parameter {
    source: "assumed: two grace periods of 10 ms, one for a quick run",
    kind: params::Kind::Number { least: 0, most: 100_000_000, defaults: [10_000, 20_000, 100_000] },
    ..repeated::WARM_UP
};
/// The window.
const WINDOW: Parameter = Parameter {
    source: "assumed: four grace periods of 10 ms, one for a quick run; will-it-scale counts for seconds",
    kind: params::Kind::Number { least: 10, most: 100_000_000, defaults: [12_000, 40_000, 1_000_000] },
    ..repeated::WINDOW
};

params! {
    /// The parameters of mmap1 and of brk1.
    #[derive(Copy, Eq)]
    pub struct Params {
        tasks: u32 = repeated::TASKS;
        kind: Kind = repeated::KIND;
        nodes: u32 = repeated::NODES;
        outside_ns: u64 = repeated::OUTSIDE;
        warm_up_us: u64 = WARM_UP;
        window_us: u64 = WINDOW;
    }
}

params! {
    /// The parameters of page_fault1.
    #[derive(Copy, Eq)]
    pub struct Faults {
        tasks: u32 = repeated::TASKS;
        kind: Kind = repeated::KIND;
        mapping_mib: u64 = [1, 4, 128], 1..=1_048_576, "MiB of the mapping",
            "will-it-scale: 128, a full run's; smaller ones end within the window";
        nodes: u32 = repeated::NODES;
        outside_ns: u64 = repeated::OUTSIDE;
        warm_up_us: u64 = repeated::WARM_UP;
        window_us: u64 = repeated::WINDOW;
    }
}

impl Params {
    fn repeat(&self) -> Repeat {
        repeated::window(self.tasks, self.kind, self.outside_ns, [self.warm_up_us, self.window_us])
    }
}

impl Faults {
    fn repeat(&self) -> Repeat {
        repeated::window(self.tasks, self.kind, self.outside_ns, [self.warm_up_us, self.window_us])
    }
}

const QUARTER: Pair = Pair {
    machine: "spr224",
    parameters: "tasks = 56",
    why: "a quarter of many CPUs, each with its own process",
};

const fn laptop(why: &'static str) -> Pair {
    Pair { machine: "laptop", parameters: "tasks = 8", why }
}

/// The program mmap1.
#[derive(Debug)]
pub enum Mmap1 {}

impl Program for Mmap1 {
    type Params = Params;

    const NAME: &'static str = "mmap1";
    const ABOUT: &'static str =
        "each task maps 128 MiB of anonymous memory and unmaps it, without touching it";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[laptop("mappings and their tree, a task on each CPU"), QUARTER];

    fn objects(release: Release) -> Vec<Described> {
        described(release, Change::Map)
    }

    fn ignores(cost: &str) -> bool {
        repeated::ignores(cost)
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        repeated::estimate(machine, &params.repeat(), [1_500, 3_000])
    }

    /// A repeat draws what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let nodes = params.nodes;
        repeated::run(setup, &params.repeat(), seed, recorder, &[], |_| Mappings {
            change: Change::Map,
            nodes,
        })
    }
}

/// The program brk1.
#[derive(Debug)]
pub enum Brk1 {}

impl Program for Brk1 {
    type Params = Params;

    const NAME: &'static str = "brk1";
    const ABOUT: &'static str =
        "each task moves its heap's end up by a page and down again, without touching the page";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] =
        &[laptop("mappings that are split and merged, a task on each CPU"), QUARTER];

    fn objects(release: Release) -> Vec<Described> {
        described(release, Change::Heap)
    }

    fn ignores(cost: &str) -> bool {
        repeated::ignores(cost)
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        repeated::estimate(machine, &params.repeat(), [900, 2_000])
    }

    /// A repeat draws what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let nodes = params.nodes;
        repeated::run(setup, &params.repeat(), seed, recorder, &[], |_| Mappings {
            change: Change::Heap,
            nodes,
        })
    }
}

/// The program page_fault1.
#[derive(Debug)]
pub enum PageFault1 {}

impl Program for PageFault1 {
    type Params = Faults;

    const NAME: &'static str = "page_fault1";
    const ABOUT: &'static str = "each task maps anonymous memory, touches each page of it, and unmaps it";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[laptop("page faults: the page allocator beside the slabs")];

    fn objects(release: Release) -> Vec<Described> {
        described(release, Change::Touch(BYTES))
    }

    fn ignores(cost: &str) -> bool {
        repeated::ignores(cost)
    }

    fn estimate(machine: &MachineSpec, params: &Faults) -> Estimate {
        repeated::estimate(machine, &params.repeat(), [500, 900])
    }

    /// A repeat draws what the scheduler draws.
    fn run(setup: &Setup, params: &Faults, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let (change, nodes) = (Change::Touch(params.mapping_mib << 20), params.nodes);
        repeated::run(setup, &params.repeat(), seed, recorder, &[], |_| Mappings { change, nodes })
    }
}

/// What is done to the mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A mapping comes and goes: one operation.
    Map,
    /// The heap's end goes up and down: two operations. The way down splits the heap's mapping.
    Heap,
    /// A mapping of so many bytes comes, all its pages are touched, and it goes: an operation is a fault.
    /// Those of a mapping are counted when it goes.
    Touch(u64),
}

/// A process whose mappings change.
#[derive(Clone, Copy, Debug)]
pub struct Mappings {
    /// What is repeated.
    pub change: Change,
    /// Nodes that a store into the tree of mappings takes; 0: as many as the release does.
    pub nodes: u32,
}

impl Repeats for Mappings {
    type Process = AddressSpace;

    fn process(&self, task: &Task) -> AddressSpace {
        AddressSpace::with_nodes(task, self.nodes)
    }

    fn operation(&self, task: &Task, space: &AddressSpace) -> u64 {
        match self.change {
            Change::Map => {
                let mapping = task.syscall(|| space.map(task, BYTES));
                task.syscall(|| space.unmap(task, mapping));
                1
            }
            Change::Heap => {
                task.syscall(|| space.grow_heap(task));
                task.syscall(|| space.shrink_heap(task, None));
                2
            }
            Change::Touch(bytes) => {
                let mapping = task.syscall(|| space.map(task, bytes));
                let faults = space.touch(task, &mapping);
                task.syscall(|| space.unmap(task, mapping));
                faults
            }
        }
    }

    fn end(&self, task: &Task, space: AddressSpace) {
        space.end(task);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        vec![mappings::locks()]
    }
}

/// Objects that `operations` operations allocate, each with how many, and how many pages, on a machine with
/// pages of `1 << page_shift` bytes. `nodes` as in [`Mappings`].
pub fn allocated(era: Era, change: Change, nodes: u32, page_shift: u32) -> Allocated {
    use Object::{AnonVma, AnonVmaChain, Vma};
    let (objects, stores, operations, pages): (&[Object], u64, u64, u64) = match change {
        Change::Map => (&[Vma], 2, 1, 0),
        Change::Heap => (&[Vma], 3, 2, 0),
        Change::Touch(bytes) => {
            let (tables, pages) = mappings::pages_of(bytes, page_shift);
            (&[Vma, AnonVma, AnonVmaChain], 2, pages, pages + tables)
        }
    };
    let nodes = stores * u64::from(mappings::nodes_per_store(era, nodes));
    let objects = objects.iter().map(|object| (*object, 1)).chain([(Object::MapleNode, nodes)]).collect();
    Allocated { operations, objects, pages }
}

/// What operations allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// The number of operations.
    pub operations: u64,
    /// Objects and their counts; those that a release does not have are among them.
    pub objects: Vec<(Object, u64)>,
    /// Pages of data, and of page tables.
    pub pages: u64,
}

/// The objects of a release, with pages of 4 KiB.
fn described(release: Release, change: Change) -> Vec<Described> {
    const PAGE_SHIFT: u32 = 12;
    let era = Era { release };
    let Allocated { operations, objects, pages } = allocated(era, change, 0, PAGE_SHIFT);
    let each = |count: u64| match operations {
        1 => format!("{count}").into(),
        _ => format!("{count} for {operations} operations").into(),
    };
    let object = |(object, count): (Object, u64)| {
        let row = object.row(era).filter(|_| count > 0)?;
        Some(Described { cache: row.name, bytes: row.bytes, per_operation: each(count), source: row.source })
    };
    let page = Described {
        cache: "page",
        bytes: 1 << PAGE_SHIFT,
        per_operation: each(pages),
        source: "page size of the machine",
    };
    objects.into_iter().filter_map(object).chain((pages > 0).then_some(page)).collect()
}
