//! Cycles of sends and receives beside what the model charges for them.
//!
//! Assumed, unless the machine's file has the times of one thread alone: then the module `anchors` computes
//! them.

/// Cycles of one operation each, beside system call, allocator, copy, lines and wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// A send over a UNIX socket.
    pub socket_send: u64,
    /// A receive over a UNIX socket.
    pub socket_receive: u64,
    /// A write to a pipe.
    pub pipe_write: u64,
    /// A read from a pipe.
    pub pipe_read: u64,
    /// A send over UDP until the device.
    pub udp_send: u64,
    /// The softirq that delivers a datagram.
    pub udp_softirq: u64,
    /// A receive over UDP.
    pub udp_receive: u64,
    /// A send over TCP until the device.
    pub tcp_send: u64,
    /// The softirq that delivers a packet of TCP.
    pub tcp_softirq: u64,
    /// A receive over TCP.
    pub tcp_receive: u64,
    /// An acknowledgement without data until the device.
    pub tcp_acknowledge: u64,
}

impl Messages {
    /// Assumed: a 100-byte write and read over a socket pair take 300 to 500 ns each on CPUs of 3 to 4 GHz.
    pub const ASSUMED: Messages = Messages {
        socket_send: 600,
        socket_receive: 500,
        pipe_write: 300,
        pipe_read: 250,
        udp_send: 900,
        udp_softirq: 700,
        udp_receive: 500,
        tcp_send: 1_200,
        tcp_softirq: 1_000,
        tcp_receive: 700,
        tcp_acknowledge: 500,
    };

    /// These with so many percent of TCP's cycles.
    #[must_use]
    pub fn with_tcp(self, percent: u32) -> Messages {
        let of = |cycles: u64| cycles * u64::from(percent) / 100;
        Messages {
            tcp_send: of(self.tcp_send),
            tcp_softirq: of(self.tcp_softirq),
            tcp_receive: of(self.tcp_receive),
            tcp_acknowledge: of(self.tcp_acknowledge),
            ..self
        }
    }
}
