//! Names that a process looks up, messages that it queues, pipes that it makes.

use super::process::{Killed, Process};
use crate::heap::Kmalloc;
use crate::memory::caches::Tree;
use crate::objects::Held;
use slablab_platform::Gfp;
use slablab_workloads::script::{Stat, StatOrder};
use std::rc::Rc;

/// Bytes before a message's text (`struct msg_msg`), and of a pipe's buffer.
const MESSAGE_HEAD: u32 = 48;
const PIPE_BUFFER: u32 = 40;
/// Messages have so many types.
const TYPES: u32 = 8;

impl Process<'_> {
    /// Looks names up.
    pub(super) fn stat(&mut self, stat: &Stat) -> Result<(), Killed> {
        let tree = self.tree(stat);
        let (files, all) = (u64::from(stat.files), u64::from(stat.directories) * u64::from(stat.files));
        let lookups = match stat.order {
            StatOrder::Passes(passes) => all * u64::from(passes),
            StatOrder::Uniform(draws) => draws,
        };
        for at in 0..lookups {
            let file = match stat.order {
                StatOrder::Passes(_) => at % all,
                StatOrder::Uniform(_) => self.walk.borrow_mut().draw() % all,
            };
            let (directory, file) = ((file / files) as u32, (file % files) as u32);
            let memory = &self.shared.memory;
            let found = self.task.syscall(|| tree.look_up(memory, self.task, directory, file));
            self.count(found.is_some())?;
            self.counts[2] += 1;
        }
        Ok(())
    }

    /// The tree of this folder and size.
    fn tree(&self, stat: &Stat) -> Rc<Tree> {
        let memory = &self.shared.memory;
        let mut trees = self.shared.trees.borrow_mut();
        let key = (stat.directory.clone(), stat.directories, stat.files);
        let new = || Tree::new(memory, self.shared.caches, stat.directories, stat.files);
        trees.entry(key).or_insert_with(new).clone()
    }

    /// An operation has succeeded or failed.
    fn count(&mut self, is_done: bool) -> Result<(), Killed> {
        self.counts[usize::from(!is_done)] += 1;
        if self.shared.memory.is_killed(self.task.id) { Err(Killed) } else { Ok(()) }
    }

    /// Queues messages.
    pub(super) fn send(&mut self, count: u32, bytes: u32) -> Result<(), Killed> {
        for message in 0..count {
            let sent = self.task.syscall(|| {
                let held = self.get(bytes + MESSAGE_HEAD, Gfp::KERNEL | Gfp::ACCOUNT)?;
                self.task.copy(bytes);
                Some(held)
            });
            let is_sent = sent.is_some();
            self.messages.extend(sent.map(|held| (1 + message % TYPES, held)));
            self.count(is_sent)?;
        }
        Ok(())
    }

    /// Receives the messages of a type; 0: all.
    pub(super) fn receive(&mut self, of: u32) {
        let mine = |(ty, _): &mut (u32, Held)| of == 0 || *ty == of;
        for (_, held) in self.messages.extract_if(.., mine).collect::<Vec<_>>() {
            self.task.syscall(|| self.task.free(held));
            self.counts[0] += 1;
        }
    }

    /// Makes pipes of so many buffers: their rings alone.
    pub(super) fn make_pipes(&mut self, count: u32, slots: u32) -> Result<(), Killed> {
        let gfp = Gfp::KERNEL | Gfp::ACCOUNT | Gfp::NOWARN | Gfp::ZERO;
        for _ in 0..count {
            let made = self.task.syscall(|| self.get(slots * PIPE_BUFFER, gfp));
            let is_made = made.is_some();
            self.pipes.extend(made);
            self.count(is_made)?;
        }
        Ok(())
    }

    /// Closes the pipes.
    pub(super) fn close_pipes(&mut self) {
        for held in std::mem::take(&mut self.pipes) {
            self.task.syscall(|| self.task.free(held));
        }
    }

    /// What kmalloc gives for so many bytes. `None` without memory.
    fn get(&self, bytes: u32, gfp: Gfp) -> Option<Held> {
        match self.task.kernel.kmalloc(bytes) {
            Kmalloc::Cache(cache) => self.task.try_alloc_from(cache, gfp),
            Kmalloc::Pages(order) => self.task.try_alloc_pages(order, gfp | Gfp::COMP),
        }
    }
}
