//! Another capacity of sheaves, as it is asked for.

use slablab_report::error::{Error, Result};
use slablab_slabs::engines::slub::{Sheaves, SlubPolicy};
use std::fmt;
use std::num::NonZeroU16;

/// The largest factor, that of the engine's knob `sheaf_factor`.
const MOST_FACTOR: u8 = 64;
/// The largest capacity, that of the engine's knob `sheaf_capacity`: a sheaf of two pages.
const MOST_OBJECTS: u16 = 1020;

/// The capacity of all sheaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheafCapacity {
    /// Objects in each sheaf.
    Objects(NonZeroU16),
    /// This many times what the size of an object gives.
    Factor(u8),
}

impl SheafCapacity {
    /// Reads `64`, or `x2`.
    ///
    /// # Errors
    /// Another text, and what was expected.
    pub fn parse(text: &str) -> std::result::Result<SheafCapacity, String> {
        let read = match text.strip_prefix('x') {
            Some(factor) => factor
                .parse()
                .ok()
                .filter(|factor| (1..=MOST_FACTOR).contains(factor))
                .map(SheafCapacity::Factor),
            None => text
                .parse()
                .ok()
                .filter(|count: &NonZeroU16| count.get() <= MOST_OBJECTS)
                .map(SheafCapacity::Objects),
        };
        read.ok_or_else(|| {
            format!(
                "{text}: expected objects in a sheaf, 1 to {MOST_OBJECTS}, or a factor, x1 to x{MOST_FACTOR}"
            )
        })
    }

    /// A policy with this capacity.
    ///
    /// # Errors
    /// A release before 7.0, whose caches have no sheaves by their size.
    pub(super) fn of(self, policy: SlubPolicy) -> Result<SlubPolicy> {
        if policy.sheaves != Sheaves::All {
            let what = format!(
                "{} has no sheaf for every cache, expected 7.0 or later: add --release 7.0",
                policy.release
            );
            return Err(Error::new("--sheaf-capacity", what));
        }
        Ok(match self {
            SheafCapacity::Objects(objects) => SlubPolicy { sheaf_capacity: Some(objects), ..policy },
            SheafCapacity::Factor(factor) => SlubPolicy { sheaf_factor: factor, ..policy },
        })
    }
}

impl fmt::Display for SheafCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SheafCapacity::Objects(objects) => write!(f, "{objects}"),
            SheafCapacity::Factor(factor) => write!(f, "x{factor}"),
        }
    }
}
