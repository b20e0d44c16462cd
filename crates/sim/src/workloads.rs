//! Programs that run on the simulated kernel.
//!
//! | module | program |
//! |---|---|
//! | [`hackbench`] | groups of senders and receivers over sockets or pipes |

pub mod hackbench;
