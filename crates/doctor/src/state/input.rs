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

/// Bytes of a page, perhaps in K, of the sizes Linux runs with.
///
/// # Errors
/// Another text; the error says what is expected.
pub fn page_size(text: &str) -> std::result::Result<u64, String> {
    let error = || format!("expected 4K, 8K, 16K, .. or 256K, found {text:?}");
    let bytes = match text.strip_suffix(['K', 'k']) {
        Some(number) => number.parse::<u64>().ok().and_then(|number| number.checked_mul(1024)),
        None => text.parse().ok(),
    };
    bytes.filter(|bytes| bytes.is_power_of_two() && (12..=18).contains(&bytes.ilog2())).ok_or_else(error)
}
