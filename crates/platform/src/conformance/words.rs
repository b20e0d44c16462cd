//! Words, fields, locks, values per node.

use super::{Testable, Verdict, ensure, ensure_eq};
use crate::rank::{NodeList, Zone};
use crate::{CpuId, CpuShared, Field, Lock, NodeId, PerNode, Rank, Word};

/// Values with high and low bits, all different.
const VALUES: [u64; 5] = [1, u64::MAX, 1 << 63, 0x0123_4567_89ab_cdef, 0];

pub(super) fn word<P: Testable>() -> Verdict {
    let word = P::Word::new(42);
    ensure_eq!(word.load(), 42, "a new word of 42");
    for value in VALUES {
        word.store(value);
        ensure_eq!((word.load(), word.load_acquire()), (value, value), "after store");
        word.store_release(!value);
        ensure_eq!((word.load(), word.load_acquire()), (!value, !value), "after store_release");
    }
    Ok(())
}

pub(super) fn compare_exchange<P: Testable>() -> Verdict {
    let word = P::Word::new(1);
    ensure_eq!(word.compare_exchange(1, 2), Ok(1), "1 to 2 from 1");
    ensure_eq!(word.load(), 2, "after 1 to 2");
    ensure_eq!(word.compare_exchange(1, 3), Err(2), "1 to 3 from 2");
    ensure_eq!(word.load(), 2, "after a refused 1 to 3");
    // Bits far apart: a world that compares half a word is found.
    let high = 2 | 1 << 63;
    ensure_eq!(word.compare_exchange(high, 4), Err(2), "2 and bit 63 to 4 from 2");
    // May fail only when the value differs: 64 in a row must succeed.
    for value in 2..66 {
        ensure_eq!(word.compare_exchange(value, value + 1), Ok(value), "step from {value}");
    }
    Ok(())
}

pub(super) fn field<P: Testable>() -> Verdict {
    let (field, other) = (P::Field::new(7), P::Field::new(8));
    ensure_eq!(field.get(), 7, "a new field of 7");
    for value in VALUES {
        field.set(value);
        ensure_eq!(field.get(), value, "after set");
    }
    ensure_eq!(other.get(), 8, "another field");
    Ok(())
}

pub(super) fn try_lock<P: Testable>() -> Verdict {
    let lock = P::Lock::<NodeList, u32>::new(5);
    let mut guard = lock.lock();
    ensure_eq!(*guard, 5, "a new lock around 5");
    *guard = 6;
    ensure!(lock.try_lock().is_none(), "try_lock took a lock that is held");
    drop(guard);
    let mut guard = lock.try_lock();
    ensure_eq!(guard.as_deref().copied(), Some(6), "try_lock of a free lock");
    if let Some(value) = guard.as_deref_mut() {
        *value = 7;
    }
    ensure!(lock.try_lock().is_none(), "try_lock took a lock that try_lock holds");
    drop(guard);
    ensure_eq!(*lock.lock(), 7, "after try_lock let go");
    Ok(())
}

pub(super) fn locks_nest<P: Testable>() -> Verdict {
    const { assert!(NodeList::LEVEL < Zone::LEVEL) };
    let outer = P::Lock::<NodeList, u32>::new(1);
    let inner = P::Lock::<Zone, u32>::new(2);
    for _ in 0..2 {
        let held = outer.lock();
        ensure_eq!(*held + *inner.lock(), 3, "two locks held");
        ensure!(inner.try_lock().is_some(), "the inner lock was not let go");
    }
    Ok(())
}

pub(super) fn lock_counts<P: Testable>() -> Verdict {
    let lock = P::Lock::<NodeList, ()>::new(());
    let before = P::counted(NodeList::EVENT);
    let held = lock.lock();
    let refused = lock.try_lock().is_none();
    drop(held);
    drop(lock.try_lock());
    ensure!(refused, "try_lock took a lock that is held");
    ensure_eq!(P::counted(NodeList::EVENT) - before, 2, "{} after lock and try_lock", NodeList::EVENT.name());
    Ok(())
}

pub(super) fn per_node_once<P: Testable>() -> Verdict {
    let values = P::PerNode::<core::cell::Cell<u32>>::new();
    for node in (0..P::nodes()).map(NodeId) {
        ensure!(values.peek(node).is_none(), "{node:?} has a value nobody asked for");
    }
    for node in (0..P::nodes()).map(NodeId) {
        let value = values.get(node);
        ensure_eq!(value.replace(node.0 as u32 + 1), 0, "a new value of {node:?}");
        ensure!(core::ptr::eq(value, values.get(node)), "{node:?} has two values");
    }
    for node in (0..P::nodes()).map(NodeId) {
        let kept = values.peek(node).map(|value| value.get());
        ensure_eq!(kept, Some(node.0 as u32 + 1), "the value of {node:?}");
    }
    Ok(())
}

pub(super) fn cpu_shared_once<P: Testable>() -> Verdict {
    let values = P::CpuShared::<core::cell::Cell<u32>>::new();
    for cpu in (0..P::cpus()).map(CpuId) {
        ensure!(values.peek(cpu).is_none(), "{cpu:?} has a value nobody asked for");
    }
    for cpu in (0..P::cpus()).map(CpuId) {
        let value = values.get(cpu);
        ensure_eq!(value.replace(cpu.0 as u32 + 1), 0, "a new value of {cpu:?}");
        ensure!(core::ptr::eq(value, values.get(cpu)), "{cpu:?} has two values");
    }
    for cpu in (0..P::cpus()).map(CpuId) {
        let kept = values.peek(cpu).map(|value| value.get());
        ensure_eq!(kept, Some(cpu.0 as u32 + 1), "the value of {cpu:?}");
    }
    Ok(())
}
