//! Buffer heads: one slab object for each page of a file that was read or written by way of them.

use crate::kernel::objects::{Held, Object};
use crate::kernel::{Kernel, Task};
use slablab_platform::Gfp;
use slablab_vm::Frame;
use std::cell::{Cell, RefCell};

/// Frames whose places for buffer heads are made together.
const CHUNK: usize = 4_096;

/// The buffer heads of a machine, by the frames of their pages: every page that is freed is looked up here.
#[derive(Default)]
pub(super) struct Buffers {
    /// Empty where no page had a buffer head.
    chunks: RefCell<Vec<Vec<Option<Held>>>>,
    heads: Cell<u64>,
}

impl Buffers {
    fn put(&self, Frame(frame): Frame, head: Held) {
        let (chunk, at) = (frame as usize / CHUNK, frame as usize % CHUNK);
        let mut chunks = self.chunks.borrow_mut();
        if chunks.len() <= chunk {
            chunks.resize_with(chunk + 1, Vec::new);
        }
        let places = &mut chunks[chunk];
        if places.is_empty() {
            places.resize_with(CHUNK, || None);
        }
        let old = places[at].replace(head);
        assert!(old.is_none(), "frame {frame} has a buffer head");
        self.heads.set(self.heads.get() + 1);
    }

    fn take(&self, Frame(frame): Frame) -> Option<Held> {
        let mut chunks = self.chunks.borrow_mut();
        let head = chunks.get_mut(frame as usize / CHUNK)?.get_mut(frame as usize % CHUNK)?.take()?;
        self.heads.set(self.heads.get() - 1);
        Some(head)
    }
}

impl Buffers {
    /// Allocates the buffer head of a page, for which reclaim enters no file system. Returns whether there
    /// was memory.
    pub(super) fn create(&self, task: &Task, frame: Frame) -> bool {
        let cache = task.kernel.number(Object::BufferHead);
        let Some(head) = task.try_alloc_from(cache, Gfp::KERNEL.without(Gfp::FS)) else { return false };
        self.put(frame, head);
        true
    }

    /// Frees the buffer head of a frame's page, if it has one.
    pub(super) fn free(&self, kernel: &Kernel, frame: Frame) {
        if let Some(head) = self.take(frame) {
            kernel.free(head);
        }
    }

    /// A page moves to another frame.
    pub(super) fn page_moves(&self, from: Frame, to: Frame) {
        if let Some(head) = self.take(from) {
            self.put(to, head);
        }
    }

    /// Pages that have a buffer head.
    pub(super) fn count(&self) -> u64 {
        self.heads.get()
    }
}
