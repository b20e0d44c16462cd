//! What the contract's checks ask of the model beyond the contract.

use crate::state::Entered;
use crate::world::Modelled;
use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{CpuId, Event, Time, Topology, Work};

impl<L: Entered> Testable for Modelled<L> {
    /// Between two events nothing else runs.
    const STANDS_STILL: bool = true;
    /// Distances are the machine file's.
    const SYMMETRIC: bool = false;

    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        let before = Self::cpu();
        Self::run_on(cpu);
        let result = f();
        Self::run_on(before);
        result
    }
    fn set_online(cpu: CpuId, online: bool) {
        Self::set_online(cpu, online);
    }
    fn still<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
    fn advance(ns: u64) {
        Self::advance_to(Self::now() + ns);
    }
    fn end_grace_period() {
        // No machine has a grace period of a minute.
        Self::advance(60_000_000_000);
    }
    fn due() -> Option<(CpuId, Work)> {
        Self::next_due()
    }
    fn counted(event: Event) -> u64 {
        Self::counted(event)
    }
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict {
        Self::on_cpu(first.0, || (first.1)(&shared))?;
        Self::on_cpu(second.0, || (second.1)(&shared))?;
        last(&shared)
    }
}
