//! Builds of kernel trees: what is refused, what is kept. Tests of a real tree need the path of one in
//! `SLABLAB_LINUX_TREE`; without it they pass and test nothing.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod allocators;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod classic;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod costs;
mod history;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod parameters;
mod refused;
mod tree;

use std::path::{Path, PathBuf};

/// A new folder of a test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("linux-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder");
    path
}
