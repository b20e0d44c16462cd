//! I/O of the memory: from a page's frames to a disk's queue, and back by an interrupt.

use super::Memory;
use super::disk::{BlockDisk, PAGE_SECTORS, Submitted};
use super::host::Here;
use crate::block::disk::bio::{Bio, Direction};
use crate::block::disk::queue::Added;
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use slablab_model::{Ps, Timed};
use slablab_platform::Topology;
use slablab_vm::{Io, Place};
use std::rc::Rc;

impl Memory {
    /// The task submits I/O of frames that follow each other, in bios that the queue takes.
    pub(super) fn submit(self: &Rc<Self>, task: &Task, io: Io<'_>) {
        let (number, sector) = (self.disks.number_of(io.place), self.disks.sector_of(&self.vm, io.place));
        let most = self.disks.all()[number].frames_most();
        for (piece, frames) in io.frames.chunks(most).enumerate() {
            let at = (piece * most) as u32;
            let place = match io.place {
                Place::Swap(slot) => Place::Swap(slot + at),
                Place::Mapping(mapping, index) => Place::Mapping(mapping, index + at),
            };
            let sector = sector + u64::from(at) * PAGE_SECTORS;
            self.submit_bio(number, task, Io { place, frames, ..io }, sector);
        }
    }

    /// The task submits a bio. It waits while no request is free.
    fn submit_bio(self: &Rc<Self>, number: usize, task: &Task, io: Io<'_>, sector: u64) {
        let disk = &self.disks.all()[number];
        let sectors = io.frames.len() as u32 * PAGE_SECTORS as u32;
        let direction = if io.write { Direction::Write } else { Direction::Read };
        let bio = Bio { direction, sync: io.sync, ..Bio::read(sector, sectors, task.id.0) };
        let key = disk.remember(io);
        let mut slept = false;
        loop {
            let added = disk.submit(&bio, key, slept);
            self.arm(number);
            match added {
                Added::Merged { wake, .. } => return disk.wake(&self.kernel, wake),
                Added::New(_) => return,
                Added::NoRequest => {
                    let (queue, waiting) = disk.waiters(direction);
                    self.waits(task, waiting, queue);
                    slept = true;
                }
            }
        }
    }

    /// The task waits at a queue; what it has plugged starts.
    pub(super) fn waits(self: &Rc<Self>, task: &Task, waiting: Waiting, queue: &WaitQueue) {
        self.unplug(task);
        queue.wait(task, waiting);
        Timed::turn();
    }

    /// The task keeps its bios together until it waits.
    pub(super) fn plugged(&self, task: &Task) {
        self.waits.plug(task.id);
        self.disks.all().iter().for_each(|disk| disk.start_plug(task.id.0));
    }

    /// The task's bios start.
    pub(super) fn unplug(self: &Rc<Self>, task: &Task) {
        for (number, disk) in self.disks.all().iter().enumerate() {
            disk.unplug(task.id.0);
            self.arm(number);
        }
        if self.waits.is_plugged(task.id) {
            self.disks.all().iter().for_each(|disk| disk.start_plug(task.id.0));
        }
    }

    /// The task has submitted its last bio of many.
    pub(super) fn end_plug(self: &Rc<Self>, task: &Task) {
        self.waits.end_plug(task.id);
        self.unplug(task);
    }

    /// A disk interrupts this CPU when something is done.
    fn arm(self: &Rc<Self>, number: usize) {
        let Some(next) = self.disks.all()[number].next_interrupt() else { return };
        let memory = Rc::downgrade(self);
        let handler = move |_: &Rc<Kernel>| {
            if let Some(memory) = memory.upgrade() {
                memory.interrupted(number, next);
            }
        };
        self.kernel.interrupt_at(Timed::cpu(), next, Box::new(handler));
    }

    fn interrupted(self: &Rc<Self>, number: usize, at: Ps) {
        self.kernel.observe();
        let disk = &self.disks.all()[number];
        if !disk.interrupts_at(at) {
            return;
        }
        Timed::charge(self.prices.interrupt);
        let was_congested = disk.is_congested(Direction::Write);
        let ended = disk.advance();
        if was_congested && !disk.is_congested(Direction::Write) {
            self.waits.congestion_ends(&self.kernel);
        }
        let here = Here::interrupt(self);
        for ended in ended {
            disk.record(&self.samples.recorder, &ended.request);
            for key in ended.request.keys {
                self.io_ends(disk, &here, key);
            }
            disk.wake(&self.kernel, ended.wake);
        }
        self.arm(number);
    }

    fn io_ends(&self, disk: &BlockDisk, here: &Here, key: u64) {
        let Submitted { place, frames, write } = disk.end(key);
        Timed::charge(self.prices.end * frames.len() as u64);
        let io = Io { place, frames: &frames, write, sync: false, reclaim: false };
        if write {
            self.vm.write_done(here, io);
            self.waits.writes_ended(&self.kernel, frames.len() as u32);
        } else {
            self.vm.read_done(here, io);
        }
    }
}
