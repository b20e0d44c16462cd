//! A disk that the memory reads from and writes to: bios of frames, and the interrupt that ends them.

use super::Memory;
use super::host::Here;
use crate::block::disk::bio::{Bio, Direction, Request};
use crate::block::disk::pool::Wake;
use crate::block::disk::queue::{Added, QueueSpec};
use crate::block::disk::queued::QueuedDisk;
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use slablab_model::disk::Disk;
use slablab_model::{Ps, Timed};
use slablab_platform::Topology;
use slablab_vm::{Frame, Io, Place};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Sectors of a page of 4 KiB.
pub(super) const PAGE_SECTORS: u64 = 8;

/// The group of tracks with a slice for each request in a disk.
const REQUESTS: &str = "Disk requests";

/// I/O that is under way.
struct Submitted {
    place: Place,
    frames: Vec<Frame>,
    write: bool,
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

    /// The task submits I/O of frames that follow each other from `sector` on, in bios that the queue takes.
    pub(super) fn submit(&self, memory: &Rc<Memory>, task: &Task, io: Io<'_>, sector: u64) {
        let most = (self.frames_most as usize).max(1);
        for (piece, frames) in io.frames.chunks(most).enumerate() {
            let at = (piece * most) as u32;
            let place = match io.place {
                Place::Swap(slot) => Place::Swap(slot + at),
                Place::Mapping(mapping, index) => Place::Mapping(mapping, index + at),
            };
            self.submit_bio(memory, task, Io { place, frames, ..io }, sector + u64::from(at) * PAGE_SECTORS);
        }
    }

    /// The task submits a bio. It waits while no request is free.
    fn submit_bio(&self, memory: &Rc<Memory>, task: &Task, io: Io<'_>, sector: u64) {
        let sectors = io.frames.len() as u32 * PAGE_SECTORS as u32;
        let direction = if io.write { Direction::Write } else { Direction::Read };
        let bio = Bio { direction, sync: io.sync, ..Bio::read(sector, sectors, task.id.0) };
        let key = self.remember(io);
        let mut slept = false;
        loop {
            let added = self.disk.borrow_mut().submit(&bio, key, slept, Timed::clock());
            self.arm(memory);
            match added {
                Added::Merged { wake, .. } => return self.wake(&memory.kernel, wake),
                Added::New(_) => return,
                Added::NoRequest => {
                    let queue = self.disk.borrow().queue().waiters(direction);
                    let waiting = Waiting { what: "for a request of disk", number: self.number };
                    memory.waits(task, waiting, &self.waiters[queue]);
                    slept = true;
                }
            }
        }
    }

    fn remember(&self, io: Io<'_>) -> u64 {
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
    pub(super) fn unplug(&self, memory: &Rc<Memory>, owner: u32) {
        self.disk.borrow_mut().unplug(owner, Timed::clock());
        self.arm(memory);
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

    fn wake(&self, kernel: &Kernel, wake: Wake) {
        (0..wake.tasks).for_each(|_| {
            self.waiters[wake.waiters].wake_one(kernel, false);
        });
    }

    /// The disk interrupts this CPU when something is done.
    fn arm(&self, memory: &Rc<Memory>) {
        let Some(next) = self.disk.borrow().next() else { return };
        if next >= self.armed.get() {
            return;
        }
        self.armed.set(next);
        let (memory_of, number) = (Rc::downgrade(memory), self.number);
        let handler = move |_: &Rc<Kernel>| {
            if let Some(memory) = memory_of.upgrade() {
                memory.disks[number as usize].interrupt(&memory, next);
            }
        };
        memory.kernel.interrupt_at(Timed::cpu(), next, Box::new(handler));
    }

    fn interrupt(&self, memory: &Rc<Memory>, at: Ps) {
        memory.kernel.observe();
        // A timer that an earlier one replaced has nothing to do.
        if self.armed.get() != at {
            return;
        }
        self.armed.set(Ps::MAX);
        self.interrupts.set(self.interrupts.get() + 1);
        Timed::charge(memory.prices.interrupt);
        let was_congested = self.is_congested(Direction::Write);
        let ended = self.disk.borrow_mut().advance(Timed::clock());
        if was_congested && !self.is_congested(Direction::Write) {
            memory.congestion_ends();
        }
        let here = Here::interrupt(memory);
        for ended in ended {
            self.record(memory, &ended.request);
            for key in ended.request.keys {
                self.end(memory, &here, key);
            }
            self.wake(&memory.kernel, ended.wake);
        }
        self.arm(memory);
    }

    /// Adds a request to the recording: from its way to the disk to its end.
    fn record(&self, memory: &Memory, request: &Request) {
        let recorder = &memory.recorder;
        if recorder.is_on() {
            let track = recorder.track(REQUESTS, || self.name.into());
            let name = if request.direction == Direction::Write { "write" } else { "read" };
            recorder.slice(track, recorder.name(|| name.into()), request.started, Timed::clock());
        }
    }

    fn end(&self, memory: &Memory, here: &Here, key: u64) {
        let (all, free) = &mut *self.under_way.borrow_mut();
        let submitted = all[key as usize].take().expect("a bio ends once");
        free.push(key);
        let Submitted { place, frames, write } = submitted;
        Timed::charge(memory.prices.end * frames.len() as u64);
        let io = Io { place, frames: &frames, write, sync: false, reclaim: false };
        if write {
            memory.vm.write_done(here, io);
            memory.writes_ended(frames.len() as u32);
        } else {
            memory.vm.read_done(here, io);
        }
    }
}
