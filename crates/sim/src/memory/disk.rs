//! A disk that the memory reads from and writes to: bios of frames, and the interrupt that ends them.

use crate::block::disk::bio::{Bio, Direction, Request};
use crate::block::disk::pool::Wake;
use crate::block::disk::queue::{Added, QueueSpec};
use crate::block::disk::queued::{Ended, QueuedDisk};
use crate::kernel::{Kernel, WaitQueue, Waiting};
use crate::record::Recorder;
use slablab_model::disk::Disk;
use slablab_model::{Ps, Timed};
use slablab_vm::{Frame, Io, Place};
use std::cell::{Cell, RefCell};

/// Sectors of a page of 4 KiB.
pub(super) const PAGE_SECTORS: u64 = 8;

/// The group of tracks with a slice for each request in a disk.
const REQUESTS: &str = "Disk requests";

/// I/O that is under way.
pub(super) struct Submitted {
    pub(super) place: Place,
    pub(super) frames: Vec<Frame>,
    pub(super) write: bool,
}

/// A disk with its queue.
pub(super) struct BlockDisk {
    /// Its name in records.
    pub(super) name: &'static str,
    number: u32,
    /// Frames of the largest bio.
    frames_most: u32,
    disk: RefCell<QueuedDisk>,
    /// I/O by its key, and keys that are free.
    under_way: RefCell<(Vec<Option<Submitted>>, Vec<u64>)>,
    /// Tasks that wait for a free request.
    waiters: [WaitQueue; 2],
    /// When the next interrupt is due.
    armed: Cell<Ps>,
    interrupts: Cell<u64>,
}

impl BlockDisk {
    pub(super) fn new(name: &'static str, number: u32, disk: &Disk, queue: QueueSpec) -> BlockDisk {
        BlockDisk {
            name,
            number,
            frames_most: queue.bio.min(queue.limits.sectors) / PAGE_SECTORS as u32,
            disk: RefCell::new(QueuedDisk::new(disk, queue)),
            under_way: RefCell::default(),
            waiters: Default::default(),
            armed: Cell::new(Ps::MAX),
            interrupts: Cell::new(0),
        }
    }

    /// Frames of the largest bio.
    pub(super) fn frames_most(&self) -> usize {
        (self.frames_most as usize).max(1)
    }

    /// A task submits a bio with this key; `slept`: it waited for a free request before.
    pub(super) fn submit(&self, bio: &Bio, key: u64, slept: bool) -> Added {
        self.disk.borrow_mut().submit(bio, key, slept, Timed::clock())
    }

    /// Where a task waits for a free request, and what for.
    pub(super) fn waiters(&self, direction: Direction) -> (&WaitQueue, Waiting) {
        let queue = self.disk.borrow().queue().waiters(direction);
        (&self.waiters[queue], Waiting { what: "for a request of disk", number: self.number })
    }

    /// Keeps I/O until it ends. Returns its key.
    pub(super) fn remember(&self, io: Io<'_>) -> u64 {
        let Io { place, frames, write, .. } = io;
        let submitted = Some(Submitted { place, frames: frames.to_vec(), write });
        let (all, free) = &mut *self.under_way.borrow_mut();
        match free.pop() {
            Some(key) => {
                all[key as usize] = submitted;
                key
            }
            None => {
                all.push(submitted);
                all.len() as u64 - 1
            }
        }
    }

    /// The task will submit many bios.
    pub(super) fn start_plug(&self, owner: u32) {
        self.disk.borrow_mut().start_plug(owner);
    }

    /// The task waits, or has submitted its last bio of many.
    pub(super) fn unplug(&self, owner: u32) {
        self.disk.borrow_mut().unplug(owner, Timed::clock());
    }

    /// Whether no I/O is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.disk.borrow().queue().is_empty()
    }

    pub(super) fn is_congested(&self, of: Direction) -> bool {
        self.disk.borrow().is_congested(of)
    }

    /// The fields of `/sys/block/DISK/stat`.
    pub(super) fn stat(&self) -> [u64; 17] {
        self.disk.borrow().queue().stat().fields()
    }

    /// Interrupts so far.
    pub(super) fn interrupts(&self) -> u64 {
        self.interrupts.get()
    }

    /// Tasks that waited for requests go on.
    pub(super) fn wake(&self, kernel: &Kernel, wake: Wake) {
        (0..wake.tasks).for_each(|_| {
            self.waiters[wake.waiters].wake_one(kernel, false);
        });
    }

    /// When the disk has to interrupt, if that is earlier than it was known to.
    pub(super) fn next_interrupt(&self) -> Option<Ps> {
        let next = self.disk.borrow().next().filter(|next| *next < self.armed.get())?;
        self.armed.set(next);
        Some(next)
    }

    /// The disk interrupts. False for a timer that an earlier one replaced, which has nothing to do.
    pub(super) fn interrupts_at(&self, at: Ps) -> bool {
        let is_due = self.armed.get() == at;
        if is_due {
            self.armed.set(Ps::MAX);
            self.interrupts.set(self.interrupts.get() + 1);
        }
        is_due
    }

    /// Takes out what is done by now.
    pub(super) fn advance(&self) -> Vec<Ended> {
        self.disk.borrow_mut().advance(Timed::clock())
    }

    /// Adds a request to the recording: from its way to the disk to its end.
    pub(super) fn record(&self, recorder: &Recorder, request: &Request) {
        if recorder.is_on() {
            let track = recorder.track(REQUESTS, || self.name.into());
            let name = if request.direction == Direction::Write { "write" } else { "read" };
            recorder.slice(track, recorder.name(|| name.into()), request.started, Timed::clock());
        }
    }

    /// I/O has ended: what it was.
    pub(super) fn end(&self, key: u64) -> Submitted {
        let (all, free) = &mut *self.under_way.borrow_mut();
        let submitted = all[key as usize].take().expect("a bio ends once");
        free.push(key);
        submitted
    }
}
