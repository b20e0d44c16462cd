//! The allocators that a kernel tree can have.

use super::tree::Tree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slablab_report::{Error, Result};
use std::path::Path;

/// An allocator of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Allocator {
    /// The default since 2.6.23, and the only one since 6.8.
    Slub,
    /// Until 6.7.
    Slab,
    /// Until 6.3.
    Slob,
}

impl Allocator {
    /// All of them.
    pub const ALL: [Allocator; 3] = [Allocator::Slub, Allocator::Slab, Allocator::Slob];

    /// Its word on a command line, and the stem of its source.
    pub fn word(self) -> &'static str {
        match self {
            Allocator::Slub => "slub",
            Allocator::Slab => "slab",
            Allocator::Slob => "slob",
        }
    }

    /// Its name, which is also that of its option.
    pub fn title(self) -> &'static str {
        match self {
            Allocator::Slub => "SLUB",
            Allocator::Slab => "SLAB",
            Allocator::Slob => "SLOB",
        }
    }

    /// The allocator of a word of a command line.
    pub fn of(word: &str) -> Option<Allocator> {
        Allocator::ALL.into_iter().find(|one| one.word() == word)
    }

    /// Refuses a tree without it.
    pub(super) fn expect_in(self, tree: &Tree, path: &Path) -> Result<()> {
        if tree.has(&self.source()) {
            return Ok(());
        }
        let there = Allocator::ALL.into_iter().filter(|one| tree.has(&one.source()));
        let there: Vec<&str> = there.map(Allocator::word).collect();
        let what = format!("expected a tree with {}, found {}", self.source(), there.join(", "));
        Err(Error::new(path, what))
    }

    fn source(self) -> String {
        format!("mm/{}.c", self.word())
    }

    /// The object whose command line is that of the shim.
    pub(super) fn object(self) -> String {
        format!("mm/{}.o", self.word())
    }

    /// The options that choose it.
    pub(super) fn options(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        Allocator::ALL.into_iter().map(move |one| (one.title(), if one == self { "y" } else { "n" }))
    }
}
