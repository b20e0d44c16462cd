//! What an experiment runs: a workload, its parameters, and what a run of it says.

use super::input::Input;
use super::words::near;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use slablab_machines::{DiskFile, disks};
use slablab_model::MachineSpec;
use slablab_model::disk::Disk;
use slablab_sim::params::{File, Given, Params};
pub use slablab_sim::params::{Kind, Parameter, Size};
use slablab_sim::programs::program::Program;
pub use slablab_sim::programs::program::{Estimate, Metric, Object, Observed, Pair, Sample};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Values of parameters by their names.
pub type Lists = Vec<(&'static str, Vec<Value>)>;

/// What the runs of a cell gave: numbers, or how a run ended otherwise.
pub type Runs = Vec<Result<Sample, Failed>>;

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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A word.
    Word(String),
    /// A recording.
    #[serde(serialize_with = "given")]
    File(#[schemars(with = "String")] Arc<Input>),
}

fn given<S: Serializer>(input: &Arc<Input>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(input.given())
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Values(pub BTreeMap<&'static str, Value>);

/// A program asks for its own parameters, and each has a value of its kind.
impl Given for Values {
    fn number(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(Value::Number(number)) => *number,
            other => panic!("the parameter {name} is no number: {other:?}"),
        }
    }

    fn word(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Value::Word(word)) => word,
            other => panic!("the parameter {name} is no word: {other:?}"),
        }
    }

    fn disk(&self, name: &str) -> Disk {
        // Each cell reads its parameters several times, and the disks are a file that has to be parsed.
        static INSTALLED: LazyLock<Vec<DiskFile>> = LazyLock::new(disks::installed);
        let word = self.word(name);
        let named = INSTALLED.iter().find(|disk| disk.name == word);
        named.expect("the disk comes with the program").disk.clone()
    }

    fn recording(&self, name: &str) -> File {
        match self.0.get(name) {
            Some(Value::File(input)) => input.recorded(),
            other => panic!("the parameter {name} is no recording: {other:?}"),
        }
    }
}
