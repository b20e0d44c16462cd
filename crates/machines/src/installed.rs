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

installed! {
    "tigerton",
    "barcelona",
    "stoakley",
    "x86-2way",
    "rx8640-clm100",
    "rx8640-clm0",
    "i7-4790k",
    "arm224",
    "power16",
    "power160",
    "milan192",
    "icelake128",
    "graviton3",
    "spr224",
    "turin512",
    "ryzen5700",
    "numa8",
    "numa8-full",
    "laptop",
    "kulesa-2001",
    "vm-guest",
}

/// Reads a machine: an installed one by its name, or a file. A name with a slash or a dot is a path.
///
/// # Errors
/// What cannot be read or understood, with its line; a name that is neither, with the nearest names.
pub fn find(given: &Path) -> Result<MachineFile> {
    let name = given.to_str().unwrap_or_default();
    if given.exists() || name.is_empty() || name.contains(['/', '.']) {
        return file::read(given);
    }
    MachineFile::parse(text_of(name)?).at(given)
}

/// The file of an installed machine.
///
/// # Errors
/// A name that no installed machine has, with the nearest ones.
pub fn text_of(name: &str) -> Result<&'static str> {
    let found = INSTALLED.iter().find(|installed| installed.name == name);
    found.map(|installed| installed.text).ok_or_else(|| {
        let near = nearest(name, INSTALLED.iter().map(|installed| installed.name), 3);
        let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
        Error::new(name, format!("no file and no installed machine (slablab list machines lists them){near}"))
    })
}
