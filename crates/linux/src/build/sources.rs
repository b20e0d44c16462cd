//! The files that a build was made of, and whether they are still the same.
//!
//! The first question is about each file's size, time and inode alone: some milliseconds for two thousand
//! files. Contents are read only where one of these differs.

use super::command::{Made, file_of};
use super::tree::Tree;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slablab_report::error::At;
use slablab_report::{Limit, Result};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The largest file of a tree that is read.
const FILE: Limit = Limit::mib("a source of a kernel", 64);

/// What decides how kbuild makes an object, and is in no list of what a compiler read. Some are missing in
/// some releases.
const MAKEFILES: [&str; 6] = [
    "Makefile",
    "arch/x86/Makefile",
    "arch/x86/lib/Makefile",
    "lib/Makefile",
    "lib/math/Makefile",
    "mm/Makefile",
];

/// The same, in the tree's folder of scripts.
const SCRIPTS: [&str; 7] = [
    "Kbuild.include",
    "Makefile.build",
    "Makefile.compiler",
    "Makefile.extrawarn",
    "Makefile.kcsan",
    "Makefile.lib",
    "Makefile.warn",
];

/// Kbuild's list of the files that Kconfig read.
const KCONFIGS: &str = "include/config/auto.conf.cmd";

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    /// In the tree, or absolute.
    path: PathBuf,
    /// Bytes, nanoseconds of the last change, inode.
    stat: (u64, i64, u64),
    digest: String,
}

/// The files of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sources(Vec<Source>);

/// Whether the files are the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All are.
    Same,
    /// Their contents are. These are their sizes, times and inodes now.
    Touched(Sources),
    /// This one is not.
    Changed(PathBuf),
}

impl Sources {
    /// The files that kbuild read for `objects`, and `others`. A file that changed after `begun` may have
    /// been read before: it is kept as one that is never the same.
    ///
    /// # Errors
    /// A file that is gone or cannot be read.
    pub(super) fn of(
        tree: &Tree,
        kbuild: &Path,
        objects: &[&str],
        others: &[PathBuf],
        begun: SystemTime,
    ) -> Result<Sources> {
        let list = fs::read_to_string(kbuild.join(KCONFIGS)).unwrap_or_default();
        let in_list = list.lines().map(|line| line.trim().trim_end_matches('\\').trim());
        let mut names: Vec<String> = in_list
            .filter(|name| name.contains("Kconfig") && !name.starts_with('$'))
            .map(str::to_string)
            .collect();
        for object in objects {
            let path = kbuild.join(file_of(object));
            let text = fs::read_to_string(&path).at(&path)?;
            names.extend(Made::parse(&text, object).map(|made| made.read).unwrap_or_default());
        }
        let scripts = SCRIPTS.iter().map(|name| format!("scripts/{name}"));
        let makefiles = MAKEFILES.iter().map(ToString::to_string).chain(scripts);
        let makefiles = makefiles.filter(|path| tree.has(path)).map(PathBuf::from);
        let mut sources = Sources::default();
        sources.add_paths(tree, others.iter().cloned().chain(makefiles), begun)?;
        sources.add(tree, kbuild, &names, begun)?;
        Ok(sources)
    }

    /// Adds files by the names that a compiler or Kconfig has for them.
    ///
    /// # Errors
    /// A file that is gone or cannot be read.
    pub(super) fn add(
        &mut self,
        tree: &Tree,
        kbuild: &Path,
        names: &[String],
        begun: SystemTime,
    ) -> Result<()> {
        self.add_paths(tree, names.iter().filter_map(|name| relative(tree, kbuild, name)), begun)
    }

    fn add_paths(
        &mut self,
        tree: &Tree,
        paths: impl Iterator<Item = PathBuf>,
        begun: SystemTime,
    ) -> Result<()> {
        let known: BTreeSet<&PathBuf> = self.0.iter().map(|source| &source.path).collect();
        let new: BTreeSet<PathBuf> = paths.filter(|path| !known.contains(path)).collect();
        for path in new {
            self.0.push(Source::read(&tree.path, path, begun)?);
        }
        self.0.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// Whether Kconfig may answer other than it did.
    pub(super) fn have_other_options(&self, tree: &Path) -> bool {
        let decides = |path: &Path| {
            let name = path.to_string_lossy();
            name.contains("Kconfig") || name.contains("Makefile") || name.starts_with("scripts/")
        };
        let kept = Sources(self.0.iter().filter(|source| decides(&source.path)).cloned().collect());
        matches!(kept.look(tree), Found::Changed(_))
    }

    /// Compares with the files of now.
    pub(super) fn look(&self, tree: &Path) -> Found {
        let mut now = self.clone();
        let mut is_same = true;
        for source in &mut now.0 {
            let path = tree.join(&source.path);
            let Ok(stat) = stat(&path) else { return Found::Changed(path) };
            if stat == source.stat {
                continue;
            }
            is_same = false;
            if !digest(&path).is_ok_and(|digest| digest == source.digest) {
                return Found::Changed(path);
            }
            source.stat = stat;
        }
        if is_same { Found::Same } else { Found::Touched(now) }
    }

    /// What names the contents of the files: two trees at different places can have the same. A file outside
    /// of a tree counts by its contents alone.
    pub(super) fn feed(&self, hash: &mut Sha256) {
        for Source { path, digest, .. } in &self.0 {
            let name = if path.is_absolute() { "" } else { &*path.to_string_lossy() };
            hash.update(format!("{name}\0{digest}\n"));
        }
    }

    /// The files that are in the tree.
    pub(super) fn in_tree(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|source| source.path.as_path()).filter(|path| path.is_relative())
    }

    /// The number of files.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

impl Source {
    fn read(tree: &Path, path: PathBuf, begun: SystemTime) -> Result<Source> {
        let whole = tree.join(&path);
        let stat = stat(&whole).at(&whole)?;
        if whole
            .metadata()
            .and_then(|found| found.modified())
            .is_ok_and(|time| (begun..=SystemTime::now()).contains(&time))
        {
            return Ok(Source { path, stat: (0, 0, 0), digest: String::new() });
        }
        Ok(Source { stat, digest: digest(&whole)?, path })
    }
}

/// A name in the tree, or absolute outside of it; `None` for what kbuild made.
fn relative(tree: &Tree, kbuild: &Path, name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if let Ok(inside) = path.strip_prefix(&tree.path) {
        return Some(inside.into());
    }
    // Kconfig's names are in the tree, a compiler's are in the folder of kbuild.
    match path.is_absolute() {
        true => Some(path.into()).filter(|path: &PathBuf| !path.starts_with(kbuild)),
        false => Some(path.into())
            .filter(|path: &PathBuf| !kbuild.join(path).exists() && tree.path.join(path).exists()),
    }
}

fn stat(path: &Path) -> std::io::Result<(u64, i64, u64)> {
    let found = fs::metadata(path)?;
    let ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
    Ok((found.len(), ns, found.ino()))
}

fn digest(path: &Path) -> Result<String> {
    Ok(hex(Sha256::digest(slablab_report::read_at_most(path, FILE)?).as_slice()))
}

/// Bytes as digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}
