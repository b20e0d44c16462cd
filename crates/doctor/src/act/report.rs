//! The report: a machine measured, what is worth saying of it, the verdict and what can be done.

use super::actions::{self, Action};
use super::verdict::{self, Verdict};
use crate::find::Found;
use crate::measure::Measured;

/// The answer of the doctor.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// What was counted.
    pub measured: Measured<'a>,
    /// What is worth saying.
    pub found: Found,
    /// The answer in one sentence.
    pub verdict: Verdict,
    /// What can be done about it on this kernel, most likely savings first.
    pub actions: Vec<Action>,
}

/// Judges what was measured and found, and offers what can be done about it.
pub fn act<'a>(measured: Measured<'a>, found: Found) -> Report<'a> {
    let verdict = verdict::of(&measured);
    let actions = actions::offer(&measured, &found);
    Report { measured, found, verdict, actions }
}
