//! What a program is for an experiment: its parameters, what it measures, what it allocates, what it costs
//! the host, and how it runs.
//!
//! A new program is a file of this folder with a type that implements [`Program`], and a line of the
//! experiments' list of workloads.

use crate::kernel::tally::Failed;
use crate::params::Params;
use crate::record::Recorder;
use crate::record::profile::Profile;
use crate::setup::Setup;
use slablab_model::{LockTimes, MachineSpec, Ps};
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A nanosecond in picoseconds.
pub const NS: Ps = 1_000;
/// A microsecond.
pub const US: Ps = 1_000 * NS;
/// A millisecond.
pub const MS: Ps = 1_000 * US;
/// A second.
pub const SECOND: Ps = 1_000 * MS;

/// Costs that only a kernel with tasks charges.
pub const OF_TASKS: &[&str] = &[
    "copy_kib",
    "syscall",
    "switch_mm",
    "switch_thread",
    "wake_local",
    "wake_remote",
    "ipi",
    "idle_exit",
    "page_fault",
    "fork",
    "exit",
];

/// A program on a modelled kernel.
///
/// A run depends on its arguments alone: no clock, no environment, no order of threads.
pub trait Program {
    /// Its parameters.
    type Params: Params;

    /// Its name in experiments.
    const NAME: &'static str;
    /// What it does, in one sentence.
    const ABOUT: &'static str;
    /// What a run measures; the first is that of an experiment which names none.
    const METRICS: &'static [Metric];
    /// Where `slablab suite` runs it; [`Pair::DEFAULT`] if empty.
    const SUITE: &'static [Pair] = &[];

    /// The kernel objects of one operation in a release.
    fn objects(release: Release) -> Vec<Object>;

    /// Whether no run is charged this cost of a machine.
    fn ignores(_cost: &str) -> bool {
        false
    }

    /// Refuses parameters that contradict each other or the machine.
    ///
    /// # Errors
    /// What contradicts, and what is expected.
    fn check(_machine: &MachineSpec, _params: &Self::Params) -> Result<(), String> {
        Ok(())
    }

    /// What a run needs of the host.
    fn estimate(machine: &MachineSpec, params: &Self::Params) -> Estimate;

    /// Runs it, and tells the recorder what happens. The seed chooses what varies from repeat to repeat.
    ///
    /// # Errors
    /// How the run ended instead: without memory, with tasks that wait for ever.
    fn run(setup: &Setup, params: &Self::Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed>;
}

/// A machine on which `slablab suite` runs a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The machine, as `slablab list machines` lists it.
    pub machine: &'static str,
    /// Lines of `[parameters]`, as in an experiment file; a list is swept.
    pub parameters: &'static str,
    /// What this pair of workload and machine shows.
    pub why: &'static str,
}

impl Pair {
    /// The pair of a workload that lists none.
    pub const DEFAULT: &'static [Pair] =
        &[Pair { machine: "laptop", parameters: "", why: "the machine on which a patch is first tried" }];
}

/// What one run measured, and where its time went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// What it measured.
    pub sample: Sample,
    /// Where the time went; `None` if the workload does not tell.
    pub profile: Option<Profile>,
}

/// A quantity that a run measures, as a whole number in a small unit.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in files, with the unit.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Which values are better; `None` where neither is.
    pub better: Option<Better>,
    /// The unit of tables and of published figures.
    pub unit: &'static str,
    /// How many of the number's units are one of `unit`.
    pub per_unit: f64,
    /// Decimals in tables.
    pub decimals: usize,
}

impl Metric {
    /// A share, counted in millionths, in percent.
    pub const fn percent(name: &'static str, about: &'static str, better: Option<Better>) -> Metric {
        Metric { name, about, better, unit: "%", per_unit: 1e4, decimals: 1 }
    }

    /// A count of one operation, in thousandths.
    pub const fn each(name: &'static str, about: &'static str) -> Metric {
        Metric { name, about, better: None, unit: "1", per_unit: 1e3, decimals: 3 }
    }

    /// A number of a sample in the unit of tables.
    pub fn shown(&self, number: u64) -> f64 {
        number as f64 / self.per_unit
    }
}

/// Kernel objects that one operation of a workload allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The slab cache.
    pub cache: &'static str,
    /// Bytes of an object.
    pub bytes: u32,
    /// How many, and when.
    pub per_operation: Cow<'static, str>,
    /// The document or dump that says it, or `assumed`.
    pub source: &'static str,
}

/// What a run needs of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Time of one core, nanoseconds.
    pub host_ns: u64,
    /// Memory, bytes.
    pub host_bytes: u64,
}

/// Bytes of host memory for each page of slabs that a run has in use, and for each machine.
const HOST_BYTES_PER_FRAME: u64 = 64;
const HOST_BYTES_PER_MACHINE: u64 = 8 << 20;

impl Estimate {
    /// A run of so many allocations and frees together on this machine.
    pub fn of_operations(machine: &MachineSpec, operations: u64, live_bytes: u64) -> Estimate {
        /// An allocation or a free at level `cost`, with what it charges (measured: 100 to 250 ns).
        const OPERATION_NS: u64 = 250;
        let frames = (live_bytes >> machine.page_shift) + machine.cpu_node.len() as u64 * 64;
        // Links of 64-byte objects take 24 bytes each.
        let links = live_bytes / 64 * 24;
        Estimate {
            host_ns: operations.saturating_mul(OPERATION_NS),
            host_bytes: HOST_BYTES_PER_MACHINE + frames * HOST_BYTES_PER_FRAME + links,
        }
    }
}

/// What one run measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// A number for each [`Metric`], by its name.
    pub metrics: BTreeMap<String, u64>,
    /// Events of all caches, by the names of [`slablab_platform::Event`]; those that happened.
    pub counters: BTreeMap<String, u64>,
    /// What the locks of each rank did, by the rank's name.
    pub locks: BTreeMap<String, LockTimes>,
}

impl Sample {
    /// All numbers of a run by one name each: metrics, then `counter.` and `lock.` names.
    pub fn numbers(&self) -> impl Iterator<Item = (String, u64)> {
        let metrics = self.metrics.iter().map(|(name, number)| (name.clone(), *number));
        let counters = self.counters.iter().map(|(name, number)| (format!("counter.{name}"), *number));
        let locks = self.locks.iter().flat_map(|(name, times)| {
            let LockTimes { taken, waited, wait, hold } = *times;
            [("taken", taken), ("waited", waited), ("wait_ps", wait), ("hold_ps", hold)]
                .map(|(what, number)| (format!("lock.{name}.{what}"), number))
        });
        metrics.chain(counters).chain(locks)
    }
}

/// `part` of `whole` in millionths; 0 of nothing.
pub fn ppm(part: u64, whole: u64) -> u64 {
    (part as u128 * 1_000_000 / whole.max(1) as u128) as u64
}
