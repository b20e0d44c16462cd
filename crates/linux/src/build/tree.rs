//! A kernel tree: whether it can be built, and what it has.

use slablab_report::error::At;
use slablab_report::{Error, Limit, Result, read_text_at_most};
use std::path::{Path, PathBuf};

/// The largest Makefile that is read.
const MAKEFILE: Limit = Limit::mib("a kernel's Makefile", 4);

/// What is in a tree that was built in place: kbuild refuses to build it elsewhere.
const IN_PLACE: [&str; 3] = [".config", "include/config", "arch/x86/include/generated"];

/// A kernel tree that kbuild can build in another folder.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Its folder without links.
    pub(super) path: PathBuf,
    /// Version, patch level, sublevel.
    pub(super) version: [u32; 3],
}

impl Tree {
    /// Looks at the tree at `path`.
    ///
    /// # Errors
    /// What is no kernel tree; a tree without x86-64; a tree that was built in place; a path that kbuild
    /// cannot have.
    pub(super) fn open(path: &Path) -> Result<Tree> {
        if !cfg!(target_arch = "x86_64") {
            let what = "expected an x86-64 host: the image runs in this process";
            return Err(Error::new(path, what));
        }
        let whole = path.canonicalize().at(path)?;
        if !whole.is_dir() {
            return Err(Error::new(path, "expected the folder of a kernel tree, found a file"));
        }
        let makefile = whole.join("Makefile");
        let lacks = ["Makefile", "Kconfig", "mm", "include/linux", "scripts/kconfig"]
            .into_iter()
            .find(|part| !whole.join(part).exists());
        if let Some(part) = lacks {
            let what = format!("expected a kernel tree, found a folder without {part}");
            return Err(Error::new(path, what));
        }
        let version = version(&read_text_at_most(&makefile, MAKEFILE)?).ok_or_else(|| {
            Error::new(&makefile, "expected a kernel's Makefile, found no VERSION and PATCHLEVEL")
        })?;
        if !whole.join("arch/x86/Kconfig").exists() {
            return Err(Error::new(path, "expected a kernel tree with arch/x86, which is not there"));
        }
        expect_path(&whole, "move the tree, or mount it elsewhere (`mount --bind`)")?;
        if let Some(part) = IN_PLACE.iter().find(|part| whole.join(part).exists()) {
            let what = format!(
                "this tree was built in place ({part} is there), and kbuild then refuses to build it elsewhere: \
                 save .config, and run `make mrproper` in the tree; or take another checkout (`git worktree add`)"
            );
            return Err(Error::new(path, what));
        }
        Ok(Tree { path: whole, version })
    }

    /// Whether the tree has this file.
    pub(super) fn has(&self, path: &str) -> bool {
        self.path.join(path).exists()
    }

    /// Those of `objects` that have a C or an assembler source.
    pub(super) fn with_source<'a>(&self, objects: &[&'a str]) -> Vec<&'a str> {
        let has = |object: &&&str| {
            let stem = object.trim_end_matches(".o");
            ["c", "S"].iter().any(|end| self.has(&format!("{stem}.{end}")))
        };
        objects.iter().filter(has).copied().collect()
    }
}

/// Refuses a folder whose path has characters that kbuild cannot have. A symbolic link does not help: kbuild
/// follows it.
///
/// # Errors
/// Such a path, with `instead`, what to do.
pub(super) fn expect_path(path: &Path, instead: &str) -> Result<()> {
    let text = path.to_str();
    if text.is_none_or(|text| text.contains([' ', '\t', '\n', ':', '\'', '"', '$', '#', '%', '\\', ';'])) {
        let what = "expected a path without spaces, colons, quotes, $, #, % and ;, which kbuild cannot have";
        return Err(Error::new(path, format!("{what}: {instead}")));
    }
    Ok(())
}

/// The numbers at the begin of a kernel's Makefile.
fn version(makefile: &str) -> Option<[u32; 3]> {
    let number = |name: &str| {
        let mut lines = makefile.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='))?;
        value.trim().parse::<u32>().ok()
    };
    Some([number("VERSION")?, number("PATCHLEVEL")?, number("SUBLEVEL").unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_makefile_says_its_version() {
        let check = |text: &str, expected: Option<[u32; 3]>| assert_eq!(version(text), expected, "{text}");
        check("# A comment\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\n", Some([6, 1, 192]));
        check("VERSION=7\nPATCHLEVEL=2\n", Some([7, 2, 0]));
        check("VERSION = 6.1\nPATCHLEVEL = 1\n", None);
        check("all:\n\tmake\n", None);
    }
}
