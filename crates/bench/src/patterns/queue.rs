//! Memory that one thread allocates and another frees: bounded queues of 1024 places, in bursts of 32. An
//! operation is a message: an allocation, a write of eight bytes, its transfer through the queue, and a free.

use super::{Group, Pattern, Task, Workload, of};
use crate::block::Block;
use crate::clock::Sample;
use crate::subject::{Subject, Subjects, prove};
use crate::threads::{self, Part, Patience};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;

/// The number of places in a queue.
pub(crate) const PLACES: usize = 1024;
/// The number of messages in a burst.
const BURST: usize = 32;

pub(super) fn workloads<S: Subjects>() -> Vec<Workload> {
    vec![
        of::<OneWay<64>, S>(),
        of::<OneWay<512>, S>(),
        of::<TwoWay<64>, S>(),
        of::<TwoWay<512>, S>(),
        of::<Fan<64>, S>(),
        of::<Fan<512>, S>(),
    ]
}

type Message<A, const BYTES: usize> = Block<A, BYTES>;

/// A thread that sends to several queues in turn, receives from one, or does both.
struct Peer<A: Subject, const BYTES: usize> {
    to: Vec<Producer<Message<A, BYTES>>>,
    from: Option<Consumer<Message<A, BYTES>>>,
    /// The bursts to send, and the bursts to receive.
    sends: u64,
    receives: u64,
    /// The last messages of this thread, for the proof of their allocator.
    kept: VecDeque<Message<A, BYTES>>,
}

impl<A: Subject, const BYTES: usize> Peer<A, BYTES> {
    fn new(
        to: Vec<Producer<Message<A, BYTES>>>,
        from: Option<Consumer<Message<A, BYTES>>>,
        sends: u64,
        receives: u64,
    ) -> Box<Self> {
        Box::new(Peer { to, from, sends, receives, kept: VecDeque::new() })
    }

    /// Sends a burst if the queue has room. Returns whether it did.
    fn send(&mut self, burst: u64) -> bool {
        let queue = burst as usize % self.to.len();
        let Ok(room) = self.to[queue].write_chunk_uninit(BURST) else { return false };
        room.fill_from_iter((0..BURST).map(|_| Block::new()));
        true
    }

    /// Receives a burst if the queue has one. Returns whether it did.
    fn receive(&mut self) -> bool {
        let Some(Ok(burst)) = self.from.as_mut().map(|from| from.read_chunk(BURST)) else { return false };
        burst.into_iter().for_each(drop);
        true
    }
}

impl<A: Subject, const BYTES: usize> Part for Peer<A, BYTES> {
    fn prepare(&mut self) {
        if !self.to.is_empty() {
            let blocks: Vec<Message<A, BYTES>> = (0..PLACES).map(|_| Block::new()).collect();
            self.kept.extend(blocks.into_iter().take(BURST));
        }
    }

    fn work(&mut self) -> u64 {
        let (mut sent, mut received) = (0, 0);
        let mut patience = Patience::default();
        while sent < self.sends || received < self.receives {
            let did_send = sent < self.sends && self.send(sent);
            let did_receive = received < self.receives && self.receive();
            sent += u64::from(did_send);
            received += u64::from(did_receive);
            if did_send || did_receive {
                patience = Patience::default();
            } else {
                patience.wait();
            }
        }
        0
    }

    fn finish(&mut self) -> Result<(), String> {
        self.kept.iter().try_for_each(|block| prove::<A>(block.at()))?;
        self.kept.clear();
        Ok(())
    }
}

/// The number of whole bursts in `ops` operations.
fn bursts(ops: u64) -> u64 {
    (ops / BURST as u64).max(1)
}

/// One thread allocates, and another frees.
pub(crate) struct OneWay<const BYTES: usize>;

impl<const BYTES: usize> Pattern for OneWay<BYTES> {
    const NAME: &'static str = if BYTES == 64 { "oneway64" } else { "oneway512" };
    const ABOUT: &'static str = if BYTES == 64 {
        "one thread allocates 64 bytes, another frees"
    } else {
        "one thread allocates 512 bytes, another frees"
    };
    const GROUP: Group = Group::Threads;
    const OPS: u64 = 400_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let bursts = bursts(task.ops);
        let (to, from) = RingBuffer::new(PLACES);
        let parts: Vec<Box<dyn Part>> = vec![
            Peer::<A, BYTES>::new(vec![to], None, bursts, 0),
            Peer::<A, BYTES>::new(vec![], Some(from), 0, bursts),
        ];
        threads::run(bursts * BURST as u64, parts)
    }
}

/// Two threads send each other blocks that they allocated, and free the blocks that they receive.
struct TwoWay<const BYTES: usize>;

impl<const BYTES: usize> Pattern for TwoWay<BYTES> {
    const NAME: &'static str = if BYTES == 64 { "twoway64" } else { "twoway512" };
    const ABOUT: &'static str = if BYTES == 64 {
        "two threads send each other blocks of 64 bytes, and free those they receive"
    } else {
        "two threads send each other blocks of 512 bytes, and free those they receive"
    };
    const GROUP: Group = Group::Threads;
    const OPS: u64 = 400_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let bursts = bursts(task.ops / 2);
        let ((to_right, from_left), (to_left, from_right)) =
            (RingBuffer::new(PLACES), RingBuffer::new(PLACES));
        let parts: Vec<Box<dyn Part>> = vec![
            Peer::<A, BYTES>::new(vec![to_right], Some(from_right), bursts, bursts),
            Peer::<A, BYTES>::new(vec![to_left], Some(from_left), bursts, bursts),
        ];
        threads::run(2 * bursts * BURST as u64, parts)
    }
}

/// One thread allocates, and several threads free.
struct Fan<const BYTES: usize>;

impl<const BYTES: usize> Pattern for Fan<BYTES> {
    const NAME: &'static str = if BYTES == 64 { "fan64" } else { "fan512" };
    const ABOUT: &'static str = if BYTES == 64 {
        "one thread allocates 64 bytes, all other CPUs (at least 2 threads) free"
    } else {
        "one thread allocates 512 bytes, all other CPUs (at least 2 threads) free"
    };
    const GROUP: Group = Group::Threads;
    const OPS: u64 = 400_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let consumers = threads::cpus().len().saturating_sub(1).max(2) as u64;
        let each = bursts(task.ops / consumers);
        let (to, from): (Vec<_>, Vec<_>) = (0..consumers).map(|_| RingBuffer::new(PLACES)).unzip();
        let mut parts: Vec<Box<dyn Part>> = vec![Peer::<A, BYTES>::new(to, None, each * consumers, 0)];
        parts.extend(
            from.into_iter().map(|from| Peer::<A, BYTES>::new(vec![], Some(from), 0, each) as Box<dyn Part>),
        );
        threads::run(each * consumers * BURST as u64, parts)
    }
}
