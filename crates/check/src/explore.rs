//! Running a body under a kit, in many schedules.

use crate::kit::{Explored, Kit, Limits};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
