//! The tests of the engines on the modelled machine, and of their rules against real kernels, as one program.

mod debugged;
mod first_try;
mod kmalloc;
mod layout;
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
