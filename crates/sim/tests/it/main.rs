//! The scheduler's rules as data, and its properties in a small simulation; the simulated kernel and
//! hackbench.

mod balance;
mod eevdf;
mod fair;
mod goodness;
mod hackbench;
mod kernel;
mod machine;
mod micro;
mod script;
mod waking;
