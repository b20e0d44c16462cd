//! SLQB.
mod policy;
pub use policy::SlqbPolicy;
