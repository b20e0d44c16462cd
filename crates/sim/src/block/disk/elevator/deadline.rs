//! Deadline of 2.6 and mq-deadline of 6.1: sweeps of one direction, reads before writes, and times by which a
//! request is served. docs/theory/block.md 7.

use super::sorted::{self, Merged, Sorted};
use crate::block::disk::bio::{Bio, Direction, Limits, RequestId, Requests};
use slablab_model::Ps;
use std::collections::VecDeque;

/// The parameters, as in `queue/iosched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineSpec {
    /// `read_expire`, `write_expire`: from then on a request goes before the sweep.
    pub expire: [Ps; 2],
    /// `fifo_batch`: requests of a sweep.
    pub batch: u32,
    /// `writes_starved`: how often reads go before writes that wait.
    pub starved: u32,
}

/// Requests of both directions, by sector and by arrival.
#[derive(Debug)]
pub(crate) struct Deadline {
    spec: DeadlineSpec,
    sorted: [Sorted; 2],
    fifo: [VecDeque<RequestId>; 2],
    /// The next request of the sweep, as it was when the last one was taken.
    next: Option<RequestId>,
    /// Requests that the sweep has taken; at `batch` it ends.
    taken: u32,
    /// How often reads went before writes.
    starved: u32,
}

impl Deadline {
    pub(crate) fn new(spec: DeadlineSpec) -> Deadline {
        Deadline {
            spec,
            sorted: Default::default(),
            fifo: Default::default(),
            next: None,
            taken: 0,
            starved: 0,
        }
    }

    pub(crate) fn merge(
        &mut self,
        requests: &mut Requests,
        bio: &Bio,
        key: u64,
        limits: Limits,
    ) -> Option<Merged> {
        let of = bio.direction as usize;
        let merged = self.sorted[of].merge(requests, bio, key, limits)?;
        if let Some(gone) = merged.gone {
            sorted::fuse(&mut self.fifo[of], merged.into, gone);
            if self.next == Some(gone) {
                self.next = self.sorted[of].at_or_after(requests.get(merged.into).end());
            }
        }
        Some(merged)
    }

    pub(crate) fn add(&mut self, requests: &mut Requests, id: RequestId, now: Ps) {
        let request = requests.get_mut(id);
        let of = request.direction as usize;
        request.note = now + self.spec.expire[of];
        self.sorted[of].add(requests, id);
        self.fifo[of].push_back(id);
    }

    /// Takes the next request: of the sweep while it has one, else of a new sweep.
    pub(crate) fn take(&mut self, requests: &Requests, now: Ps) -> Option<RequestId> {
        let id = match self.next.filter(|_| self.taken < self.spec.batch) {
            Some(id) => id,
            None => {
                let direction = self.direction()?;
                let oldest = *self.fifo[direction as usize].front()?;
                let goes_on = |id: &RequestId| {
                    requests.get(*id).direction == direction && requests.get(oldest).note > now
                };
                self.taken = 0;
                self.next.filter(goes_on).unwrap_or(oldest)
            }
        };
        let request = requests.get(id);
        let of = request.direction as usize;
        self.taken += 1;
        self.sorted[of].remove(requests, id);
        self.next = self.sorted[of].at_or_after(request.end());
        sorted::leave(&mut self.fifo[of], id);
        Some(id)
    }

    /// The direction of a new sweep: reads, unless writes have waited for as many sweeps as they may.
    fn direction(&mut self) -> Option<Direction> {
        let [reads, writes] = [0, 1].map(|of| !self.fifo[of].is_empty());
        if reads && !(writes && self.starved >= self.spec.starved) {
            self.starved += u32::from(writes);
            return Some(Direction::Read);
        }
        self.starved = 0;
        writes.then_some(Direction::Write)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.iter().all(VecDeque::is_empty)
    }
}
