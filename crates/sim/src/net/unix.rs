//! UNIX stream sockets.
//!
//! ```text
//! send      while the sender's socket has its send buffer full: wait for room
//!           allocate sk_buff and data ── copy ── queue it at the peer ── wake the peer's reader
//! receive   while the queue is empty: wait to read
//!           take bytes of the first message; if it is used up:
//!             uncharge the sender's socket ── a quarter full or less: wake all writers ── free data, sk_buff
//! ```
//!
//! A message is charged to the socket it was sent from, until it is read and freed by the reader. The buffer
//! is tested before the message is charged, so one message may exceed it (`net/unix/af_unix.c`). Both
//! wake-ups are sync.

use crate::heap::Kmalloc;
use crate::kernel::objects::{Held, Object};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
pub use crate::locks::ReceiveQueue;
use slablab_model::{Access, Timed};
use slablab_platform::{Field, Frames, Lock, Platform};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of an `sk_buff` that the sender writes and the reader touches; bytes of shared info after the data.
const HEAD_WRITTEN: u32 = 232;
const HEAD_READ: u32 = 128;
const SHARED_INFO: u32 = 64;

type Queue = <Timed as Platform>::Lock<ReceiveQueue, VecDeque<Message>>;
type Word = <Timed as Frames>::Field;

/// A queued message.
struct Message {
    head: Held,
    data: Held,
    left: u32,
    truesize: u32,
    tag: u32,
}

/// One of two connected sockets.
pub struct Socket {
    number: u32,
    /// What the peer sent.
    queue: Queue,
    /// What this socket sent and the peer has not freed. The word is the line that both CPUs write.
    sent: Cell<u32>,
    sent_line: Word,
    send_buffer: u32,
    readers: WaitQueue,
    writers: WaitQueue,
    peer: RefCell<Option<Rc<Socket>>>,
    objects: RefCell<Vec<Held>>,
    truesize: Cell<(u32, u32)>,
}

/// What an end of a connection is made of.
const OBJECTS: [Object; 4] = [Object::SocketInode, Object::UnixSock, Object::File, Object::Dentry];

/// Two connected sockets; `number` and the next one name them in reports.
pub fn pair(task: &Task, number: u32) -> (Rc<Socket>, Rc<Socket>) {
    let socket = |number: u32| {
        Rc::new(Socket {
            number,
            queue: Lock::new(VecDeque::new()),
            sent: Cell::new(0),
            sent_line: Word::new(0),
            send_buffer: task.kernel.era.send_buffer(),
            readers: WaitQueue::default(),
            writers: WaitQueue::default(),
            peer: RefCell::new(None),
            objects: RefCell::new(OBJECTS.iter().map(|object| task.alloc(*object)).collect()),
            truesize: Cell::new((0, 0)),
        })
    };
    let (one, other) = (socket(number), socket(number + 1));
    *one.peer.borrow_mut() = Some(other.clone());
    *other.peer.borrow_mut() = Some(one.clone());
    (one, other)
}

/// Ends a connection: both sockets' objects are freed. No task uses them any more, and all was read.
pub fn close(task: &Task, socket: &Rc<Socket>) {
    let peer = socket.peer.borrow_mut().take();
    for end in peer.iter().chain([socket]) {
        end.peer.borrow_mut().take();
        for held in std::mem::take(&mut *end.objects.borrow_mut()) {
            task.free(held);
        }
    }
}

impl Socket {
    /// What a message of `bytes` bytes counts.
    fn truesize(&self, kernel: &Kernel, bytes: u32) -> u32 {
        if self.truesize.get().0 != bytes {
            let wanted = kernel.era.data_bytes(bytes);
            let allocated = match kernel.kmalloc(wanted) {
                Kmalloc::Cache(cache) => kernel.heap.caches()[cache.0 as usize].spec.object_size,
                Kmalloc::Pages(_) => wanted,
            };
            self.truesize.set((bytes, kernel.era.truesize(bytes, allocated)));
        }
        self.truesize.get().1
    }

    /// Sends a message of `bytes` bytes; waits while the send buffer is full. `tag` travels with it. Part of
    /// a system call.
    ///
    /// # Panics
    /// If the connection was closed.
    pub fn send(&self, task: &Task, bytes: u32, tag: u32) {
        let peer = self.peer.borrow().clone().expect("the connection is open");
        task.work(task.kernel.messages.socket_send);
        while self.sent.get() >= self.send_buffer {
            self.writers.wait(task, Waiting { what: "for room in socket", number: self.number });
            Timed::turn();
        }
        let head = task.alloc(Object::SkBuff);
        let data = task.alloc_bytes(task.kernel.era.data_bytes(bytes));
        let truesize = self.truesize(&task.kernel, bytes);
        self.sent.set(self.sent.get() + truesize);
        self.sent_line.set(0);
        task.touch(&head, HEAD_WRITTEN, Access::Write);
        task.touch(&data, bytes + SHARED_INFO, Access::Write);
        task.copy(bytes);
        peer.queue.lock().push_back(Message { head, data, left: bytes, truesize, tag });
        peer.readers.wake_one(&task.kernel, true);
    }

    /// Reads up to `bytes` bytes; waits until there is one. `each` is told the tag of each message that was
    /// read, and how many of its bytes. Returns the bytes read. Part of a system call.
    ///
    /// # Panics
    /// If the connection was closed.
    pub fn receive(&self, task: &Task, bytes: u32, mut each: impl FnMut(u32, u32)) -> u32 {
        let peer = self.peer.borrow().clone().expect("the connection is open");
        task.work(task.kernel.messages.socket_receive);
        let mut read = 0;
        while read < bytes {
            let Some((tag, part, used_up)) = self.take(bytes - read) else {
                if read > 0 {
                    break;
                }
                self.readers.wait(task, Waiting { what: "to read from socket", number: self.number });
                Timed::turn();
                continue;
            };
            read += part;
            each(tag, part);
            if let Some(message) = used_up {
                task.touch(&message.head, HEAD_READ, Access::Write);
                task.touch(&message.data, part + SHARED_INFO, Access::Read);
                task.copy(part);
                peer.freed(&task.kernel, message.truesize);
                task.free(message.data);
                task.free(message.head);
                task.kernel.count_message();
            } else {
                task.copy(part);
            }
        }
        read
    }

    /// Takes up to `bytes` bytes of the first message: its tag, the bytes, and the message if it is used up.
    fn take(&self, bytes: u32) -> Option<(u32, u32, Option<Message>)> {
        let mut queue = self.queue.lock();
        let first = queue.front_mut()?;
        let (tag, part) = (first.tag, first.left.min(bytes));
        first.left -= part;
        let used_up = if first.left == 0 { queue.pop_front() } else { None };
        if let Some(next) = queue.front() {
            Timed::warm(next.head.address);
            Timed::warm(next.data.address);
        }
        Some((tag, part, used_up))
    }

    /// A message that this socket sent was read.
    fn freed(&self, kernel: &Kernel, truesize: u32) {
        self.sent.set(self.sent.get() - truesize);
        self.sent_line.set(0);
        if 4 * self.sent.get() <= self.send_buffer {
            self.writers.wake_all(kernel, true);
        }
    }
}
