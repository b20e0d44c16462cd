//! What an experiment runs: a workload, its parameters, and what a run of it says.

use super::input::Input;
use super::rows::near;
use slablab_machines::COSTS;
use slablab_model::{LockTimes, MachineSpec, Ps};
use slablab_sim::profile::Profile;
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A workload: a program on a modelled kernel, as a table of what it is and the functions that run it.
///
/// A run depends on its arguments alone: no clock, no environment, no order of threads.
pub struct Workload {
    /// Its name in experiments.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// What a run measures; the first is that of an experiment which names none.
    pub metrics: &'static [Metric],
    /// The kernel objects of one operation in a release.
    pub objects: fn(Release) -> Vec<Object>,
    /// Whether no run is charged this cost of a machine.
    pub ignores: fn(&str) -> bool,
    /// Refuses parameters that contradict each other or the machine: what contradicts, and what is expected.
    pub check: fn(&MachineSpec, &Values) -> Result<(), String>,
    /// What a run needs of the host.
    pub estimate: fn(&MachineSpec, &Values) -> Estimate,
    /// Runs it, and tells the recorder what happens. The number is the seed: it chooses what varies from
    /// repeat to repeat. An error says how the run ended instead: without memory, with tasks that wait for
    /// ever.
    pub observe: fn(&Setup, &Values, u64, &Recorder) -> Result<Observed, Failed>,
    /// Where `slablab suite` runs it; [`Pair::DEFAULT`] if empty.
    pub suite: &'static [Pair],
}

impl Workload {
    /// Runs it. The numbers are those of [`Workload::observe`].
    ///
    /// # Errors
    /// How the run ended, if it did not end as it should: without memory, with tasks that wait for ever.
    pub fn run(&self, setup: &Setup, values: &Values, seed: u64) -> Result<Sample, Failed> {
        (self.observe)(setup, values, seed, &Recorder::default()).map(|observed| observed.sample)
    }

    /// Whether an experiment has to name a file.
    pub fn needs_file(&self) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter.kind, Kind::File))
    }
}

/// A machine on which `slablab suite` runs a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The machine, as `slablab machines` lists it.
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

/// How long a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// Seconds for a whole experiment.
    Quick,
    /// What an experiment takes if it does not say.
    #[default]
    Standard,
    /// As long as the real program.
    Full,
}

impl Size {
    /// The names in files.
    pub const NAMES: [(&'static str, Size); 3] =
        [("quick", Size::Quick), ("standard", Size::Standard), ("full", Size::Full)];

    /// The name in files.
    pub fn name(self) -> &'static str {
        Size::NAMES[self as usize].0
    }
}

/// A parameter of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in files, with the unit.
    pub name: &'static str,
    /// What it sets.
    pub about: &'static str,
    /// Where its default is from; `assumed` if no document says it.
    pub source: &'static str,
    /// What it may be.
    pub kind: Kind,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number from `least` to `most`, with a default for each [`Size`].
    Number {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
        /// Defaults for quick, standard and full runs.
        defaults: [u64; 3],
    },
    /// One of these words, the first by default.
    Word(&'static [&'static str]),
    /// A recording in the experiment's folder; an experiment has to name it.
    File,
}

impl Parameter {
    /// Its value in an experiment that does not name it.
    pub fn default(&self, size: Size) -> Value {
        match self.kind {
            Kind::Number { defaults, .. } => Value::Number(defaults[size as usize]),
            Kind::Word(words) => Value::Word(words[0].to_string()),
            Kind::File => Value::File(Arc::new(Input::new("", 1))),
        }
    }
}

impl Parameter {
    /// Understands a value as the command line has it.
    ///
    /// # Errors
    /// What the parameter may be.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let name = self.name;
        match self.kind {
            Kind::Number { least, most, .. } => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number));
                number
                    .map(Value::Number)
                    .ok_or_else(|| format!("{name}={text}: expected a whole number from {least} to {most}"))
            }
            Kind::Word(words) if words.contains(&text) => Ok(Value::Word(text.to_string())),
            Kind::Word(words) => Err(format!("{name}={text}{}", near(text, words.iter().copied()))),
            Kind::File => Err(format!("{name}={text}: expected a parameter that is no file")),
        }
    }
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A word.
    Word(String),
    /// A recording.
    File(Arc<Input>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Word(word) => f.write_str(word),
            Value::File(input) => f.write_str(input.given()),
        }
    }
}

/// A value for each parameter of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(pub BTreeMap<&'static str, Value>);

impl Values {
    /// The number that a parameter has.
    ///
    /// # Panics
    /// If it has none: a workload asks for its own parameters.
    pub fn number(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(Value::Number(number)) => *number,
            other => panic!("the parameter {name} is no number: {other:?}"),
        }
    }

    /// The word that a parameter has.
    ///
    /// # Panics
    /// If it has none: a workload asks for its own parameters.
    pub fn word(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Value::Word(word)) => word,
            other => panic!("the parameter {name} is no word: {other:?}"),
        }
    }
}

impl Values {
    /// The recording that a parameter names.
    ///
    /// # Panics
    /// If it names none: a workload asks for its own parameters.
    pub fn file(&self, name: &str) -> &Input {
        match self.0.get(name) {
            Some(Value::File(input)) => input,
            other => panic!("the parameter {name} is no recording: {other:?}"),
        }
    }
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
pub(crate) fn ppm(part: u64, whole: u64) -> u64 {
    (part as u128 * 1_000_000 / whole.max(1) as u128) as u64
}

/// A stream of numbers for one run: what varies from repeat to repeat (Steele, Lea, Flood 2014: splitmix64).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((self.next() as u128 * end as u128) >> 64) as u64
    }

    /// Puts `items` into an order that the stream draws.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Costs that only a kernel with tasks charges.
pub(crate) const OF_TASKS: &[&str] = &[
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

const _: () = assert!(OF_TASKS.len() < COSTS.len());

/// A time in whole nanoseconds of a file as picoseconds.
pub(crate) fn ps(ns: u64) -> Ps {
    ns * 1_000
}
