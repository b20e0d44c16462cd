//! What is worth saying of a machine that was measured.

pub(crate) mod caches;
pub(crate) mod climbing;
pub mod finding;
pub(crate) mod machine;
pub(crate) mod pasted;
pub(crate) mod trust;
