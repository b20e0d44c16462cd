//! Programs that run on the simulated kernel.
//!
//! | module | program |
//! |---|---|
//! | [`hackbench`] | groups of senders and receivers over sockets or pipes |
//! | [`netperf`] | a client and a server that pass datagrams |

pub mod hackbench;
pub mod netperf;
