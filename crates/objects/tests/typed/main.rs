//! The promises of object caches, under every engine.

mod constructor;
mod limits;
mod plain;
mod programs;
mod short;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The engines that can have object caches, old and new, bare and with debugging and hardening.
const ENGINES: &[&str] = &[
    "slub@7.1",
    "slub@6.18",
    "slub@6.1",
    "slub@2.6.29",
    "slqb@2009-09",
    "slab@6.1",
    "slab@2.6.29",
    "slub@7.1,debug=FZPU",
    "slub@7.1,harden=on",
    "slub@7.1,debug=F,quarantine=4K,harden=random",
    "slub@7.1,init=alloc+free",
    "slqb@2009-09,debug=FZPU,quarantine=4K",
    "slab@6.1,debug=FZP,harden=random",
    "slqb@2009-09,harden=encode",
];

/// Whether an engine is wrapped: then objects are further apart, and a freed object is not the next one
/// allocated.
fn is_wrapped(engine: &str) -> bool {
    engine.contains(',')
}

/// Runs `check` under every engine.
fn under_every_engine(check: impl Fn(&'static str)) {
    for engine in ENGINES {
        check(engine);
    }
}

/// Counts the values that exist.
#[derive(Clone, Default)]
struct Census(Arc<AtomicUsize>);

impl Census {
    fn living(&self) -> usize {
        self.0.load(SeqCst)
    }

    fn born(&self, number: u64) -> Counted {
        self.0.fetch_add(1, SeqCst);
        Counted { number, check: !number, census: self.clone() }
    }
}

/// A counted value that can tell if it was damaged.
struct Counted {
    number: u64,
    check: u64,
    census: Census,
}

impl Counted {
    fn is_whole(&self) -> bool {
        self.check == !self.number
    }

    fn set(&mut self, number: u64) {
        (self.number, self.check) = (number, !number);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert!(self.is_whole(), "{:#x} and {:#x} in a value that is dropped", self.number, self.check);
        self.census.0.fetch_sub(1, SeqCst);
    }
}

/// Runs all tests again with slots per CPU, if the machine can have them. Without those of `short`, which do
/// not depend on the kind of slots.
#[test]
fn all_tests_with_slots_per_cpu() {
    let again = std::env::current_exe().expect("this test is a program");
    let mut command = std::process::Command::new(again);
    command.args(["--skip", "all_tests_with", "--skip", "short::"]).env("SLABLAB_SLOTS", "cpu");
    let done = command.output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
