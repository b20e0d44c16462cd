//! An answer about a leak.

use super::suspect::Suspect;
use crate::sites::Recorded;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_doctor::Report;

/// The kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It grew in each part of the time, and no shrinker frees what grew.
    Climbing,
    /// It grew, and no shrinker frees what grew; whether it goes on is not known.
    Grew,
    /// What grew is what the kernel frees when it needs memory.
    Reclaimable,
    /// Nothing grew by as much as would matter in a day.
    Steady,
    /// One snapshot: what is held is known, what grows is not.
    OneSnapshot,
    /// Objects were damaged or lost: this is no answer about memory.
    Corruption,
}

/// An answer about a leak.
pub struct Leak<'a> {
    /// The machine as the doctor sees it, with growth since the first snapshot.
    pub report: Report<'a>,
    /// The recording between the snapshots.
    pub recorded: Option<&'a Recorded>,
    /// What grew, the likeliest leak first; of one snapshot, what is held.
    pub suspects: Vec<Suspect<'a>>,
    /// The kind of answer.
    pub judgement: Judgement,
    /// The answer in some sentences.
    pub text: String,
    /// What is not there, and why: sentences.
    pub lacks: Vec<String>,
}
