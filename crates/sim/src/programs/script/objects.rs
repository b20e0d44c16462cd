//! Names that a process looks up, messages that it queues, pipes that it makes.

use super::process::{Killed, Process};
use super::shared::Queue;
use crate::heap::Kmalloc;
use crate::kernel::objects::Held;
use crate::memory::caches::Tree;
use slablab_platform::Gfp;
use slablab_trace::script::{Stat, StatOrder};
use std::rc::Rc;

/// Bytes before a message's text (`struct msg_msg`), before each further part of it, and of a pipe's buffer.
const MESSAGE_HEAD: u32 = 48;
const PART_HEAD: u32 = 8;
const PIPE_BUFFER: u32 = 40;
const PAGE: u32 = 4_096;
/// Bytes of the longest message, which the recording program sets (`msgmax`).
const MESSAGE_MOST: u32 = 8_192;
/// Pipes for which the recording program has room.
const PIPES_MOST: u32 = 2_047;
/// Buffers of the largest ring that kmalloc can give: 4 MiB (from memory).
const SLOTS_MOST: u32 = 1 << 16;
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

    /// The tree of this folder, as large as the script needs it.
    fn tree(&self, stat: &Stat) -> Rc<Tree> {
        let memory = &self.shared.memory;
        let mut trees = self.shared.trees.borrow_mut();
        let (directories, files) = self.shared.plan.trees[&stat.directory];
        let new = || Tree::new(memory, self.shared.caches, directories, files);
        trees.entry(stat.directory.clone()).or_insert_with(new).clone()
    }

    /// An operation has succeeded or failed.
    fn count(&mut self, is_done: bool) -> Result<(), Killed> {
        self.counts[usize::from(!is_done)] += 1;
        if self.shared.memory.processes.is_killed(self.task.id) { Err(Killed) } else { Ok(()) }
    }

    /// Queues messages.
    pub(super) fn send(&mut self, count: u32, bytes: u32) -> Result<(), Killed> {
        let queue = self.queue.get_or_insert_with(|| self.shared.new_queue()).clone();
        for message in 0..count {
            let is_sent =
                bytes <= MESSAGE_MOST && self.task.syscall(|| self.send_one(&queue, message, bytes));
            self.count(is_sent)?;
        }
        Ok(())
    }

    /// Queues a message: its head with the first bytes in one object, the others in objects of a page each.
    fn send_one(&self, queue: &Queue, message: u32, bytes: u32) -> bool {
        let (mut parts, mut left, mut head) = (Vec::new(), bytes, MESSAGE_HEAD);
        loop {
            let part = left.min(PAGE - head);
            let Some(held) = self.get(part + head, Gfp::KERNEL | Gfp::ACCOUNT) else {
                parts.into_iter().for_each(|held| self.task.free(held));
                return false;
            };
            parts.push(held);
            (left, head) = (left - part, PART_HEAD);
            if left == 0 {
                break;
            }
        }
        self.task.copy(bytes);
        queue.borrow_mut().push((1 + message % TYPES, parts));
        true
    }

    /// Receives the messages of a type; 0: all.
    pub(super) fn receive(&mut self, of: u32) {
        let Some(queue) = &self.queue else { return };
        let mine = |(ty, _): &mut (u32, Vec<Held>)| of == 0 || *ty == of;
        let received: Vec<_> = queue.borrow_mut().extract_if(.., mine).collect();
        for (_, parts) in received {
            self.task.syscall(|| parts.into_iter().for_each(|held| self.task.free(held)));
            self.counts[0] += 1;
        }
    }

    /// Makes pipes of so many buffers, rounded up to a power of two: their rings alone. A process has 2,047
    /// at most.
    pub(super) fn make_pipes(&mut self, count: u32, slots: u32) -> Result<(), Killed> {
        let gfp = Gfp::KERNEL | Gfp::ACCOUNT | Gfp::NOWARN | Gfp::ZERO;
        for _ in 0..count.min(PIPES_MOST - self.pipes.len() as u32) {
            let made = if slots > SLOTS_MOST {
                None
            } else {
                let bytes = slots.next_power_of_two() * PIPE_BUFFER;
                self.task.syscall(|| self.get(bytes, gfp))
            };
            let is_made = made.is_some();
            self.pipes.push(Rc::new(made));
            self.count(is_made)?;
        }
        Ok(())
    }

    /// Closes the pipes. Those that another process has too stay.
    pub(super) fn close_pipes(&mut self) {
        for pipe in std::mem::take(&mut self.pipes) {
            self.task.syscall(|| {
                if let Some(Some(held)) = Rc::into_inner(pipe) {
                    self.task.free(held);
                }
            });
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
