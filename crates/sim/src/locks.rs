//! Locks of the simulated kernel outside of its allocators.

use slablab_platform::{Event, Rank};

/// The lock of a socket's receive queue.
#[derive(Debug)]
pub enum ReceiveQueue {}

impl Rank for ReceiveQueue {
    const LEVEL: u8 = 4;
    const NAME: &'static str = "sk_receive_queue.lock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}

/// A pipe's mutex.
#[derive(Debug)]
pub enum PipeMutex {}

impl Rank for PipeMutex {
    const LEVEL: u8 = 3;
    const NAME: &'static str = "pipe->mutex";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}

/// The lock of a UDP socket's receive queue.
#[derive(Debug)]
pub enum UdpReceiveQueue {}

impl Rank for UdpReceiveQueue {
    const LEVEL: u8 = 5;
    const NAME: &'static str = "udp sk_receive_queue.lock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}
