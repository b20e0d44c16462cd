//! The loop device of 2.6.29 on a file of tmpfs.
//!
//! ```text
//! submit ── pieces of contiguous blocks, at most 31 pages ── queue without a limit, never congested
//! loop0  ── one piece at a time, page by page
//!           write: the backing page is brought into a frame, also from swap ── copied
//!           read:  the backing page is brought into a frame, and is dirty then ── copied
//! ```
//!
//! A block of the device is a page of the backing file. What is special about it is in [`LoopRules`], one
//! choice each. Rules: docs/theory/vm.md 11.

use super::host::Here;
use super::{Memory, Reader};
use crate::kernel::objects::{Held, Object};
use crate::kernel::tally::Failed;
use crate::kernel::{Group, Kernel, Task, WaitQueue, Waiting};
use crate::sched::Spec;
use slablab_model::Timed;
use slablab_platform::Gfp;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules};
use slablab_vm::{Frame, Host, Io, MappingId, Place, Throttle, Work};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Pages of a piece: 255 sectors.
const PIECE: usize = 31;
/// How long loop0 sleeps when a request for a page has failed (20 ms): then it asks again.
const AGAIN: u64 = 20_000_000;

/// The choices of a loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopRules {
    /// A block that is overwritten is read from swap before, if it is there.
    pub overwrite_reads: bool,
    /// A block that is read from swap gives its slot up, and is dirty.
    pub read_dirties: bool,
    /// loop0's requests for pages start no I/O and enter no file system.
    pub is_restricted: bool,
}

impl Default for LoopRules {
    /// Those of 2.6.29.
    fn default() -> LoopRules {
        LoopRules { overwrite_reads: true, read_dirties: true, is_restricted: true }
    }
}

/// A piece of I/O: frames whose blocks follow each other.
struct Piece {
    /// The mapping of the frames, and the index of the first one there.
    place: (MappingId, u32),
    /// The first block.
    block: u32,
    frames: Vec<Frame>,
    write: bool,
    /// The `bio`, unless there was no memory for it: then a reserve has it.
    bio: Option<Held>,
}

/// A loop device.
pub struct Loop {
    /// The file of tmpfs that has the blocks.
    pub backing: MappingId,
    /// The device's own pages: page n is block n.
    pub device: MappingId,
    choices: LoopRules,
    rules: Rules,
    /// The group of loop0, which does nothing else.
    pub group: Group,
    /// Whether the file system has put something into a block.
    has_data: Box<dyn Fn(u32) -> bool>,
    /// Blocks that wait to be written, and how often.
    waiting: RefCell<BTreeMap<u32, u32>>,
    /// The blocks of each file on it, by page.
    files: RefCell<BTreeMap<MappingId, Vec<u32>>>,
    pieces: RefCell<VecDeque<Piece>>,
    queue: WaitQueue,
    stopping: Cell<bool>,
    /// Pages that were written, and read.
    transfers: Cell<(u64, u64)>,
}

impl Loop {
    /// Makes a device of so many blocks, all of them holes, and starts loop0. `has_data`: whether the file
    /// system on it uses a block.
    pub fn start(
        memory: &Rc<Memory>,
        blocks: u32,
        choices: LoopRules,
        has_data: impl Fn(u32) -> bool + 'static,
    ) -> Rc<Loop> {
        let create = |kind| memory.vm.with(|state| state.mappings.create(kind, blocks));
        let rules = Rules {
            reads_overwritten: choices.overwrite_reads,
            tmpfs_read_frees_slot: choices.read_dirties,
            ..memory.rules
        };
        let device = Rc::new(Loop {
            backing: create(Kind::Tmpfs),
            device: create(Kind::Device),
            choices,
            rules,
            group: memory.kernel.new_group(),
            has_data: Box::new(has_data),
            waiting: RefCell::default(),
            files: RefCell::default(),
            pieces: RefCell::default(),
            queue: WaitQueue::default(),
            stopping: Cell::new(false),
            transfers: Cell::new((0, 0)),
        });
        memory.disks.add_loop(device.clone());
        let (of_task, memory_of) = (device.clone(), memory.clone());
        let spec = Spec { nice: -20, ..Spec::default() };
        memory.kernel.start_as(spec, None, move |task| {
            task.call_it(|| "loop0".into());
            task.join(of_task.group);
            of_task.run(&memory_of, task);
        });
        device
    }

    /// Whether the mapping has its blocks here.
    pub fn has(&self, mapping: MappingId) -> bool {
        self.device == mapping || self.files.borrow().contains_key(&mapping)
    }

    /// Pages that were written to the backing file, and read from it.
    pub fn transfers(&self) -> (u64, u64) {
        self.transfers.get()
    }

    /// Whether what the backing file has of a block is of no use: no file has the block, or it waits to be
    /// overwritten.
    pub(super) fn is_garbage(&self, block: u32) -> bool {
        self.waiting.borrow().contains_key(&block) || !(self.has_data)(block)
    }

    /// A block waits to be written, or was.
    fn wait_for_write(&self, block: u32, begins: bool) {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.entry(block).or_default();
        *count = if begins { *count + 1 } else { *count - 1 };
        if *count == 0 {
            waiting.remove(&block);
        }
    }

    /// A file gets its next block.
    pub(super) fn add_block(&self, mapping: MappingId, block: u32) {
        self.files.borrow_mut().entry(mapping).or_default().push(block);
    }

    /// A file is gone.
    pub(super) fn forget(&self, mapping: MappingId) {
        self.files.borrow_mut().remove(&mapping);
    }

    fn block_of(&self, mapping: MappingId, index: u32) -> u32 {
        if mapping == self.device {
            return index;
        }
        self.files.borrow()[&mapping][index as usize]
    }

    /// Queues I/O of frames. Returns at once.
    pub(super) fn submit(&self, memory: &Rc<Memory>, task: &Task, io: Io<'_>) {
        let Place::Mapping(mapping, first) = io.place else { unreachable!("swap is on no loop device") };
        let blocks: Vec<u32> =
            (0..io.frames.len() as u32).map(|at| self.block_of(mapping, first + at)).collect();
        let mut at = 0;
        while at < blocks.len() {
            let follows = |len: &usize| blocks[at + len - 1] + 1 == blocks[at + len];
            let len = (1..PIECE.min(blocks.len() - at)).take_while(follows).count() + 1;
            Timed::charge(memory.prices.of(Work::Submit));
            if io.write {
                blocks[at..at + len].iter().for_each(|block| self.wait_for_write(*block, true));
            }
            let bio = task.try_alloc_from(task.kernel.number(Object::Bio), Gfp::RECLAIM);
            self.pieces.borrow_mut().push_back(Piece {
                place: (mapping, first + at as u32),
                block: blocks[at],
                frames: io.frames[at..at + len].to_vec(),
                write: io.write,
                bio,
            });
            self.queue.wake_one(&memory.kernel, false);
            at += len;
        }
    }

    /// loop0 ends when it has no piece left.
    pub(super) fn stop(&self, kernel: &Kernel) {
        self.stopping.set(true);
        self.queue.wake_one(kernel, false);
    }

    /// loop0's program.
    fn run(&self, memory: &Rc<Memory>, task: &Task) {
        loop {
            let next = self.pieces.borrow_mut().pop_front();
            match next {
                Some(piece) => self.serve(memory, task, piece),
                None if self.stopping.get() => return,
                None => {
                    memory.waits(task, Waiting { what: "for work, loop device", number: 0 }, &self.queue);
                }
            }
            task.preemption_point();
        }
    }

    fn serve(&self, memory: &Rc<Memory>, task: &Task, piece: Piece) {
        let reader = if piece.write { Reader::LoopWrite } else { Reader::LoopRead };
        let here = Here::of_loop(memory, task, reader, self.choices.is_restricted);
        for at in 0..piece.frames.len() {
            while self.transfer(memory, &here, &piece, at).is_none() {
                here.throttle(Throttle::Congestion, AGAIN);
            }
            task.copy(1 << 12);
        }
        let Piece { place: (mapping, first), frames, write, bio, .. } = piece;
        let io =
            Io { place: Place::Mapping(mapping, first), frames: &frames, write, sync: false, reclaim: false };
        let (written, read) = self.transfers.get();
        if write {
            self.transfers.set((written + frames.len() as u64, read));
            memory.vm.write_done(&here, io);
            memory.waits.writes_ended(&memory.kernel, frames.len() as u32);
        } else {
            self.transfers.set((written, read + frames.len() as u64));
            memory.vm.read_done(&here, io);
        }
        bio.into_iter().for_each(|bio| task.free(bio));
    }

    /// Copies a page to the backing file, or from it. `None`: no memory.
    fn transfer(&self, memory: &Memory, here: &Here<'_>, piece: &Piece, at: usize) -> Option<()> {
        let mut open = OpenFile::new(self.backing);
        let block = piece.block + at as u32;
        if piece.write {
            let content = memory.vm.with(|state| state.frames.content(piece.frames[at]));
            mm::write(&memory.vm, here, &self.rules, &mut open, block, content, true)?;
            self.wait_for_write(block, false);
            return Some(());
        }
        mm::read(&memory.vm, here, &self.rules, &mut open, block)?;
        let (mapping, first) = piece.place;
        let index = first + at as u32;
        let stored = memory.vm.with(|state| state.mappings.get(mapping).stored(index));
        // The device's read-ahead may meet a file's block, of which the device has stored nothing.
        let is_of_file = mapping == self.device && stored == 0;
        if open.content != stored && !is_of_file {
            let text =
                format!("block {block} holds {}, not {stored}, of page {index} of {mapping:?}", open.content);
            memory.kernel.fail(Failed::Broken(text));
        }
        Some(())
    }
}
