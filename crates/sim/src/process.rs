//! Processes and threads: what a fork allocates and an exit frees.
//!
//! | | process | thread | freed |
//! |---|---|---|---|
//! | task, its stack, number, rights | 1 each | 1 each | after a grace period |
//! | signals, handlers | 1 each | | by the exit |
//! | files, folders, address space | 1 each | | by the exit |
//! | mappings | 16 | 1 | by the exit |
//! | anonymous pages' trees, links to them | 6, 10 | | by the exit |
//! | page tables, pages written after the fork | 8, 16 | 2 | by the exit |
//!
//! On pages of 64 KiB a stack is an object, and two of the page tables are: one covers 512 GiB, and a program
//! with its heap is far from its libraries and its stack (from memory).
//!
//! Counts of a small static program (assumed; published profiles have 12 to 20 mappings, 6 to 10 page tables
//! and 10 to 25 pages).
//!
//! That is what a fork of hackbench's costs. A process that has a program ([`Image`]) has mappings of its
//! own: a fork copies them one by one, an exec replaces them.

mod image;
pub mod mappings;

pub use image::{Image, Libraries, Shape};

use crate::kernel::objects::{Held, Object};
use crate::kernel::{Task, WaitQueue, Waiting};
use crate::params::words;
use slablab_model::{Access, Timed};
use slablab_platform::Topology;
use std::cell::Cell;
use std::rc::Rc;

/// Objects of a process that its exit frees, without those of its address space.
const GROUP: &[(Object, u32)] =
    &[(Object::Signal, 1), (Object::Sighand, 1), (Object::Files, 1), (Object::Fs, 1)];
/// Objects of an address space that its process's exit frees.
const SPACE: &[(Object, u32)] = &[
    (Object::Mm, 1),
    (Object::Vma, 16),
    (Object::AnonVma, 6),
    (Object::AnonVmaChain, 10),
    (Object::PageDirectory, 2),
];
/// Objects of a thread that its exit frees.
const THREAD: &[(Object, u32)] = &[(Object::Vma, 1)];
/// Objects of each task that are freed after a grace period.
const TASK: [Object; 4] = [Object::Task, Object::Pid, Object::Cred, Object::Stack];
/// Page tables and pages that a process has of its own, and a thread.
const PAGES: (u32, u32) = (24, 2);

/// A process or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With an address space of its own.
    Process,
    /// In its parent's address space.
    Thread,
}

words! { Kind { Process = "process", Thread = "thread" } }

/// Children that end, and the parent that waits for them.
#[derive(Default)]
pub struct Children {
    running: Cell<u32>,
    parent: WaitQueue,
}

impl Children {
    /// Starts a child that runs `program`.
    pub fn start(self: &Rc<Self>, parent: &Task, kind: Kind, program: impl FnOnce(&Task) + 'static) {
        let set = Set::new(parent, kind);
        self.running.set(self.running.get() + 1);
        let children = self.clone();
        let body = move |task: &Task| {
            program(task);
            set.end(task, kind);
            children.running.set(children.running.get() - 1);
            children.parent.wake_one(&task.kernel, false);
        };
        Timed::charge(parent.kernel.prices.fork);
        match kind {
            Kind::Process => parent.fork(body),
            Kind::Thread => parent.thread(body),
        };
    }

    /// Starts a process with a copy of `image`. `program` returns the image that it ends with.
    pub fn fork(
        self: &Rc<Self>,
        parent: &Task,
        image: &Image,
        program: impl FnOnce(&Task, Image) -> Image + 'static,
    ) {
        let set = Set::of_group(parent);
        let copy = image.copy(parent);
        self.running.set(self.running.get() + 1);
        let children = self.clone();
        Timed::charge(parent.kernel.prices.fork);
        parent.fork(move |task| {
            copy.write_after_fork(task);
            program(task, copy).end(task);
            set.end(task, Kind::Process);
            children.running.set(children.running.get() - 1);
            children.parent.wake_one(&task.kernel, false);
        });
    }

    /// Waits until at most `left` children have not ended.
    pub fn wait_for(&self, task: &Task, left: u32) {
        while self.running.get() > left {
            self.parent.wait(task, Waiting { what: "for children, left", number: self.running.get() });
        }
    }

    /// Waits until all children have ended.
    pub fn wait(&self, task: &Task) {
        self.wait_for(task, 0);
    }
}

/// What belongs to a task.
struct Set {
    /// Freed after a grace period.
    task: Vec<Held>,
    others: Vec<Held>,
}

impl Set {
    fn new(parent: &Task, kind: Kind) -> Set {
        match kind {
            Kind::Process => Set::of(parent, &[GROUP, SPACE], PAGES.0),
            Kind::Thread => Set::of(parent, &[THREAD], PAGES.1),
        }
    }

    /// What a process has beside its address space.
    fn of_group(parent: &Task) -> Set {
        Set::of(parent, &[GROUP], 0)
    }

    fn of(parent: &Task, lists: &[&[(Object, u32)]], pages: u32) -> Set {
        let exists = |object: &Object| parent.kernel.has(*object);
        let task = TASK.into_iter().filter(exists).map(|object| parent.alloc(object));
        let stack = || parent.alloc_pages(parent.kernel.era.stack_order(Timed::page_shift()));
        let task = task.chain((!exists(&Object::Stack)).then(stack)).collect();
        let objects = lists.iter().flat_map(|list| list.iter()).filter(|(object, _)| exists(object));
        let objects = objects.flat_map(|(object, count)| (0..*count).map(|_| parent.alloc(*object)));
        let pages = (0..pages).map(|_| parent.alloc_pages(0));
        let set = Set { task, others: objects.chain(pages).collect() };
        // A fork's price has what is written to the stack and to page tables.
        for held in set.task.iter().chain(&set.others).filter(|held| !held.is_pages()) {
            parent.touch(held, 64, Access::Write);
        }
        set
    }

    fn end(self, task: &Task, kind: Kind) {
        if kind == Kind::Process {
            Timed::charge(task.kernel.prices.exit);
        }
        for held in self.others {
            task.free(held);
        }
        for held in self.task {
            task.free_after_grace(held);
        }
    }
}
