//! From a state to the report.

use crate::act::{Report, act};
use crate::find::find;
use crate::measure::{Options, measure};
use crate::state::State;
use slablab_report::error::Result;

/// Examines a machine: measures it, finds what is worth saying, judges.
///
/// # Errors
/// Snapshots that cannot be compared with the state.
pub fn examine<'a>(state: &'a State, options: &Options<'a>) -> Result<Report<'a>> {
    let measured = measure(state, options)?;
    let found = find(&measured);
    Ok(act(measured, found))
}
