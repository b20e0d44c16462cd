//! An option of the kernel's configuration, as it is asked for.

use slablab_slabs::accounting::Profiling;
use std::fmt;

/// Another configuration: of memory allocation profiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config(pub Profiling);

/// Options with their values, and what a kernel with them has.
const KNOWN: [(&str, Profiling); 3] = [
    ("MEM_ALLOC_PROFILING=y", Profiling::Off),
    ("MEM_ALLOC_PROFILING=n", Profiling::Absent),
    ("MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT=y", Profiling::On),
];

impl Config {
    /// Reads `MEM_ALLOC_PROFILING=y`, with or without `CONFIG_` before it.
    ///
    /// # Errors
    /// Another option or value, and those there are.
    pub fn parse(text: &str) -> Result<Config, String> {
        let option = text.strip_prefix("CONFIG_").unwrap_or(text);
        let found = KNOWN.iter().find(|(known, _)| *known == option);
        found.map(|(_, profiling)| Config(*profiling)).ok_or_else(|| {
            let known: Vec<&str> = KNOWN.iter().map(|(known, _)| *known).collect();
            format!("{text}: expected one of {}", known.join(", "))
        })
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = KNOWN.iter().find(|(_, profiling)| *profiling == self.0);
        f.write_str(known.map_or("", |(known, _)| known))
    }
}
