//! Block devices that complete by interrupt, on a CPU that need not be the one that submitted.
//!
//! ```text
//! submit     a bio for each piece ── wait for a free request ── request, command and its list ── queue_lock
//!              the device works on it
//! interrupt  a latency later, on the device's CPU: queue_lock ── free list, command, request, bios there
//!              ── what the submitter asked for: buffers are unlocked, tasks wake
//! ```
//!
//! | object | until | from | source |
//! |---|---|---|---|
//! | `bio-0` with up to 4 vectors in it, else with a `biovec-N` | 2.6.28: `bio`, and always a `biovec-N` | 2.6.29 | from memory |
//! | `blkdev_requests` | 4.20: one for each request | 5.0: requests lie beside the tags, nothing is allocated | from memory |
//! | `scsi_cmd_cache`, `sgpool-8` | 4.20: one of each for a request to a disk | 5.0: beside the tags | from memory |
//!
//! A request takes bios that follow each other on the disk; the elevator is not built: who submits says
//! which bios are one request. Cycles are assumed. Requests to a disk that wait in the device's own queue
//! wait in the order of submission.

pub mod disk;

use crate::kernel::era::Era;
use crate::kernel::objects::{Held, Object};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting, locks_of};
use crate::locks::QueueLock;
use slablab_model::{Access, LockTimes, Ps, Timed};
use slablab_platform::{CpuId, Lock, Platform, Topology};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Cycles to make a bio; to make a request and give it to the device; of an interrupt; to end a bio: beside
/// the allocator, locks and lines (assumed).
pub(crate) const BIO: u64 = 150;
pub(crate) const REQUEST: u64 = 1_200;
pub(crate) const INTERRUPT: u64 = 1_500;
pub(crate) const END: u64 = 120;
/// Bytes that are written of a bio, a request, a command, its list.
pub(crate) const BIO_WRITTEN: u32 = 128;
const REQUEST_WRITTEN: u32 = 256;
const COMMAND_WRITTEN: u32 = 256;
pub(crate) const LIST_WRITTEN: u32 = 64;
/// Vectors inside a bio, and bytes of one outside.
const INLINE_VECTORS: u32 = 4;
const VECTOR_BYTES: u32 = 16;
/// Vectors of the caches outside of bios.
const VECTORS: [u32; 6] = [1, 4, 16, 64, 128, 256];

/// How a device works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Time of a request without its data.
    pub latency: Ps,
    /// Time of each KiB of data.
    pub kib: Ps,
    /// Requests that it works on at a time: the disks of an array.
    pub disks: u32,
    /// Requests that may be submitted and not completed; who submits more waits. 128 for a disk of 2.6.
    pub requests: u32,
}

/// The CPU that a device's interrupts come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The CPU that submitted the request.
    Submitter,
    /// This one.
    Cpu(CpuId),
    /// Each CPU in its turn.
    Turns,
}

/// Bios that are one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Bytes of the request.
    pub bytes: u32,
    /// Its bios.
    pub bios: u32,
}

/// A block device.
pub struct Device {
    number: u32,
    disk: Disk,
    affinity: Affinity,
    queue: <Timed as Platform>::Lock<QueueLock, ()>,
    in_flight: Cell<u32>,
    submitters: WaitQueue,
    /// When each disk has done what it was given.
    busy_until: RefCell<Vec<Ps>>,
    completed: Cell<u64>,
}

/// What a request holds until its interrupt.
struct Request {
    bios: Vec<Bio>,
    /// The request, the command and its list, in this order.
    head: Vec<Held>,
}

struct Bio {
    bio: Held,
    vectors: Option<Held>,
}

/// What the locks of all devices did so far.
pub fn locks() -> (&'static str, LockTimes) {
    locks_of::<QueueLock>()
}

impl Device {
    /// A device.
    pub fn new(number: u32, disk: Disk, affinity: Affinity) -> Rc<Device> {
        Rc::new(Device {
            number,
            disk,
            affinity,
            queue: Lock::new(()),
            in_flight: Cell::new(0),
            submitters: WaitQueue::default(),
            busy_until: RefCell::new(vec![0; disk.disks.max(1) as usize]),
            completed: Cell::new(0),
        })
    }

    /// Requests that were completed.
    pub fn completed(&self) -> u64 {
        self.completed.get()
    }

    /// Submits a request. `done` runs at its interrupt, on the interrupt's CPU. Part of a system call; the
    /// task waits while all requests of the device are in flight.
    pub fn submit(self: &Rc<Self>, task: &Task, io: Io, done: impl FnOnce(&Rc<Kernel>) + 'static) {
        let bios = (0..io.bios.max(1)).map(|_| Bio::new(task, io.bytes / io.bios.max(1))).collect();
        while self.in_flight.get() >= self.disk.requests {
            self.submitters.wait(task, Waiting { what: "for a request of device", number: self.number });
            Timed::turn();
        }
        self.in_flight.set(self.in_flight.get() + 1);
        let request = Request { bios, head: head(task) };
        let held = self.queue.lock();
        task.work(REQUEST);
        let at = self.end_of(io.bytes);
        drop(held);
        let cpu = self.cpu();
        let device = self.clone();
        let interrupt = move |kernel: &Rc<Kernel>| device.interrupt(kernel, request, done);
        task.kernel.interrupt_at(cpu, at, Box::new(interrupt));
    }

    /// Submits a request, and waits until it is completed. Part of a system call.
    pub fn submit_and_wait(self: &Rc<Self>, task: &Task, io: Io) {
        let pending = Rc::new(Pending::default());
        pending.submit(task, self, io);
        pending.wait(task);
    }

    /// When the first free disk has done a request of `bytes` bytes that it gets now.
    fn end_of(&self, bytes: u32) -> Ps {
        let mut disks = self.busy_until.borrow_mut();
        let first = disks.iter_mut().min().expect("a device has a disk");
        let time = self.disk.latency + u64::from(bytes) * self.disk.kib / 1024;
        *first = (*first).max(Timed::clock()) + time;
        *first
    }

    /// The CPU of the next interrupt.
    fn cpu(&self) -> CpuId {
        match self.affinity {
            Affinity::Submitter => Timed::cpu(),
            Affinity::Cpu(cpu) => cpu,
            Affinity::Turns => {
                let turn = self.completed.get() + u64::from(self.in_flight.get());
                CpuId((turn % u64::from(Timed::cpus())) as u16)
            }
        }
    }

    fn interrupt(&self, kernel: &Rc<Kernel>, request: Request, done: impl FnOnce(&Rc<Kernel>)) {
        Timed::cycles(INTERRUPT);
        drop(self.queue.lock());
        let Request { bios, head } = request;
        for held in head.into_iter().rev() {
            Timed::touch(held.address, LIST_WRITTEN, Access::Read);
            kernel.free(held);
        }
        for Bio { bio, vectors } in bios {
            Timed::cycles(END);
            Timed::touch(bio.address, BIO_WRITTEN, Access::Write);
            vectors.into_iter().for_each(|vectors| kernel.free(vectors));
            kernel.free(bio);
        }
        self.in_flight.set(self.in_flight.get() - 1);
        self.completed.set(self.completed.get() + 1);
        done(kernel);
        self.submitters.wake_one(kernel, false);
    }
}

impl Bio {
    fn new(task: &Task, bytes: u32) -> Bio {
        let bio = task.alloc(Object::Bio);
        let vectors = vector_bytes(task.kernel.era, bytes).map(|bytes| task.alloc_bytes(bytes));
        task.work(BIO);
        task.touch(&bio, BIO_WRITTEN, Access::Write);
        Bio { bio, vectors }
    }
}

/// Bytes of the vector that a bio of `bytes` bytes has outside of it; `None` if it needs none.
pub(crate) fn vector_bytes(era: Era, bytes: u32) -> Option<u32> {
    let vectors = bytes.div_ceil(1 << Timed::page_shift());
    let is_inline = era.since(2, 6, 29) && vectors <= INLINE_VECTORS;
    let room = || VECTORS.into_iter().find(|room| *room >= vectors).unwrap_or(VECTORS[5]);
    (!is_inline).then(|| room() * VECTOR_BYTES)
}

/// What a request consists of in a release, beside its bios, and the bytes that are written of each.
pub(crate) fn head_objects(era: Era) -> impl Iterator<Item = (Object, u32)> {
    let written = [
        (Object::Request, REQUEST_WRITTEN),
        (Object::ScsiCommand, COMMAND_WRITTEN),
        (Object::ScatterList, LIST_WRITTEN),
    ];
    written.into_iter().filter(move |(object, _)| object.row(era).is_some())
}

/// Allocates what a request consists of, beside its bios.
fn head(task: &Task) -> Vec<Held> {
    let alloc = |(object, bytes)| {
        let held = task.alloc(object);
        task.touch(&held, bytes, Access::Write);
        held
    };
    head_objects(task.kernel.era).map(alloc).collect()
}

/// Requests that a task submitted and will wait for.
#[derive(Default)]
pub struct Pending {
    count: Cell<u32>,
    waiter: WaitQueue,
}

impl Pending {
    /// Submits a request of these.
    pub fn submit(self: &Rc<Self>, task: &Task, device: &Rc<Device>, io: Io) {
        self.count.set(self.count.get() + 1);
        let pending = self.clone();
        device.submit(task, io, move |kernel| pending.end(kernel));
    }

    fn end(&self, kernel: &Kernel) {
        self.count.set(self.count.get() - 1);
        if self.count.get() == 0 {
            self.waiter.wake_all(kernel, false);
        }
    }

    /// Waits until all are completed. Part of a system call.
    pub fn wait(&self, task: &Task) {
        while self.count.get() > 0 {
            self.waiter.wait(task, Waiting { what: "for requests, in flight", number: self.count.get() });
            Timed::turn();
        }
    }
}
