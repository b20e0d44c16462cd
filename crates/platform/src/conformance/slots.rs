//! Slots as a whole: exclusion, claims, asking, counting.

use super::lists::{held, new_slots, pop, push};
use super::{Slab, Testable, Verdict, ensure, ensure_eq, second_cpu};
use crate::{CpuId, Event, Local, PerCpu, Want};

pub(super) fn local_excludes_hot<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, 192)?);
    push::<P>(&slots, slab.object(0));
    held::<P, _>(&slots, |local| {
        let before = local.list();
        ensure_eq!(pop::<P>(&slots), None, "pop_if while the slot is held");
        ensure!(!push::<P>(&slots, slab.object(1)), "push_if served while the slot is held");
        ensure_eq!(slots.pop(Event::AllocFastpath), None, "pop while the slot is held");
        ensure!(!slots.push(slab.object(1), Event::FreeFastpath), "push served while the slot is held");
        ensure_eq!(local.list(), before, "the list after refusals");
        Ok(())
    })??;
    ensure_eq!(pop::<P>(&slots), Some(slab.object(0)), "pop_if after the slot was let go");
    Ok(())
}

pub(super) fn local_excludes_local<P: Testable>() -> Verdict {
    let slots = new_slots::<P>();
    for _ in 0..2 {
        let second = held::<P, _>(&slots, |_| slots.local().is_some())?;
        ensure!(!second, "local() gave a slot that is held");
    }
    Ok(())
}

pub(super) fn cold_persists<P: Testable>() -> Verdict {
    let slots = new_slots::<P>();
    for turn in 0..2 {
        for cpu in (0..P::cpus().min(4)).map(CpuId).filter(|cpu| P::cpu_online(*cpu)) {
            let number = cpu.0 as u64 + 1;
            P::on_cpu(cpu, || {
                held::<P, _>(&slots, |local| {
                    ensure_eq!(local.cpu(), cpu, "whose slot");
                    ensure_eq!(**local, turn * number, "the state of {cpu:?} in turn {turn}");
                    **local = number;
                    Ok(())
                })?
            })?;
        }
    }
    Ok(())
}

pub(super) fn claim_held<P: Testable>() -> Verdict {
    let slots = new_slots::<P>();
    let here = CpuId(0);
    P::on_cpu(here, || {
        let Some(_local) = slots.local() else { return Ok(()) };
        ensure!(slots.claim(here).is_none(), "{here:?} claimed its slot while holding it");
        let stolen = P::on_cpu(second_cpu::<P>(), || slots.claim(here).is_some());
        ensure!(!stolen, "{:?} claimed the slot that {here:?} holds", second_cpu::<P>());
        Ok(())
    })
}

pub(super) fn claim_live<P: Testable>() -> Verdict {
    let (slots, here, there) = (new_slots::<P>(), CpuId(0), second_cpu::<P>());
    if P::claims_live() || here == there {
        return Ok(());
    }
    P::on_cpu(there, || drop(slots.local()));
    let claimed = P::on_cpu(here, || slots.claim(there).is_some());
    ensure!(!claimed, "{here:?} claimed the slot of {there:?}, which is up");
    Ok(())
}

pub(super) fn claim_offline<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, 192)?);
    let (here, there) = (CpuId(0), second_cpu::<P>());
    if here == there {
        return Ok(());
    }
    P::on_cpu(there, || {
        push::<P>(&slots, slab.object(3));
        held::<P, _>(&slots, |local| **local = 11)
    })?;
    P::set_online(there, false);
    ensure!(!P::cpu_online(there), "{there:?} was taken down and is up");
    let seen =
        P::on_cpu(here, || slots.claim(there).map(|claimed| (claimed.cpu(), *claimed, claimed.list().head)));
    P::set_online(there, true);
    ensure_eq!(seen, Some((there, 11, Some(slab.object(3)))), "the claimed slot of {there:?}");
    ensure_eq!(P::on_cpu(there, || pop::<P>(&slots)), Some(slab.object(3)), "pop after the claim ended");
    Ok(())
}

pub(super) fn claim_still<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, 192)?);
    let there = second_cpu::<P>();
    P::on_cpu(there, || push::<P>(&slots, slab.object(3)));
    let taken = P::still(|| {
        for cpu in (0..P::cpus().min(4)).map(CpuId) {
            ensure!(slots.claim(cpu).is_some(), "{cpu:?} cannot be claimed though the world stands still");
        }
        Ok(slots.claim(there).map(|mut claimed| {
            let list = claimed.list();
            claimed.set_list(crate::HotList::EMPTY);
            list.head
        }))
    })?;
    ensure_eq!(taken, Some(Some(slab.object(3))), "the list of {there:?}");
    ensure_eq!(P::on_cpu(there, || pop::<P>(&slots)), None, "pop of what was claimed");
    Ok(())
}

pub(super) fn ask<P: Testable>() -> Verdict {
    let slots = new_slots::<P>();
    let (here, there) = (CpuId(0), second_cpu::<P>());
    let asked = |cpu| P::on_cpu(cpu, || held::<P, _>(&slots, |local| local.asked()));
    ensure!(!asked(there)?, "{there:?} was asked by nobody");
    P::on_cpu(here, || slots.ask(there));
    ensure!(here == there || !asked(here)?, "{here:?} asked {there:?} and was told itself");
    ensure!(asked(there)?, "{there:?} was not told that it was asked");
    ensure!(!asked(there)?, "{there:?} was told twice");
    Ok(())
}

pub(super) fn counts<P: Testable>() -> Verdict {
    let slots = new_slots::<P>();
    let (here, there) = (CpuId(0), second_cpu::<P>());
    for (index, event) in Event::ALL.iter().enumerate() {
        P::on_cpu(here, || slots.count(*event, index as u64 + 1));
        P::on_cpu(there, || slots.count(*event, 1000));
    }
    for (index, event) in Event::ALL.iter().enumerate() {
        let own = index as u64 + 1;
        let expected = if here == there { (own + 1000, own + 1000) } else { (own, 1000) };
        let found = (slots.counted(here, *event), slots.counted(there, *event));
        ensure_eq!(found, expected, "{} on two CPUs", event.name());
    }
    Ok(())
}

pub(super) fn hot_counts<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, 192)?);
    let (cpu, object) = (P::cpu(), slab.object(0));
    let never = Want { mask: 1, value: 1 };
    pop::<P>(&slots);
    slots.push_if(Want::ANY, 0, object, Event::FreeFastpath);
    slots.push_if(never, 9, object, Event::FreeFastpath);
    slots.pop(Event::AllocFastpath);
    slots.push(object, Event::FreeFastpath);
    let counted = || (slots.counted(cpu, Event::AllocFastpath), slots.counted(cpu, Event::FreeFastpath));
    ensure_eq!(counted(), (0, 0), "alloc_fastpath, free_fastpath after refusals");
    push::<P>(&slots, object);
    push::<P>(&slots, slab.object(1));
    slots.pop_if(never, Event::AllocFastpath);
    pop::<P>(&slots);
    ensure_eq!(counted(), (1, 2), "alloc_fastpath, free_fastpath after two pushes and a pop");
    held::<P, _>(&slots, |local| local.count(Event::AllocFastpath, 10))?;
    ensure_eq!(counted(), (11, 2), "alloc_fastpath, free_fastpath after 10 more by the owner");
    Ok(())
}

pub(super) fn used<P: Testable>() -> Verdict {
    let slots = new_slots::<P>();
    P::on_cpu(CpuId(0), || held::<P, _>(&slots, |_| ()))?;
    ensure!(slots.used(CpuId(0)), "CPU 0 held its slot, which is not used");
    for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| !slots.used(*cpu)) {
        let sum: u64 = Event::ALL.iter().map(|event| slots.counted(cpu, *event)).sum();
        ensure_eq!(sum, 0, "events counted on {cpu:?}, which was never used");
    }
    Ok(())
}
