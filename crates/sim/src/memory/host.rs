//! What the memory asks of the machine around it, in the task or interrupt that runs.

use super::compact::type_of;
use super::disk::PAGE_SECTORS;
use super::{DATA, Memory, Reader, SWAP, THROTTLES};
use crate::block::disk::bio::Direction;
use crate::kernel::{Task, WaitQueue, Waiting};
use slablab_model::Timed;
use slablab_pages::Level;
use slablab_pages::policy::Search;
use slablab_platform::{Gfp, NodeId, Pfn, Topology};
use slablab_vm::{
    Block, Counter, Flags, Frame, Host, Io, Mark, Place, Purpose, Shrinker, Shrunk, Throttle, Vm, Waited,
    Work,
};
use std::rc::Rc;

/// Picoseconds of a nanosecond.
const NS: u64 = 1_000;

/// The machine, as the running task or interrupt sees it.
pub struct Here<'a> {
    memory: &'a Rc<Memory>,
    /// `None` in an interrupt, which never waits.
    task: Option<&'a Task>,
    is_kswapd: bool,
    /// Who reads from swap.
    reader: Reader,
    /// Requests for pages start no I/O and enter no file system.
    is_restricted: bool,
}

impl<'a> Here<'a> {
    /// In a task.
    pub fn new(memory: &'a Rc<Memory>, task: &'a Task) -> Here<'a> {
        Here { memory, task: Some(task), is_kswapd: false, reader: Reader::Program, is_restricted: false }
    }

    /// In kswapd.
    pub(super) fn kswapd(memory: &'a Rc<Memory>, task: &'a Task) -> Here<'a> {
        Here { is_kswapd: true, ..Here::new(memory, task) }
    }

    /// In an interrupt.
    pub(super) fn interrupt(memory: &'a Rc<Memory>) -> Here<'a> {
        Here { memory, task: None, is_kswapd: false, reader: Reader::Program, is_restricted: false }
    }

    /// In the task of a loop device.
    pub(super) fn of_loop(
        memory: &'a Rc<Memory>,
        task: &'a Task,
        reader: Reader,
        is_restricted: bool,
    ) -> Here<'a> {
        Here { reader, is_restricted, ..Here::new(memory, task) }
    }

    fn task(&self) -> &'a Task {
        self.task.expect("an interrupt does not wait")
    }

    fn disk_of(&self, place: Place) -> usize {
        match place {
            Place::Swap(_) if self.memory.guest.swap_at.is_none() => SWAP,
            _ => DATA,
        }
    }

    /// Nodes of the page cache that came and went are objects, and are freed.
    fn settle(&self) {
        if let Some(task) = self.task {
            self.memory.settle_nodes(task);
        }
    }

    /// The task waits: what it has plugged starts.
    fn wait_at(&self, what: &'static str, number: u32, queue: &WaitQueue) {
        self.memory.waits(self.task(), Waiting { what, number }, queue);
    }
}

/// The flags of a request.
fn gfp_of(purpose: Purpose) -> Gfp {
    let user = Gfp::KERNEL | Gfp::HARDWALL | Gfp::HIGHMEM | Gfp::MOVABLE;
    match purpose {
        Purpose::Anon | Purpose::SwapIn | Purpose::Tmpfs => user,
        Purpose::File => user | Gfp::WRITE,
        Purpose::ReadAhead => user | Gfp::NORETRY | Gfp::NOWARN,
        Purpose::Table => Gfp::KERNEL | Gfp::ACCOUNT | Gfp::ZERO,
    }
}

fn level(mark: Mark) -> Level {
    match mark {
        Mark::Min => Level::Min,
        Mark::Low => Level::Low,
        Mark::High => Level::High,
    }
}

impl Host for Here<'_> {
    fn now(&self) -> u64 {
        Timed::clock() / NS
    }

    fn work(&self, work: Work, n: u32) {
        self.settle();
        if n > 0 {
            let time = self.memory.prices.of(work) * u64::from(n);
            Timed::charge(time);
            if self.is_kswapd {
                self.memory.kswapd_work.set(self.memory.kswapd_work.get() + time);
            }
            if self.task.is_some() {
                self.memory.kernel.serve_due();
            }
        }
    }

    fn resched(&self) {
        if let Some(task) = self.task {
            task.preemption_point();
        }
    }

    fn alloc(&self, vm: &Vm, purpose: Purpose) -> Option<Frame> {
        let node = Timed::cpu_memory_node(Timed::cpu());
        let gfp = gfp_of(purpose);
        let gfp = if self.is_restricted { gfp.without(Gfp::IO | Gfp::FS) } else { gfp };
        let pfn = self.memory.kernel.heap.alloc_pages(0, gfp, node)?;
        vm.with(|state| state.count(Counter::PgAlloc));
        self.memory.moved_at.set(Timed::clock());
        if !matches!(purpose, Purpose::Anon | Purpose::Table) {
            self.memory.fill_stock(self.task(), gfp);
        }
        Some(Frame(pfn.0))
    }

    fn free(&self, vm: &Vm, frame: Frame) {
        self.settle();
        vm.with(|state| state.count(Counter::PgFree));
        self.memory.moved_at.set(Timed::clock());
        self.memory.drop_buffer(frame);
        self.memory.kernel.heap.free_pages(Pfn(frame.0));
    }

    fn submit(&self, _vm: &Vm, io: Io<'_>) {
        let task = self.task();
        self.settle();
        if let Place::Mapping(mapping, _) = io.place
            && let Some(device) = self.memory.loop_of(mapping)
        {
            return device.submit(self.memory, task, io);
        }
        self.memory.account_io(task.id, &io);
        match io.place {
            Place::Swap(slot) if io.write => self.memory.swapped_out(slot, io.frames),
            Place::Swap(slot) => self.memory.swapped_in(self.reader, slot, io.frames.len()),
            Place::Mapping(..) => {}
        }
        let sector = match io.place {
            Place::Swap(slot) => self.memory.guest.swap_at.unwrap_or(0) + u64::from(slot) * PAGE_SECTORS,
            Place::Mapping(mapping, index) => self.memory.sector_of(mapping, index),
        };
        let disk = self.disk_of(io.place);
        Timed::charge(self.memory.prices.of(Work::Submit));
        self.memory.disks[disk].submit(self.memory, task, io, sector);
    }

    fn wait(&self, vm: &Vm, frame: Frame, waited: Waited) {
        let (flag, what) = match waited {
            Waited::Locked => (Flags::LOCKED, "for the lock of frame"),
            Waited::Writeback => (Flags::WRITEBACK, "for the write of frame"),
        };
        self.memory.unplug(self.task());
        while vm.with(|state| state.frames.has(frame, flag)) {
            let queue = self.memory.frame_waits.borrow_mut().entry(frame.0).or_default().clone();
            self.wait_at(what, frame.0, &queue);
        }
    }

    fn wake(&self, frame: Frame) {
        let queue = self.memory.frame_waits.borrow_mut().remove(&frame.0);
        if let Some(queue) = queue {
            queue.wake_all(&self.memory.kernel, false);
        }
    }

    fn throttle(&self, why: Throttle, most: u64) {
        let task = self.task();
        self.memory.unplug(task);
        let (what, queue) = (THROTTLES[why as usize], &self.memory.throttles[why as usize]);
        self.memory.sleeps_for(why, true);
        queue.wait_at_most(task, Waiting { what, number: 0 }, (most * NS).max(1));
        self.memory.sleeps_for(why, false);
        Timed::turn();
    }

    fn unthrottle(&self, why: Throttle) {
        self.memory.throttles[why as usize].wake_all(&self.memory.kernel, false);
    }

    fn wake_flushers(&self, pages: u64) {
        self.memory.flusher.wake(&self.memory.kernel, pages);
    }

    fn wake_kswapd(&self, node: u16, order: u8, class: u8) {
        self.memory.wake_kswapd(self, node, order, class);
    }

    fn unplug(&self) {
        self.memory.unplug(self.task());
    }

    fn nap(&self, node: u16, most: u64) -> bool {
        self.memory.unplug(self.task());
        self.memory.daemons[node as usize].nap(self.memory, self.task(), node, most * NS)
    }

    fn asked(&self, node: u16) -> Option<(u8, u8)> {
        self.memory.daemons[node as usize].asked()
    }

    fn reclaims(&self, node: u16, reclaims: bool) {
        self.memory.kernel.heap.pages().set_reclaiming(NodeId(node), reclaims);
    }

    fn mark(&self, zone: usize, mark: Mark) -> u64 {
        let (node, zone) = self.memory.zones[zone];
        let marks = self.memory.kernel.heap.pages().zone_marks(node, zone);
        [marks.min, marks.low, marks.high][mark as usize]
    }

    fn boost(&self, zone: usize) -> u64 {
        let (node, zone) = self.memory.zones[zone];
        self.memory.kernel.heap.pages().zone_boost(node, zone)
    }

    fn unboost(&self, zone: usize, pages: u64) {
        let (node, zone) = self.memory.zones[zone];
        self.memory.kernel.heap.pages().lower_marks(node, zone, pages);
    }

    fn takes_clean(&self) -> bool {
        matches!(self.memory.kernel.heap.pages().policy().search, Search::FreeAndClean { .. })
    }

    fn free_pages(&self, zone: usize) -> u64 {
        let (node, zone) = self.memory.zones[zone];
        self.memory.kernel.heap.pages().zone_free(node, zone)
    }

    fn is_above(&self, zone: usize, mark: Mark, order: u8, class: u8) -> bool {
        let (node, zone) = self.memory.zones[zone];
        self.memory.kernel.heap.pages().is_above(node, zone, level(mark), order, class)
    }

    fn is_above_times(&self, zone: usize, times: u64, mark: Mark, order: u8, class: u8) -> bool {
        let (node, zone) = self.memory.zones[zone];
        let pages = self.memory.kernel.heap.pages();
        pages.is_above_times(node, zone, times, level(mark), order, class)
    }

    fn shrinkers(&self) -> Vec<Shrinker> {
        Timed::charge(self.memory.prices.shrinkers);
        self.memory.kernel.serve_due();
        self.memory.shrinkers.borrow().iter().map(|cache| cache.about()).collect()
    }

    fn shrinkable(&self, shrinker: usize) -> u64 {
        self.memory.shrinker(shrinker).unused(self.memory)
    }

    fn shrink(&self, _vm: &Vm, shrinker: usize, n: u64) -> Shrunk {
        self.memory.shrinker(shrinker).shrink(self.memory, n)
    }

    fn reclaimable_slabs(&self) -> u64 {
        self.memory.reclaimable_slabs()
    }

    fn reap_slabs(&self) -> u64 {
        self.memory.kernel.heap.reap()
    }

    fn pageblock_frames(&self) -> u32 {
        self.memory.kernel.heap.pages().pageblock_frames()
    }

    fn block_of(&self, frame: Frame) -> Block {
        self.memory.pageblock(frame)
    }

    fn take_free(&self, first: Frame, frames: u32) -> Vec<Frame> {
        self.memory.take_free(first, frames)
    }

    fn has_block(&self, zone: usize, order: u8, block: Block) -> bool {
        let (node, zone) = self.memory.zones[zone];
        self.memory.kernel.heap.pages().has_block(node, zone, order, type_of(block))
    }

    fn fragmentation(&self, zone: usize, order: u8) -> i32 {
        let (node, zone) = self.memory.zones[zone];
        self.memory.kernel.heap.pages().fragmentation(node, zone, order)
    }

    fn wake_kcompactd(&self, node: u16, order: u8, class: u8) {
        self.memory.compactors[node as usize].wake(&self.memory.kernel, order, class);
    }

    fn out_of_memory(&self, _vm: &Vm) {
        self.memory.kill_for_kswapd();
    }

    fn buffers_created(&self, _vm: &Vm, frame: Frame) -> bool {
        self.memory.add_buffer(self.task(), frame)
    }

    fn buffers_freed(&self, frame: Frame) {
        self.memory.drop_buffer(frame);
    }

    fn buffers_moved(&self, from: Frame, to: Frame) {
        self.memory.move_buffer(from, to);
    }

    fn is_kswapd(&self) -> bool {
        self.is_kswapd
    }

    fn is_congested(&self, place: Place) -> bool {
        // A loop device takes all that it is given.
        let is_on_loop =
            matches!(place, Place::Mapping(mapping, _) if self.memory.loop_of(mapping).is_some());
        !is_on_loop && self.memory.disks[self.disk_of(place)].is_congested(Direction::Write)
    }
}
