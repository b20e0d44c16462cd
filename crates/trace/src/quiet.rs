//! The Parquet decoder panics on a few kinds of damaged page. The reader turns such a panic into an error,
//! and this module keeps its message and backtrace off standard error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside [`quietly`].
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `decode`. A panic in it prints nothing; its message is the error.
///
/// The first call puts a hook around the process's panic hook, once: other threads, and this one outside of
/// `decode`, panic as before.
pub(crate) fn quietly<R>(decode: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    QUIET.set(false);
    result.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
