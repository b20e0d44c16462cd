//! What is measured, by name, and the samples of a run.

use std::collections::BTreeMap;
use std::fmt;

/// A way to pass a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// A pair of UNIX stream sockets.
    SocketPair,
    /// A pipe.
    Pipe,
    /// UDP over loopback.
    Udp,
    /// TCP over loopback, without Nagle's delay.
    Tcp,
}

/// One measured quantity: nanoseconds per operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    /// One cycle.
    Cycle,
    /// A dependent load that hits the first level.
    LoadL1,
    /// A dependent load that hits the second level.
    LoadL2,
    /// A dependent load that hits the last level.
    LoadLlc,
    /// A dependent load from memory of a node at this distance.
    LoadMemory(u32),
    /// A dependent load of one line in each of so many pages.
    Pages(u32),
    /// A dependent load of so many adjacent lines.
    Lines(u32),
    /// A compare-exchange of 8 bytes without the lock prefix.
    LocalExchange,
    /// A compare-exchange of 16 bytes without the lock prefix.
    LocalExchange16,
    /// An atomic compare-exchange of 8 bytes.
    LockedExchange,
    /// An atomic compare-exchange of 16 bytes.
    LockedExchange16,
    /// Zeroing 1 KiB in pages that the second level holds.
    ZeroCached,
    /// Zeroing 1 KiB in pages that only memory holds.
    ZeroMemory,
    /// Copying 1 KiB that the second level holds.
    CopyCached,
    /// Copying 1 KiB from memory to memory.
    CopyMemory,
    /// Reading 1 KiB from memory in order.
    ReadMemory,
    /// A load of a line that the second CPU loads and the first CPU wrote.
    Transfer(u16, u16),
    /// Half a round trip of a line that two CPUs write in turn.
    PingPong(u16, u16),
    /// A system call.
    SystemCall,
    /// A page fault that finds its page.
    FaultMapped,
    /// A page fault that gets a zeroed page.
    FaultAnonymous,
    /// One byte into a pipe and out again, by one thread.
    PipeByte,
    /// A byte to another thread on the same CPU and back, by pipes.
    RoundTripThread,
    /// A byte to another process on the same CPU and back, by pipes.
    RoundTripProcess,
    /// A write of one byte into a pipe that no thread waits at.
    WriteAlone,
    /// A write of one byte into a pipe that a thread of the same CPU waits at.
    WakeSame,
    /// A write of one byte into a pipe that a thread of another CPU waits at.
    WakeOther,
    /// A write of one byte into a pipe that a thread of another, busy CPU waits at, which does not preempt.
    WakeBusy,
    /// From before the write to after the read of a thread on another CPU that slept some microseconds.
    LatencyShort,
    /// From before the write to after the read of a thread on another CPU that slept milliseconds.
    LatencyLong,
    /// A memory barrier on all CPUs while no other thread of this process runs.
    BarrierAlone,
    /// A memory barrier on all CPUs while a thread of this process runs on another CPU.
    BarrierOther,
    /// A fork: the parent's time.
    Fork,
    /// From a child's last instruction to the parent's return from its wait.
    Exit,
    /// Sending 100 bytes.
    Send(Transport),
    /// Receiving 100 bytes.
    Receive(Transport),
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::SocketPair => "socketpair",
            Transport::Pipe => "pipe",
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
        })
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Series::Cycle => f.write_str("cycle"),
            Series::LoadL1 => f.write_str("load, L1"),
            Series::LoadL2 => f.write_str("load, L2"),
            Series::LoadLlc => f.write_str("load, last-level cache"),
            Series::LoadMemory(distance) => write!(f, "load, memory at distance {distance}"),
            Series::Pages(count) => write!(f, "load, one line in each of {count} pages"),
            Series::Lines(count) => write!(f, "load, {count} adjacent lines"),
            Series::LocalExchange => f.write_str("exchange, 8 bytes, not locked"),
            Series::LocalExchange16 => f.write_str("exchange, 16 bytes, not locked"),
            Series::LockedExchange => f.write_str("exchange, 8 bytes, locked"),
            Series::LockedExchange16 => f.write_str("exchange, 16 bytes, locked"),
            Series::ZeroCached => f.write_str("zero 1 KiB, L2"),
            Series::ZeroMemory => f.write_str("zero 1 KiB, memory"),
            Series::CopyCached => f.write_str("copy 1 KiB, L2"),
            Series::CopyMemory => f.write_str("copy 1 KiB, memory"),
            Series::ReadMemory => f.write_str("read 1 KiB, memory"),
            Series::Transfer(from, to) => write!(f, "line from CPU {from} to CPU {to}"),
            Series::PingPong(one, other) => write!(f, "ping-pong of CPUs {one} and {other}, half"),
            Series::SystemCall => f.write_str("system call"),
            Series::FaultMapped => f.write_str("page fault, page present"),
            Series::FaultAnonymous => f.write_str("page fault, new page"),
            Series::PipeByte => f.write_str("pipe, 1 byte in and out"),
            Series::RoundTripThread => f.write_str("round trip to a thread, same CPU"),
            Series::RoundTripProcess => f.write_str("round trip to a process, same CPU"),
            Series::WriteAlone => f.write_str("write, no thread waits"),
            Series::WakeSame => f.write_str("write, wakes on the same CPU"),
            Series::WakeOther => f.write_str("write, wakes on another CPU"),
            Series::WakeBusy => f.write_str("write, wakes on another CPU that is busy"),
            Series::LatencyShort => f.write_str("wake-up to running, slept briefly"),
            Series::LatencyLong => f.write_str("wake-up to running, slept 2 ms"),
            Series::BarrierAlone => f.write_str("barrier, no other CPU"),
            Series::BarrierOther => f.write_str("barrier, one other CPU"),
            Series::Fork => f.write_str("fork"),
            Series::Exit => f.write_str("exit to return of wait"),
            Series::Send(transport) => write!(f, "send 100 bytes, {transport}"),
            Series::Receive(transport) => write!(f, "receive 100 bytes, {transport}"),
        }
    }
}

/// The samples of a run: nanoseconds per operation, one for each block.
#[derive(Clone, Debug, Default)]
pub struct Samples(BTreeMap<Series, Vec<f64>>);

/// The middle of a series and its quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter of the blocks took less.
    pub low: f64,
    /// Half of the blocks took less.
    pub median: f64,
    /// Three quarters of the blocks took less.
    pub high: f64,
    /// Blocks.
    pub blocks: usize,
}

impl Samples {
    /// Adds the result of a block. A result that is not a positive number is no result.
    pub fn push(&mut self, series: Series, ns: f64) {
        if ns.is_finite() && ns > 0.0 {
            self.0.entry(series).or_default().push(ns);
        }
    }

    /// The spread of a series; `None` if it was not measured.
    pub fn spread(&self, series: Series) -> Option<Spread> {
        let mut sorted = self.0.get(&series)?.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part| slablab_stats::quantile(&sorted, part);
        Some(Spread { low: at(0.25), median: at(0.5), high: at(0.75), blocks: sorted.len() })
    }

    /// The median of a series; `None` if it was not measured.
    pub fn median(&self, series: Series) -> Option<f64> {
        self.spread(series).map(|spread| spread.median)
    }

    /// The series that were measured, in order.
    pub fn series(&self) -> impl Iterator<Item = Series> + '_ {
        self.0.keys().copied()
    }

    /// The share of all blocks that took more than 1.5 times the median of their series.
    pub fn disturbed(&self) -> f64 {
        let (mut over, mut all) = (0, 0);
        for (series, values) in &self.0 {
            let median = self.median(*series).expect("the series has samples");
            over += values.iter().filter(|ns| **ns > 1.5 * median).count();
            all += values.len();
        }
        over as f64 / all.max(1) as f64
    }
}
