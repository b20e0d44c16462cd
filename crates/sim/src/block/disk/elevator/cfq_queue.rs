//! One queue of CFQ: its requests, its slice, and what its task's habits are.

use super::cfq_spec::CfqSpec;
use super::sorted::{self, Merged, Sorted};
use crate::block::disk::bio::{RequestId, Requests};
use slablab_model::Ps;
use std::collections::VecDeque;

/// Whose requests a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// Sync requests of a task.
    Task(u32),
    /// Async requests of a priority.
    Async(u8),
}

impl Owner {
    pub(crate) fn of(is_sync: bool, task: u32, priority: u8) -> Owner {
        if is_sync { Owner::Task(task) } else { Owner::Async(priority) }
    }

    pub(crate) fn is_sync(self) -> bool {
        matches!(self, Owner::Task(_))
    }
}

/// A mean of which the last sample is an eighth, in 256ths (from memory).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    samples: u64,
    total: u64,
}

impl Mean {
    pub(crate) fn add(&mut self, sample: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * sample) / 8;
    }

    /// The mean after enough samples: from the third one on.
    pub(crate) fn valid_mean(&self) -> Option<u64> {
        (self.samples > 80).then(|| (self.total + self.samples / 2) / self.samples)
    }
}

/// The queue of a task or of a priority's async requests.
#[derive(Debug)]
pub(crate) struct TaskQueue {
    pub(crate) owner: Owner,
    pub(crate) priority: u8,
    pub(crate) sorted: Sorted,
    fifo: VecDeque<RequestId>,
    pub(crate) in_disk: u32,
    /// When the slice ends; `None` until its first request is completed.
    pub(crate) slice_end: Option<Ps>,
    /// Requests that the slice has taken.
    pub(crate) taken: u32,
    /// When its last request was completed.
    pub(crate) completed_at: Ps,
    /// Whether the disk is kept for it.
    pub(crate) idles: bool,
    pub(crate) seeks: Mean,
    thinks: Mean,
    last_end: Option<u64>,
}

impl TaskQueue {
    pub(crate) fn new(owner: Owner, priority: u8) -> TaskQueue {
        TaskQueue {
            owner,
            priority,
            sorted: Sorted::default(),
            fifo: VecDeque::new(),
            in_disk: 0,
            slice_end: None,
            taken: 0,
            completed_at: 0,
            idles: owner.is_sync(),
            seeks: Mean::default(),
            thinks: Mean::default(),
            last_end: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Whether a request of metadata waits.
    pub(crate) fn has_metadata(&self, requests: &Requests) -> bool {
        self.fifo.iter().any(|id| requests.get(*id).metadata)
    }

    pub(crate) fn begin_slice(&mut self) {
        self.slice_end = None;
        self.taken = 0;
    }

    /// Takes over that a request became a part of another one.
    pub(crate) fn fuse(&mut self, merged: &Merged) {
        if let Some(gone) = merged.gone {
            sorted::fuse(&mut self.fifo, merged.into, gone);
        }
    }

    pub(crate) fn add(
        &mut self,
        requests: &Requests,
        id: RequestId,
        now: Ps,
        spec: &CfqSpec,
        is_tagged: bool,
    ) {
        let request = requests.get(id);
        self.priority = request.priority;
        if self.owner.is_sync() {
            if let Some(last) = self.last_end {
                self.seeks.add(last.abs_diff(request.sector));
                self.thinks.add(now.saturating_sub(self.completed_at).min(2 * spec.idle));
            }
            self.last_end = Some(request.end());
            let seeks = is_tagged && self.seeks.valid_mean().is_some_and(|mean| mean > spec.seeky);
            let thinks = self.thinks.valid_mean().map(|mean| mean > spec.idle);
            self.idles = if seeks { false } else { thinks.map_or(self.idles, |thinks| !thinks) };
        }
        self.sorted.add(requests, id);
        self.fifo.push_back(id);
    }

    /// Takes the next request: once in a slice the oldest if its time has passed, else the nearest one of the
    /// disk's position `head`.
    pub(crate) fn take(&mut self, requests: &Requests, now: Ps, head: u64, back: (u64, u64)) -> RequestId {
        let oldest = *self.fifo.front().expect("a selected queue has a request");
        let is_late = self.taken == 0 && requests.get(oldest).note <= now;
        let id = if is_late { oldest } else { self.nearest(requests, head, back) };
        self.sorted.remove(requests, id);
        sorted::leave(&mut self.fifo, id);
        self.taken += 1;
        id
    }

    /// The request with the least way from `head`: upward, or back by at most `most` sectors, each of which
    /// counts `times`. Metadata goes before data of the two.
    fn nearest(&self, requests: &Requests, head: u64, (most, times): (u64, u64)) -> RequestId {
        let ahead = self.sorted.at_or_after(head);
        let behind = self.sorted.before(head).filter(|id| head - requests.get(*id).sector <= most);
        match (ahead, behind) {
            (Some(ahead), Some(behind)) => {
                let [a, b] = [ahead, behind].map(|id| requests.get(id));
                let goes_back = match a.metadata == b.metadata {
                    true => (head - b.sector) * times < a.sector - head,
                    false => b.metadata,
                };
                if goes_back { behind } else { ahead }
            }
            (Some(id), None) | (None, Some(id)) => id,
            (None, None) => self.sorted.first().expect("a selected queue has a request"),
        }
    }
}
