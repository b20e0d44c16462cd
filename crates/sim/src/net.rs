//! Sockets and pipes between tasks.
//!
//! | module | contents |
//! |---|---|
//! | [`unix`], [`udp`], [`tcp`] | sockets, their buffers and queues |
//! | [`pipe`] | pipes |

pub mod pipe;
pub mod tcp;
pub mod udp;
pub mod unix;
