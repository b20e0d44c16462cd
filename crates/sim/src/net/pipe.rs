//! Pipes: 16 buffers of a page.
//!
//! A write of at most a page goes whole into the last buffer if it fits there, else into a new one: 40
//! messages of 100 bytes in a page of 4 KiB. The mutex is held over the whole write, and so over the page's
//! allocation; a CPU that waits for it spins, since the holder never sleeps.
//!
//! | | until 5.4 | from 5.5 |
//! |---|---|---|
//! | wait queues | one, for readers and writers | one for readers, one for writers |
//! | a write wakes | all, at each write, and before it sleeps | the first reader, if the pipe was empty |
//! | a read wakes | all, if it used up a buffer | the first writer, if the pipe was full |
//! | a woken task | | wakes the next of its kind, if there is more |

use crate::kernel::objects::{Held, Object};
use crate::kernel::{Task, WaitQueue, Waiting};
pub use crate::locks::PipeMutex;
use slablab_model::Timed;
use slablab_platform::{Field, Frames, Lock, Platform, Topology};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Buffers of a pipe.
pub const BUFFERS: usize = 16;

/// A page and how much of it was written and read.
struct Buffer {
    page: Held,
    written: u32,
    read: u32,
}

#[derive(Default)]
struct Contents {
    buffers: VecDeque<Buffer>,
    /// A page that was used up, for the next buffer.
    spare: Option<Held>,
    /// The messages in the pipe: tag, bytes left.
    messages: VecDeque<(u32, u32)>,
}

/// A pipe.
pub struct Pipe {
    number: u32,
    contents: <Timed as Platform>::Lock<PipeMutex, Contents>,
    /// Two lines of the page that is written: a message of 100 bytes.
    data: [<Timed as Frames>::Field; 2],
    readers: WaitQueue,
    writers: WaitQueue,
    objects: RefCell<Vec<Held>>,
}

impl Pipe {
    /// An empty pipe; `number` names it in reports.
    pub fn new(task: &Task, number: u32) -> Pipe {
        let objects = [Object::PipeInode, Object::File, Object::File, Object::Dentry];
        let objects = objects.map(|object| task.alloc(object)).into_iter();
        let buffers = task.alloc_bytes(BUFFERS as u32 * 40);
        Pipe {
            number,
            contents: Lock::new(Contents::default()),
            data: [Field::new(0), Field::new(0)],
            readers: WaitQueue::default(),
            writers: WaitQueue::default(),
            objects: RefCell::new(objects.chain([buffers]).collect()),
        }
    }

    /// Frees the pipe. No task uses it any more.
    pub fn close(&self, task: &Task) {
        let contents = std::mem::take(&mut *self.contents.lock());
        let pages = contents.buffers.into_iter().map(|buffer| buffer.page).chain(contents.spare);
        pages.chain(std::mem::take(&mut *self.objects.borrow_mut())).for_each(|held| task.free(held));
    }

    /// Buffers in use.
    pub fn buffers(&self) -> usize {
        self.contents.lock().buffers.len()
    }

    /// The queue in which writers wait.
    fn write_queue(&self, task: &Task) -> &WaitQueue {
        if task.kernel.era.pipes_wake_one() { &self.writers } else { &self.readers }
    }

    /// Writes a message of `bytes` bytes, at most a page; waits while the pipe is full. `tag` travels with
    /// it. Part of a system call.
    pub fn write(&self, task: &Task, bytes: u32, tag: u32) {
        let one = task.kernel.era.pipes_wake_one();
        task.work(task.kernel.messages.pipe_write);
        let mut slept = false;
        let (was_empty, is_full) = loop {
            let mut contents = self.contents.lock();
            let was_empty = contents.buffers.is_empty();
            if contents.append(task, bytes) {
                contents.messages.push_back((tag, bytes));
                self.data.iter().for_each(|line| line.set(0));
                task.copy(bytes);
                break (was_empty, contents.buffers.len() >= BUFFERS);
            }
            drop(contents);
            if !one {
                self.readers.wake_all(&task.kernel, true);
            }
            let waiting = Waiting { what: "for room in pipe", number: self.number };
            self.write_queue(task).wait(task, waiting);
            slept = true;
        };
        if !one {
            self.readers.wake_all(&task.kernel, true);
        } else if was_empty {
            self.readers.wake_one(&task.kernel, true);
        }
        if one && slept && !is_full {
            self.writers.wake_one(&task.kernel, true);
        }
    }

    /// Reads up to `bytes` bytes; waits until there is one. `each` is told the tag of each message that was
    /// read, and how many of its bytes. Returns the bytes read. Part of a system call.
    pub fn read(&self, task: &Task, bytes: u32, mut each: impl FnMut(u32, u32)) -> u32 {
        let one = task.kernel.era.pipes_wake_one();
        task.work(task.kernel.messages.pipe_read);
        let (mut read, mut slept) = (0, false);
        loop {
            let mut contents = self.contents.lock();
            let was_full = contents.buffers.len() >= BUFFERS;
            let mut emptied = false;
            while read < bytes && !contents.buffers.is_empty() {
                let (part, used_up) = contents.take(task, bytes - read, &mut each);
                self.data.iter().for_each(|line| _ = line.get());
                task.copy(part);
                read += part;
                emptied |= used_up;
            }
            let is_empty = contents.buffers.is_empty();
            drop(contents);
            if emptied && !one {
                self.readers.wake_all(&task.kernel, true);
            } else if emptied && was_full {
                self.writers.wake_one(&task.kernel, true);
            }
            if read > 0 {
                if one && slept && !is_empty {
                    self.readers.wake_one(&task.kernel, true);
                }
                return read;
            }
            self.readers.wait(task, Waiting { what: "to read from pipe", number: self.number });
            slept = true;
        }
    }
}

impl Contents {
    /// Appends `bytes` bytes. False if the pipe is full.
    fn append(&mut self, task: &Task, bytes: u32) -> bool {
        let page = 1u32 << Timed::page_shift();
        if let Some(last) = self.buffers.back_mut()
            && last.written + bytes <= page
        {
            last.written += bytes;
            return true;
        }
        if self.buffers.len() >= BUFFERS {
            return false;
        }
        let page = self.spare.take().unwrap_or_else(|| task.alloc_pages(0));
        self.buffers.push_back(Buffer { page, written: bytes, read: 0 });
        true
    }

    /// Takes up to `bytes` bytes of the first buffer: how many, and whether that used it up.
    fn take(&mut self, task: &Task, bytes: u32, each: &mut impl FnMut(u32, u32)) -> (u32, bool) {
        let first = self.buffers.front_mut().expect("the caller saw a buffer");
        let part = bytes.min(first.written - first.read);
        first.read += part;
        let used_up = first.read == first.written;
        let mut left = part;
        while left > 0 {
            let (tag, rest) = self.messages.front_mut().expect("bytes are of messages");
            let taken = left.min(*rest);
            each(*tag, taken);
            (*rest, left) = (*rest - taken, left - taken);
            if *rest == 0 {
                self.messages.pop_front();
                task.kernel.count_message();
            }
        }
        if used_up && let Some(buffer) = self.buffers.pop_front() {
            match self.spare {
                None => self.spare = Some(buffer.page),
                Some(_) => task.free(buffer.page),
            }
        }
        (part, used_up)
    }
}
