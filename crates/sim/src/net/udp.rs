//! UDP over loopback.
//!
//! ```text
//! send      allocate sk_buff and data ── copy ── the device's softirq, on the sender's CPU, in its system call:
//!             the receiver's buffer is full: free both here, the datagram is lost
//!             else queue it at the receiver ── wake its reader
//! receive   while the queue is empty: wait to read
//!           uncharge ── copy ── free data, sk_buff on the reader's CPU
//! ```
//!
//! The device takes a datagram off the sender's charge at once, so the sender never blocks: a receiver that
//! is slower loses datagrams. The queue of the CPU's softirq is not built: it seldom holds more than one
//! datagram, because it is emptied when the send ends.

use crate::heap::Kmalloc;
use crate::kernel::objects::{Held, Object};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
pub use crate::locks::UdpReceiveQueue as ReceiveQueue;
use slablab_model::{Access, Timed};
use slablab_platform::{Field, Frames, Lock, Platform};
use std::cell::Cell;
use std::collections::VecDeque;

/// Bytes of headers and headroom before the data (assumed: with them 128 bytes are of kmalloc's class 512,
/// 1,024 of 2,048, and 4,096 of 8,192, as published).
const HEADERS: u32 = 64;
/// Bytes of an `sk_buff` that the sender writes and the reader touches; bytes of shared info after the data.
const HEAD_WRITTEN: u32 = 232;
const HEAD_READ: u32 = 128;
const SHARED_INFO: u32 = 64;

/// A queued datagram.
struct Datagram {
    head: Held,
    data: Held,
    bytes: u32,
    truesize: u32,
    tag: u32,
}

/// A socket that receives datagrams.
pub struct Receiver {
    number: u32,
    queue: <Timed as Platform>::Lock<ReceiveQueue, VecDeque<Datagram>>,
    /// What the queued datagrams count. The line is written by both CPUs.
    charged: Cell<u32>,
    charged_line: <Timed as Frames>::Field,
    buffer: u32,
    readers: WaitQueue,
    lost: Cell<u64>,
}

impl Receiver {
    /// A socket. `asked` is the size that `SO_RCVBUF` sets: the kernel doubles it; 0 takes the default.
    pub fn new(kernel: &Kernel, number: u32, asked: u32) -> Receiver {
        Receiver {
            number,
            queue: Lock::new(VecDeque::new()),
            charged: Cell::new(0),
            charged_line: Field::new(0),
            buffer: if asked == 0 { kernel.era.send_buffer() } else { 2 * asked },
            readers: WaitQueue::default(),
            lost: Cell::new(0),
        }
    }

    /// Datagrams that found the buffer full.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Whether the empty buffer holds a datagram of `bytes` bytes.
    pub fn holds(&self, kernel: &Kernel, bytes: u32) -> bool {
        truesize(kernel, bytes, kernel.era.data_bytes(bytes + HEADERS)) <= self.buffer
    }

    /// Sends a datagram of `bytes` bytes here. `tag` travels with it. False if it was lost. Part of the
    /// sender's system call.
    pub fn send(&self, task: &Task, bytes: u32, tag: u32) -> bool {
        task.work(task.kernel.messages.udp_send);
        let wanted = task.kernel.era.data_bytes(bytes + HEADERS);
        let head = task.alloc(Object::SkBuff);
        let data = task.alloc_bytes(wanted);
        task.touch(&head, HEAD_WRITTEN, Access::Write);
        task.touch(&data, bytes + HEADERS + SHARED_INFO, Access::Write);
        task.copy(bytes);
        task.work(task.kernel.messages.udp_softirq);
        Timed::turn();
        let truesize = truesize(&task.kernel, bytes, wanted);
        self.charged_line.set(0);
        if self.charged.get() + truesize > self.buffer {
            self.lost.set(self.lost.get() + 1);
            task.free(data);
            task.free(head);
            return false;
        }
        self.charged.set(self.charged.get() + truesize);
        self.queue.lock().push_back(Datagram { head, data, bytes, truesize, tag });
        self.readers.wake_one(&task.kernel, true);
        true
    }

    /// Reads a datagram; waits until there is one. Returns its tag and its bytes. Part of a system call.
    pub fn receive(&self, task: &Task) -> (u32, u32) {
        task.work(task.kernel.messages.udp_receive);
        loop {
            let first = self.queue.lock().pop_front();
            if let Some(Datagram { head, data, bytes, truesize, tag }) = first {
                self.charged.set(self.charged.get() - truesize);
                self.charged_line.set(0);
                task.touch(&head, HEAD_READ, Access::Write);
                task.touch(&data, bytes + HEADERS + SHARED_INFO, Access::Read);
                task.copy(bytes);
                task.free(data);
                task.free(head);
                task.kernel.count_message();
                return (tag, bytes);
            }
            self.readers.wait(task, Waiting { what: "to read from UDP socket", number: self.number });
            Timed::turn();
        }
    }
}

/// What a datagram counts against the receiver's buffer.
fn truesize(kernel: &Kernel, bytes: u32, wanted: u32) -> u32 {
    let allocated = match kernel.kmalloc(wanted) {
        Kmalloc::Cache(cache) => kernel.heap.caches()[cache.0 as usize].spec.object_size,
        Kmalloc::Pages(_) => wanted,
    };
    kernel.era.truesize(bytes + HEADERS, allocated)
}
