//! Decoders of zstd and xz: the C libraries, and decoders in Rust where no C library can go.
//!
//! Both modules have the same names:
//!
//! | name | what |
//! |---|---|
//! | `Zstd`, `zstd` | frames one after the other; windows up to a size |
//! | `Xz`, `xz` | streams one after the other; memory up to a size |
//! | `Pieces` | one frame of zstd, piece by piece |

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(target_family = "wasm")]
mod pure;

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::{Pieces, Xz, Zstd, xz, zstd};
#[cfg(target_family = "wasm")]
pub(crate) use pure::{Pieces, Xz, Zstd, xz, zstd};
