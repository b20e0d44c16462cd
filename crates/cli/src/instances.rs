//! Instances of tracing that `slablab record` makes below tracefs: `record` removes those of recorders that
//! were killed, `doctor` names them.

use crate::outcome::Failure;
use slablab_recorder::Owner;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What the names of instances begin with.
pub(crate) const PREFIX: &str = "slablab-";

/// The instances of recorders that are dead, below `root`.
pub(crate) fn dead(root: &Path) -> Vec<PathBuf> {
    let is_dead = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.and_then(|name| Owner::parse(name.strip_prefix(PREFIX)?)).is_some_and(|owner| !owner.is_alive())
    };
    let entries = fs::read_dir(root.join("instances")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_dead).collect();
    found.sort();
    found
}

/// The instances of recorders that were killed: the kernel keeps their buffers, and may still trace.
pub(crate) fn dead_instances() -> Vec<PathBuf> {
    root().map(|root| dead(&root)).unwrap_or_default()
}

/// An error of a file of tracefs, and what to do.
pub(crate) fn told(path: &Path, error: &std::io::Error) -> Failure {
    let hint = if error.kind() == ErrorKind::PermissionDenied { " (try with sudo)" } else { "" };
    format!("{}: {error}{hint}", path.display()).into()
}

/// Where tracefs is.
pub(crate) fn root() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os("SLABLAB_TRACEFS") {
        return Ok(path.into());
    }
    let known = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    for path in known.map(Path::new) {
        match fs::metadata(path.join("events")) {
            Ok(_) => return Ok(path.to_path_buf()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(told(path, &error)),
            Err(_) => {}
        }
    }
    let what = "/sys/kernel/tracing: not mounted: expected tracefs: mount -t tracefs nodev /sys/kernel/tracing \
                (as root)";
    Err(what.into())
}
