//! Running a body under a kit, in many schedules.

use crate::kit::Kit;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Limits of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// loom: the most preemptions in a schedule, that is, switches away from a thread that is able to run.
    pub preemptions: usize,
    /// shuttle: the number of schedules.
    pub executions: usize,
    /// shuttle: the seed of the schedules.
    pub seed: u64,
}

impl Limits {
    /// The limits of an ordinary test run: every schedule with two preemptions, or 1,000 random schedules.
    pub const QUICK: Limits = Limits { preemptions: 2, executions: 1_000, seed: 1 };
}

/// The result of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Complete executions of the body.
    pub executions: u64,
}

/// Runs `body` in the schedules within the limits.
///
/// # Errors
/// The text of the panic that ended `body`.
pub fn explore<K: Kit>(limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Result<Explored, String> {
    guard(|| K::schedules(limits, body))
}

/// Calls `f`. A panic of `f` becomes an error.
///
/// # Errors
/// The text of the panic.
pub fn guard<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without text").to_owned()
}

/// Returns `n` in an ordinary test run, and 50 `n` in `.ci/long`, which sets `SLABLAB_LONG`.
pub fn effort(n: u64) -> u64 {
    if std::env::var_os("SLABLAB_LONG").is_some() { 50 * n } else { n }
}
