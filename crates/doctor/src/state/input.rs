//! What a user says of an input.

use std::path::PathBuf;

/// Where to read, and what the user says about it.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// A directory, a tar in any compression, a slabinfo; `None` for the running machine, `-` for standard
    /// input.
    pub path: Option<PathBuf>,
    /// Bytes in a page, which some inputs do not tell.
    pub page_size: Option<u64>,
    /// CPUs, which some inputs do not tell.
    pub cpus: Option<u32>,
}
