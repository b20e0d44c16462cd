//! What may be put around an engine, and how it is written.

use crate::preset::Release;
use crate::zones::Letters;

/// What is put around a cache. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrap {
    /// What is checked (`slub_debug`).
    pub letters: Letters,
    /// Bytes of freed objects that each cache holds back.
    pub quarantine_bytes: u64,
    /// New slabs hand their objects out in an order that nobody can guess.
    pub shuffled: bool,
    /// Objects are zeroed when they are freed (`init_on_free`).
    pub zero_on_free: bool,
    /// Objects are zeroed when they are allocated (`init_on_alloc`).
    pub zero_on_alloc: bool,
}

/// An engine's policies, and what is around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around<T> {
    /// The engine's.
    pub engine: T,
    /// What is around it.
    pub wrap: Wrap,
    /// Whose sizes debugging has.
    pub release: Release,
}
