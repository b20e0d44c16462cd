//! A disk behind its queue: still a state machine without tasks, driven by the times of its events.

use super::bio::{Bio, Direction, Request, RequestId};
use super::command::Command;
use super::drive::Drive;
use super::elevator::{NEVER, Take};
use super::pool::Wake;
use super::queue::{Added, Queue, QueueSpec};
use slablab_model::Ps;
use slablab_model::disk::Disk;

/// A request that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its number, free from now on.
    pub id: RequestId,
    /// The request, with the keys of its bios.
    pub request: Request,
    /// Who may try again for a request.
    pub wake: Wake,
}

/// A queue and the disk that it feeds.
#[derive(Debug)]
pub struct QueuedDisk {
    queue: Queue,
    drive: Drive,
    /// When the queue has something to do, unless another event comes first.
    timer: Ps,
}

impl QueuedDisk {
    /// A disk with this queue. A queue of 2.6.29 is not plugged if the disk does not rotate.
    pub fn new(disk: &Disk, queue: QueueSpec) -> QueuedDisk {
        let queue = if disk.rotational { queue } else { queue.without_rotation() };
        QueuedDisk { queue: Queue::new(queue), drive: Drive::new(disk), timer: NEVER }
    }

    /// Submits a bio; see [`Queue::add`].
    pub fn submit(&mut self, bio: &Bio, key: u64, slept: bool, now: Ps) -> Added {
        let added = self.queue.add(bio, key, slept, now);
        self.feed(now);
        added
    }

    /// A task waits, for a page or for a request: what is plugged goes to the disk.
    pub fn unplug(&mut self, owner: u32, now: Ps) {
        self.queue.finish_plug(owner, now);
        self.queue.unplug();
        self.feed(now);
    }

    /// The task `owner` will submit many bios; see [`Queue::start_plug`].
    pub fn start_plug(&mut self, owner: u32) {
        self.queue.start_plug(owner);
    }

    /// The task `owner` has submitted its last bio of many.
    pub fn finish_plug(&mut self, owner: u32, now: Ps) {
        self.queue.finish_plug(owner, now);
        self.feed(now);
    }

    /// The task `owner` ends.
    pub fn task_ends(&mut self, owner: u32, now: Ps) {
        self.queue.finish_plug(owner, now);
        self.queue.task_ends(owner);
        self.feed(now);
    }

    /// Gives requests to the disk while it has free tags.
    fn feed(&mut self, now: Ps) {
        self.timer = NEVER;
        while self.drive.has_room() {
            match self.queue.dispatch(now) {
                Take::Request(id) => {
                    let Request { direction, sector, sectors, .. } = *self.queue.request(id);
                    self.drive.start(id.0, Command { direction, sector, sectors }, now);
                }
                Take::Wait(until) => {
                    self.timer = until;
                    return;
                }
            }
        }
    }

    /// When something happens next, if no bio comes: a command is done, or a timer of the queue expires.
    pub fn next(&self) -> Option<Ps> {
        let next = self.drive.next().map_or(self.timer, |next| next.min(self.timer));
        (next != NEVER).then_some(next)
    }

    /// Does what is due by `now`, and returns the requests that are done.
    pub fn advance(&mut self, now: Ps) -> Vec<Ended> {
        let mut ended = Vec::new();
        while let Some(tag) = self.drive.finish(now) {
            let (request, wake) = self.queue.complete(RequestId(tag), now);
            ended.push(Ended { id: RequestId(tag), request, wake });
        }
        self.feed(now);
        ended
    }

    /// The queue, to read.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Whether the direction is congested.
    pub fn is_congested(&self, of: Direction) -> bool {
        self.queue.is_congested(of)
    }
}
