//! What a disk consists of: data that machine files state and a simulation works with.
//!
//! Times are picoseconds, rates bytes a second, addresses sectors of 512 bytes. A data sheet's megabyte is
//! 10^6 bytes.

use crate::hardware::Ps;

/// Bytes of a sector, as block devices count.
pub const SECTOR: u64 = 512;
const SECOND: u128 = 1_000_000_000_000;

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Bytes that it holds.
    pub bytes: u64,
    /// Commands that it takes at a time: its tags.
    pub depth: u32,
    /// Whether the kernel takes it for a rotating one (`queue/rotational`): then it plugs the queue, and
    /// reads whole clusters of swap.
    pub rotational: bool,
    /// How it works.
    pub kind: DiskKind,
}

/// The kinds of disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// Platters and an arm.
    Rotating(Rotating),
    /// A memory card that erases units of megabytes.
    Card(Card),
    /// Flash with many channels (NVMe).
    Flash(Flash),
    /// A time for a request and for its bytes: a device that a host emulates.
    Fixed(Fixed),
}

/// A disk with platters and an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotating {
    /// Time of a turn.
    pub turn: Ps,
    /// Surfaces: tracks of a cylinder.
    pub heads: u32,
    /// Seek to the next cylinder, over a third of all (the average of random seeks), over all.
    pub seek_track: Ps,
    /// Seek over a third of all cylinders: the mean of seeks between random places.
    pub seek_average: Ps,
    /// Seek over all cylinders.
    pub seek_full: Ps,
    /// What a seek to a write takes longer.
    pub seek_write: Ps,
    /// Bytes a second that the outermost tracks sustain.
    pub outer: u64,
    /// Bytes a second that the innermost tracks sustain.
    pub inner: u64,
    /// Bytes a second between host and the disk's buffer.
    pub interface: u64,
    /// Time of a command beside seek, rotation and data.
    pub overhead: Ps,
    /// Bytes that the disk reads ahead into its buffer after a read; 0: none.
    pub ahead: u64,
    /// Bytes of writes that it acknowledges before they are on the platters; 0: the write cache is off.
    pub write_cache: u64,
}

/// A memory card, which writes fast only in order inside a few open units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Latency of a read.
    pub read: Ps,
    /// Latency of a write.
    pub write: Ps,
    /// Bytes a second of reads.
    pub read_rate: u64,
    /// Bytes a second of sequential writes.
    pub write_rate: u64,
    /// Bytes of an erase unit.
    pub unit: u64,
    /// Units that may be open at a time.
    pub open_units: u32,
    /// Time to copy a unit that is closed before it is full, or written out of order.
    pub unit_copy: Ps,
}

/// Flash with many channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    /// Latency of a read.
    pub read: Ps,
    /// Latency of a write.
    pub write: Ps,
    /// Bytes a second that all reads share.
    pub read_rate: u64,
    /// Bytes a second that all writes share.
    pub write_rate: u64,
}

/// A device with a time for each request and for its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Time of a request beside its data.
    pub request: Ps,
    /// Time of each KiB.
    pub kib: Ps,
    /// Bytes a second that writes are held to; `None`: no limit.
    pub write_limit: Option<u64>,
}

/// Time of `bytes` bytes at `rate` bytes a second, rounded down; 0 for a rate of 0.
pub fn time_of(bytes: u64, rate: u64) -> Ps {
    (u128::from(bytes) * SECOND).checked_div(u128::from(rate)).unwrap_or(0) as Ps
}

/// Bytes in `time` at `rate` bytes a second, rounded down.
pub fn bytes_in(time: Ps, rate: u64) -> u64 {
    (u128::from(time) * u128::from(rate) / SECOND) as u64
}

impl Disk {
    /// Sectors that it holds.
    pub fn sectors(&self) -> u64 {
        self.bytes / SECTOR
    }
}
