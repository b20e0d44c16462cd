//! Two pieces of code at once. A world that explores schedules (loom, shuttle) shows these rules in all or
//! many of them; a world that runs one after the other shows only that nothing else breaks.

use super::lists::{Slots, held, new_slots, pop, push};
use super::{Pair, Slab, Testable, Verdict, ensure, ensure_eq, second_cpu};
use crate::rank::NodeList;
use crate::{CpuId, CpuShared, Field, HotList, Local, Lock, NodeId, PerCpu, PerNode, Platform, Word};

const HERE: CpuId = CpuId(0);

pub(super) fn word_release<P: Testable>() -> Verdict {
    let first = |pair: &Pair<P>| {
        pair.field.set(7);
        pair.word.store_release(1);
        Ok(())
    };
    P::race(Pair::<P>::default(), (HERE, first), (second_cpu::<P>(), reads_published::<P>), finished)
}

pub(super) fn exchange_releases<P: Testable>() -> Verdict {
    let first = (HERE, publishes::<P> as fn(&Pair<P>) -> Verdict);
    P::race(Pair::<P>::default(), first, (second_cpu::<P>(), reads_published::<P>), finished)
}

pub(super) fn exchange_acquires<P: Testable>() -> Verdict {
    let second = |pair: &Pair<P>| {
        if pair.word.compare_exchange(1, 2).is_ok() {
            ensure_eq!(pair.field.get(), 7, "the field after the exchange that follows its publication");
        }
        Ok(())
    };
    P::race(Pair::<P>::default(), (HERE, publishes::<P>), (second_cpu::<P>(), second), finished)
}

fn publishes<P: Platform>(pair: &Pair<P>) -> Verdict {
    pair.field.set(7);
    ensure_eq!(pair.word.compare_exchange(0, 1), Ok(0), "the only exchange from 0");
    Ok(())
}

fn reads_published<P: Platform>(pair: &Pair<P>) -> Verdict {
    if pair.word.load_acquire() == 1 {
        ensure_eq!(pair.field.get(), 7, "the field behind the published word");
    }
    Ok(())
}

fn finished<P: Platform>(pair: &Pair<P>) -> Verdict {
    ensure_eq!(pair.field.get(), 7, "the field in the end");
    Ok(())
}

pub(super) fn exchange_atomic<P: Testable>() -> Verdict {
    fn step<P: Platform>(word: &P::Word) -> Verdict {
        // Two steps in all: an exchange fails at most once for each.
        for _ in 0..3 {
            let seen = word.load();
            if word.compare_exchange(seen, seen + 1).is_ok() {
                return Ok(());
            }
        }
        ensure!(false, "compare_exchange failed three times against one other step");
        Ok(())
    }
    let last = |word: &P::Word| {
        ensure_eq!(word.load(), 2, "two steps from 0");
        Ok(())
    };
    P::race(P::Word::new(0), (HERE, step::<P>), (second_cpu::<P>(), step::<P>), last)
}

/// A marked object, and how many took the mark away.
struct Marked<P: Platform> {
    slab: Slab<P>,
    takers: P::Word,
}

pub(super) fn marks<P: Testable>() -> Verdict {
    fn take<P: Platform>(marked: &Marked<P>) -> Verdict {
        if P::mark_live(marked.slab.object(1), false) {
            let before = marked.takers.load();
            ensure_eq!(marked.takers.compare_exchange(before, before + 1), Ok(before), "the only taker");
        }
        Ok(())
    }
    let last = |marked: &Marked<P>| {
        ensure_eq!(marked.takers.load(), 1, "CPUs that took the mark away");
        Ok(())
    };
    let marked = Marked { slab: Slab::<P>::new(0, 64)?, takers: P::Word::new(0) };
    P::mark_live(marked.slab.object(1), true);
    P::race(marked, (HERE, take::<P>), (second_cpu::<P>(), take::<P>), last)
}

/// A value per node that a lock protects.
struct Guarded<P: Platform> {
    lock: P::Lock<NodeList, u64>,
    field: P::Field,
}

impl<P: Platform> Default for Guarded<P> {
    fn default() -> Self {
        Guarded { lock: P::Lock::new(0), field: P::Field::new(0) }
    }
}

impl<P: Platform> Guarded<P> {
    fn step(&self) -> Verdict {
        let mut held = self.lock.lock();
        *held += 1;
        self.field.set(self.field.get() + 1);
        ensure_eq!(self.field.get(), *held, "field and value under one lock");
        Ok(())
    }

    fn stepped_twice(&self) -> Verdict {
        let both = (*self.lock.lock(), self.field.get());
        ensure_eq!(both, (2, 2), "value and field after two steps");
        Ok(())
    }
}

pub(super) fn lock_excludes<P: Testable>() -> Verdict {
    let step = Guarded::<P>::step as fn(&Guarded<P>) -> Verdict;
    let last = |guarded: &Guarded<P>| guarded.stepped_twice();
    P::race(Guarded::<P>::default(), (HERE, step), (second_cpu::<P>(), step), last)
}

pub(super) fn per_node<P: Testable>() -> Verdict {
    type Nodes<P> = <P as Platform>::PerNode<Guarded<P>>;
    let step = |nodes: &Nodes<P>| nodes.get(NodeId(0)).step();
    let last = |nodes: &Nodes<P>| nodes.get(NodeId(0)).stepped_twice();
    P::race(Nodes::<P>::new(), (HERE, step), (second_cpu::<P>(), step), last)
}

pub(super) fn cpu_shared<P: Testable>() -> Verdict {
    type Shared<P> = <P as Platform>::CpuShared<Guarded<P>>;
    let step = |values: &Shared<P>| values.get(HERE).step();
    let last = |values: &Shared<P>| values.get(HERE).stepped_twice();
    P::race(Shared::<P>::new(), (HERE, step), (second_cpu::<P>(), step), last)
}

/// Slots, the slab their objects are in, and what was taken out, by whom.
struct Taken<P: Testable> {
    slots: Slots<P>,
    slab: Slab<P>,
    by: [P::Word; 2],
}

impl<P: Testable> Taken<P> {
    /// Slots of which CPU 0's list holds the first `count` objects.
    fn with(count: u32) -> Result<Taken<P>, super::Text> {
        let taken = Taken {
            slots: new_slots::<P>(),
            slab: Slab::new(0, 192)?,
            by: [P::Word::new(0), P::Word::new(0)],
        };
        P::on_cpu(HERE, || {
            for index in 0..count {
                ensure!(push::<P>(&taken.slots, taken.slab.object(index)), "push {index} refused");
            }
            Ok(())
        })?;
        Ok(taken)
    }

    /// The bit of an object: which of the first eight it is.
    fn bit(&self, object: P::Ptr) -> u64 {
        (0..8).find(|index| self.slab.object(*index) == object).map_or(1 << 63, |index| 1 << index)
    }

    /// Pops once and says what came.
    fn pop(&self, who: usize) {
        if let Some(object) = pop::<P>(&self.slots) {
            self.by[who].store_release(self.bit(object));
        }
    }

    fn both(&self) -> (u64, u64) {
        (self.by[0].load_acquire(), self.by[1].load_acquire())
    }
}

pub(super) fn lists_private<P: Testable>() -> Verdict {
    fn cycle<P: Testable>(taken: &Taken<P>, index: u32) -> Verdict {
        let object = taken.slab.object(index);
        ensure!(push::<P>(&taken.slots, object), "push of object {index} refused");
        ensure_eq!(pop::<P>(&taken.slots), Some(object), "pop of object {index}");
        Ok(())
    }
    if second_cpu::<P>() == HERE {
        return Ok(());
    }
    let first = (HERE, (|taken| cycle(taken, 0)) as fn(&Taken<P>) -> Verdict);
    P::race(Taken::<P>::with(0)?, first, (second_cpu::<P>(), |taken| cycle(taken, 1)), |_| Ok(()))
}

pub(super) fn hot_same_cpu<P: Testable>() -> Verdict {
    let first = |taken: &Taken<P>| {
        taken.pop(0);
        Ok(())
    };
    let second = |taken: &Taken<P>| {
        taken.pop(1);
        Ok(())
    };
    let last = |taken: &Taken<P>| {
        let (first, second) = taken.both();
        ensure!(first & second == 0, "both popped object bits {first:b}");
        ensure!(first | second != 0, "neither popped though nobody held the slot");
        Ok(())
    };
    P::race(Taken::<P>::with(2)?, (HERE, first), (HERE, second), last)
}

pub(super) fn local_same_cpu<P: Testable>() -> Verdict {
    fn step<P: Testable>(taken: &Taken<P>, who: usize) -> Verdict {
        if let Some(mut local) = taken.slots.local() {
            let before = *local;
            taken.by[who].store(1);
            *local = before + 1;
        }
        Ok(())
    }
    let first = (HERE, (|taken| step(taken, 0)) as fn(&Taken<P>) -> Verdict);
    let last = |taken: &Taken<P>| {
        let (first, second) = taken.both();
        let steps = P::on_cpu(HERE, || held::<P, _>(&taken.slots, |local| **local))?;
        ensure_eq!(steps, first + second, "steps of two holders");
        ensure!(steps > 0, "nobody got the slot");
        Ok(())
    };
    P::race(Taken::<P>::with(0)?, first, (HERE, |taken| step(taken, 1)), last)
}

pub(super) fn local_against_pop<P: Testable>() -> Verdict {
    let popper = |taken: &Taken<P>| {
        taken.pop(0);
        Ok(())
    };
    let owner = |taken: &Taken<P>| {
        let Some(mut local) = taken.slots.local() else { return Ok(()) };
        if let Some(head) = local.list().head {
            taken.by[1].store_release(taken.bit(head));
            local.set_list(HotList::EMPTY);
        }
        Ok(())
    };
    let last = |taken: &Taken<P>| {
        let (popped, owned) = taken.both();
        ensure!(popped & owned == 0, "object bits {popped:b} were popped and owned");
        Ok(())
    };
    P::race(Taken::<P>::with(1)?, (HERE, popper), (HERE, owner), last)
}

pub(super) fn ask<P: Testable>() -> Verdict {
    if second_cpu::<P>() == HERE {
        return Ok(());
    }
    let asks = |taken: &Taken<P>| {
        taken.slots.ask(second_cpu::<P>());
        Ok(())
    };
    let looks = |taken: &Taken<P>| {
        let told = held::<P, _>(&taken.slots, |local| local.asked())?;
        taken.by[1].store(told as u64);
        Ok(())
    };
    let last = |taken: &Taken<P>| {
        let cpu = second_cpu::<P>();
        let later = P::on_cpu(cpu, || held::<P, _>(&taken.slots, |local| local.asked()))?;
        ensure_eq!(taken.by[1].load() + later as u64, 1, "times {cpu:?} was told");
        Ok(())
    };
    P::race(Taken::<P>::with(0)?, (HERE, asks), (second_cpu::<P>(), looks), last)
}
