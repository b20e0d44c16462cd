//! What to show of call sites, and in which order.

use std::path::PathBuf;

/// What to show, and what to read beside the input.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// One cache alone.
    pub cache: Option<String>,
    /// The order of sites.
    pub sort: Sort,
    /// The symbols of the recorded kernel.
    pub kallsyms: Option<PathBuf>,
    /// Take symbols of another kernel.
    pub force: bool,
    /// An earlier /proc/allocinfo.
    pub since: Option<PathBuf>,
    /// Jiffies in a second.
    pub hz: Option<u64>,
}

/// The order of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Live bytes.
    #[default]
    Live,
    /// Live bytes that nobody requested.
    Waste,
    /// The most bytes at once.
    Peak,
    /// Allocations, and so their rate.
    Allocs,
    /// Bytes allocated in all.
    Bytes,
    /// Lifetime: the longest median first.
    Lifetime,
    /// Frees by other CPUs.
    Remote,
    /// The site's name.
    Site,
    /// The cache's name, then live bytes.
    Cache,
}
