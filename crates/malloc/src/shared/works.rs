//! Deferred work of tenants: threads that come to slow paths do what is due, and the owner of a tenant that
//! goes ends the rest.

use super::inside::WORKERS;
use super::tenants::{self, NUMBERS};
use crate::world::Native;
use slablab_platform::Time;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// Works that went back to the queue because their tenant was withdrawn.
static RETURNED: AtomicU32 = AtomicU32::new(0);
/// How long such a work waits.
const RETRY_NS: u64 = 1_000_000;

/// Does the deferred work that is due.
#[cold]
pub(super) fn do_due() {
    let _working = WORKERS.enter();
    while let Some((cpu, work)) = Native::due() {
        let number = work.cache / NUMBERS;
        let done = tenants::call(number, |tenant| tenant.work(cpu, work)).is_some();
        // A tenant that was withdrawn does its works itself, by `end_works`: it looks at the queue before it
        // reads `RETURNED`, so the work is queued before it is counted.
        if !done && tenants::is_registered(number) {
            Native::defer(cpu, RETRY_NS, work);
            RETURNED.fetch_add(1, SeqCst);
        }
    }
}

/// Calls `end`, which does the works of a withdrawn tenant, until no other thread has one of them in hand.
pub fn end(end: impl Fn()) {
    loop {
        let returned = RETURNED.load(SeqCst);
        end();
        WORKERS.wait();
        if RETURNED.load(SeqCst) == returned {
            return;
        }
    }
}
