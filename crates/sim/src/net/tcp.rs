//! TCP connections over loopback.
//!
//! ```text
//! send      own the socket ── while the send buffer is full: disown it, wait for room
//!           fill segments ── each is sent if the receiver's window takes it ── disown: take what came meanwhile
//! arrived   in the softirq of the sender's CPU: a task owns the socket? then the packet waits for it
//!           free what is acknowledged ── send what the window takes now ── wake a writer
//!           queue the data ── wake the reader ── acknowledge, or wait for data of our own that does it
//! receive   own the socket ── while there is no data: disown it, wait
//!           copy ── free the clone ── acknowledge, if the window opened or all was read ── disown
//! ```
//!
//! A segment travels as a clone; the original stays with the sender until it is acknowledged. An
//! acknowledgement of a softirq on the sender's CPU finds the sender's socket owned by the sender, so the
//! original is freed there; one that a reader sends frees it on the reader's CPU, unless the sender is in a
//! system call.
//!
//! | rule | source |
//! |---|---|
//! | data is acknowledged with more than one segment, the first 16 times at once, else with data that goes back | from memory |
//! | a reader that read all of a socket that sends nothing back acknowledges | from memory |
//! | a reader that doubles what is left of the window tells it | from memory |
//! | the window is three quarters of the free receive buffer, or 0 below a segment | from memory |
//! | a writer wakes when a third of the send buffer is free | from memory |
//! | a segment that is not full waits while another one is not acknowledged, unless TCP_NODELAY was asked for | from memory |
//! | sizes of buffers | [`Rules`] |
//!
//! Until 4.13 a packet that finds a reader asleep is left to the reader (from memory): an acknowledgement
//! that comes with data is then processed by the task that waits for that data, and the original freed on its
//! CPU.
//!
//! Not built: losses, the congestion window, delays of acknowledgements by a timer.

pub use rules::Rules;
pub(crate) use segment::Segment;

use crate::kernel::objects::{Held, Object};
use crate::kernel::{Task, WaitQueue, Waiting};
pub use crate::locks::TcpSocket;
use loopback::{Load, Loopback, Packet};
use segment::Pages;
use slablab_model::{Access, Timed};
use slablab_platform::{Lock, Platform};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

pub mod loopback;
mod rules;
mod segment;

/// Acknowledgements that are sent at once when a connection begins.
const QUICK: u8 = 16;
/// Bytes of an acknowledgement's `sk_buff` and head that are written and read.
const ACK_WRITTEN: u32 = 128;
/// Cycles between two looks of a task that spins.
const SPIN: u64 = 50;
/// What an end of a connection is made of.
const OBJECTS: [Object; 4] = [Object::SocketInode, Object::TcpSock, Object::File, Object::Dentry];

/// Data that was received, and how much of it was read.
struct Received {
    segment: Rc<Segment>,
    read: u32,
}

/// What a socket's lock protects.
#[derive(Default)]
struct State {
    /// A task in a system call, or a softirq, works on the socket; packets wait for it.
    owned: bool,
    backlog: VecDeque<Packet>,
    queue: VecDeque<Received>,
    /// What `queue` counts against the receive buffer.
    charged: u32,
    /// Bytes received; up to where the peer was told to send; bytes that were not acknowledged.
    received: u64,
    window: u64,
    unacknowledged: u32,
    quick: u8,
    /// Data came since data was sent; the socket sends data back, which acknowledges.
    asked: bool,
    answers: bool,
    /// Filled and not sent; sent and not acknowledged; what both count.
    unsent: VecDeque<Rc<Segment>>,
    sent: VecDeque<Rc<Segment>>,
    counts: u32,
    /// Bytes sent, those that are acknowledged, and up to where the peer takes them.
    sent_to: u64,
    acknowledged_to: u64,
    peer_window: u64,
    /// Where the last segment that was not full ends.
    small_to: u64,
}

/// What a packet makes a socket do, after its lock is released.
#[derive(Default)]
struct Todo {
    acknowledged: Vec<Rc<Segment>>,
    acknowledge: bool,
    data: bool,
    room: bool,
}

/// One of two connected sockets.
pub struct End {
    number: u32,
    rules: Rules,
    /// The program asked for TCP_NODELAY.
    at_once: bool,
    loopback: Rc<Loopback>,
    sock: <Timed as Platform>::Lock<TcpSocket, State>,
    pages: RefCell<Pages>,
    readers: WaitQueue,
    writers: WaitQueue,
    peer: RefCell<Option<Rc<End>>>,
    objects: RefCell<Vec<Held>>,
}

/// Two connected sockets; `number` and the next one name them in reports. `at_once`: segments that are not
/// full do not wait for acknowledgements (TCP_NODELAY).
pub fn pair(task: &Task, loopback: &Rc<Loopback>, number: u32, at_once: bool) -> (Rc<End>, Rc<End>) {
    let rules = Rules::of(task.kernel.era);
    let open = rules.open(0);
    let end = |number: u32| {
        let state = State { quick: QUICK, window: open, peer_window: open, ..State::default() };
        Rc::new(End {
            number,
            rules,
            at_once,
            loopback: loopback.clone(),
            sock: Lock::new(state),
            pages: RefCell::default(),
            readers: WaitQueue::default(),
            writers: WaitQueue::default(),
            peer: RefCell::new(None),
            objects: RefCell::new(OBJECTS.iter().map(|object| task.alloc(*object)).collect()),
        })
    };
    let (one, other) = (end(number), end(number + 1));
    *one.peer.borrow_mut() = Some(other.clone());
    *other.peer.borrow_mut() = Some(one.clone());
    (one, other)
}

/// Ends a connection: its objects and all data that is under way are freed. No task uses it any more.
pub fn close(task: &Task, end: &Rc<End>) {
    let peer = end.peer.borrow_mut().take();
    for end in peer.iter().chain([end]) {
        end.peer.borrow_mut().take();
        let state = std::mem::take(&mut *end.sock.lock());
        let clones = state.queue.into_iter().map(|received| received.segment);
        clones.chain(state.unsent).chain(state.sent).for_each(|segment| segment.put(task));
        end.pages.borrow_mut().close(task);
        std::mem::take(&mut *end.objects.borrow_mut()).into_iter().for_each(|held| task.free(held));
    }
}

impl State {
    /// Takes a packet. Its load stays where it is if it carries no data.
    fn take(&mut self, rules: &Rules, packet: Packet) -> (Todo, Option<[Held; 2]>) {
        let mut todo = Todo::default();
        while let Some(first) = self.sent.pop_front_if(|first| first.end.get() <= packet.received) {
            self.counts -= first.counts(rules);
            todo.acknowledged.push(first);
        }
        todo.room = !todo.acknowledged.is_empty() && 3 * self.counts <= 2 * rules.send_buffer;
        self.peer_window = self.peer_window.max(packet.window);
        self.acknowledged_to = self.acknowledged_to.max(packet.received);
        match packet.load {
            Load::Nothing(held) => (todo, Some(held)),
            Load::Data(segment) => {
                self.charged += segment.counts(rules);
                self.received += u64::from(segment.bytes());
                self.unacknowledged += segment.bytes();
                self.queue.push_back(Received { segment, read: 0 });
                let quick = self.quick > 0 && !self.answers;
                self.quick -= u8::from(quick);
                (todo.data, self.asked) = (true, true);
                todo.acknowledge = quick || self.unacknowledged > rules.segment;
                (todo, None)
            }
        }
    }

    /// Takes up to `bytes` bytes of the first segment: the segment, from where, how many, whether it was used
    /// up.
    fn read(&mut self, rules: &Rules, bytes: u32) -> Option<(Rc<Segment>, u32, u32, bool)> {
        let first = self.queue.front_mut()?;
        let (segment, from) = (first.segment.clone(), first.read);
        let part = bytes.min(segment.bytes() - from);
        first.read += part;
        let used_up = first.read == segment.bytes();
        if used_up {
            self.queue.pop_front();
            self.charged -= segment.counts(rules);
        }
        Some((segment, from, part, used_up))
    }

    /// Whether a reader has to acknowledge now.
    fn reader_acknowledges(&self, rules: &Rules) -> bool {
        let (left, open) = (self.window - self.received, rules.open(self.charged));
        let all_read = self.unacknowledged > 0 && self.queue.is_empty() && !self.answers;
        all_read || (open > 0 && open >= 2 * left)
    }

    /// What a packet that is sent now says of what was received.
    fn acknowledgement(&mut self, rules: &Rules) -> (u64, u64) {
        self.unacknowledged = 0;
        self.window = self.window.max(self.received + rules.open(self.charged));
        (self.received, self.window)
    }

    /// The next segment that can be sent: the peer's window takes it, and it is full, or no other that is not
    /// full waits for its acknowledgement (Nagle's rule), or `at_once`.
    fn next_to_send(&mut self, rules: &Rules, at_once: bool) -> Option<(Rc<Segment>, u64, u64)> {
        let first = self.unsent.front()?;
        let (end, is_full) = (self.sent_to + u64::from(first.bytes()), first.bytes() == rules.segment);
        if end > self.peer_window || !(is_full || at_once || self.small_to <= self.acknowledged_to) {
            return None;
        }
        let segment = self.unsent.pop_front()?;
        self.answers |= std::mem::take(&mut self.asked);
        self.sent_to = end;
        self.small_to = if is_full { self.small_to } else { end };
        segment.end.set(end);
        self.sent.push_back(segment.clone());
        let (received, window) = self.acknowledgement(rules);
        Some((segment, received, window))
    }
}

impl End {
    fn peer(&self) -> Rc<End> {
        self.peer.borrow().clone().expect("the connection is open")
    }

    /// Sends `bytes` bytes; waits while the send buffer is full. Part of a system call.
    ///
    /// # Panics
    /// If the connection was closed.
    pub fn send(&self, task: &Task, bytes: u32) {
        self.own();
        task.work(task.kernel.messages.tcp_send);
        let mut left = bytes;
        while left > 0 {
            if self.sock.lock().counts >= self.rules.send_buffer {
                self.disown(task);
                if self.sock.lock().counts >= self.rules.send_buffer {
                    self.writers.wait(task, Waiting { what: "for room in TCP socket", number: self.number });
                }
                self.own();
                continue;
            }
            left -= self.fill(task, left);
            self.send_what_fits(task);
        }
        self.disown(task);
    }

    /// Fills the last segment that is not sent, or a new one, with up to `bytes` bytes. Returns how many.
    fn fill(&self, task: &Task, bytes: u32) -> u32 {
        let rules = &self.rules;
        let last = self.sock.lock().unsent.back().filter(|last| last.bytes() < rules.segment).cloned();
        let (segment, counted) = match last {
            Some(last) => (last.clone(), last.counts(rules)),
            None => {
                let segment = Segment::new(task, rules);
                self.sock.lock().unsent.push_back(segment.clone());
                (segment, 0)
            }
        };
        let filled = segment.fill(task, rules, &mut self.pages.borrow_mut(), bytes);
        self.sock.lock().counts += segment.counts(rules) - counted;
        filled
    }

    /// Reads up to `bytes` bytes; waits until there is one. Returns how many. Part of a system call.
    ///
    /// # Panics
    /// If the connection was closed.
    pub fn receive(&self, task: &Task, bytes: u32) -> u32 {
        self.own();
        task.work(task.kernel.messages.tcp_receive);
        let mut read = 0;
        while read < bytes {
            let first = self.sock.lock().read(&self.rules, bytes - read);
            if let Some((segment, from, part, used_up)) = first {
                segment.read(task, from, part);
                read += part;
                if used_up {
                    match self.rules.leaves {
                        true => self.loopback.put(task, &segment),
                        false => segment.put(task),
                    }
                }
                continue;
            }
            if read > 0 {
                break;
            }
            self.disown(task);
            if self.sock.lock().queue.is_empty() {
                self.readers.wait(task, Waiting { what: "to read from TCP socket", number: self.number });
            }
            self.own();
        }
        if self.sock.lock().reader_acknowledges(&self.rules) {
            self.acknowledge(task);
        }
        self.disown(task);
        read
    }

    /// The running task owns the socket from now on: packets wait for it. It spins while a softirq of another
    /// CPU works on the socket.
    fn own(&self) {
        while std::mem::replace(&mut self.sock.lock().owned, true) {
            Timed::cycles(SPIN);
            Timed::turn();
        }
    }

    /// The owner takes the packets that waited for it, and gives the socket up.
    fn disown(&self, task: &Task) {
        loop {
            let mut state = self.sock.lock();
            let Some(packet) = state.backlog.pop_front() else {
                state.owned = false;
                return;
            };
            let taken = state.take(&self.rules, packet);
            drop(state);
            self.act(task, taken);
        }
    }

    /// A packet arrives, in a softirq. Until 4.13 one that finds a reader asleep wakes it and is left to it.
    pub(crate) fn arrived(&self, task: &Task, packet: Packet) {
        let mut state = self.sock.lock();
        let left = self.rules.reader_works && !(self.readers.is_empty() && state.backlog.is_empty());
        state.backlog.push_back(packet);
        if state.owned || left {
            drop(state);
            self.readers.wake_one(&task.kernel, true);
            return;
        }
        state.owned = true;
        drop(state);
        self.disown(task);
    }

    fn act(&self, task: &Task, (todo, held): (Todo, Option<[Held; 2]>)) {
        for held in held.into_iter().flatten() {
            task.touch(&held, ACK_WRITTEN, Access::Read);
            task.free(held);
        }
        todo.acknowledged.into_iter().for_each(|segment| segment.put(task));
        if todo.data {
            self.readers.wake_one(&task.kernel, true);
        }
        if todo.room {
            self.writers.wake_one(&task.kernel, true);
        }
        self.send_what_fits(task);
        // Data that goes out acknowledges as well.
        if todo.acknowledge && self.sock.lock().unacknowledged > 0 {
            self.acknowledge(task);
        }
    }

    fn send_what_fits(&self, task: &Task) {
        loop {
            let next = self.sock.lock().next_to_send(&self.rules, self.at_once);
            let Some((segment, received, window)) = next else { return };
            let load = Load::Data(segment.clone_it());
            self.loopback.send(task, Packet { to: self.peer(), load, received, window });
        }
    }

    /// Sends a packet that only acknowledges.
    fn acknowledge(&self, task: &Task) {
        task.work(task.kernel.messages.tcp_acknowledge);
        let held = [task.alloc(Object::SkBuff), self.rules.head(task, self.rules.bare_head)];
        held.iter().for_each(|held| task.touch(held, ACK_WRITTEN, Access::Write));
        let (received, window) = self.sock.lock().acknowledgement(&self.rules);
        self.loopback.send(task, Packet { to: self.peer(), load: Load::Nothing(held), received, window });
    }
}
