//! What the memory asks of the machine around it, in the task or interrupt that runs.

use super::pageblocks::{block_of, type_of};
use super::{Memory, Reader};
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

    /// Nodes of the page cache that came and went are objects, and are freed.
    fn settle(&self) {
        if let Some(task) = self.task {
            self.memory.objects.nodes.settle(&self.memory.vm, task);
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
                self.memory.daemons.works(time);
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
        if !self.memory.charge(self, self.task(), purpose) {
            return None;
        }
        let pfn = self.memory.kernel.heap.alloc_pages(0, gfp, node)?;
        vm.with(|state| state.count(Counter::PgAlloc));
        self.memory.accounts.moves();
        if !matches!(purpose, Purpose::Anon | Purpose::Table) {
            self.memory.objects.nodes.fill_stock(self.task(), gfp);
        }
        Some(Frame(pfn.0))
    }

    fn free(&self, vm: &Vm, frame: Frame) {
        self.settle();
        vm.with(|state| state.count(Counter::PgFree));
        self.memory.accounts.moves();
        self.memory.objects.buffers.free(&self.memory.kernel, frame);
        self.memory.kernel.heap.free_pages(Pfn(frame.0));
    }

    fn submit(&self, vm: &Vm, io: Io<'_>) {
        let (task, memory) = (self.task(), self.memory);
        self.settle();
        if let Some(device) = memory.disks.loop_of(io.place) {
            return device.submit(memory, task, io);
        }
        memory.accounts.submits(task.id, &io);
        if let Place::Swap(slot) = io.place {
            let asks = &memory.accounts.asks;
            if io.write {
                asks.swapped_out(vm, slot, io.frames);
            } else {
                let who = (self.reader, memory.kernel.running_group());
                let is_garbage = |mapping, index| memory.disks.is_garbage(mapping, index);
                asks.swapped_in(who, slot, io.frames.len(), is_garbage);
            }
        }
        Timed::charge(memory.prices.of(Work::Submit));
        memory.submit(task, io);
    }

    fn wait(&self, vm: &Vm, frame: Frame, waited: Waited) {
        let (flag, what) = match waited {
            Waited::Locked => (Flags::LOCKED, "for the lock of frame"),
            Waited::Writeback => (Flags::WRITEBACK, "for the write of frame"),
        };
        self.memory.unplug(self.task());
        while vm.with(|state| state.frames.has(frame, flag)) {
            let queue = self.memory.waits.of_frame(frame.0);
            self.wait_at(what, frame.0, &queue);
        }
    }

    fn wake(&self, frame: Frame) {
        self.memory.waits.wake_frame(&self.memory.kernel, frame.0);
    }

    fn throttle(&self, why: Throttle, most: u64) {
        let task = self.task();
        self.memory.unplug(task);
        self.memory.waits.throttle(task, why, most * NS);
    }

    fn unthrottle(&self, why: Throttle) {
        self.memory.waits.unthrottle(&self.memory.kernel, why);
    }

    fn wake_flushers(&self, pages: u64) {
        self.memory.daemons.flusher.wake(&self.memory.kernel, pages);
    }

    fn wake_kswapd(&self, node: u16, order: u8, class: u8) {
        self.memory.wake_kswapd(self, node, order, class);
    }

    fn unplug(&self) {
        self.memory.unplug(self.task());
    }

    fn nap(&self, node: u16, most: u64) -> bool {
        self.memory.unplug(self.task());
        self.memory.daemons.kswapds[node as usize].nap(&self.memory.samples, self.task(), node, most * NS)
    }

    fn asked(&self, node: u16) -> Option<(u8, u8)> {
        self.memory.daemons.kswapds[node as usize].asked()
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
        self.memory.objects.shrinkers.about()
    }

    fn shrinkable(&self, shrinker: usize) -> u64 {
        self.memory.objects.shrinkers.get(shrinker).unused(&self.memory.vm)
    }

    fn shrink(&self, _vm: &Vm, shrinker: usize, n: u64) -> Shrunk {
        self.memory.objects.shrinkers.get(shrinker).shrink(&self.memory.vm, &self.memory.kernel, n)
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
        self.memory.kernel.heap.pages().pageblock_type(Pfn(frame.0)).map_or(Block::Movable, block_of)
    }

    fn take_free(&self, first: Frame, frames: u32) -> Vec<Frame> {
        let mut taken = Vec::new();
        let pages = self.memory.kernel.heap.pages();
        pages.take_free(Pfn(first.0), frames, |pfn| taken.push(Frame(pfn.0)));
        taken
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
        self.memory.daemons.compactors[node as usize].wake(&self.memory.kernel, order, class);
    }

    fn out_of_memory(&self, _vm: &Vm) {
        self.memory.processes.kill_for_kswapd(&self.memory.vm, &self.memory.kernel);
    }

    fn buffers_created(&self, _vm: &Vm, frame: Frame) -> bool {
        self.memory.objects.buffers.create(self.task(), frame)
    }

    fn buffers_freed(&self, frame: Frame) {
        self.memory.objects.buffers.free(&self.memory.kernel, frame);
    }

    fn buffers_moved(&self, from: Frame, to: Frame) {
        self.memory.objects.buffers.page_moves(from, to);
    }

    fn is_kswapd(&self) -> bool {
        self.is_kswapd
    }

    fn is_congested(&self, place: Place) -> bool {
        // A loop device takes all that it is given.
        let disks = &self.memory.disks;
        disks.loop_of(place).is_none() && disks.all()[disks.number_of(place)].is_congested(Direction::Write)
    }
}
