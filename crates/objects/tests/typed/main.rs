//! What object caches promise, under every engine.

mod constructor;
mod limits;
mod plain;
mod programs;
mod short;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The engines that can have object caches, old and new, and with debugging and hardening around them.
const ENGINES: &[&str] = &[
    "slub@7.1",
    "slub@6.18",
    "slub@6.1",
    "slub@2.6.29",
    "slqb@2009-09",
    "slab@6.1",
    "slab@2.6.29",
    "slub@7.1,debug=FZPU",
    "slub@7.1,debug=F,quarantine=4K,harden=random",
    "slub@7.1,init=alloc+free",
    "slqb@2009-09,debug=FZPU,quarantine=4K",
    "slab@6.1,debug=FZP,harden=random",
    "slqb@2009-09,harden=encode",
];

/// Whether something is around an engine: objects are then further apart, and do not come again at once.
fn is_wrapped(engine: &str) -> bool {
    engine.contains(',')
}

/// Does the same under every engine.
fn under_every_engine(check: impl Fn(&'static str)) {
    for engine in ENGINES {
        check(engine);
    }
}

/// Counts the values there are.
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

/// A value that knows when it was damaged, and that is counted.
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
        assert!(self.is_whole(), "{:#x} and {:#x} in a value that ends", self.number, self.check);
        self.census.0.fetch_sub(1, SeqCst);
    }
}

/// All of it again, where slots are CPUs', as far as the machine can: short of memory there is the same
/// either way.
#[test]
fn the_same_with_slots_of_cpus() {
    let again = std::env::current_exe().expect("this test is a program");
    let mut command = std::process::Command::new(again);
    command.args(["--skip", "the_same_with", "--skip", "short::"]).env("SLABLAB_SLOTS", "cpu");
    let done = command.output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
