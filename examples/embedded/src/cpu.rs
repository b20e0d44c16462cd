//! The processor. **Write this file for your machine**: here the host stands in for one.
//!
//! | function | on x86-64 | here |
//! |---|---|---|
//! | `disable`, `enable` | `cli`, `sti` | the tests' interrupt controller is told |
//! | [`now_ns`] | the time-stamp counter | counts the questions |
//! | [`interrupt`] | the entry that every handler comes through | the entry that the tests' handlers come through |

use crate::memory::OneCpu;
use core::cell::Cell;
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

static OFF: OneCpu<Cell<u32>> = OneCpu(Cell::new(0));
static IN_INTERRUPT: OneCpu<Cell<bool>> = OneCpu(Cell::new(false));
static NOW_NS: OneCpu<Cell<u64>> = OneCpu(Cell::new(0));

fn disable() {}

fn enable() {
    #[cfg(test)]
    crate::tests::machine::enabled();
}

/// Interrupts are off while one of these lives. They nest.
#[derive(Debug)]
pub struct Off(());

impl Off {
    pub(crate) fn new() -> Off {
        disable();
        OFF.0.set(OFF.0.get() + 1);
        // Nothing that follows may be done before.
        compiler_fence(SeqCst);
        Off(())
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        OFF.0.set(OFF.0.get() - 1);
        if OFF.0.get() == 0 {
            enable();
        }
    }
}

/// Runs an interrupt's handler. Interrupts are off in it.
pub fn interrupt(handler: impl FnOnce()) {
    let _off = Off::new();
    IN_INTERRUPT.0.set(true);
    handler();
    IN_INTERRUPT.0.set(false);
}

/// Whether this is an interrupt's handler.
pub fn in_interrupt() -> bool {
    IN_INTERRUPT.0.get()
}

/// Whether an interrupt would have to wait.
pub fn interrupts_off() -> bool {
    OFF.0.get() > 0
}

/// Nanoseconds since boot; never goes back.
pub fn now_ns() -> u64 {
    NOW_NS.0.set(NOW_NS.0.get() + 100);
    NOW_NS.0.get()
}

/// Time passes.
pub fn advance_ns(ns: u64) {
    NOW_NS.0.set(NOW_NS.0.get() + ns);
}

/// Every question to the platform passes here. A kernel needs no such thing: its interrupts come by
/// themselves.
#[inline(always)]
pub(crate) fn asked() {
    #[cfg(test)]
    crate::tests::machine::asked();
}
