//! A disk of the simulated kernel: bios, requests and commands are slab objects, tasks wait for free
//! requests, interrupts complete.
//!
//! ```text
//! submit     a bio from its mempool ── queue_lock ── merge, or a request and its command ── or wait for one
//! wait       unplug; what the task waits for is the caller's interrupt  on the device's CPU: what is done ──
//! objects are freed there ── `done` of each bio ── tasks wake
//! ```
//!
//! No allocation here asks reclaim for memory: each kind of object has a reserve (`BIO_POOL_SIZE` 2, 4
//! requests, one command and 2 lists; from memory). Unlike the kernel, which makes a request after it has
//! looked for a merge, the objects of a request are made before; those of a bio that merged are kept for the
//! next one.

use super::bio::{Bio, Direction, RequestId};
use super::mempool::Mempool;
use super::pool::Wake;
use super::queue::{Added, QueueSpec};
use super::queued::{Ended, QueuedDisk};
use super::stat::Stat;
use crate::block::{self, Affinity};
use crate::kernel::objects::{Held, Object};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::locks::QueueLock;
use slablab_model::disk::{Disk, SECTOR};
use slablab_model::{Access, Ps, Timed};
use slablab_platform::{CpuId, Gfp, Lock, Platform, Topology};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Objects in reserve: bios and their vectors; requests; commands; lists.
const BIOS: usize = 2;
const REQUESTS: usize = 4;
const COMMANDS: usize = 1;
const LISTS: usize = 2;
/// Bytes of the largest vector of a bio: 256 entries.
const VECTORS_BYTES: u32 = 4096;

/// Tasks that wait until some device leaves congestion (`congestion_wait`), for all devices of a kernel.
#[derive(Debug, Default)]
pub struct Congestion([WaitQueue; 2]);

impl Congestion {
    /// The task waits until a device leaves congestion in this direction, at most `at_most` picoseconds. True
    /// if one did.
    pub fn wait(&self, task: &Task, of: Direction, at_most: Ps) -> bool {
        let waiting = Waiting { what: "for congestion to end in direction", number: of as u32 };
        let woken = self.0[of as usize].wait_at_most(task, waiting, at_most);
        Timed::turn();
        woken
    }

    fn ends(&self, kernel: &Kernel, of: Direction) {
        self.0[of as usize].wake_all(kernel, false);
    }
}

/// What runs when a bio is done, at the interrupt.
type Done = Box<dyn FnOnce(&Rc<Kernel>)>;

/// A bio that is not done.
struct Submitted {
    bio: Held,
    vectors: Option<Held>,
    done: Done,
}

/// A disk with its queue, and what is under way.
pub struct QueuedDevice {
    number: u32,
    affinity: Affinity,
    disk: RefCell<QueuedDisk>,
    lock: <Timed as Platform>::Lock<QueueLock, ()>,
    waiters: [WaitQueue; 2],
    congestion: Rc<Congestion>,
    bios: Mempool,
    vectors: Option<Mempool>,
    /// The objects of a request, and the bytes that are written of each.
    heads: Vec<(Mempool, u32)>,
    submitted: RefCell<BTreeMap<u64, Submitted>>,
    /// The objects of each request in the queue or in the disk; and of one that was not needed.
    requests: RefCell<BTreeMap<RequestId, Vec<Held>>>,
    spare: RefCell<Option<Vec<Held>>>,
    keys: Cell<u64>,
    armed: Cell<Ps>,
    interrupts: Cell<u64>,
}

impl QueuedDevice {
    /// A disk with this queue; its reserves are allocated.
    pub fn new(
        task: &Task,
        number: u32,
        disk: &Disk,
        queue: QueueSpec,
        affinity: Affinity,
        congestion: Rc<Congestion>,
    ) -> Rc<QueuedDevice> {
        let least = |object| match object {
            Object::Request => REQUESTS,
            Object::ScsiCommand => COMMANDS,
            _ => LISTS,
        };
        let head = |(object, written)| (Mempool::of(task, object, least(object)), written);
        Rc::new(QueuedDevice {
            number,
            affinity,
            disk: RefCell::new(QueuedDisk::new(disk, queue)),
            lock: Lock::new(()),
            waiters: Default::default(),
            congestion,
            bios: Mempool::of(task, Object::Bio, BIOS),
            vectors: Mempool::of_bytes(task, VECTORS_BYTES, BIOS),
            heads: block::head_objects(task.kernel.era).map(head).collect(),
            submitted: RefCell::default(),
            requests: RefCell::default(),
            spare: RefCell::default(),
            keys: Cell::new(0),
            armed: Cell::new(Ps::MAX),
            interrupts: Cell::new(0),
        })
    }

    /// Submits a bio. `done` runs at its interrupt, on the interrupt's CPU. Part of a system call; the task
    /// waits while no request is free for it.
    pub fn submit(self: &Rc<Self>, task: &Task, bio: Bio, done: impl FnOnce(&Rc<Kernel>) + 'static) {
        let key = self.keys.get();
        self.keys.set(key + 1);
        let submitted = self.make(task, &bio, Box::new(done));
        self.submitted.borrow_mut().insert(key, submitted);
        let mut slept = false;
        loop {
            let head = self.head(task);
            let held = self.lock.lock();
            let added = self.disk.borrow_mut().submit(&bio, key, slept, Timed::clock());
            if let Added::New(id) = added {
                self.requests.borrow_mut().insert(id, head);
                task.work(block::REQUEST);
                drop(held);
                return self.arm(&task.kernel);
            }
            drop(held);
            self.put_by(&task.kernel, head);
            self.arm(&task.kernel);
            if let Added::Merged { gone, wake } = added {
                let gone = gone.and_then(|id| self.requests.borrow_mut().remove(&id));
                gone.into_iter().for_each(|head| self.put_by(&task.kernel, head));
                return self.wake(&task.kernel, wake);
            }
            let of = self.disk.borrow().queue().waiters(bio.direction);
            self.waiters[of].wait(task, Waiting { what: "for a request of disk", number: self.number });
            Timed::turn();
            slept = true;
        }
    }

    /// Makes the objects of a bio.
    fn make(self: &Rc<Self>, task: &Task, bio: &Bio, done: Done) -> Submitted {
        let unplug = || self.unplug(task);
        let held = self.bios.alloc(task, unplug);
        let bytes = (u64::from(bio.sectors) * SECTOR) as u32;
        let vectors = block::vector_bytes(task.kernel.era, bytes).map(|bytes| {
            let pool = || match &self.vectors {
                Some(pool) => pool.alloc(task, unplug),
                None => task.alloc_bytes(bytes),
            };
            task.try_alloc_bytes(bytes, Gfp::NOWAIT | Gfp::NORETRY).unwrap_or_else(pool)
        });
        task.work(block::BIO);
        task.touch(&held, block::BIO_WRITTEN, Access::Write);
        Submitted { bio: held, vectors, done }
    }

    /// The objects of a request: those that the last merge left, or new ones.
    fn head(self: &Rc<Self>, task: &Task) -> Vec<Held> {
        let spare = self.spare.borrow_mut().take();
        spare.unwrap_or_else(|| {
            let alloc = |(pool, written): &(Mempool, u32)| {
                let held = pool.alloc(task, || self.unplug(task));
                task.touch(&held, *written, Access::Write);
                held
            };
            self.heads.iter().map(alloc).collect()
        })
    }

    /// Keeps the objects of a request for the next one, or frees them.
    fn put_by(&self, kernel: &Kernel, head: Vec<Held>) {
        let mut spare = self.spare.borrow_mut();
        if spare.is_none() {
            *spare = Some(head);
        } else {
            drop(spare);
            self.free_head(kernel, head);
        }
    }

    fn free_head(&self, kernel: &Kernel, head: Vec<Held>) {
        for (held, (pool, _)) in head.into_iter().zip(&self.heads).rev() {
            Timed::touch(held.address, block::LIST_WRITTEN, Access::Read);
            pool.free(kernel, held);
        }
    }

    /// The task waits for something of this disk, or has submitted its last bio: what is plugged starts.
    pub fn unplug(self: &Rc<Self>, task: &Task) {
        self.disk.borrow_mut().unplug(task.id.0, Timed::clock());
        self.arm(&task.kernel);
    }

    /// The task will submit many bios.
    pub fn start_plug(&self, task: &Task) {
        self.disk.borrow_mut().start_plug(task.id.0);
    }

    /// The task has submitted its last bio of many.
    pub fn finish_plug(self: &Rc<Self>, task: &Task) {
        self.disk.borrow_mut().finish_plug(task.id.0, Timed::clock());
        self.arm(&task.kernel);
    }

    /// The task ends: CFQ does not keep the disk for it.
    pub fn task_ends(self: &Rc<Self>, task: &Task) {
        self.disk.borrow_mut().task_ends(task.id.0, Timed::clock());
        self.arm(&task.kernel);
    }

    /// Whether the direction is congested.
    pub fn is_congested(&self, of: Direction) -> bool {
        self.disk.borrow().is_congested(of)
    }

    /// What was counted.
    pub fn stat(&self) -> Stat {
        self.disk.borrow().queue().stat().clone()
    }

    /// How often an object came from a reserve because there was no memory.
    pub fn reserves_used(&self) -> u64 {
        let heads = self.heads.iter().map(|(pool, _)| pool.used()).sum::<u64>();
        self.bios.used() + self.vectors.as_ref().map_or(0, Mempool::used) + heads
    }

    /// Frees the reserves of a disk that has nothing to do: at the end of a run.
    pub fn shut_down(&self, kernel: &Kernel) {
        let spare = self.spare.borrow_mut().take();
        spare.into_iter().for_each(|head| self.free_head(kernel, head));
        let heads = self.heads.iter().map(|(pool, _)| pool);
        [&self.bios].into_iter().chain(&self.vectors).chain(heads).for_each(|pool| pool.empty(kernel));
    }

    /// The CPU of the next interrupt.
    fn cpu(&self) -> CpuId {
        match self.affinity {
            Affinity::Submitter => Timed::cpu(),
            Affinity::Cpu(cpu) => cpu,
            Affinity::Turns => CpuId((self.interrupts.get() % u64::from(Timed::cpus())) as u16),
        }
    }

    /// The disk interrupts when something is done next, or the queue's timer when that expires.
    fn arm(self: &Rc<Self>, kernel: &Rc<Kernel>) {
        let Some(next) = self.disk.borrow().next().filter(|next| *next < self.armed.get()) else { return };
        self.armed.set(next);
        let device = self.clone();
        kernel.interrupt_at(self.cpu(), next, Box::new(move |kernel| device.interrupt(kernel, next)));
    }

    fn interrupt(self: &Rc<Self>, kernel: &Rc<Kernel>, at: Ps) {
        // A timer that was replaced by an earlier one has nothing to do.
        if self.armed.get() != at {
            return;
        }
        self.armed.set(Ps::MAX);
        self.interrupts.set(self.interrupts.get() + 1);
        Timed::cycles(block::INTERRUPT);
        let held = self.lock.lock();
        let directions = [Direction::Read, Direction::Write];
        let before = directions.map(|of| self.is_congested(of));
        let ended = self.disk.borrow_mut().advance(Timed::clock());
        // Their numbers are free for new requests from now on.
        let take = |ended: &Ended| self.requests.borrow_mut().remove(&ended.id).unwrap_or_default();
        let heads: Vec<Vec<Held>> = ended.iter().map(take).collect();
        drop(held);
        self.arm(kernel);
        for (ended, head) in ended.into_iter().zip(heads) {
            self.free_head(kernel, head);
            ended.request.keys.iter().for_each(|key| self.end(kernel, *key));
            self.wake(kernel, ended.wake);
        }
        for (of, before) in directions.into_iter().zip(before) {
            if before && !self.is_congested(of) {
                self.congestion.ends(kernel, of);
            }
        }
    }

    /// A bio is done.
    fn end(&self, kernel: &Rc<Kernel>, key: u64) {
        let submitted = self.submitted.borrow_mut().remove(&key);
        let Submitted { bio, vectors, done } = submitted.expect("a bio is done once");
        Timed::cycles(block::END);
        Timed::touch(bio.address, block::BIO_WRITTEN, Access::Write);
        match (vectors, &self.vectors) {
            (Some(vectors), Some(pool)) => pool.free(kernel, vectors),
            (Some(vectors), None) => kernel.free(vectors),
            (None, _) => {}
        }
        self.bios.free(kernel, bio);
        done(kernel);
    }

    fn wake(&self, kernel: &Kernel, wake: Wake) {
        for _ in 0..wake.tasks {
            self.waiters[wake.waiters].wake_one(kernel, false);
        }
    }
}
