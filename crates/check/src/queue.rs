//! Deferred work of this crate's worlds, in virtual time, and their random numbers.

use slablab_platform::{CpuId, Work};
use std::cell::{Cell, RefCell};

/// A deferred work: the time when it is due, its position among works due at that time, its CPU.
type Waiting = (u64, u64, CpuId, Work);

/// A queue of deferred work. It does not queue a work twice for one CPU.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: RefCell<Vec<Waiting>>,
    asked: Cell<u64>,
}

impl Queue {
    pub(crate) const fn new() -> Queue {
        Queue { waiting: RefCell::new(Vec::new()), asked: Cell::new(0) }
    }

    pub(crate) fn defer(&self, due_ns: u64, cpu: CpuId, work: Work) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|(_, _, of, other)| (*of, *other) == (cpu, work)) {
            self.asked.set(self.asked.get() + 1);
            waiting.push((due_ns, self.asked.get(), cpu, work));
        }
    }

    /// Takes the earliest work that is due.
    pub(crate) fn due(&self, now_ns: u64) -> Option<(CpuId, Work)> {
        let mut waiting = self.waiting.borrow_mut();
        let earliest = (0..waiting.len()).min_by_key(|index| waiting[*index])?;
        if waiting[earliest].0 > now_ns {
            return None;
        }
        let (_, _, cpu, work) = waiting.swap_remove(earliest);
        Some((cpu, work))
    }

    pub(crate) fn clear(&self) {
        self.waiting.take();
    }
}

/// The upper half of Knuth's 64-bit linear congruential generator (MMIX). The numbers need only be spread.
pub(crate) fn next_random(state: &Cell<u64>) -> u32 {
    state.set(state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    (state.get() >> 32) as u32
}
