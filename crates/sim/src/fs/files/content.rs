//! What a file's content has in memory: pages, a buffer for each block of a page, dirty pages.
//!
//! | step | objects |
//! |---|---|
//! | write of a page | a page and a `buffer_head`; in ext3 a handle of the journal around it |
//! | first read of a file in a second | in ext3 until 2.6.29 a handle: the time of access is written |
//! | create, remove, rename | a handle |
//! | write-back | what `block.rs` allocates; the buffers stay |
//! | removal | frees pages and buffers |
//!
//! A page is one block. The journal's own blocks are not written. Reads find their pages in the page cache.

use super::{Entry, Files, OpenFile};
use crate::kernel::Task;
use crate::kernel::objects::{Held, Object};
use slablab_model::{Access, Timed};
use slablab_platform::Topology;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Cycles to find a page in the page cache, to write to one, and of the journal for a handle, beside
/// allocator, copy and lines (assumed).
const FIND: u64 = 150;
const WRITE: u64 = 900;
const JOURNAL: u64 = 400;
/// Bytes of a buffer that a write touches.
const BUFFER: u32 = 104;
/// Picoseconds of a second: times of access in ext3 are whole seconds.
const SECOND: u64 = 1_000_000_000_000;

/// A file's pages.
#[derive(Default)]
pub(super) struct Content {
    /// A page, and its buffer.
    pages: RefCell<Vec<(Held, Held)>>,
    dirty: Cell<u32>,
    /// The second of the last access, counted from 1.
    accessed: Cell<u64>,
}

impl Content {
    pub(super) fn free(&self, task: &Task) {
        self.dirty.set(0);
        for (page, buffer) in std::mem::take(&mut *self.pages.borrow_mut()) {
            task.free(buffer);
            task.free(page);
        }
    }
}

/// A change of the file system that the journal holds together.
fn handle(task: &Task) {
    let handle = task.alloc(Object::JournalHandle);
    task.touch(&handle, 24, Access::Write);
    task.work(JOURNAL);
    task.free(handle);
}

impl Entry {
    /// Creates a file, as an open with O_CREAT does. Part of a system call; the open is not included.
    pub fn create_file(self: &Rc<Self>, task: &Task) -> Rc<Entry> {
        handle(task);
        self.create(task)
    }

    /// Removes a file: its pages and buffers go. Part of a system call.
    ///
    /// # Panics
    /// If an open file refers to it.
    pub fn remove(self: Rc<Self>, task: &Task) {
        self.look_up(task);
        handle(task);
        self.forget(task);
    }

    /// Gives a file another name. Part of a system call.
    pub fn rename(&self, task: &Task) {
        self.look_up(task);
        self.look_up(task);
        handle(task);
    }
}

impl OpenFile {
    /// Reads `bytes` bytes that are in the page cache. Part of a system call.
    pub fn read(&self, task: &Task, bytes: u32) {
        let pages = bytes.div_ceil(1 << Timed::page_shift());
        task.work(FIND * u64::from(pages));
        task.copy(bytes);
        let second = 1 + Timed::clock() / SECOND;
        let writes_time = !task.kernel.era.since(2, 6, 30);
        if writes_time && self.entry.content.accessed.replace(second) != second {
            handle(task);
        }
    }

    /// Writes `bytes` bytes that are in the page cache again. Part of a system call.
    pub fn overwrite(&self, task: &Task, bytes: u32) {
        task.work(FIND + WRITE);
        task.copy(bytes);
        handle(task);
    }

    /// Writes `bytes` bytes behind the file's end, which begins a page. Part of a system call.
    pub fn write(&self, task: &Task, files: &Files, bytes: u32) {
        let content = &self.entry.content;
        let page_bytes = 1 << Timed::page_shift();
        for written in (0..bytes).step_by(page_bytes as usize) {
            // ext4 allocates blocks at the write-back: a write needs no handle.
            if !task.kernel.era.since(3, 0, 0) {
                handle(task);
            }
            task.work(WRITE);
            let (page, buffer) = (task.alloc_pages(0), task.alloc(Object::BufferHead));
            task.touch(&buffer, BUFFER, Access::Write);
            task.copy(page_bytes.min(bytes - written));
            content.pages.borrow_mut().push((page, buffer));
            content.dirty.set(content.dirty.get() + 1);
        }
        files.dirty.borrow_mut().push_back(Rc::downgrade(&self.entry));
    }
}

impl Files {
    /// The dirty pages of the file that has been dirty for the longest; they are clean from now on. None if
    /// no file is dirty.
    pub fn next_dirty(&self) -> Option<u32> {
        loop {
            let first = self.dirty.borrow_mut().pop_front()?;
            let pages = first.upgrade().map_or(0, |entry| entry.content.dirty.replace(0));
            if pages > 0 {
                return Some(pages);
            }
        }
    }
}
