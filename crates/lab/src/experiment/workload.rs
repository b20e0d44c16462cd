//! What an experiment runs: a workload, its parameters, and what a run of it says.

use super::input::Input;
use super::rows::near;
use slablab_machines::COSTS;
use slablab_model::{MachineSpec, Ps};
use slablab_sim::params::{Given, Params};
pub use slablab_sim::params::{Kind, Parameter, Size};
use slablab_sim::programs::program::Program;
pub(crate) use slablab_sim::programs::program::ppm;
pub use slablab_sim::programs::program::{Estimate, Metric, Object, Observed, Pair, Sample};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
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
    /// The workload of a program of the simulated kernel.
    pub const fn of<P: Program>() -> Workload {
        Workload {
            name: P::NAME,
            about: P::ABOUT,
            parameters: P::Params::ROWS,
            metrics: P::METRICS,
            objects: P::objects,
            ignores: P::ignores,
            check: |machine, values| P::check(machine, &P::Params::read(values)),
            estimate: |machine, values| P::estimate(machine, &P::Params::read(values)),
            observe: |setup, values, seed, recorder| P::run(setup, &P::Params::read(values), seed, recorder),
            suite: P::SUITE,
        }
    }

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

/// What experiments ask of a parameter.
pub trait Valued {
    /// Its value in an experiment that does not name it.
    fn default(&self, size: Size) -> Value;
    /// Understands a value as the command line has it.
    ///
    /// # Errors
    /// What the parameter may be.
    fn parse(&self, text: &str) -> Result<Value, String>;
}

impl Valued for Parameter {
    fn default(&self, size: Size) -> Value {
        match self.kind {
            Kind::Number { defaults, .. } => Value::Number(defaults[size as usize]),
            Kind::Word(words) => Value::Word(words[0].to_string()),
            Kind::File => Value::File(Arc::new(Input::new("", 1))),
        }
    }

    fn parse(&self, text: &str) -> Result<Value, String> {
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

impl Given for Values {
    fn number(&self, name: &str) -> u64 {
        Values::number(self, name)
    }

    fn word(&self, name: &str) -> &str {
        Values::word(self, name)
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
