//! Delayed work on event time: a queue ordered by time, then by when it was asked for.

use slablab_platform::{CpuId, Work};
use std::collections::{BTreeMap, BTreeSet};

/// Waiting work. A work already waiting on a CPU is not queued twice.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: BTreeMap<(u64, u64), (CpuId, Work)>,
    waiting: BTreeSet<(CpuId, Work)>,
    asked: u64,
}

impl Timers {
    pub(crate) fn defer(&mut self, at_ns: u64, cpu: CpuId, work: Work) {
        if self.waiting.insert((cpu, work)) {
            self.queue.insert((at_ns, self.asked), (cpu, work));
            self.asked += 1;
        }
    }

    /// What waits, in time order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (CpuId, Work)> {
        self.queue.values().copied()
    }

    /// When the earliest work is due; `u64::MAX` without any.
    pub(crate) fn earliest(&self) -> u64 {
        self.queue.first_key_value().map_or(u64::MAX, |(key, _)| key.0)
    }

    /// The earliest work that is due at `now`.
    pub(crate) fn next_due(&mut self, now: u64) -> Option<(CpuId, Work)> {
        if self.earliest() > now {
            return None;
        }
        let (_, due) = self.queue.pop_first()?;
        self.waiting.remove(&due);
        Some(due)
    }
}
