//! Elevators: which request of a queue goes to the disk next.
//!
//! Each is a file with the same functions: `merge` adds a bio to a request that is adjacent to it, `add` puts
//! a request into the elevator, `take` chooses the next one.

mod cfq;
mod cfq_queue;
mod cfq_spec;
mod deadline;
mod fifo;
mod linus;
mod sorted;

use super::bio::{Bio, Limits, Request, RequestId, Requests};
use slablab_model::Ps;
use sorted::Merged;

pub use cfq_spec::CfqSpec;
pub use deadline::DeadlineSpec;
pub use linus::LinusSpec;

/// Later than every time.
pub(super) const NEVER: Ps = Ps::MAX;

/// Which elevator, and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElevatorSpec {
    /// Linus' elevator of 2.4.
    Linus(LinusSpec),
    /// CFQ of 2.6.29.
    Cfq(CfqSpec),
    /// Deadline, and mq-deadline.
    Deadline(DeadlineSpec),
    /// The order of arrival. `merges`: bios merge in the queue (noop of 2.6), not only in plugs.
    None {
        /// Whether bios merge in the queue.
        merges: bool,
    },
}

/// What an elevator answers to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// This request goes to the disk.
    Request(RequestId),
    /// No request before this time, or before another event; `Ps::MAX`: before another event.
    Wait(Ps),
}

/// An elevator with its requests.
#[derive(Debug)]
pub(super) enum Elevator {
    Linus(linus::Linus),
    Cfq(Box<cfq::Cfq>),
    Deadline(Box<deadline::Deadline>),
    None(fifo::Fifo),
}

impl Elevator {
    pub(super) fn new(spec: ElevatorSpec) -> Elevator {
        match spec {
            ElevatorSpec::Linus(spec) => Elevator::Linus(linus::Linus::new(spec)),
            ElevatorSpec::Cfq(spec) => Elevator::Cfq(Box::new(cfq::Cfq::new(spec))),
            ElevatorSpec::Deadline(spec) => Elevator::Deadline(Box::new(deadline::Deadline::new(spec))),
            ElevatorSpec::None { merges } => Elevator::None(fifo::Fifo::new(merges)),
        }
    }

    pub(super) fn merge(
        &mut self,
        requests: &mut Requests,
        bio: &Bio,
        key: u64,
        limits: Limits,
    ) -> Option<Merged> {
        match self {
            Elevator::Linus(linus) => linus.merge(requests, bio, key, limits),
            Elevator::Cfq(cfq) => cfq.merge(requests, bio, key, limits),
            Elevator::Deadline(deadline) => deadline.merge(requests, bio, key, limits),
            Elevator::None(fifo) => fifo.merge(requests, bio, key, limits),
        }
    }

    pub(super) fn add(&mut self, requests: &mut Requests, id: RequestId, now: Ps) {
        match self {
            Elevator::Linus(linus) => linus.add(requests, id),
            Elevator::Cfq(cfq) => cfq.add(requests, id, now),
            Elevator::Deadline(deadline) => deadline.add(requests, id, now),
            Elevator::None(fifo) => fifo.add(requests, id),
        }
    }

    pub(super) fn take(&mut self, requests: &Requests, now: Ps) -> Take {
        let id = match self {
            Elevator::Linus(linus) => linus.take(),
            Elevator::Cfq(cfq) => return cfq.take(requests, now),
            Elevator::Deadline(deadline) => deadline.take(requests, now),
            Elevator::None(fifo) => fifo.take(requests),
        };
        id.map_or(Take::Wait(NEVER), Take::Request)
    }

    pub(super) fn completed(&mut self, request: &Request, now: Ps) {
        if let Elevator::Cfq(cfq) = self {
            cfq.completed(request, now);
        }
    }

    pub(super) fn task_ends(&mut self, owner: u32) {
        if let Elevator::Cfq(cfq) = self {
            cfq.task_ends(owner);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Elevator::Linus(linus) => linus.is_empty(),
            Elevator::Cfq(cfq) => cfq.is_empty(),
            Elevator::Deadline(deadline) => deadline.is_empty(),
            Elevator::None(fifo) => fifo.is_empty(),
        }
    }
}
