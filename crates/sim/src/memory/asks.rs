//! What was asked of the memory, counted by who asked: blocks of pages, kswapd, pages in swap.

use super::loopback::Loop;
use super::{DATA, Memory};
use crate::kernel::Group;
use slablab_model::{Ps, ReclaimPolicy, Timed};
use slablab_platform::{Reclaim, ReclaimStep, Reclaimed};
use slablab_vm::{Flags, Frame, MappingId, Slot};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Orders that are counted.
pub const ORDERS: usize = 11;

/// Who reads pages from swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    /// A program: its memory, or a file of tmpfs.
    #[default]
    Program,
    /// A loop device that reads a block.
    LoopRead,
    /// A loop device that overwrites a block.
    LoopWrite,
}

/// What a page that is read from swap is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is a page of a file of tmpfs, or a block that a file on a loop device has.
    Source,
    /// It is a block that no file has, or that waits to be overwritten.
    Garbage,
    /// It is a page of a program's memory.
    Other,
}

/// What was written to a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holds {
    #[default]
    Program,
    File(MappingId, u32),
}

const SECOND: Ps = 1_000_000_000_000;

/// The counters.
#[derive(Default)]
pub(super) struct Asks {
    /// Pages read from swap, by [`Reader`].
    readers: [Cell<u64>; 3],
    /// The same, by the reader's group and by [`Cause`].
    causes: RefCell<BTreeMap<Group, [u64; 3]>>,
    /// Requests of each order that woke kswapd.
    wakes: [Cell<u64>; ORDERS],
    /// Requests of each order that found no block above the low mark, and rounds of reclaim for them.
    low: [Cell<u64>; ORDERS],
    direct: [Cell<u64>; ORDERS],
    /// Requests of the page allocator, by the asking task's group and by order.
    requests: RefCell<Vec<[u64; ORDERS]>>,
    /// What each slot was last written with.
    slots: RefCell<Vec<Holds>>,
    /// Pages written to swap in each second since boot.
    out: RefCell<Vec<u64>>,
}

fn add(count: &Cell<u64>, n: u64) {
    count.set(count.get() + n);
}

impl Asks {
    pub(super) fn wakes_kswapd(&self, order: u8) {
        add(&self.wakes[order as usize], 1);
    }

    /// A request found nothing at once.
    pub(super) fn asks_for(&self, step: ReclaimStep, order: u8) {
        match step {
            ReclaimStep::WakeKswapd => add(&self.low[order as usize], 1),
            ReclaimStep::Direct => add(&self.direct[order as usize], 1),
            _ => {}
        }
    }
}

impl Memory {
    /// A task asks the page allocator for a block.
    pub(super) fn requested(&self, order: u8) {
        let group = self.kernel.running_group().index();
        let mut requests = self.asks.requests.borrow_mut();
        if requests.len() <= group {
            requests.resize(group + 1, [0; ORDERS]);
        }
        requests[group][order as usize] += 1;
    }

    /// Pages go to swap, from `first` on.
    pub(super) fn swapped_out(&self, first: Slot, frames: &[Frame]) {
        self.swaps_out(frames.len());
        let slots = &mut *self.asks.slots.borrow_mut();
        let end = first as usize + frames.len();
        if slots.len() < end {
            slots.resize(end, Holds::default());
        }
        self.vm.with(|state| {
            for (slot, frame) in slots[first as usize..].iter_mut().zip(frames) {
                let owner = || (MappingId(state.frames.owner(*frame)), state.frames.index(*frame));
                let is_anon = state.frames.has(*frame, Flags::ANON);
                *slot = if is_anon { Holds::Program } else { Holds::File(owner().0, owner().1) };
            }
        });
    }

    fn swaps_out(&self, pages: usize) {
        let (out, second) = (&mut *self.asks.out.borrow_mut(), (Timed::clock() / SECOND) as usize);
        if out.len() <= second {
            out.resize(second + 1, 0);
        }
        out[second] += pages as u64;
    }

    /// Pages written to swap in each second since boot: what `vmstat 1` shows as `so`.
    pub fn swapped_out_by_second(&self) -> Vec<u64> {
        self.asks.out.borrow().clone()
    }

    /// Pages come from swap, from `first` on.
    pub(super) fn swapped_in(&self, reader: Reader, first: Slot, pages: usize) {
        add(&self.asks.readers[reader as usize], pages as u64);
        let slots = self.asks.slots.borrow();
        let mut causes = self.asks.causes.borrow_mut();
        let counts = causes.entry(self.kernel.running_group()).or_default();
        for at in first as usize..first as usize + pages {
            counts[self.cause(slots.get(at).copied().unwrap_or_default()) as usize] += 1;
        }
    }

    fn cause(&self, holds: Holds) -> Cause {
        let Holds::File(mapping, index) = holds else { return Cause::Other };
        let loops = self.loops.borrow();
        let is_garbage = |device: &std::rc::Rc<Loop>| device.backing == mapping && device.is_garbage(index);
        if loops.iter().any(is_garbage) { Cause::Garbage } else { Cause::Source }
    }

    /// Pages that were read from swap by these readers.
    pub fn swap_ins(&self, reader: Reader) -> u64 {
        self.asks.readers[reader as usize].get()
    }

    /// KiB that were read from the disk with files.
    pub fn file_reads(&self) -> u64 {
        self.disks[DATA].stat()[2] / 2
    }

    /// Pages that a group's tasks read from swap, by [`Cause`].
    pub fn swap_ins_by_cause(&self, group: Group) -> [u64; 3] {
        self.asks.causes.borrow().get(&group).copied().unwrap_or_default()
    }

    /// Requests of this order that woke kswapd.
    pub fn kswapd_wakes(&self, order: u8) -> u64 {
        self.asks.wakes[order as usize].get()
    }

    /// Requests of this order that found no block above the low mark, and rounds of direct reclaim for them.
    pub fn short_requests(&self, order: u8) -> (u64, u64) {
        (self.asks.low[order as usize].get(), self.asks.direct[order as usize].get())
    }

    /// Blocks of each order that a group's tasks requested of the page allocator.
    pub fn page_requests(&self, group: Group) -> [u64; ORDERS] {
        self.asks.requests.borrow().get(group.index()).copied().unwrap_or_default()
    }
}

/// Serves requests that find no page, and counts all.
pub(super) struct Served(pub(super) std::rc::Weak<Memory>);

impl ReclaimPolicy for Served {
    fn reclaim(&self, ask: Reclaim) -> Reclaimed {
        let nothing = Reclaimed::NOTHING;
        let Some(memory) = self.0.upgrade() else { return nothing };
        memory.asks.asks_for(ask.step, ask.order);
        memory.kernel.running().map_or(nothing, |task| memory.reclaim(&task, ask))
    }

    /// A request of 2.4.9 is served from `inactive_clean` lists; their pages count with the free ones.
    fn clean_frames(&self, node: slablab_platform::NodeId, zone: u8) -> u64 {
        let Some(memory) = self.0.upgrade() else { return 0 };
        let zone = memory.zone(node, zone);
        zone.map_or(0, |zone| memory.vm.with(|state| memory.vm.policy.clean_pages(state, zone)))
    }

    fn requested(&self, order: u8) {
        if let Some(memory) = self.0.upgrade() {
            memory.requested(order);
        }
    }
}
