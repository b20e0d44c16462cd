//! States out of every kind of input. The dumps of `crates/readers/testdata` are real.

mod bundles;
mod hostile;
mod inputs;
mod joined;
mod live;
mod missing;
pub(crate) mod tars;
