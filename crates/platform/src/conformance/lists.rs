//! The tagged list of a slot.

use super::{Slab, Testable, Text, Verdict, ensure, ensure_eq, second_cpu};
use crate::{CpuId, Event, HotList, Local, PerCpu, Platform, Want};

/// Where the objects of these checks keep their link: not at the start, so that a world that forgets is
/// found.
const LINK: u32 = 16;
const SIZE: u32 = 192;
/// More than any check pushes.
const ROOM: u32 = 100;

/// The slots of a cache that no engine knows.
pub(super) type Slots<P> = <P as Platform>::PerCpu<u64>;

pub(super) fn new_slots<P: Testable>() -> Slots<P> {
    Slots::<P>::new(LINK)
}

/// Calls `f` with the current CPU's slot, which must not be held.
pub(super) fn held<P: Testable, R>(
    slots: &Slots<P>,
    f: impl FnOnce(&mut <Slots<P> as PerCpu<<P as crate::Frames>::Ptr, u64>>::Local<'_>) -> R,
) -> Result<R, Text> {
    match slots.local() {
        Some(mut local) => Ok(f(&mut local)),
        None => Err(Text::new(format_args!("local() refused the idle slot of {:?}", P::cpu()))),
    }
}

pub(super) fn push<P: Testable>(slots: &Slots<P>, object: P::Ptr) -> bool {
    slots.push_if(Want::ANY, ROOM, object, Event::FreeFastpath)
}

pub(super) fn pop<P: Testable>(slots: &Slots<P>) -> Option<P::Ptr> {
    slots.pop_if(Want::ANY, Event::AllocFastpath)
}

/// Pushes the first `count` objects of a slab.
fn push_all<P: Testable>(slots: &Slots<P>, slab: &Slab<P>, count: u32) -> Verdict {
    for index in 0..count {
        ensure!(push::<P>(slots, slab.object(index)), "push {index} of {count} refused");
    }
    Ok(())
}

pub(super) fn last_in_first_out<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, SIZE)?);
    ensure_eq!(pop::<P>(&slots), None, "pop from a new list");
    push_all(&slots, &slab, 5)?;
    for index in (2..5).rev() {
        ensure_eq!(pop::<P>(&slots), Some(slab.object(index)), "pop of push {index}");
    }
    ensure!(push::<P>(&slots, slab.object(7)), "push after pops refused");
    for index in [7, 1, 0] {
        ensure_eq!(pop::<P>(&slots), Some(slab.object(index)), "pop of push {index}");
    }
    ensure_eq!(pop::<P>(&slots), None, "pop from an emptied list");
    Ok(())
}

pub(super) fn links_in_objects<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, SIZE)?);
    push_all(&slots, &slab, 4)?;
    let mut next = held::<P, _>(&slots, |local| local.list())?.head;
    for index in (0..4).rev() {
        let object = slab.object(index);
        ensure_eq!(next, Some(object), "place {} of the chain", 3 - index);
        next = P::link(object, LINK);
    }
    ensure_eq!(next, None, "the end of the chain");
    Ok(())
}

pub(super) fn count<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, SIZE)?);
    ensure_eq!(held::<P, _>(&slots, |local| local.list())?, HotList::EMPTY, "a new list");
    for index in 0..6 {
        push::<P>(&slots, slab.object(index));
        ensure_eq!(held::<P, _>(&slots, |local| local.list().count)?, index + 1, "count after a push");
    }
    for left in (0..6).rev() {
        pop::<P>(&slots);
        ensure_eq!(held::<P, _>(&slots, |local| local.list().count)?, left, "count after a pop");
    }
    pop::<P>(&slots);
    ensure_eq!(held::<P, _>(&slots, |local| local.list())?, HotList::EMPTY, "an emptied list");
    Ok(())
}

pub(super) fn tag_met<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, SIZE)?);
    let tag = 0xab00_0000_0000_0012;
    held::<P, _>(&slots, |local| local.set_list(HotList { head: None, count: 0, tag }))?;
    push::<P>(&slots, slab.object(0));
    let wants = [
        (Want::ANY, true),
        (Want { mask: u64::MAX, value: tag }, true),
        (Want { mask: 0xff, value: 0x12 }, true),
        (Want { mask: 0xff << 56, value: 0xab << 56 }, true),
        (Want { mask: 0xff, value: 0x13 }, false),
        (Want { mask: 0xff << 56, value: 0xaa << 56 }, false),
        (Want { mask: u64::MAX, value: 0 }, false),
    ];
    for (want, met) in wants {
        let pushed = slots.push_if(want, ROOM, slab.object(1), Event::FreeFastpath);
        ensure_eq!(pushed, met, "push_if {want:x?} of {tag:x}");
        let popped = slots.pop_if(want, Event::AllocFastpath);
        ensure_eq!(popped, met.then_some(slab.object(1)), "pop_if {want:x?} of {tag:x}");
        let left = held::<P, _>(&slots, |local| local.list())?;
        ensure_eq!(left, HotList { head: Some(slab.object(0)), count: 1, tag }, "the list after both");
    }
    Ok(())
}

pub(super) fn limit<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, SIZE)?);
    let object = slab.object(9);
    let push = |limit| slots.push_if(Want::ANY, limit, object, Event::FreeFastpath);
    ensure!(!push(0), "push_if served at limit 0");
    for index in 0..4 {
        ensure!(!push(index), "push_if served with {index} objects at limit {index}");
        let pushed = slots.push_if(Want::ANY, index + 1, slab.object(index), Event::FreeFastpath);
        ensure!(pushed, "push_if refused with {index} objects at limit {}", index + 1);
    }
    // The largest count, without that many objects: what lies behind the head is not looked at.
    const MAX: u32 = HotList::<()>::COUNT_MAX;
    let nearly = HotList { head: Some(slab.object(3)), count: MAX - 1, tag: 0 };
    held::<P, _>(&slots, |local| local.set_list(nearly))?;
    ensure!(push(MAX), "push_if refused with {} objects at limit {MAX}", MAX - 1);
    ensure!(!push(MAX), "push_if served with {MAX} objects at limit {MAX}");
    let full = held::<P, _>(&slots, |local| local.list())?;
    ensure_eq!(full, HotList { head: Some(object), count: MAX, tag: 0 }, "a list of {MAX}");
    held::<P, _>(&slots, |local| local.set_list(HotList::EMPTY))
}

pub(super) fn set_list<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, SIZE)?);
    for index in 0..3 {
        P::set_link(slab.object(index), LINK, (index < 2).then(|| slab.object(index + 1)));
    }
    let given = HotList { head: Some(slab.object(0)), count: 3, tag: 77 };
    held::<P, _>(&slots, |local| local.set_list(given))?;
    ensure_eq!(held::<P, _>(&slots, |local| local.list())?, given, "a list given");
    ensure_eq!(pop::<P>(&slots), Some(slab.object(0)), "pop from a list given");
    let left = HotList { head: Some(slab.object(1)), count: 2, tag: 77 };
    ensure_eq!(held::<P, _>(&slots, |local| local.list())?, left, "a list given, after a pop");
    held::<P, _>(&slots, |local| local.set_list(HotList { tag: 5, ..HotList::EMPTY }))?;
    ensure_eq!(pop::<P>(&slots), None, "pop from a list that was replaced by an empty one");
    Ok(())
}

pub(super) fn private<P: Testable>() -> Verdict {
    let (slots, others, slab) = (new_slots::<P>(), new_slots::<P>(), Slab::<P>::new(0, SIZE)?);
    let (here, there) = (CpuId(0), second_cpu::<P>());
    P::on_cpu(here, || push_all(&slots, &slab, 2))?;
    ensure_eq!(P::on_cpu(here, || pop::<P>(&others)), None, "pop from another cache");
    if here != there {
        ensure_eq!(P::on_cpu(there, || pop::<P>(&slots)), None, "pop of {here:?}'s objects on {there:?}");
        P::on_cpu(there, || push::<P>(&slots, slab.object(5)));
        ensure_eq!(P::on_cpu(there, || pop::<P>(&slots)), Some(slab.object(5)), "pop on {there:?}");
    }
    ensure_eq!(P::on_cpu(here, || pop::<P>(&slots)), Some(slab.object(1)), "pop back on {here:?}");
    Ok(())
}
