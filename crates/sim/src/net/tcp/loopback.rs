//! The loopback device: one queue of packets for each CPU, served by that CPU's softirq.
//!
//! ```text
//! send   queue the packet on this CPU ── is the softirq running here? then it serves the packet
//!                                     └─ no: it runs now, at the end of the send, in the sender's system call
//! serve  free what readers left for this CPU ── each packet in turn: the receiver's socket takes it
//! ```
//!
//! A packet that a softirq sends, such as an acknowledgement, waits in the same queue, so sockets are not
//! entered one inside the other. The queue holds 1,000 packets, 300 in 2.4, and drops what comes beyond. Here
//! the sender's CPU empties it before its system call goes on, so it holds a few at most: only a softirq that
//! has gone to ksoftirqd fills it, and that is not built.

use super::{End, Segment};
use crate::kernel::Task;
use slablab_model::Timed;
use slablab_platform::{CpuId, Field, Frames, Topology};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Buffers that readers leave for one CPU; with more, a reader frees them itself.
const LEFT_MAX: usize = 64;

/// A packet under way.
pub(crate) struct Packet {
    /// The socket that it is for.
    pub(crate) to: Rc<End>,
    /// What it carries.
    pub(crate) load: Load,
    /// What the sender has received in all, and up to where it takes data.
    pub(crate) received: u64,
    pub(crate) window: u64,
}

/// What a packet carries beside the acknowledgement that every packet has.
pub(crate) enum Load {
    /// Data.
    Data(Rc<Segment>),
    /// Nothing: the packet's head and data are freed where it is taken.
    Nothing([crate::kernel::objects::Held; 2]),
}

/// One CPU's part of the device.
struct Queue {
    packets: RefCell<VecDeque<Packet>>,
    serving: Cell<bool>,
    /// Buffers that were allocated here and used up on other CPUs, and the line of the list.
    left: RefCell<Vec<Rc<Segment>>>,
    left_line: <Timed as Frames>::Field,
}

/// The device.
pub struct Loopback {
    queues: Vec<Queue>,
    longest: Cell<usize>,
}

impl Loopback {
    /// The device of the machine that is entered.
    pub fn new() -> Rc<Loopback> {
        let queue = |_| Queue {
            packets: RefCell::default(),
            serving: Cell::new(false),
            left: RefCell::default(),
            left_line: Field::new(0),
        };
        Rc::new(Loopback { queues: (0..Timed::cpus()).map(queue).collect(), longest: Cell::new(0) })
    }

    /// The most packets that a queue has held.
    pub fn longest(&self) -> usize {
        self.longest.get()
    }

    fn queue(&self, CpuId(cpu): CpuId) -> &Queue {
        &self.queues[cpu as usize]
    }

    /// Sends a packet. Part of a system call, or of the softirq.
    pub(crate) fn send(&self, task: &Task, packet: Packet) {
        let queue = self.queue(Timed::cpu());
        queue.packets.borrow_mut().push_back(packet);
        self.longest.set(self.longest.get().max(queue.packets.borrow().len()));
        if queue.serving.replace(true) {
            return;
        }
        self.free_left(task);
        loop {
            let next = queue.packets.borrow_mut().pop_front();
            let Some(packet) = next else { break };
            task.work(task.kernel.messages.tcp_softirq);
            let to = packet.to.clone();
            to.arrived(task, packet);
        }
        queue.serving.set(false);
    }

    /// A reader has read a segment's clone. If the segment has no other user, it is left to the CPU that
    /// allocated it, and freed here if that is this CPU or has enough of them.
    pub(super) fn put(&self, task: &Task, segment: &Rc<Segment>) {
        let is_left = || segment.cpu != Timed::cpu() && self.leave(segment.cpu, segment);
        if segment.loses_last() && !is_left() {
            segment.free(task);
        }
    }

    /// Leaves a used-up buffer to the CPU that allocated it. `false`: that CPU has enough of them.
    fn leave(&self, to: CpuId, segment: &Rc<Segment>) -> bool {
        let queue = self.queue(to);
        queue.left_line.set(0);
        let mut left = queue.left.borrow_mut();
        if left.len() >= LEFT_MAX {
            return false;
        }
        left.push(segment.clone());
        true
    }

    /// Frees what was left for this CPU. Linux also does so by an interrupt, at half of the limit; here it is
    /// done at the CPU's next softirq alone (assumed).
    fn free_left(&self, task: &Task) {
        let queue = self.queue(Timed::cpu());
        if queue.left.borrow().is_empty() {
            return;
        }
        queue.left_line.set(0);
        let left = std::mem::take(&mut *queue.left.borrow_mut());
        left.into_iter().for_each(|segment| segment.free(task));
    }

    /// Frees what is left for all CPUs: nothing is sent any more.
    pub fn close(&self, task: &Task) {
        for queue in &self.queues {
            let left = std::mem::take(&mut *queue.left.borrow_mut());
            left.into_iter().for_each(|segment| segment.free(task));
        }
    }
}
