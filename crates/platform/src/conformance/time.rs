//! Time, deferred work, grace periods, random numbers, counts outside caches.

use super::{Testable, Verdict, ensure, ensure_eq, second_cpu};
use crate::{CpuId, Event, Work, WorkKind};

fn work(argument: u64) -> Work {
    Work { kind: WorkKind::Reap, cache: 3, argument }
}

pub(super) fn now_never_back<P: Testable>() -> Verdict {
    let mut before = P::now();
    for step in [0, 1, 1000, 1_000_000] {
        P::advance(step);
        let now = P::now();
        let passed = now.checked_sub(before);
        ensure!(passed >= Some(step), "from {before} ns to {now} ns while {step} ns were let pass");
        before = now;
    }
    Ok(())
}

pub(super) fn not_early<P: Testable>() -> Verdict {
    // A second: 1/500 of it is far above the time that the check itself takes where time is real.
    const DELAY_NS: u64 = 1_000_000_000;
    ensure_eq!(P::due(), None, "due in a fresh world");
    P::defer(CpuId(0), DELAY_NS, work(1));
    ensure_eq!(P::due(), None, "due at once after {DELAY_NS} ns were asked for");
    P::advance(DELAY_NS - DELAY_NS / 500);
    ensure_eq!(P::due(), None, "due 2 ms before {DELAY_NS} ns have passed");
    P::advance(DELAY_NS / 500);
    ensure_eq!(P::due(), Some((CpuId(0), work(1))), "due after {DELAY_NS} ns");
    ensure_eq!(P::due(), None, "due after it ran");
    Ok(())
}

pub(super) fn in_order<P: Testable>() -> Verdict {
    let (here, there) = (CpuId(0), second_cpu::<P>());
    P::defer(here, 3000, work(3));
    P::defer(there, 1000, work(1));
    P::defer(here, 2000, Work { kind: WorkKind::FreeSheaf, cache: 9, argument: u64::MAX });
    P::advance(5000);
    ensure_eq!(P::due(), Some((there, work(1))), "first");
    let second = Work { kind: WorkKind::FreeSheaf, cache: 9, argument: u64::MAX };
    ensure_eq!(P::due(), Some((here, second)), "second");
    ensure_eq!(P::due(), Some((here, work(3))), "third");
    ensure_eq!(P::due(), None, "fourth");
    Ok(())
}

pub(super) fn once<P: Testable>() -> Verdict {
    let (here, there) = (CpuId(0), second_cpu::<P>());
    P::defer(here, 100, work(1));
    P::defer(here, 200, work(1));
    if here != there {
        P::defer(there, 300, work(1));
    }
    P::advance(1000);
    ensure_eq!(P::due(), Some((here, work(1))), "asked for twice");
    if here != there {
        ensure_eq!(P::due(), Some((there, work(1))), "asked for on another CPU");
    }
    ensure_eq!(P::due(), None, "after each ran");
    P::defer(here, 100, work(1));
    P::advance(1000);
    ensure_eq!(P::due(), Some((here, work(1))), "asked for again after it ran");
    ensure_eq!(P::due(), None, "at the end");
    Ok(())
}

pub(super) fn grace_period<P: Testable>() -> Verdict {
    let freed = Work { kind: WorkKind::FreeSlab, cache: 1, argument: 5 };
    P::after_grace_period(freed);
    ensure_eq!(P::due(), None, "due while readers may run");
    P::end_grace_period();
    let due = P::due().map(|(_, work)| work);
    ensure_eq!(due, Some(freed), "due after the readers ended");
    ensure_eq!(P::due(), None, "due after it ran");
    Ok(())
}

pub(super) fn secret<P: Testable>() -> Verdict {
    let first = P::secret();
    P::advance(1_000_000);
    ensure_eq!(P::on_cpu(second_cpu::<P>(), P::secret), first, "the secret, later on another CPU");
    Ok(())
}

pub(super) fn random_varies<P: Testable>() -> Verdict {
    let first = P::random();
    let varies = (0..64).any(|_| P::random() != first);
    ensure!(varies, "65 times {first}");
    Ok(())
}

pub(super) fn counts<P: Testable>() -> Verdict {
    for (index, event) in Event::ALL.iter().enumerate() {
        let before = P::counted(*event);
        P::count(*event, index as u64 + 1);
        P::count(*event, 100);
        ensure_eq!(P::counted(*event) - before, index as u64 + 101, "{}", event.name());
    }
    Ok(())
}
