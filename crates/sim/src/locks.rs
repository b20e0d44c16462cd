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

/// The lock of a process's table of open files.
#[derive(Debug)]
pub enum FileTableLock {}

impl Rank for FileTableLock {
    const LEVEL: u8 = 2;
    const NAME: &'static str = "files->file_lock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}

/// The lock of the list of all open files; until 2.6.35.
#[derive(Debug)]
pub enum OpenFilesLock {}

impl Rank for OpenFilesLock {
    const LEVEL: u8 = 8;
    const NAME: &'static str = "files_lock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}

/// The lock of a name in a folder.
#[derive(Debug)]
pub enum EntryLock {}

impl Rank for EntryLock {
    const LEVEL: u8 = 9;
    const NAME: &'static str = "dentry->d_lock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}

/// The lock of a block device's queue of requests.
#[derive(Debug)]
pub enum QueueLock {}

impl Rank for QueueLock {
    const LEVEL: u8 = 7;
    const NAME: &'static str = "queue_lock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}

/// The lock of an address space.
#[derive(Debug)]
pub enum MmapLock {}

impl Rank for MmapLock {
    const LEVEL: u8 = 1;
    const NAME: &'static str = "mm->mmap_lock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}

/// The lock of a TCP socket.
#[derive(Debug)]
pub enum TcpSocket {}

impl Rank for TcpSocket {
    const LEVEL: u8 = 6;
    const NAME: &'static str = "tcp sk_lock.slock";
    /// Locks outside of the allocators have no counter of their own; no simulated cache is debugged.
    const EVENT: Event = Event::LockDebug;
}
