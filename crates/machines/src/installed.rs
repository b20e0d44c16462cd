//! The machines that come with the program.

use crate::file::{self, MachineFile};
use slablab_report::error::{At, Error, Result};
use slablab_report::nearest::nearest;
use std::path::Path;

/// A machine file that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The name to ask for.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! installed {
    ($($name:literal,)*) => {
        /// All machines that come with the program, by year.
        pub const INSTALLED: &[Installed] =
            &[$(Installed { name: $name, text: include_str!(concat!("../data/", $name, ".toml")) },)*];
    };
}

installed! {}

/// Reads a machine: an installed one by its name, or a file. A name with a slash or a dot is a path.
///
/// # Errors
/// What cannot be read or understood, with its line; a name that is neither, with the nearest names.
pub fn find(given: &Path) -> Result<MachineFile> {
    let name = given.to_str().unwrap_or_default();
    if let Some(installed) = INSTALLED.iter().find(|installed| installed.name == name) {
        return MachineFile::parse(installed.text).at(given);
    }
    if given.exists() || name.is_empty() || name.contains(['/', '.']) {
        return file::read(given);
    }
    let near = nearest(name, INSTALLED.iter().map(|installed| installed.name), 3);
    let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
    Err(Error::new(given, format!("no such file, and no machine of this name (slablab machines){near}")))
}
