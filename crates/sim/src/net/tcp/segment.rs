//! Buffers of TCP by release: an `sk_buff` with its clone, a head, and data in the head or in pages.
//!
//! | | until 3.6 | from 3.7 |
//! |---|---|---|
//! | segment | 16,384 bytes, the device's MTU of 16,436 less headers | 65,483 bytes |
//! | head | kmalloc of 4,096 bytes: 3,520 bytes of data beside headers and shared info | headers alone: kmalloc of 640 bytes, `skbuff_small_head` from 6.3 |
//! | other data | pages of order 0, one after another | parts of a block of order 3 |
//!
//! Sources: tbench's slabinfo (C. Lameter, 9 February 2008) has one `skbuff_fclone_cache` object and one of
//! 4,096 bytes for each send, and 1,024 bytes for the head of an acknowledgement. The room in a head, and
//! that both changes came with 3.7, are assumed.

use super::Rules;
use crate::kernel::Task;
use crate::kernel::objects::{Held, Object};
use slablab_model::{Access, Addr, Timed};
use slablab_platform::{CpuId, Frames, Topology};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes of an `sk_buff` and its clone, of what a reader touches of them, and of shared info.
const HEADS_WRITTEN: u32 = 464;
const HEAD_READ: u32 = 128;
const SHARED_INFO: u32 = 64;
/// Bytes of headers before the data (assumed, as for UDP).
const HEADERS: u32 = 64;
/// Bytes of an `sk_buff` in what a buffer counts.
const SK_BUFF: u32 = 256;

/// Blocks of pages that are filled with data, one after another; segments hold parts of them.
#[derive(Default)]
pub(super) struct Pages {
    last: Option<(Rc<Held>, u32)>,
}

impl Pages {
    /// Room for up to `bytes` bytes: a block, where in it, how many.
    fn take(&mut self, task: &Task, order: u8, bytes: u32) -> Part {
        let size = 1u32 << (Timed::page_shift() + u32::from(order));
        let (block, used) = match self.last.take() {
            Some((block, used)) if used < size => (block, used),
            old => {
                old.into_iter().for_each(|(block, _)| release(task, block));
                (Rc::new(task.alloc_pages(order)), 0)
            }
        };
        let part = bytes.min(size - used);
        self.last = Some((block.clone(), used + part));
        Part { block, first: used, bytes: part }
    }

    /// Gives the last block back.
    pub(super) fn close(&mut self, task: &Task) {
        self.last.take().into_iter().for_each(|(block, _)| release(task, block));
    }
}

fn release(task: &Task, block: Rc<Held>) {
    if let Ok(held) = Rc::try_unwrap(block) {
        task.free(held);
    }
}

/// A part of a block of pages.
struct Part {
    block: Rc<Held>,
    first: u32,
    bytes: u32,
}

impl Part {
    /// Touches `bytes` bytes from `from` on, page by page.
    fn touch(&self, from: u32, bytes: u32, access: Access) {
        let page = 1u32 << Timed::page_shift();
        let (mut at, mut left) = (self.first + from, bytes);
        while left > 0 {
            let here = left.min(page - at % page);
            let (first, _) = Timed::locate(self.block.address);
            Timed::touch(Timed::address(first.plus(at / page), 0), here, access);
            (at, left) = (at + here, left - here);
        }
    }
}

/// What a segment's sender fills.
#[derive(Default)]
struct Data {
    linear: u32,
    parts: Vec<Part>,
}

/// A segment: held by its sender until it is acknowledged, and by its clone until that is read. The last of
/// the two frees it.
pub(crate) struct Segment {
    clones: RefCell<Option<Held>>,
    head: RefCell<Option<Held>>,
    data: RefCell<Data>,
    bytes: Cell<u32>,
    users: Cell<u8>,
    /// The CPU that allocated it.
    pub(super) cpu: CpuId,
    /// Where it ends in the sender's stream; set when it is sent.
    pub(super) end: Cell<u64>,
}

impl Segment {
    /// An empty one.
    pub(super) fn new(task: &Task, rules: &Rules) -> Rc<Segment> {
        let clones = task.alloc(Object::SkBuffClones);
        let head = rules.head(task, rules.data_head);
        task.touch(&clones, HEADS_WRITTEN, Access::Write);
        task.touch(&head, HEADERS + SHARED_INFO, Access::Write);
        Rc::new(Segment {
            clones: RefCell::new(Some(clones)),
            head: RefCell::new(Some(head)),
            data: RefCell::default(),
            bytes: Cell::new(0),
            users: Cell::new(1),
            cpu: Timed::cpu(),
            end: Cell::new(0),
        })
    }

    /// Bytes of data.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes.get()
    }

    /// What it counts against buffers.
    pub(super) fn counts(&self, rules: &Rules) -> u32 {
        SK_BUFF + rules.data_head + self.bytes.get() - self.data.borrow().linear
    }

    fn address(held: &RefCell<Option<Held>>) -> Addr {
        held.borrow().as_ref().expect("the segment is not freed").address
    }

    /// Copies up to `bytes` bytes into it. Returns how many.
    pub(super) fn fill(&self, task: &Task, rules: &Rules, pages: &mut Pages, bytes: u32) -> u32 {
        let mut data = self.data.borrow_mut();
        let most = bytes.min(rules.segment - self.bytes.get());
        let linear = most.min(rules.linear - data.linear);
        if linear > 0 {
            Timed::touch(Self::address(&self.head), HEADERS + data.linear + linear, Access::Write);
            data.linear += linear;
        }
        let mut left = most - linear;
        while left > 0 {
            let part = pages.take(task, rules.page_order, left);
            part.touch(0, part.bytes, Access::Write);
            left -= part.bytes;
            data.parts.push(part);
        }
        task.copy(most);
        self.bytes.set(self.bytes.get() + most);
        most
    }

    /// Its clone goes to the receiver.
    pub(super) fn clone_it(self: &Rc<Segment>) -> Rc<Segment> {
        self.users.set(self.users.get() + 1);
        self.clone()
    }

    /// Copies `bytes` bytes from `from` on to the reader.
    pub(super) fn read(&self, task: &Task, from: u32, bytes: u32) {
        let data = self.data.borrow();
        if from == 0 {
            Timed::touch(Self::address(&self.clones), HEAD_READ, Access::Write);
        }
        if from < data.linear || from == 0 {
            let here = bytes.min(data.linear.saturating_sub(from));
            Timed::touch(Self::address(&self.head), HEADERS + from + here, Access::Read);
        }
        let mut begin = data.linear;
        for part in &data.parts {
            let (first, last) = (from.max(begin), (from + bytes).min(begin + part.bytes));
            if first < last {
                part.touch(first - begin, last - first, Access::Read);
            }
            begin += part.bytes;
        }
        task.copy(bytes);
    }

    /// The original was acknowledged, or the clone was read: the second of both frees the segment.
    pub(super) fn put(&self, task: &Task) {
        if self.loses_last() {
            self.free(task);
        }
    }

    /// One user less. True if it was the last one: its caller frees the segment.
    pub(super) fn loses_last(&self) -> bool {
        Timed::touch(Self::address(&self.head), SHARED_INFO, Access::Write);
        self.users.set(self.users.get() - 1);
        self.users.get() == 0
    }

    /// Frees it: its pages, its head, its `sk_buff` and clone.
    pub(crate) fn free(&self, task: &Task) {
        let data = self.data.take();
        data.parts.into_iter().for_each(|part| release(task, part.block));
        for held in [&self.head, &self.clones] {
            let held = held.take();
            task.free(held.expect("a segment is freed once"));
        }
    }
}
