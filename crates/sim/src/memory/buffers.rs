//! Buffer heads: one slab object for each page of a file that was read or written by way of them.

use super::Memory;
use crate::kernel::Task;
use crate::objects::{Held, Object};
use slablab_platform::Gfp;
use slablab_vm::Frame;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The buffer heads of a machine, by the frames of their pages.
#[derive(Default)]
pub(super) struct Buffers {
    heads: RefCell<BTreeMap<u32, Held>>,
}

impl Memory {
    /// Allocates the buffer head of a page, for which reclaim enters no file system. Returns whether there
    /// was memory.
    pub(super) fn add_buffer(self: &Rc<Self>, task: &Task, frame: Frame) -> bool {
        let cache = self.kernel.number(Object::BufferHead);
        let Some(head) = task.try_alloc_from(cache, Gfp::KERNEL.without(Gfp::FS)) else { return false };
        let old = self.buffers.heads.borrow_mut().insert(frame.0, head);
        assert!(old.is_none(), "frame {} has a buffer head", frame.0);
        true
    }

    /// Frees the buffer head of a frame's page, if it has one.
    pub(super) fn drop_buffer(&self, frame: Frame) {
        let head = self.buffers.heads.borrow_mut().remove(&frame.0);
        if let Some(head) = head {
            self.kernel.free(head);
        }
    }

    pub(super) fn move_buffer(&self, from: Frame, to: Frame) {
        let heads = &mut *self.buffers.heads.borrow_mut();
        if let Some(head) = heads.remove(&from.0) {
            heads.insert(to.0, head);
        }
    }

    /// Pages that have a buffer head.
    pub fn buffers(&self) -> u64 {
        self.buffers.heads.borrow().len() as u64
    }
}
