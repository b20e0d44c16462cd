//! A dump that is a directory: unpacked, or `/` of the running machine.
//!
//! Only the files a dump wants are opened. A file that vanishes between listing and reading, or may not be read, is left
//! out: sysfs changes while it is walked, and most of it is for root only.

use crate::error::{At, Error, Result};
use slablab_kernel::bundle::{Dump, DumpBuilder, WANTED};
use std::path::Path;

/// Reads the dump below `root`.
///
/// # Errors
/// A directory without any file of a dump, or a file that is not as the kernel writes it.
pub(crate) fn read(root: &Path) -> Result<Dump> {
    let mut builder = DumpBuilder::new();
    let mut unreadable: Option<String> = None;
    for wanted in WANTED {
        let parts: Vec<&str> = wanted.split('/').collect();
        walk(root, "", &parts, &mut |name, path| {
            if path.is_symlink() {
                let target = std::fs::read_link(path).unwrap_or_default();
                return builder.link(name, &target.to_string_lossy()).at(root);
            }
            match std::fs::read(path) {
                Ok(content) => builder.file(name, &content).at(root),
                Err(error) => {
                    unreadable.get_or_insert_with(|| format!("{}: {error}", path.display()));
                    Ok(())
                }
            }
        })?;
    }
    let dump = builder.finish().at(root)?;
    match (dump.slabinfo.is_none() && dump.caches.is_empty(), unreadable) {
        (true, Some(first)) => {
            Err(Error::new(root, format!("nothing of slabs could be read; {first} (try with sudo)")))
        }
        _ => Ok(dump),
    }
}

/// Calls `found` for every path that fits `parts`, in the order of names. Links are not followed, but reported.
fn walk(
    at: &Path,
    name: &str,
    parts: &[&str],
    found: &mut dyn FnMut(&str, &Path) -> Result<()>,
) -> Result<()> {
    let Some((part, rest)) = parts.split_first() else {
        return if at.is_file() { found(name, at) } else { Ok(()) };
    };
    let names: Vec<String> = match *part {
        "*" => {
            let Ok(entries) = std::fs::read_dir(at) else { return Ok(()) };
            let mut names: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
        part => vec![part.to_string()],
    };
    for child in names {
        let path = at.join(&child);
        let name = if name.is_empty() { child } else { format!("{name}/{child}") };
        if *part == "*" && path.is_symlink() {
            found(&name, &path)?;
        } else if path.exists() {
            walk(&path, &name, rest, found)?;
        }
    }
    Ok(())
}
