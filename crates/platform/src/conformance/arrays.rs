//! The bounded array of a slot.

use super::lists::{Slots, held, new_slots};
use super::{Slab, Testable, Text, Verdict, ensure, ensure_eq};
use crate::{Event, HotArray, Local, PerCpu};

const CAPACITY: u32 = 5;
const WORDS: u32 = HotArray::<()>::HEADER + CAPACITY;

fn push<P: Testable>(slots: &Slots<P>, object: P::Ptr) -> bool {
    slots.push(object, Event::FreeFastpath)
}

fn pop<P: Testable>(slots: &Slots<P>) -> Option<P::Ptr> {
    slots.pop(Event::AllocFastpath)
}

/// Gives the slot an array that lives in `object`, with nothing in it.
fn install<P: Testable>(slots: &Slots<P>, object: P::Ptr) -> Result<(), Text> {
    P::storage_attach(object, WORDS);
    held::<P, _>(slots, |local| {
        local.set_array(HotArray { storage: Some(object), size: 0, capacity: CAPACITY });
    })
}

/// Takes the array away again and ends the use of its storage.
fn remove<P: Testable>(slots: &Slots<P>) -> Result<HotArray<P::Ptr>, Text> {
    let array = held::<P, _>(slots, |local| {
        let array = local.array();
        local.set_array(HotArray::NONE);
        array
    })?;
    array.storage.into_iter().for_each(P::storage_detach);
    Ok(array)
}

pub(super) fn bounds<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, 192)?);
    ensure!(!push::<P>(&slots, slab.object(1)), "push served without an array");
    ensure_eq!(pop::<P>(&slots), None, "pop without an array");
    install::<P>(&slots, slab.object(0))?;
    ensure_eq!(pop::<P>(&slots), None, "pop from an empty array");
    for index in 1..=CAPACITY {
        ensure!(push::<P>(&slots, slab.object(index)), "push {index} of {CAPACITY} refused");
    }
    ensure!(!push::<P>(&slots, slab.object(9)), "push served in a full array of {CAPACITY}");
    for index in (1..=CAPACITY).rev() {
        ensure_eq!(pop::<P>(&slots), Some(slab.object(index)), "pop of push {index}");
    }
    ensure_eq!(pop::<P>(&slots), None, "pop from an emptied array");
    ensure_eq!(remove::<P>(&slots)?.size, 0, "size of an emptied array");
    Ok(())
}

pub(super) fn storage<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, 192)?);
    let home = slab.object(0);
    install::<P>(&slots, home)?;
    P::storage_store(home, 0, Some(slab.object(9)));
    for index in 0..3 {
        push::<P>(&slots, slab.object(index + 1));
    }
    // A slot that is held has all of its addresses in the storage. `pop` takes what the owner wrote there.
    let read = held::<P, _>(&slots, |_| {
        let read = [0, 1, 2].map(|index| P::storage_load(home, HotArray::<()>::HEADER + index));
        P::storage_store(home, HotArray::<()>::HEADER + 2, Some(slab.object(8)));
        read
    })?;
    ensure_eq!(read, [1, 2, 3].map(|index| Some(slab.object(index))), "the words of the storage");
    ensure_eq!(P::storage_load(home, 0), Some(slab.object(9)), "the header");
    ensure_eq!(pop::<P>(&slots), Some(slab.object(8)), "pop of a word the owner wrote");
    remove::<P>(&slots)?;
    Ok(())
}

pub(super) fn swap<P: Testable>() -> Verdict {
    let (slots, slab) = (new_slots::<P>(), Slab::<P>::new(0, 192)?);
    install::<P>(&slots, slab.object(0))?;
    push::<P>(&slots, slab.object(1));
    push::<P>(&slots, slab.object(2));
    let kept = held::<P, _>(&slots, |local| local.array())?;
    let expected = HotArray { storage: Some(slab.object(0)), size: 2, capacity: CAPACITY };
    ensure_eq!(kept, expected, "the array after two pushes");
    held::<P, _>(&slots, |local| local.set_array(HotArray::NONE))?;
    ensure!(!push::<P>(&slots, slab.object(3)), "push served after the array was taken out");
    held::<P, _>(&slots, |local| local.set_array(kept))?;
    for index in [2, 1] {
        ensure_eq!(pop::<P>(&slots), Some(slab.object(index)), "pop of push {index}");
    }
    remove::<P>(&slots)?;
    Ok(())
}
