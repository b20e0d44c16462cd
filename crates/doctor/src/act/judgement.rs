//! The kinds of answers, and the words for a cache that all of them use.

use crate::measure::{Line, named};
use crate::what::Entry;
use crate::words::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It grew, and the kernel does not free what grew.
    Climbing,
    /// What is large, or grew, is what the kernel frees when it needs memory; or slabs are too little to
    /// matter.
    #[serde(rename = "benign_cache")]
    NoProblem,
    /// It did not grow.
    Steady,
    /// Most of it can only be freed by its holders; whether it grows takes a second snapshot.
    NotReclaimable,
    /// The input does not tell what can be reclaimed, or what grew.
    Unknown,
    /// Objects were damaged or lost: this is no answer about memory.
    Corruption,
}

/// A cache's name and its purpose in a few words.
pub(super) fn introduced(line: &Line) -> String {
    let purpose = line.what.map(purpose);
    purpose.map_or_else(|| named(line), |purpose| format!("{} ({purpose})", named(line)))
}

pub(super) fn with_size(line: &Line) -> String {
    format!("{}, {}", introduced(line), size(line.split.bytes))
}

/// What a cache is for: the first words of the sentence that says it, or its subsystem.
fn purpose(entry: &Entry) -> String {
    const LONGEST: usize = 50;
    let sentence = entry.what.split_once(". ").map_or(entry.what.as_str(), |(first, _)| first);
    let sentence = sentence.trim_end_matches('.');
    let end = match sentence.len() <= LONGEST {
        true => Some(sentence.len()),
        false => {
            sentence.match_indices([':', ',', ';']).map(|(at, _)| at).take_while(|at| *at <= LONGEST).last()
        }
    };
    let words = end.map_or(entry.subsystem.as_str(), |end| &sentence[..end]);
    // A name in capitals stays as it is.
    let mut chars = words.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain([second]).chain(chars).collect()
        }
        _ => words.to_string(),
    }
}
