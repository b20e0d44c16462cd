//! `micro`: one size, one pattern of allocations and frees.
//!
//! | module | contents |
//! |---|---|
//! | `patterns` | the patterns on a machine, and what they are measured by |

mod patterns;

use super::measures::{FAST_ALLOCS, FAST_FREES};
use super::program::{Estimate, Metric, OF_TASKS, Object as Described, Observed, Pair, Program, Sample};
use crate::heap::paths;
use crate::kernel::tally::Failed;
use crate::params::{params, words};
use crate::record::Recorder;
use crate::setup::Setup;
pub use patterns::{Crowd, Load, Measured, Pattern, measure};
use slablab_model::{LockTimes, MachineSpec};
use slablab_platform::{CpuId, Rank, rank};
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// A pattern by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// [`Pattern::Pair`].
    Pair,
    /// [`Pattern::Batch`].
    Batch,
    /// [`Pattern::Shuffled`].
    Shuffled,
    /// [`Pattern::OneWay`].
    OneWay,
    /// [`Pattern::Concurrent`].
    Concurrent,
    /// [`Crowd::Churn`].
    Churn,
    /// [`Crowd::Larson`].
    Larson,
    /// [`Crowd::OneWay`].
    Xmalloc,
    /// [`Crowd::Swap`].
    Mstress,
}

words! {
    Named {
        Pair = "pair",
        Batch = "batch",
        Shuffled = "shuffled",
        OneWay = "one-way",
        Concurrent = "concurrent",
        Churn = "churn",
        Larson = "larson",
        Xmalloc = "xmalloc",
        Mstress = "mstress",
    }
}

/// What an operation costs beside the lines that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prices {
    /// What it costs in the kernel.
    Kernel,
    /// What it costs in a program with a slot for each thread.
    Program,
}

words! { Prices { Kernel = "kernel", Program = "program" } }

params! {
    /// The workload's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        pattern: Named,
            "pair: an object is allocated and freed, again and again; batch: `batch` objects are \
             allocated, then all are freed; shuffled: freed in an order that is drawn; one-way: CPU 0 \
             allocates, CPU `to_cpu` frees; concurrent: `cpus` CPUs at once do a batch, and wait for each \
             other between its halves; churn: `cpus` CPUs do batches and wait for none; larson: they \
             replace random objects of tables of batch / 4, which go to the next CPU after each batch; \
             xmalloc: half of them allocate batches, half free them; mstress: they allocate and free at \
             random, and swap objects at random",
            "shuffled: V. Babka, 2025; concurrent: the module of C. Lameter that J. Kim used in 2016; \
             larson, xmalloc, mstress: in the manner of these benchmarks, with numbers chosen here";
        bytes: u32 = [64], 8..=4_194_304, "bytes of an object", "assumed";
        batch: u32 = [100], 1..=1_048_576,
            "objects of a batch, for each CPU; objects between the two CPUs of one-way", "assumed";
        to_cpu: u16 = [1], 1..=65_534, "the CPU that frees in the pattern one-way", "assumed";
        cpus: u16 = [0], 0..=65_534, "CPUs of the patterns from concurrent on; 0: all", "assumed";
        sheaf_capacity: u32 = [0], 0..=1_024,
            "0: objects of kmalloc's class; else objects of a cache of their own, which asks for sheaves \
             of this capacity. Only 6.18 lets caches ask",
            "V. Babka, 2025: 32";
        prices: Prices,
            "what an operation costs beside the lines that it touches: in the kernel, or in a program with a \
             slot for each thread",
            "crates/sim/src/heap/paths.rs; an instruction of a program takes a third of a cycle (assumed)";
        objects: u64 = [20_000, 200_000, 2_000_000], 1_000..=4_294_967_296,
            "objects that are counted, in whole batches, after as many or 20,000 to warm up; from churn on \
             for each CPU, after as many",
            "assumed";
    }
}

impl Params {
    /// The crowd of a pattern, if it is one.
    fn crowd(&self) -> Option<Crowd> {
        match self.pattern {
            Named::Churn => Some(Crowd::Churn),
            Named::Larson => Some(Crowd::Larson),
            Named::Xmalloc => Some(Crowd::OneWay),
            Named::Mstress => Some(Crowd::Swap),
            Named::Pair | Named::Batch | Named::Shuffled | Named::OneWay | Named::Concurrent => None,
        }
    }

    /// CPUs of the patterns from `concurrent` on.
    fn cpus_of(&self, machine: &MachineSpec) -> u16 {
        match self.cpus {
            0 => machine.cpu_node.len() as u16,
            cpus => cpus,
        }
    }

    fn pattern_on(&self, machine: &MachineSpec) -> Pattern {
        let (each, cpus) = (self.batch, self.cpus_of(machine));
        match (self.pattern, self.crowd()) {
            (_, Some(of)) => Pattern::Crowd { of, cpus, each },
            (Named::Pair, _) => Pattern::Pair,
            (Named::Batch, _) => Pattern::Batch(each),
            (Named::Shuffled, _) => Pattern::Shuffled(each),
            (Named::Concurrent, _) => Pattern::Concurrent { cpus, each },
            _ => Pattern::OneWay { to: CpuId(self.to_cpu), window: each },
        }
    }

    /// Objects that are counted.
    fn objects_on(&self, machine: &MachineSpec) -> u64 {
        self.objects * self.crowd().map_or(1, |_| u64::from(self.cpus_of(machine)))
    }

    /// Objects that are live at once.
    fn live_on(&self, machine: &MachineSpec) -> u64 {
        match self.pattern {
            Named::Pair => 1,
            Named::Batch | Named::Shuffled | Named::OneWay => self.batch.into(),
            _ => u64::from(self.batch) * u64::from(self.cpus_of(machine)),
        }
    }
}

/// The workload.
#[derive(Debug)]
pub enum Micro {}

impl Program for Micro {
    type Params = Params;

    const NAME: &'static str = "micro";
    const ABOUT: &'static str = "what a microbenchmark of kmalloc would measure: pairs, batches, frees on another CPU, all \
         CPUs at once, programs of many threads";
    const METRICS: &'static [Metric] = METRICS;
    const SUITE: &'static [Pair] = &[
        Pair {
            machine: "laptop",
            parameters: "pattern = [\"pair\", \"batch\", \"one-way\"]\nbytes = [64, 1024]",
            why: "the cost of one object, alone, in batches, and freed on another CPU",
        },
        Pair {
            machine: "numa8",
            parameters: "pattern = \"one-way\"\nto_cpu = [4, 16]",
            why: "frees on a node without memory, and on another socket",
        },
    ];

    fn objects(_release: Release) -> Vec<Described> {
        vec![Described {
            cache: "kmalloc-<bytes>, or micro",
            bytes: 0,
            per_operation: "1, of the size that `bytes` asks for".into(),
            source: "the parameter",
        }]
    }

    fn ignores(cost: &str) -> bool {
        OF_TASKS.contains(&cost)
    }

    fn check(machine: &MachineSpec, params: &Params) -> Result<(), String> {
        let cpus = machine.cpu_node.len();
        let Params { to_cpu, cpus: at_once, batch, .. } = *params;
        match params.pattern {
            Named::OneWay if usize::from(to_cpu) >= cpus => {
                Err(format!("to_cpu = {to_cpu}: expected a CPU below {cpus}"))
            }
            Named::Pair | Named::Batch | Named::Shuffled | Named::OneWay => Ok(()),
            _ if usize::from(at_once) > cpus => {
                Err(format!("cpus = {at_once}: expected at most {cpus}, or 0 for all"))
            }
            Named::Xmalloc if params.cpus_of(machine) % 2 == 1 => {
                Err(format!("cpus = {at_once}: expected an even number: half of them allocate, half free"))
            }
            Named::Larson if batch < 4 => {
                Err(format!("batch = {batch}: expected at least 4: a table has a quarter"))
            }
            _ => Ok(()),
        }
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        let (objects, round) = (params.objects_on(machine), params.live_on(machine));
        let whole = |objects: u64| objects.max(1).div_ceil(round) * round;
        let live = round * u64::from(params.bytes);
        Estimate::of_operations(machine, (whole(objects) + whole(objects.min(20_000))) * 2, live)
    }

    /// The seed draws the order of shuffled frees, and that of a free list which is in random order.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let load = Load {
            pattern: params.pattern_on(&setup.spec),
            bytes: params.bytes,
            sheaf_capacity: params.sheaf_capacity,
            objects: params.objects_on(&setup.spec),
            seed,
        };
        let costs = &setup.hardware.costs;
        let prices = match params.prices {
            Prices::Program => paths::native(&setup.preset, costs, costs.cycle * 1_000 / 3),
            Prices::Kernel => paths::paths(&setup.preset, costs),
        };
        let found = measure(setup, prices, &load, recorder)?;
        let mcycles = |ps: u64| ps * 1_000 / costs.cycle;
        let numbers = [
            ("cpu_ps", found.cpu),
            ("wall_ps", found.wall),
            ("cpu_mcycles", mcycles(found.cpu)),
            ("alloc_mcycles", mcycles(found.alloc)),
            ("free_mcycles", mcycles(found.free)),
            ("fast_allocs_ppm", found.fast_allocs * 1_000),
            ("fast_frees_ppm", found.fast_frees * 1_000),
        ];
        let metrics = numbers.into_iter().chain(of_locks(&found));
        let metrics = metrics.map(|(name, number)| (name.to_string(), number)).collect();
        let sample = Sample { metrics, ..Sample::default() };
        Ok(Observed { sample, profile: Some(found.profile) })
    }
}

const fn time(name: &'static str, about: &'static str, unit: &'static str, decimals: usize) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit, per_unit: 1e3, decimals }
}

/// Of 1,000 objects: the runs count for a million.
const fn of_many(name: &'static str, about: &'static str, unit: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit, per_unit: 1e3, decimals: 2 }
}

const METRICS: &[Metric] = &[
    time("cpu_ps", "CPU time of one object, allocation and free, on all CPUs", "ns", 2),
    time("wall_ps", "time from the start to the end, for one object", "ns", 2),
    time("cpu_mcycles", "CPU time of one object, allocation and free, on all CPUs", "cycles", 1),
    time("alloc_mcycles", "time of one allocation on its CPU, waits for locks included", "cycles", 1),
    time("free_mcycles", "time of one free on its CPU, waits for locks included", "cycles", 1),
    FAST_ALLOCS,
    FAST_FREES,
    time("lock_wait_ps", "waits for locks, for one object", "ns", 2),
    time("barn_wait_ps", "waits for the locks of barns, for one object", "ns", 2),
    time("list_wait_ps", "waits for the locks of nodes' lists, for one object", "ns", 2),
    time("zone_wait_ps", "waits for zones' locks, for one object", "ns", 2),
    of_many("locks_per_million", "locks taken, for 1,000 objects", "locks"),
    of_many("waited_per_million", "locks that a CPU had to wait for, for 1,000 objects", "locks"),
    of_many("barn_locks_per_million", "locks of barns taken, for 1,000 objects", "locks"),
    of_many("list_locks_per_million", "locks of nodes' lists taken, for 1,000 objects", "locks"),
    of_many("zone_locks_per_million", "locks of zones taken, for 1,000 objects", "locks"),
    of_many("lines_per_million", "cache lines from other CPUs or from memory, for 1,000 objects", "lines"),
];

/// What locks did, and lines that moved.
fn of_locks(found: &Measured) -> [(&'static str, u64); 10] {
    let of = |rank: Option<&str>, what: fn(&LockTimes) -> u64| -> u64 {
        let locks = found.locks.iter().filter(|(name, _)| rank.is_none_or(|rank| rank == *name));
        locks.map(|(_, times)| what(times)).sum()
    };
    let wait = |rank| of(rank, |times| times.wait) / found.objects;
    let million = |count: u64| count * 1_000_000 / found.objects;
    let taken = |rank| million(of(rank, |times| times.taken));
    let [barn, list, zone] = [rank::Barn::NAME, rank::NodeList::NAME, rank::Zone::NAME].map(Some);
    [
        ("lock_wait_ps", wait(None)),
        ("barn_wait_ps", wait(barn)),
        ("list_wait_ps", wait(list)),
        ("zone_wait_ps", wait(zone)),
        ("locks_per_million", taken(None)),
        ("waited_per_million", million(of(None, |times| times.waited))),
        ("barn_locks_per_million", taken(barn)),
        ("list_locks_per_million", taken(list)),
        ("zone_locks_per_million", taken(zone)),
        ("lines_per_million", million(found.lines)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_needs_a_cpu_of_the_machine() {
        let machine = MachineSpec::uniform(2, 1, 1 << 30);
        let check = |pattern: Named, to: u16, expected: Result<(), String>| {
            let params = Params { pattern, to_cpu: to, cpus: to, ..Params::default() };
            assert_eq!(Micro::check(&machine, &params), expected, "{pattern:?} to {to}");
        };
        check(Named::OneWay, 1, Ok(()));
        check(Named::Pair, 7, Ok(()));
        check(Named::Concurrent, 2, Ok(()));
        check(Named::Concurrent, 3, Err("cpus = 3: expected at most 2, or 0 for all".into()));
        check(Named::OneWay, 2, Err("to_cpu = 2: expected a CPU below 2".into()));
    }
}
