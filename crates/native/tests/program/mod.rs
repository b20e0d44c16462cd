//! The native world as these tests use it. `unsafe`: makes the promise of [`Trusted`].

use slablab_native::Trusted;

/// A test program.
#[derive(Debug)]
pub(crate) enum Program {}

// SAFETY: the tests are one program. They call the contract as an engine does: with addresses in blocks that
// they mapped, or of objects that an engine allocated for them.
#[allow(unsafe_code, reason = "the promise of a program")]
unsafe impl Trusted for Program {}

/// The native world, over which the tests' engines run.
pub(crate) type Native = slablab_native::Native<Program>;
