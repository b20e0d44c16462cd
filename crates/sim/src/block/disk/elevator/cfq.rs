//! CFQ of 2.6.29: a queue for each task's reads and sync writes, one for the async writes of a priority, and
//! slices of disk time. docs/theory/block.md 6.

use super::cfq_queue::{Owner, TaskQueue};
use super::cfq_spec::CfqSpec;
use super::sorted::Merged;
use super::{NEVER, Take};
use crate::block::disk::bio::{Bio, Limits, Request, RequestId, Requests};
use slablab_model::Ps;
use std::collections::{BTreeMap, BTreeSet};

/// The queues, the active one, and those that wait for their turn.
#[derive(Debug)]
pub(crate) struct Cfq {
    spec: CfqSpec,
    queues: Vec<TaskQueue>,
    numbers: BTreeMap<Owner, usize>,
    /// Queues with requests that are not active, by the key of their turn.
    turns: BTreeSet<(Ps, u64, usize)>,
    added: u64,
    active: Option<usize>,
    idle_until: Option<Ps>,
    busy: u32,
    in_disk: u32,
    sync_in_disk: u32,
    is_tagged: bool,
    head: u64,
}

impl Cfq {
    pub(crate) fn new(spec: CfqSpec) -> Cfq {
        Cfq {
            spec,
            queues: Vec::new(),
            numbers: BTreeMap::new(),
            turns: BTreeSet::new(),
            added: 0,
            active: None,
            idle_until: None,
            busy: 0,
            in_disk: 0,
            sync_in_disk: 0,
            is_tagged: false,
            head: 0,
        }
    }

    pub(crate) fn merge(
        &mut self,
        requests: &mut Requests,
        bio: &Bio,
        key: u64,
        limits: Limits,
    ) -> Option<Merged> {
        let owner = Owner::of(bio.is_sync(), bio.owner, bio.priority);
        let queue = &mut self.queues[*self.numbers.get(&owner)?];
        let merged = queue.sorted.merge(requests, bio, key, limits)?;
        queue.fuse(&merged);
        Some(merged)
    }

    pub(crate) fn add(&mut self, requests: &mut Requests, id: RequestId, now: Ps) {
        let request = requests.get_mut(id);
        let is_sync = request.sync;
        let owner = Owner::of(is_sync, request.owner, request.priority);
        let priority = request.priority;
        let next = self.queues.len();
        let at = *self.numbers.entry(owner).or_insert(next);
        if at == next {
            self.queues.push(TaskQueue::new(owner, priority));
        }
        request.note = now + self.spec.expire[usize::from(!is_sync)];
        let queue = &mut self.queues[at];
        let was_empty = queue.is_empty();
        queue.add(requests, id, now, &self.spec, self.is_tagged);
        self.busy += u32::from(was_empty);
        if self.active == Some(at) {
            self.idle_until = None;
        } else if self.preempts(at, requests, id) {
            self.expire(now);
            self.turns.retain(|(_, _, other)| *other != at);
            self.activate(at);
        } else if was_empty {
            self.wait_for_turn(at, now);
        }
    }

    /// Whether a request of the queue `at` ends the active queue's slice: a sync one ends an async slice, and
    /// metadata goes before a queue that has none.
    fn preempts(&self, at: usize, requests: &Requests, id: RequestId) -> bool {
        let Some(active) = self.active.map(|active| &self.queues[active]) else { return false };
        let is_first_metadata = || requests.get(id).metadata && !active.has_metadata(requests);
        self.queues[at].owner.is_sync() && (!active.owner.is_sync() || is_first_metadata())
    }

    /// A slice of this sync-ness and priority.
    fn slice(&self, is_sync: bool, priority: u8) -> Ps {
        let of = usize::from(!is_sync);
        let least = self.spec.slice[of] + 4 * self.spec.slice_step[of];
        least.saturating_sub(u64::from(priority) * self.spec.slice_step[of])
    }

    /// A queue with requests waits for its turn: behind the queues that wait, the more so the shorter its
    /// slice is.
    fn wait_for_turn(&mut self, at: usize, now: Ps) {
        let queue = &self.queues[at];
        let longest = self.slice(true, 0);
        let own = self.slice(queue.owner.is_sync(), queue.priority);
        let offset = u64::from(self.busy.saturating_sub(1)) * (longest - own);
        self.added += 1;
        self.turns.insert((now + offset, self.added, at));
    }

    /// The active queue's slice ends.
    fn expire(&mut self, now: Ps) {
        self.idle_until = None;
        if let Some(at) = self.active.take()
            && !self.queues[at].is_empty()
        {
            self.wait_for_turn(at, now);
        }
    }

    fn activate(&mut self, at: usize) {
        self.queues[at].begin_slice();
        self.active = Some(at);
    }

    /// The queue that may dispatch now; else until when none may.
    fn select(&mut self, now: Ps) -> Result<usize, Ps> {
        if let Some(at) = self.active {
            let queue = &self.queues[at];
            let is_over = queue.slice_end.is_some_and(|end| now >= end);
            if !is_over && !queue.is_empty() {
                return Ok(at);
            }
            match self.idle_until {
                Some(until) if !is_over && until > now => return Err(until),
                None if !is_over && queue.in_disk > 0 && queue.idles => return Err(NEVER),
                _ => self.expire(now),
            }
        }
        let (_, _, at) = self.turns.pop_first().ok_or(NEVER)?;
        self.activate(at);
        Ok(at)
    }

    pub(crate) fn take(&mut self, requests: &Requests, now: Ps) -> Take {
        let at = match self.select(now) {
            Ok(at) => at,
            Err(until) => return Take::Wait(until),
        };
        let is_sync = self.queues[at].owner.is_sync();
        let is_full = self.queues[at].in_disk >= self.spec.quantum && self.busy > 1;
        if is_full || (!is_sync && self.sync_in_disk > 0) {
            // The slice's end may give the turn to another queue.
            return Take::Wait(self.queues[at].slice_end.filter(|end| *end > now).unwrap_or(NEVER));
        }
        let queue = &mut self.queues[at];
        let id = queue.take(requests, now, self.head, self.spec.back);
        queue.in_disk += 1;
        self.busy -= u32::from(queue.is_empty());
        let most = 2 * self.spec.async_requests * (1 + 7 - u32::from(queue.priority.min(7)));
        let ends = !is_sync && queue.taken >= most && self.busy > u32::from(!queue.is_empty());
        self.in_disk += 1;
        self.sync_in_disk += u32::from(is_sync);
        self.is_tagged |= self.in_disk >= self.spec.tagged;
        self.head = requests.get(id).end();
        if ends {
            self.expire(now);
        }
        Take::Request(id)
    }

    /// The disk has done a request.
    pub(crate) fn completed(&mut self, request: &Request, now: Ps) {
        let owner = Owner::of(request.sync, request.owner, request.priority);
        let at = self.numbers[&owner];
        self.in_disk -= 1;
        self.sync_in_disk -= u32::from(request.sync);
        let slice = self.slice(owner.is_sync(), self.queues[at].priority);
        let queue = &mut self.queues[at];
        queue.in_disk -= 1;
        queue.completed_at = now;
        if self.active != Some(at) {
            return;
        }
        let end = *queue.slice_end.get_or_insert(now + slice);
        let is_over = now >= end;
        if is_over {
            self.expire(now);
        } else if request.sync && queue.is_empty() && queue.idles && self.in_disk == 0 {
            let is_seeky = queue.seeks.valid_mean().is_some_and(|mean| mean > self.spec.seeky);
            self.idle_until = Some(now + if is_seeky { self.spec.idle_seeky } else { self.spec.idle });
        }
    }

    /// The task `owner` ends: the disk is not kept for it.
    pub(crate) fn task_ends(&mut self, owner: u32) {
        if let Some(at) = self.numbers.get(&Owner::Task(owner)) {
            self.queues[*at].idles = false;
            if self.active == Some(*at) {
                self.idle_until = None;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.busy == 0
    }
}
