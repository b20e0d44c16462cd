//! A disk's request queue: free requests, plugging, the elevator. A state machine without tasks and clocks.
//!
//! ```text
//! add       merge into the task's plug, into the elevator, or take a free request ── plug or elevator
//! dispatch  unless plugged: the elevator's next request, for a free tag of the disk
//! complete  the request's bios; who may try again for a request
//! ```

use super::bio::{Bio, Direction, Limits, Request, RequestId, Requests};
use super::elevator::{Elevator, ElevatorSpec, NEVER, Take};
use super::pool::{Pool, PoolSpec, Wake};
use super::stat::Stat;
use slablab_model::Ps;
use std::collections::BTreeMap;

/// When requests that came into an empty queue start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugSpec {
    /// At once.
    Never,
    /// 2.4: when a task waits, for a request or for a page.
    Waiter,
    /// 2.6: when a task waits, a bio is sync, `requests` are together, or `after` has passed.
    Timed {
        /// `unplug_thresh`.
        requests: u32,
        /// `unplug_delay`.
        after: Ps,
    },
    /// From 2.6.39 on: a task that submits many bios keeps them to itself until it has `most` requests, waits
    /// or says so.
    Task {
        /// Requests of one task.
        most: u32,
    },
}

/// A queue: its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// The order of requests.
    pub elevator: ElevatorSpec,
    /// Free requests.
    pub pool: PoolSpec,
    /// When requests start.
    pub plug: PlugSpec,
    /// The size of a request.
    pub limits: Limits,
    /// Sectors of the largest bio that the page cache and swap give to the queue.
    pub bio: u32,
}

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is a part of a request that was there.
    Merged {
        /// The request that became a part of another one by it, and is free.
        gone: Option<RequestId>,
        /// Who may try again for a request.
        wake: Wake,
    },
    /// It is a request.
    New(RequestId),
    /// No request is free: the task waits and then tries again.
    NoRequest,
}

/// A request queue.
#[derive(Debug)]
pub struct Queue {
    spec: QueueSpec,
    requests: Requests,
    elevator: Elevator,
    pool: Pool,
    stat: Stat,
    /// Until when the queue is plugged.
    plugged_until: Option<Ps>,
    /// Requests that tasks keep to themselves.
    plugs: BTreeMap<u32, Vec<RequestId>>,
    waiting: u32,
    in_disk: u32,
}

impl Queue {
    /// An empty queue.
    pub fn new(spec: QueueSpec) -> Queue {
        Queue {
            spec,
            requests: Requests::default(),
            elevator: Elevator::new(spec.elevator),
            pool: Pool::new(spec.pool),
            stat: Stat::default(),
            plugged_until: None,
            plugs: BTreeMap::new(),
            waiting: 0,
            in_disk: 0,
        }
    }

    /// Adds a bio that the caller knows by `key`. `slept`: its task has waited for a free request.
    ///
    /// # Panics
    /// If the bio has no sector, or more than a request may have.
    pub fn add(&mut self, bio: &Bio, key: u64, slept: bool, now: Ps) -> Added {
        let most = self.spec.limits.sectors;
        assert!((1..=most).contains(&bio.sectors), "a bio of {} sectors: 1 to {most}", bio.sectors);
        if self.merge_in_plug(bio, key, now) {
            return Added::Merged { gone: None, wake: Wake::default() };
        }
        if let Some(merged) = self.elevator.merge(&mut self.requests, bio, key, self.spec.limits) {
            let gone = merged.gone;
            self.waiting -= u32::from(gone.is_some());
            let give = |_| self.pool.give(bio.direction, bio.is_sync(), now);
            let wake = gone.map(give).unwrap_or_default();
            self.stat.merges(bio.direction, gone.is_some(), now);
            self.unplug_for(bio);
            return Added::Merged { gone, wake };
        }
        if !self.pool.take(bio.direction, bio.is_sync(), bio.owner, slept, now) {
            self.unplug();
            return Added::NoRequest;
        }
        let id = self.requests.add(bio, key, now);
        self.stat.arrives(now);
        match self.plugs.get_mut(&bio.owner) {
            Some(plug) => {
                plug.push(id);
                self.flush_full(bio.owner, now);
            }
            None => {
                self.plug_for(now);
                self.enter_elevator(id, now);
                self.unplug_for(bio);
            }
        }
        Added::New(id)
    }

    fn merge_in_plug(&mut self, bio: &Bio, key: u64, now: Ps) -> bool {
        let Some(plug) = self.plugs.get(&bio.owner) else { return false };
        let side = |id: &RequestId| Some((*id, self.requests.get(*id).side(bio, self.spec.limits)?));
        let Some((id, side)) = plug.iter().rev().find_map(side) else { return false };
        self.requests.extend(id, bio, key, side);
        self.stat.merges(bio.direction, false, now);
        true
    }

    fn enter_elevator(&mut self, id: RequestId, now: Ps) {
        self.waiting += 1;
        self.elevator.add(&mut self.requests, id, now);
    }

    /// The first request of an empty queue plugs it.
    fn plug_for(&mut self, now: Ps) {
        let until = match self.spec.plug {
            PlugSpec::Waiter if self.waiting == 0 && self.in_disk == 0 => NEVER,
            PlugSpec::Timed { after, .. } if self.waiting == 0 => now + after,
            _ => return,
        };
        self.plugged_until.get_or_insert(until);
    }

    fn unplug_for(&mut self, bio: &Bio) {
        if let PlugSpec::Timed { requests, .. } = self.spec.plug
            && (bio.sync || self.waiting >= requests)
        {
            self.unplug();
        }
    }

    /// Requests start: a task waits, or the disk has done a request.
    pub fn unplug(&mut self) {
        self.plugged_until = None;
    }

    /// The task `owner` keeps its requests to itself from now on, where the release has such plugs.
    pub fn start_plug(&mut self, owner: u32) {
        if matches!(self.spec.plug, PlugSpec::Task { .. }) {
            self.plugs.entry(owner).or_default();
        }
    }

    /// The task's requests go to the elevator, as it waits or has submitted its last one.
    pub fn finish_plug(&mut self, owner: u32, now: Ps) {
        self.plugs.remove(&owner).unwrap_or_default().into_iter().for_each(|id| self.enter_elevator(id, now));
    }

    fn flush_full(&mut self, owner: u32, now: Ps) {
        let PlugSpec::Task { most } = self.spec.plug else { return };
        if self.plugs[&owner].len() >= most as usize {
            self.finish_plug(owner, now);
            self.start_plug(owner);
        }
    }

    /// The next request for the disk, which has a free tag.
    pub fn dispatch(&mut self, now: Ps) -> Take {
        if let Some(until) = self.plugged_until.filter(|until| *until > now) {
            return Take::Wait(until);
        }
        self.plugged_until = None;
        let take = self.elevator.take(&self.requests, now);
        if let Take::Request(id) = take {
            self.waiting -= 1;
            self.in_disk += 1;
            self.requests.get_mut(id).started = now;
        }
        take
    }

    /// The disk has done a request. Returns it, and who may try again for a request.
    pub fn complete(&mut self, id: RequestId, now: Ps) -> (Request, Wake) {
        let request = self.requests.remove(id);
        self.in_disk -= 1;
        self.elevator.completed(&request, now);
        self.stat.ends(&request, now);
        if matches!(self.spec.plug, PlugSpec::Timed { .. }) {
            self.unplug();
        }
        let wake = self.pool.give(request.direction, request.sync, now);
        (request, wake)
    }

    /// A request that is not completed.
    pub fn request(&self, id: RequestId) -> &Request {
        self.requests.get(id)
    }

    /// The task `owner` ends: CFQ does not keep the disk for it.
    pub fn task_ends(&mut self, owner: u32) {
        self.elevator.task_ends(owner);
    }

    /// Whether the direction has more requests than the kernel wants: reclaim and writeback hold back.
    pub fn is_congested(&self, of: Direction) -> bool {
        self.pool.is_congested(of)
    }

    /// The number of the queue of waiters for a free request of this direction, 0 or 1.
    pub fn waiters(&self, of: Direction) -> usize {
        self.pool.waiters(of)
    }

    /// Whether no request waits, and none is in the disk.
    pub fn is_empty(&self) -> bool {
        self.elevator.is_empty() && self.in_disk == 0 && self.plugs.values().all(Vec::is_empty)
    }

    /// What was counted.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }
}
