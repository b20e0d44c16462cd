//! What was asked of the memory, counted by who asked: blocks of pages, kswapd, pages in swap.

use crate::kernel::Group;
use slablab_model::{Ps, Timed};
use slablab_platform::ReclaimStep;
use slablab_vm::{Flags, Frame, MappingId, Slot, Vm};
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
pub struct Asks {
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

impl Asks {
    /// A task of this group asks the page allocator for a block.
    pub(super) fn requested(&self, group: Group, order: u8) {
        let group = group.index();
        let mut requests = self.requests.borrow_mut();
        if requests.len() <= group {
            requests.resize(group + 1, [0; ORDERS]);
        }
        requests[group][order as usize] += 1;
    }

    /// Pages go to swap, from `first` on.
    pub(super) fn swapped_out(&self, vm: &Vm, first: Slot, frames: &[Frame]) {
        self.swaps_out(frames.len());
        let slots = &mut *self.slots.borrow_mut();
        let end = first as usize + frames.len();
        if slots.len() < end {
            slots.resize(end, Holds::default());
        }
        vm.with(|state| {
            for (slot, frame) in slots[first as usize..].iter_mut().zip(frames) {
                let owner = || (MappingId(state.frames.owner(*frame)), state.frames.index(*frame));
                let is_anon = state.frames.has(*frame, Flags::ANON);
                *slot = if is_anon { Holds::Program } else { Holds::File(owner().0, owner().1) };
            }
        });
    }

    fn swaps_out(&self, pages: usize) {
        let (out, second) = (&mut *self.out.borrow_mut(), (Timed::clock() / SECOND) as usize);
        if out.len() <= second {
            out.resize(second + 1, 0);
        }
        out[second] += pages as u64;
    }

    /// Pages written to swap in each second since boot: what `vmstat 1` shows as `so`.
    pub fn swapped_out_by_second(&self) -> Vec<u64> {
        self.out.borrow().clone()
    }

    /// Pages come from swap, from `first` on, for a task of `group`. `is_garbage`: whether a page of a
    /// mapping is of no use to it.
    pub(super) fn swapped_in(
        &self,
        (reader, group): (Reader, Group),
        first: Slot,
        pages: usize,
        is_garbage: impl Fn(MappingId, u32) -> bool,
    ) {
        add(&self.readers[reader as usize], pages as u64);
        let slots = self.slots.borrow();
        let mut causes = self.causes.borrow_mut();
        let counts = causes.entry(group).or_default();
        for at in first as usize..first as usize + pages {
            let cause = match slots.get(at).copied().unwrap_or_default() {
                Holds::Program => Cause::Other,
                Holds::File(mapping, index) if is_garbage(mapping, index) => Cause::Garbage,
                Holds::File(..) => Cause::Source,
            };
            counts[cause as usize] += 1;
        }
    }

    /// Pages that were read from swap by these readers.
    pub fn swap_ins(&self, reader: Reader) -> u64 {
        self.readers[reader as usize].get()
    }

    /// Pages that a group's tasks read from swap, by [`Cause`].
    pub fn swap_ins_by_cause(&self, group: Group) -> [u64; 3] {
        self.causes.borrow().get(&group).copied().unwrap_or_default()
    }

    /// Requests of this order that woke kswapd.
    pub fn kswapd_wakes(&self, order: u8) -> u64 {
        self.wakes[order as usize].get()
    }

    /// Requests of this order that found no block above the low mark, and rounds of direct reclaim for them.
    pub fn short_requests(&self, order: u8) -> (u64, u64) {
        (self.low[order as usize].get(), self.direct[order as usize].get())
    }

    /// Blocks of each order that a group's tasks requested of the page allocator.
    pub fn page_requests(&self, group: Group) -> [u64; ORDERS] {
        self.requests.borrow().get(group.index()).copied().unwrap_or_default()
    }
}
