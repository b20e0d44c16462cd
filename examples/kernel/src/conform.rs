//! The contract's checks, run on the CPUs of this machine.

use crate::cpu;
use crate::slots::AllCpus;
use crate::world::Kernel;
use core::cell::Cell;
use slablab_platform::conformance::{Racer, Testable, Verdict, checks};
use slablab_platform::{CpuId, Event, Time, Work};

/// Runs every check that applies, each in a fresh world, with a clock that only the checks move. Answers how
/// many ran.
///
/// # Panics
/// With the rule that is broken.
pub fn run() -> usize {
    cpu::freeze_ns(cpu::now_ns());
    let applying = checks::<Kernel>().iter().filter(|check| check.applies());
    let ran = applying.map(|check| {
        Kernel::forget();
        check.run().unwrap_or_else(|broken| panic!("{broken}"));
    });
    let count = ran.count();
    Kernel::forget();
    cpu::freeze_ns(0);
    count
}

impl Testable for Kernel {
    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        // The CPU uses them while this one waits.
        let shared = AllCpus((Cell::new(Some(f)), Cell::new(None)));
        cpu::on(cpu.0 as usize, &|| {
            let (f, result) = shared.get();
            result.set(f.take().map(|f| f()));
        });
        shared.0.1.into_inner().expect("the CPU is up")
    }
    fn set_online(cpu: CpuId, online: bool) {
        cpu::set_online(cpu.0 as usize, online);
        if !online {
            // No reader runs there any more.
            Kernel::quiescent(cpu);
        }
    }
    fn still<R>(f: impl FnOnce() -> R) -> R {
        Kernel::stop(true);
        let result = f();
        Kernel::stop(false);
        result
    }
    fn advance(ns: u64) {
        cpu::freeze_ns(Kernel::now() + ns);
    }
    fn end_grace_period() {
        (0..cpu::CPUS).for_each(|cpu| Kernel::quiescent(CpuId(cpu as u16)));
    }
    fn due() -> Option<(CpuId, Work)> {
        Kernel::due(|_| true)
    }
    fn counted(event: Event) -> u64 {
        Kernel::counted(event)
    }
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict {
        let shared = AllCpus((shared, Cell::new(Ok(())), Cell::new(Ok(()))));
        cpu::everywhere(&|| {
            let (shared, one, other) = shared.get();
            for (racer, verdict) in [(first, one), (second, other)] {
                if racer.0 == CpuId(cpu::current() as u16) {
                    verdict.set((racer.1)(shared));
                }
            }
        });
        shared.0.1.get().and(shared.0.2.get())?;
        last(&shared.0.0)
    }
}
