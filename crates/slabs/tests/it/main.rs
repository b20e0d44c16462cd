//! One test program for the engines on the modelled machine, and for their rules against real kernels.

mod debugged;
mod first_try;
mod heap;
mod kmalloc;
mod knobs;
mod layout;
mod map;
mod merge;
mod orders;
mod preset;
mod published;
mod sheaves;
mod slab;
mod slob;
mod slqb;
mod truth;
mod wrapped;
