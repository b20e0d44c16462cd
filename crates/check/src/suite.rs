//! The contract's checks, run on a world.

use crate::explore::{explore, guard};
use crate::kit::{Kit, Limits};
use crate::machine::Shape;
use crate::twist::{Twist, Twisted};
use crate::world::Checked;
use slablab_platform::conformance::{Check, Testable, checks};

/// What running the suite gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Checks that ran.
    pub ran: u32,
    /// Executions of all checks: more than `ran` where schedules are explored.
    pub executions: u64,
    /// Names and findings of the checks that failed, in the suite's order.
    pub broken: Vec<(&'static str, String)>,
}

impl Outcome {
    /// The name of the first check that failed.
    pub fn first(&self) -> Option<&'static str> {
        self.broken.first().map(|(name, _)| *name)
    }
}

/// Calls `run` for every check that applies. `run` enters a new world and returns the number of executions,
/// or the finding. A panic of `run` is a finding too.
pub fn conform<P: Testable>(run: impl Fn(&'static Check<P>) -> Result<u64, String>) -> Outcome {
    let mut outcome = Outcome::default();
    for check in checks::<P>().iter().filter(|check| check.applies()) {
        outcome.ran += 1;
        match guard(|| run(check)).and_then(|result| result) {
            Ok(executions) => outcome.executions += executions,
            Err(finding) => {
                // If a tool reported the finding as a panic, its text has the name of the check a second
                // time.
                let bare = finding.strip_prefix(check.name).and_then(|rest| rest.strip_prefix(": "));
                outcome.broken.push((check.name, bare.unwrap_or(&finding).to_owned()));
            }
        }
    }
    outcome
}

/// Runs the suite on a checking world, in the schedules within the limits.
pub fn conform_kit<K: Kit>(shape: Shape, limits: Limits) -> Outcome {
    conform::<Checked<K>>(|check| {
        let once =
            move || Checked::<K>::enter(shape, || check.run()).unwrap_or_else(|broken| panic!("{broken}"));
        explore::<K>(limits, once).map(|explored| explored.executions)
    })
}

/// Runs the suite on the one-threaded checking world with a twist.
pub fn conform_twisted<T: Twist<crate::Alone>>(shape: Shape) -> Outcome {
    conform::<Twisted<crate::Alone, T>>(|check| {
        let verdict = crate::Alone::enter(shape, || check.run());
        verdict.map(|()| 1).map_err(|broken| broken.to_string())
    })
}
