//! The scheduler's rules as data, and its properties in a small simulation.

mod balance;
mod eevdf;
mod fair;
mod goodness;
mod micro;
mod script;
mod waking;
