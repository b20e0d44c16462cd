//! What a machine's parts cost: data for the level that has clocks. No behaviour.
//!
//! Times are whole picoseconds, sizes bytes, distances those of the firmware's table (10 is a node's
//! distance to itself).

/// A duration or a point in time, picoseconds. 2^64 of them are 213 days.
pub type Ps = u64;

/// Which CPUs share what, and what the parts cost.
///
/// `core`, `llc` and `socket` have one entry for each CPU. Two CPUs with equal entries share the part: the
/// core (SMT siblings), the last-level cache, the socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// The core of each CPU.
    pub core: Vec<u16>,
    /// The last-level cache of each CPU.
    pub llc: Vec<u16>,
    /// The socket of each CPU.
    pub socket: Vec<u16>,
    /// The prices.
    pub costs: Costs,
}

/// Prices and sizes of a machine. The default is a machine on which nothing takes time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// One cycle of a CPU.
    pub cycle: Ps,
    /// Bytes of a cache line, a power of two; 0 means 64.
    pub line_bytes: u32,
    /// Bytes of a core's first-level data cache.
    pub l1_bytes: u64,
    /// Bytes of a core's second-level cache.
    pub l2_bytes: u64,
    /// Bytes of a last-level cache.
    pub llc_bytes: u64,
    /// A load that hits the first level.
    pub l1: Ps,
    /// A load that hits the second level.
    pub l2: Ps,
    /// A load that hits the last level.
    pub llc: Ps,
    /// A line last written by the SMT sibling.
    pub transfer_core: Ps,
    /// A line last written by a CPU of the same last-level cache.
    pub transfer_llc: Ps,
    /// A line last written by a CPU of another last-level cache: node distance and price, distances
    /// ascending. Distance 10 is another last-level cache of the same node.
    pub transfer: Vec<(u32, Ps)>,
    /// A line from memory: distance of the memory's node and price, distances ascending.
    pub memory: Vec<(u32, Ps)>,
    /// Lines that a core fetches at the same time: its line fill buffers. 0 if nobody says: 4 lines of one
    /// object, and no two objects.
    pub misses_at_once: u32,
    /// Instructions that a core has under way at the same time: its reorder buffer. 0 for a core without
    /// one, and if nobody says.
    pub window: u32,
    /// A compare-exchange that only this CPU sees (no lock prefix; on machines without one, the pair of
    /// load-reserve and store-conditional). The line is in the first level.
    pub local_exchange: Ps,
    /// An atomic compare-exchange of 8 bytes on a line that this CPU owns.
    pub locked_exchange: Ps,
    /// An atomic compare-exchange of 16 bytes on a line that this CPU owns.
    pub exchange16: Ps,
    /// Interrupts off and on again.
    pub interrupts: Ps,
    /// Zeroing 1 KiB.
    pub zero_kib: Ps,
    /// Copying 1 KiB that is in a cache.
    pub copy_kib: Ps,
    /// An access to a page that the TLB does not hold.
    pub tlb_miss: Ps,
    /// Pages that a core's TLB holds.
    pub tlb_entries: u32,
    /// Bytes of a page of the kernel's direct map; 0 means 2 MiB.
    pub tlb_page_bytes: u64,
    /// How a spinlock passes to its next holder.
    pub handover: Handover,
    /// A system call that does nothing, both ways.
    pub syscall: Ps,
    /// A switch to a thread of another process.
    pub switch_mm: Ps,
    /// A switch to a thread of the same process.
    pub switch_thread: Ps,
    /// A wake-up of a thread on the waker's CPU: the waker's part.
    pub wake_local: Ps,
    /// A wake-up of a thread on another CPU: the waker's part.
    pub wake_remote: Ps,
    /// An interrupt to another CPU: from sending it to its handler.
    pub ipi: Ps,
    /// The sender's part of an interrupt to another CPU. 0 if nobody measured it: without a hypervisor below
    /// it is small.
    pub ipi_send: Ps,
    /// How long an idle CPU takes to leave its idle state.
    pub idle_exit: Ps,
    /// A page fault that finds its page, without zeroing.
    pub page_fault: Ps,
    /// A fork, of the parent's time.
    pub fork: Ps,
    /// The end of a process.
    pub exit: Ps,
    /// Sending 100 bytes over a pair of UNIX stream sockets, alone in one thread, with its system call; 0 if
    /// nobody measured it, as with all times of messages below.
    pub socket_send: Ps,
    /// Receiving them.
    pub socket_receive: Ps,
    /// Writing 100 bytes to a pipe, alone in one thread.
    pub pipe_write: Ps,
    /// Reading them.
    pub pipe_read: Ps,
    /// Sending 100 bytes over UDP and loopback, alone in one thread.
    pub udp_send: Ps,
    /// Receiving them.
    pub udp_receive: Ps,
    /// Sending 100 bytes over TCP and loopback, alone in one thread.
    pub tcp_send: Ps,
    /// Receiving them.
    pub tcp_receive: Ps,
    /// The kernel under which the times of messages were measured: 6 and 18 are 6.18.
    pub messages_release: Option<(u16, u16)>,
}

/// How a spinlock passes to its next holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// All waiters read one word and race for it: unfair, and dearer with each waiter.
    TestAndSet,
    /// The waiters have an order but read one word: fair, and dearer with each waiter.
    Ticket,
    /// Each waiter reads a word of its own: fair, one transfer at any number of waiters.
    #[default]
    Queued,
}
