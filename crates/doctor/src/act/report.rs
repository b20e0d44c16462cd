//! The report: a measured machine, the findings about it, the verdict, and actions.

use super::actions::{self, Action};
use super::verdict::{self, Verdict};
use crate::find::Found;
use crate::measure::Measured;

/// The answer of the doctor.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The machine in numbers.
    pub measured: Measured<'a>,
    /// The findings.
    pub found: Found,
    /// The answer in one sentence.
    pub verdict: Verdict,
    /// Actions that this kernel allows: those that are needed first, then most likely savings first.
    pub actions: Vec<Action>,
}

/// Judges a measured machine and the findings about it, and offers actions.
pub fn act<'a>(measured: Measured<'a>, found: Found) -> Report<'a> {
    let verdict = verdict::of(&measured);
    let actions = actions::offer(&measured, &found, &verdict);
    Report { measured, found, verdict, actions }
}
