//! What a result says, in the terms that all kinds share.

use serde_json::Value;
use slablab_stats::table::{Better, Cell};

/// A result, read.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// What two results must have in common: the recording, the experiment.
    pub(crate) inputs: Vec<Fact>,
    /// What may differ, and is said first: machine, kernel, version, load.
    pub(crate) settings: Vec<Fact>,
    /// The engines, in the order of the result. Empty if quantities do not belong to engines.
    pub(crate) engines: Vec<String>,
    /// The numbers.
    pub(crate) quantities: Vec<Quantity>,
    /// What makes this result less certain, each a sentence.
    pub(crate) cautions: Vec<String>,
}

/// A named fact about a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    /// Its name, as `recording`.
    pub(crate) name: String,
    /// Its value in words; `None` if the result does not say.
    pub(crate) value: Option<String>,
    /// One of many, which is not named if it is the same in all results.
    pub(crate) is_detail: bool,
}

/// A number of a result.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    /// The engine of [`Answer::engines`] it is of.
    pub(crate) engine: Option<usize>,
    /// The table it is in, as `pair64` or `caches`.
    pub(crate) group: String,
    /// Its name, with the unit.
    pub(crate) name: String,
    /// Which values are better.
    pub(crate) better: Better,
    /// Decimals in tables.
    pub(crate) decimals: usize,
    /// What part it has in the answer.
    pub(crate) role: Role,
    /// The values.
    pub(crate) cell: Cell,
}

/// What part a quantity has in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is what is asked.
    Answer,
    /// One of many details: of these the table has those that differ most.
    Detail,
    /// It is not of slablab's code. Where it differs, the machine does.
    Control,
}

impl Fact {
    pub(crate) fn new(name: impl Into<String>, value: Option<String>) -> Fact {
        Fact { name: name.into(), value, is_detail: false }
    }

    /// A member of a document, in words.
    pub(crate) fn of(name: &str, value: &Value) -> Fact {
        Fact::new(name, words(value))
    }
}

/// A plain value in words; `None` for null and for what is not there.
pub(crate) fn words(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(all) => {
            Some(all.iter().map(|one| words(one).unwrap_or_default()).collect::<Vec<_>>().join(", "))
        }
        other => Some(other.to_string()),
    }
}

/// The version of the program that wrote a document.
pub(crate) fn program(document: &Value) -> Fact {
    Fact::of("slablab", &document["program"]["version"])
}
