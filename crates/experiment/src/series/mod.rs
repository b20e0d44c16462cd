//! A series of builds of an engine, the commits of a kernel tree: which commit moves which number.
//!
//! ```text
//! commits, base first ── measure ── Entry each: numbers, or why there are none ── kept in a folder
//!                                     │
//!                                   moves: each commit beside the last one before it that has numbers
//! ```
//!
//! A replay is deterministic: a number that differs differs by the commit. Runs of an experiment vary with
//! their seeds, which are the same for each commit: Welch's test, with Holm's correction over the series.
//!
//! *Absent*: git, builds, trees. docs/linux.md is the manual.

mod kept;
mod measure;
mod moves;

pub use kept::Kept;
pub use measure::{Ran, of_experiment, of_recording};
pub use moves::{Move, Moves, SIGNIFICANCE};

use serde::{Deserialize, Serialize};

/// A series.
#[derive(Clone, Debug)]
pub struct Series {
    /// The folder of the tree.
    pub tree: String,
    /// The commits, as they were asked for.
    pub range: String,
    /// What was run.
    pub of: Of,
    /// The commits; the base is the first.
    pub commits: Vec<Entry>,
    /// The part that was run, in words; empty for all of it.
    pub part: String,
}

/// What is run of each commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// A recording, by its path.
    Recording(String),
    /// An experiment, by its name.
    Experiment(String),
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// All digits.
    pub id: String,
    /// The first line of its message.
    pub title: String,
    /// What became of it.
    pub state: State,
    /// Names all that its build was made of.
    pub digest: Option<String>,
    /// Seconds of its build.
    pub build_s: Option<f64>,
    /// Seconds of its runs.
    pub run_s: Option<f64>,
}

/// What became of a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It ran.
    Measured(Measured),
    /// It touches no file that the build reads: it has the numbers of the commit before.
    Untouched,
    /// The first error of its build.
    DoesNotBuild(String),
    /// Its code ended a run: a BUG, a WARN, a bad address.
    Ended(String),
    /// It is of another part, or was not run before.
    NotRun,
}

/// Numbers of a commit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was measured.
    pub numbers: Vec<Number>,
    /// The values of each number, one for each independent run.
    pub values: Vec<Vec<f64>>,
}

/// Something that is measured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Number {
    /// Its name.
    pub name: String,
    /// Machine and parameters, where there are several; else empty.
    pub place: String,
    /// Its unit; empty for a count.
    pub unit: String,
    /// Decimals in tables.
    pub decimals: usize,
    /// Whether lower values are better; `None` where neither is.
    pub lower_is_better: Option<bool>,
    /// Whether a reader looks for it first.
    pub is_main: bool,
}

impl Number {
    /// Its name and place.
    pub fn label(&self) -> String {
        match self.place.as_str() {
            "" => self.name.clone(),
            place => format!("{} {place}", self.name),
        }
    }
}

impl Measured {
    /// The mean of a number.
    pub fn mean(&self, number: &Number) -> Option<f64> {
        self.of(number).map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
    }

    /// The values of a number.
    pub fn of(&self, number: &Number) -> Option<&[f64]> {
        let is_it = |known: &Number| known.name == number.name && known.place == number.place;
        let at = self.numbers.iter().position(is_it)?;
        self.values.get(at).map(Vec::as_slice)
    }
}

impl State {
    /// Its word in documents.
    pub fn word(&self) -> &'static str {
        match self {
            State::Measured(_) => "measured",
            State::Untouched => "untouched",
            State::DoesNotBuild(_) => "does not build",
            State::Ended(_) => "ended",
            State::NotRun => "not run",
        }
    }

    /// Why there are no numbers, in the words of compiler or kernel.
    pub fn problem(&self) -> Option<&str> {
        match self {
            State::DoesNotBuild(words) | State::Ended(words) => Some(words),
            State::Measured(_) | State::Untouched | State::NotRun => None,
        }
    }
}

impl Series {
    /// Whether each run of a commit gives the same numbers.
    pub fn is_exact(&self) -> bool {
        matches!(self.of, Of::Recording(_))
    }

    /// What is measured, in the order of the first commit that has numbers.
    pub fn numbers(&self) -> &[Number] {
        let measured = self.commits.iter().find_map(|entry| match &entry.state {
            State::Measured(measured) => Some(measured),
            _ => None,
        });
        measured.map_or(&[], |measured| &measured.numbers)
    }

    /// The numbers that a commit has: its own, or those of the commit that it does not differ from.
    pub fn measured(&self, at: usize) -> Option<&Measured> {
        let mut before = self.commits[..=at].iter().rev();
        match &before.find(|entry| entry.state != State::Untouched)?.state {
            State::Measured(measured) => Some(measured),
            _ => None,
        }
    }
}
