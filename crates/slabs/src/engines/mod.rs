//! The four engines. Each builds on [`crate::engine`] and the modules below it; none names another.

pub mod common;
pub mod slab;
pub mod slob;
pub mod slqb;
pub mod slub;
