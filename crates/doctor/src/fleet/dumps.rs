//! Which files and folders are dumps.

use slablab_report::error::{At, Result};
use std::path::{Path, PathBuf};

/// What the root of a machine's files has.
const ROOT: [&str; 2] = ["proc", "sys"];
/// Folders in folders that are looked into.
const DEPTH: usize = 4;

/// The dumps of these paths, in their order: a file is one, and so is a folder with the files of a machine.
/// Of another folder, everything in it, by name.
///
/// # Errors
/// A folder that cannot be read.
pub fn dumps(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        add(path, DEPTH, &mut found)?;
    }
    Ok(found)
}

fn add(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    let is_dump = !path.is_dir() || ROOT.iter().any(|name| path.join(name).is_dir());
    if is_dump || depth == 0 {
        found.push(path.to_path_buf());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).at(path)?;
    let mut below = entries.map(|entry| Ok(entry.at(path)?.path())).collect::<Result<Vec<_>>>()?;
    below.sort();
    let is_hidden =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    below.retain(|path| !is_hidden(path));
    below.iter().try_for_each(|path| add(path, depth - 1, found))
}
