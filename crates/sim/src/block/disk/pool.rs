//! Free requests of a queue: how many each direction has, who may take the last ones, who wakes up when they
//! come back.

use super::bio::Direction;
use slablab_model::Ps;
use std::collections::BTreeMap;

/// How many requests a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolSpec {
    /// 2.4: so many for each direction. Freed ones come back when `batch` of a direction are together; then
    /// `batch` tasks of a queue that both directions share wake up.
    Batched {
        /// Requests of each direction.
        each: u32,
        /// Requests that come back together.
        batch: u32,
    },
    /// 2.6: `limit` for each direction; the task that takes the last one, or that slept for one, may take
    /// `more` within `window`, up to `limit` and half of it.
    Batching {
        /// `nr_requests`.
        limit: u32,
        /// Congested from this many requests on.
        congested: u32,
        /// Not congested below this many.
        cleared: u32,
        /// Requests that a batching task may take.
        more: u32,
        /// How long it may.
        window: Ps,
    },
    /// Tags, which both directions share; async writes may have a part of them.
    Tags {
        /// All.
        limit: u32,
        /// Those of async writes.
        asyncs: u32,
    },
}

/// The requests of a queue that are taken.
#[derive(Debug)]
pub(super) struct Pool {
    spec: PoolSpec,
    taken: [u32; 2],
    /// 2.4: freed, and not given back yet.
    pending: [u32; 2],
    is_full: [bool; 2],
    is_congested: [bool; 2],
    async_taken: u32,
    /// Tasks that may batch: how many requests, until when.
    batching: BTreeMap<u32, (u32, Ps)>,
}

/// Tasks that may try again: so many of those that wait for this direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// The queue of waiters: that of a direction, or 0 where both share one.
    pub waiters: usize,
    /// Tasks to wake.
    pub tasks: u32,
}

impl Pool {
    pub(super) fn new(spec: PoolSpec) -> Pool {
        Pool {
            spec,
            taken: [0; 2],
            pending: [0; 2],
            is_full: [false; 2],
            is_congested: [false; 2],
            async_taken: 0,
            batching: BTreeMap::new(),
        }
    }

    /// Takes a request for `owner`. False: none is free for it. `slept`: it has waited for one.
    pub(super) fn take(&mut self, of: Direction, sync: bool, owner: u32, slept: bool, now: Ps) -> bool {
        let at = of as usize;
        match self.spec {
            PoolSpec::Batched { each, .. } => {
                let free = self.taken[at] + self.pending[at] < each;
                self.taken[at] += u32::from(free);
                free
            }
            PoolSpec::Tags { limit, asyncs } => {
                let all = self.taken[0] + self.taken[1];
                let free = all < limit && (sync || self.async_taken < asyncs);
                self.taken[at] += u32::from(free);
                self.async_taken += u32::from(free && !sync);
                free
            }
            PoolSpec::Batching { limit, congested, more, window, .. } => {
                if slept {
                    self.batching.insert(owner, (more, now + window));
                }
                let next = self.taken[at] + 1;
                self.is_congested[at] |= next >= congested;
                if next >= limit {
                    let may = |(left, until): &(u32, Ps)| *left > 0 && now < *until;
                    if !self.is_full[at] {
                        self.is_full[at] = true;
                        self.batching.insert(owner, (more, now + window));
                    } else if !self.batching.get(&owner).is_some_and(may) {
                        return false;
                    }
                }
                if next > limit + limit / 2 {
                    return false;
                }
                self.taken[at] = next;
                if let Some((left, _)) = self.batching.get_mut(&owner) {
                    *left = left.saturating_sub(1);
                }
                true
            }
        }
    }

    /// A request is free again.
    pub(super) fn give(&mut self, of: Direction, sync: bool, now: Ps) -> Wake {
        let at = of as usize;
        self.taken[at] -= 1;
        match self.spec {
            PoolSpec::Batched { batch, .. } => {
                self.pending[at] += 1;
                if self.taken == [0; 2] {
                    // Else tasks that wait for requests which nobody holds would wait for ever (assumed).
                    self.pending = [0; 2];
                } else if self.pending[at] < batch {
                    return Wake::default();
                }
                self.pending[at] = 0;
                Wake { waiters: 0, tasks: batch }
            }
            PoolSpec::Tags { .. } => {
                self.async_taken -= u32::from(!sync);
                Wake { waiters: 0, tasks: 1 }
            }
            PoolSpec::Batching { limit, cleared, .. } => {
                self.is_congested[at] &= self.taken[at] >= cleared;
                self.is_full[at] &= self.taken[at] + 1 >= limit;
                self.batching.retain(|_, (left, until)| *left > 0 && now < *until);
                Wake { waiters: at, tasks: u32::from(self.taken[at] < limit) }
            }
        }
    }

    /// The queue of waiters of a direction.
    pub(super) fn waiters(&self, of: Direction) -> usize {
        match self.spec {
            PoolSpec::Batching { .. } => of as usize,
            PoolSpec::Batched { .. } | PoolSpec::Tags { .. } => 0,
        }
    }

    pub(super) fn is_congested(&self, of: Direction) -> bool {
        self.is_congested[of as usize]
    }
}
