//! A build that is kept.

use super::allocator::Allocator;
use super::config::Change;
use super::tools::Tools;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of the file: one that is read by no other program.
pub(super) const FORMAT: u32 = 1;

/// Two images of an allocator of a kernel tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Built {
    pub(super) format: u32,
    /// Its folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The name that it is called by.
    pub name: String,
    /// The folder of the tree.
    pub tree: PathBuf,
    /// As `uname -r` says it, `6.1.192`.
    pub release: String,
    /// Version, patch level, sublevel.
    pub version: [u32; 3],
    /// The allocator.
    pub allocator: Allocator,
    /// The user's configuration; `None` if it is the program's own.
    pub config: Option<PathBuf>,
    /// What of the user's configuration has another value in the image.
    pub changes: Vec<Change>,
    /// Names the contents of all sources, configuration, compiler, linker and shim: builds with the same are
    /// the same.
    pub digest: String,
    /// Undefined functions: a call ends the run, and names the function.
    pub functions: Vec<String>,
    /// Undefined data, which is zeros.
    pub data: Vec<String>,
    /// Each part of the build and its seconds.
    pub parts: Vec<(String, f64)>,
    /// Seconds of the build.
    pub seconds: f64,
    /// Bytes of both images.
    pub bytes: u64,
    /// Files of the tree that were read.
    pub sources: usize,
    /// When it was built, in seconds since 1970.
    pub time: u64,
    /// Whether the call that returned it built it.
    #[serde(skip)]
    pub is_new: bool,
    /// The folder in which kbuild built it, in the cache.
    pub(super) kbuild: String,
    /// The commit that it is of; `None` for a tree of the user's.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// What the program gave to it.
    pub(super) recipe: String,
    pub(super) tools: Tools,
}

impl Built {
    /// The image without reports of accesses.
    pub fn plain(&self) -> PathBuf {
        self.folder.join("plain.elf")
    }

    /// The image that reports its accesses to memory.
    pub fn instrumented(&self) -> PathBuf {
        self.folder.join("instrumented.elf")
    }

    /// The first line of the compiler's `--version`.
    pub fn compiler(&self) -> &str {
        &self.tools.compiler
    }

    /// The first line of the linker's `--version`.
    pub fn linker(&self) -> &str {
        &self.tools.linker
    }

    /// Whether it was asked for in this way.
    pub(super) fn is_of(&self, tree: &Path, allocator: Allocator, config: Option<&Path>) -> bool {
        self.tree == tree && self.allocator == allocator && self.config.as_deref() == config
    }
}

/// The commit that a build is of. Its tree has other files by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// All digits of the commit, or of the tree of a commit with a patch.
    pub id: String,
    /// The first line of its message, or the patch.
    pub title: String,
    /// The folder of the user's tree.
    pub repository: PathBuf,
}

/// A build of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Entry {
    /// Its name: `--engine linux:NAME` runs it.
    pub name: String,
    /// The release of its tree.
    pub release: String,
    /// The allocator.
    pub allocator: Allocator,
    /// The folder of the tree.
    pub tree: String,
    /// Bytes of its folder.
    pub bytes: u64,
    /// Why it is no longer what the tree has; `null` if it is up to date.
    pub outdated: Option<String>,
    /// When it was built, in seconds since 1970.
    pub time: u64,
    /// The digest of everything that it was made of.
    pub digest: String,
}
