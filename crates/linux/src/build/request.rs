//! What to build, and what that means for a tree.

use super::allocator::Allocator;
use super::built::Origin;
use super::config;
use super::kbuild::FULL;
use super::sources::hex;
use super::tree::Tree;
use sha2::{Digest, Sha256};
use slablab_report::error::At;
use slablab_report::{Error, Limit, Result, read_text_at_most};
use std::path::{Path, PathBuf};

/// The largest configuration that is read.
pub(super) const CONFIG: Limit = Limit::mib("a kernel's configuration", 4);

/// What to build.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder of the kernel tree.
    pub tree: PathBuf,
    /// A `.config`, to which what an image needs is added; `None`: the program's own.
    pub config: Option<PathBuf>,
    /// The name of the build; `None`: that of the tree's folder.
    pub name: Option<String>,
    /// `None`: the one of the configuration, or SLUB.
    pub allocator: Option<Allocator>,
    /// Processes at once; `None`: as many as there are CPUs.
    pub jobs: Option<usize>,
    /// The commit that the tree has now; `None` for a tree of the user's.
    pub origin: Option<Origin>,
}

impl Request {
    /// The usual build of the tree at `tree`.
    pub fn of(tree: &Path) -> Request {
        Request { tree: tree.into(), config: None, name: None, allocator: None, jobs: None, origin: None }
    }
}

/// What a request means for its tree.
pub(crate) struct Asked {
    pub(super) allocator: Allocator,
    pub(super) config: Option<PathBuf>,
    /// The user's options.
    pub(super) user: Option<String>,
}

impl Asked {
    pub(super) fn of(request: &Request, tree: &Tree) -> Result<Asked> {
        let config = request.config.as_ref().map(|path| path.canonicalize().at(path)).transpose()?;
        let user = config.as_ref().map(|path| read_text_at_most(path, CONFIG)).transpose()?;
        let options = user.as_deref().map(config::parse).unwrap_or_default();
        let other = user.as_deref().and_then(config::architecture).filter(|name| *name != "x86");
        if let (Some(path), Some(other)) = (&config, other) {
            return Err(Error::new(path, format!("expected a configuration for x86, found one for {other}")));
        }
        if let Some(path) = config.as_ref().filter(|_| options.is_empty()) {
            return Err(Error::new(path, "expected a kernel's .config, found no line `CONFIG_..=`"));
        }
        let allocator =
            request.allocator.or_else(|| config::allocator_of(&options)).unwrap_or(Allocator::Slub);
        allocator.expect_in(tree, &request.tree)?;
        Ok(Asked { allocator, config, user })
    }

    /// Whether an error is none of the tree's: a full disk, a configuration that cannot be read.
    pub(crate) fn is_of_host(error: &Error) -> bool {
        error.what.contains(FULL) || error.what.contains("line `CONFIG_..=`")
    }

    /// The name of the folder in which kbuild builds it.
    pub(super) fn key(&self, tree: &Tree) -> String {
        let config = self.config.as_deref().unwrap_or(Path::new(""));
        let words = [&*tree.path.to_string_lossy(), self.allocator.word(), &*config.to_string_lossy()];
        hex(&Sha256::digest(words.join("\n")).as_slice()[..8])
    }
}
