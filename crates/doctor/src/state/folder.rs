//! A dump that is a directory: unpacked, or `/` of the running machine.
//!
//! Only the files a dump wants are opened. A file that vanishes between listing and reading, or may not be
//! read, is left out and told: sysfs changes while it is walked, and most of it is for root only.

use rayon::prelude::*;
use slablab_readers::bundle::{Dump, DumpBuilder, WANTED, fits};
use slablab_readers::cgroups;
use slablab_report::error::{At, Error, Result};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Attributes that only do something when written.
const WRITE_ONLY: [&str; 2] = ["shrink", "validate"];

/// Files of a directory, by their names in a dump.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// Those outside of sysfs' slabs, which are read first: a walk through sysfs allocates slabs itself.
    pub(super) machine: Vec<(String, PathBuf)>,
    /// /sys/kernel/slab/*/*.
    pub(super) slabs: Vec<(String, PathBuf)>,
    /// Links, and where they point.
    pub(super) links: Vec<(String, String)>,
    /// What could not be read, and why.
    pub(super) refused: Vec<(String, io::Error)>,
    /// The files read, with their content, if the caller saves them.
    pub(super) kept: Option<Vec<(String, Vec<u8>)>>,
    /// A directory of a cache has one with the caches of cgroups in it.
    cgroups: Option<String>,
}

/// Reads the dump below `root`.
///
/// # Errors
/// A directory without any file of a dump, or a file that is not as the kernel writes it.
pub fn read(root: &Path) -> Result<Dump> {
    let mut folder = Folder::list(root, &[]);
    let builder = folder.take(root)?;
    folder.finish(root, builder)
}

/// Whether [`read`] reads the file at `path`, which counts from the directory of the dump.
pub fn reads(path: &Path) -> bool {
    path.to_str().is_some_and(DumpBuilder::wants)
}

impl Folder {
    /// Lists the files below `root`, or below its only directory that has any, without those in `skip`.
    pub(super) fn list(root: &Path, skip: &[&str]) -> Folder {
        let root = &top(root);
        let mut folder = Folder::default();
        let release = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
        let own = format!("boot/config-{}", release.trim());
        for wanted in WANTED.iter().filter(|wanted| !skip.contains(wanted)) {
            // One machine has the configurations of all its kernels: that of the running one will do.
            let wanted =
                if *wanted == "boot/config-*" && !release.is_empty() { own.as_str() } else { wanted };
            let parts: Vec<&str> = wanted.split('/').collect();
            folder.walk(root, "", &parts);
        }
        folder.walk_cgroups(root);
        folder
    }

    /// Takes every path that fits `parts`, in the order of names. Links are told, not followed, where the
    /// name is open.
    fn walk(&mut self, at: &Path, name: &str, parts: &[&str]) {
        let Some((part, rest)) = parts.split_first() else { return };
        let child_name =
            |child: &str| if name.is_empty() { child.to_string() } else { format!("{name}/{child}") };
        if !part.contains('*') {
            let (path, name) = (at.join(part), child_name(part));
            match fs::metadata(&path) {
                Ok(found) if rest.is_empty() && found.is_file() => self.machine.push((name, path)),
                Ok(found) if !rest.is_empty() && found.is_dir() => self.walk(&path, &name, rest),
                Err(error) if error.kind() != io::ErrorKind::NotFound => self.refused.push((name, error)),
                _ => {}
            }
            return;
        }
        let entries = match fs::read_dir(at) {
            Ok(entries) => entries,
            Err(error) => return self.refused.push((name.to_string(), error)),
        };
        let named = entries.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry));
        let mut named: Vec<_> = named.filter(|(child, _)| fits(part, child)).collect();
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (child, entry) in named {
            let (path, name) = (entry.path(), child_name(&child));
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                if let Ok(target) = fs::read_link(&path) {
                    self.links.push((name, target.to_string_lossy().into_owned()));
                }
            } else if rest.is_empty() && kind.is_file() {
                let of_slabs = name.starts_with("sys/kernel/slab/") || name.starts_with("sys/slab/");
                match of_slabs {
                    true if WRITE_ONLY.contains(&child.as_str()) => {}
                    true => self.slabs.push((name, path)),
                    false => self.machine.push((name, path)),
                }
            } else if !rest.is_empty() && kind.is_dir() {
                self.walk(&path, &name, rest);
            } else if child == "cgroup" && self.cgroups.is_none() {
                let first = fs::read_dir(&path).ok().and_then(|mut entries| entries.next()?.ok());
                self.cgroups = first.map(|entry| format!("{name}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }

    /// Takes the files of all memory cgroups: below sys/fs/cgroup, or below the folder of version 1.
    pub(super) fn walk_cgroups(&mut self, root: &Path) {
        let names = ["sys/fs/cgroup/memory", "sys/fs/cgroup"];
        let Some(name) = names.into_iter().find(|name| has_cgroups(&root.join(name))) else { return };
        let mut left = vec![(name.to_string(), root.join(name))];
        let mut seen = 0;
        while let Some((name, path)) = left.pop() {
            seen += 1;
            for file in cgroups::FILES {
                let path = path.join(file);
                if path.is_file() {
                    self.machine.push((format!("{name}/{file}"), path));
                }
            }
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            for entry in folders.take(cgroups::LIMIT.saturating_sub(seen + left.len())) {
                left.push((format!("{name}/{}", entry.file_name().to_string_lossy()), entry.path()));
            }
        }
    }

    /// Reads the listed files.
    ///
    /// # Errors
    /// A file that is not as the kernel writes it.
    pub(super) fn take(&mut self, root: &Path) -> Result<DumpBuilder> {
        let mut builder = DumpBuilder::new();
        for (name, path) in std::mem::take(&mut self.machine) {
            let content = content(&name, &path);
            self.one(&mut builder, root, name, content)?;
        }
        if let Ok(changed) = fs::metadata(top(root).join("proc/slabinfo")).and_then(|found| found.modified())
        {
            let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
            builder.changed("proc/slabinfo", changed.as_secs());
        }
        for (name, target) in &self.links {
            builder.link(name, target).at(root)?;
        }
        if let Some(name) = &self.cgroups {
            builder.pass(name);
        }
        // Thousands of files, each a few system calls.
        let read = |(name, path): (String, PathBuf)| (content(&name, &path), name);
        let slabs: Vec<_> = std::mem::take(&mut self.slabs).into_par_iter().map(read).collect();
        for (content, name) in slabs {
            self.one(&mut builder, root, name, content)?;
        }
        Ok(builder)
    }

    /// Takes one file, or notes why it could not be read.
    pub(super) fn one(
        &mut self,
        builder: &mut DumpBuilder,
        root: &Path,
        name: String,
        content: io::Result<Vec<u8>>,
    ) -> Result<()> {
        match content {
            Ok(content) => {
                builder.file(&name, &content).at(root)?;
                self.kept.iter_mut().for_each(|kept| kept.push((name.clone(), content.clone())));
            }
            // A cgroup may be removed while it is read.
            Err(_) if name.starts_with("sys/fs/cgroup/") => {}
            // Attributes that this kernel was not built for, or that belong to a cache that just went away.
            Err(error)
                if !matches!(error.kind(), io::ErrorKind::PermissionDenied) && name.starts_with("sys/") => {}
            Err(error) => self.refused.push((name, error)),
        }
        Ok(())
    }

    /// The dump, if there was anything about slabs.
    ///
    /// # Errors
    /// Nothing about slabs, with the first file that could not be read.
    pub(super) fn finish(&self, root: &Path, builder: DumpBuilder) -> Result<Dump> {
        match self.refused.first() {
            Some((name, error)) if !builder.has_slabs() => {
                let path = root.join(name);
                let what =
                    format!("nothing of slabs could be read; {}: {error} (try with sudo)", path.display());
                Err(Error::new(root, what))
            }
            _ => builder.finish().at(root),
        }
    }
}

/// Whether a folder is the root of a hierarchy of memory cgroups, or has one of them in it.
fn has_cgroups(path: &Path) -> bool {
    let below = || fs::read_dir(path).into_iter().flatten().flatten();
    path.join("memory.stat").is_file()
        || path.join("cgroup.controllers").is_file()
        || (!path.ends_with("memory") && below().any(|entry| entry.path().join("memory.stat").is_file()))
}

/// The directory that has `proc` or `sys`: `root`, or the only one in it that has, as an unpacked support
/// bundle does.
fn top(root: &Path) -> PathBuf {
    let has_any = |path: &Path| {
        let folders = ["proc", "sys", "sos_commands"];
        // supportconfig has no folders.
        folders.iter().any(|name| path.join(name).is_dir()) || path.join("basic-environment.txt").is_file()
    };
    if has_any(root) {
        return root.to_path_buf();
    }
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut tops = entries.filter(|path| has_any(path));
    match (tops.next(), tops.next()) {
        (Some(top), None) => top,
        _ => root.to_path_buf(),
    }
}

/// The content of a file, no more than one byte above what it may have.
pub(super) fn content(name: &str, path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(DumpBuilder::limit(name) + 1).read_to_end(&mut content)?;
    Ok(content)
}
