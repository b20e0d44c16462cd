//! No elevator: the order of arrival, with merging (noop of 2.6; none of 6.x merges in a task's plug only).

use super::sorted::{self, Merged, Sorted};
use crate::block::disk::bio::{Bio, Limits, RequestId, Requests};
use std::collections::VecDeque;

/// Requests in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Fifo {
    merges: bool,
    sorted: [Sorted; 2],
    order: VecDeque<RequestId>,
}

impl Fifo {
    pub(crate) fn new(merges: bool) -> Fifo {
        Fifo { merges, sorted: Default::default(), order: VecDeque::new() }
    }

    pub(crate) fn merge(
        &mut self,
        requests: &mut Requests,
        bio: &Bio,
        key: u64,
        limits: Limits,
    ) -> Option<Merged> {
        if !self.merges {
            return None;
        }
        let merged = self.sorted[bio.direction as usize].merge(requests, bio, key, limits)?;
        if let Some(gone) = merged.gone {
            sorted::leave(&mut self.order, gone);
        }
        Some(merged)
    }

    pub(crate) fn add(&mut self, requests: &Requests, id: RequestId) {
        self.sorted[requests.get(id).direction as usize].add(requests, id);
        self.order.push_back(id);
    }

    pub(crate) fn take(&mut self, requests: &Requests) -> Option<RequestId> {
        let id = self.order.pop_front()?;
        self.sorted[requests.get(id).direction as usize].remove(requests, id);
        Some(id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
