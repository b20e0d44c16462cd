//! The builds that are kept: a folder of the user's cache.
//!
//! ```text
//! slablab/linux/builds/NAME/   plain.elf, instrumented.elf, config, build.json, sources.json
//!              /kbuild/KEY/    where kbuild builds a tree in one configuration; KEY.lock is held meanwhile
//!              /builds.lock    held while a build gets its name, or is removed
//!              /commits/KEY/   the tree of a repository's commits, one after the other; KEY.lock beside
//!              /results/       what runs of commits gave
//! ```
//!
//! Locks: the KEY.lock of commits, that of kbuild, builds.lock.

use super::built::{Built, Entry, FORMAT};
use super::child::Ending;
use super::recipe::recipe;
use super::request::{Asked, Request};
use super::sources::{Found, Sources};
use super::step::{Listener, Part};
use super::tree::Tree;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use slablab_report::error::At;
use slablab_report::nearest::nearest;
use slablab_report::{Error, Limit, Result, read_text_at_most};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest file about a build that is read.
const ABOUT: Limit = Limit::mib("a file about a build", 64);

/// Time between two tries to get a lock.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// The files about a build.
pub(super) const BUILD: &str = "build.json";
pub(super) const SOURCES: &str = "sources.json";

/// A folder of builds.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The user's: `slablab/linux` in `$XDG_CACHE_HOME`, or in `~/.cache`.
    ///
    /// # Errors
    /// Neither variable names a folder.
    pub fn usual() -> Result<Store> {
        let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        let what = "expected an absolute path in XDG_CACHE_HOME or HOME, for the builds that are kept";
        cache
            .map(|cache| Store::at(cache.join("slablab/linux")))
            .ok_or_else(|| Error::new("XDG_CACHE_HOME", what))
    }

    /// Builds in another folder, which needs not exist.
    pub fn at(root: PathBuf) -> Store {
        Store { root }
    }

    /// The build called `text`, or the newest one of the tree at the path `text`.
    ///
    /// # Errors
    /// No such build; a tree that changed since.
    pub fn find(&self, text: &str) -> Result<Built> {
        let names = self.names();
        if names.iter().any(|name| name == text) {
            return self.read(text);
        }
        let path = Path::new(text);
        if !text.contains('/') && !path.is_dir() {
            let what = "expected a name of `slablab linux list`, or the path of a kernel tree";
            let what = format!("{what}{}", meant(text, &names));
            return Err(Error::new(text, what));
        }
        let tree = Tree::open(path)?;
        let mut builds: Vec<Built> = names.iter().filter_map(|name| self.read(name).ok()).collect();
        builds.retain(|built| built.tree == tree.path);
        builds.sort_by_key(|built| std::cmp::Reverse(built.time));
        let command = format!("`slablab linux build {}` builds it", slablab_report::visible::path(path));
        let first = builds.first().map(|built| built.name.clone());
        let mut reason = None;
        for built in builds {
            match self.outdated(&built) {
                None => return Ok(built),
                Some(why) => reason = reason.or(Some(why)),
            }
        }
        let what = match (first, reason) {
            (Some(name), Some(why)) => format!("its build {name} is not up to date ({why}): {command}"),
            _ => format!("this tree is not built: {command}"),
        };
        Err(Error::new(path, what))
    }

    /// All builds by their names, without those of other versions of the program, which
    /// [`Store::remove_all`] removes.
    pub fn list(&self) -> Vec<Entry> {
        let entry = |built: Built| Entry {
            // That of a commit stays right when its tree has another one.
            outdated: match built.origin {
                Some(_) => self.stale(&built),
                None => self.outdated(&built),
            },
            bytes: size_of(&built.folder),
            name: built.name,
            release: built.release,
            allocator: built.allocator,
            tree: built.origin.map_or(built.tree, |origin| origin.repository).to_string_lossy().into_owned(),
            time: built.time,
            digest: built.digest,
        };
        self.names().iter().filter_map(|name| self.read(name).ok()).map(entry).collect()
    }

    /// Removes builds, and what kbuild made for them if no other build needs that. Returns the bytes.
    ///
    /// # Errors
    /// A name of no build: then nothing is removed. A folder that cannot be removed.
    pub fn remove(&self, names: &[String]) -> Result<u64> {
        let known = self.names();
        if let Some(name) = names.iter().find(|name| !known.contains(name)) {
            let what = format!("expected a name of `slablab linux list`{}", meant(name, &known));
            return Err(Error::new(name, what));
        }
        let mut bytes = 0;
        let mut keys = Vec::new();
        for name in names {
            let lock = self.lock_names()?;
            // Those of an earlier version of the program are removed, too.
            keys.extend(self.read(name).map(|built| built.kbuild));
            bytes += self.discard(&self.builds().join(name))?;
            drop(lock);
        }
        let builds: Vec<Built> = self.names().iter().filter_map(|name| self.read(name).ok()).collect();
        for key in keys.iter().filter(|key| !builds.iter().any(|built| built.kbuild == **key)) {
            bytes += self.discard_kbuild(key)?;
        }
        Ok(bytes)
    }

    /// Removes everything, also what builds left that did not end. Returns the names and the bytes.
    ///
    /// # Errors
    /// A folder that cannot be removed.
    pub fn remove_all(&self) -> Result<(Vec<String>, u64)> {
        let names = self.names();
        let mut bytes = self.remove(&names)?;
        let entries = fs::read_dir(self.root.join("kbuild")).into_iter().flatten().flatten();
        let keys = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        for key in keys.filter(|key| !key.ends_with(".lock")) {
            bytes += self.discard_kbuild(&key)?;
        }
        let entries = fs::read_dir(self.root.join("commits")).into_iter().flatten().flatten();
        for folder in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            bytes += self.discard_unless_locked(&folder)?;
        }
        bytes += self.discard(&self.results())?;
        Ok((names, bytes))
    }

    /// The folder of what runs of commits gave.
    pub fn results(&self) -> PathBuf {
        self.root.join("results")
    }

    /// The folder of a repository's commits.
    pub(crate) fn commits(&self, key: &str) -> PathBuf {
        self.root.join("commits").join(key)
    }

    /// The files in its tree that a build read.
    pub fn sources(&self, built: &Built) -> BTreeSet<String> {
        let read = read_text_at_most(&built.folder.join(SOURCES), ABOUT).ok();
        let sources = read.and_then(|text| serde_json::from_str::<Sources>(&text).ok()).unwrap_or_default();
        sources.in_tree().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    fn builds(&self) -> PathBuf {
        self.root.join("builds")
    }

    pub(super) fn kbuild(&self, key: &str) -> PathBuf {
        self.root.join("kbuild").join(key)
    }

    /// Names of builds in their order. A name that begins with a dot is of a build that is being made.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.builds()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    pub(crate) fn read(&self, name: &str) -> Result<Built> {
        let folder = self.builds().join(name);
        let path = folder.join(BUILD);
        let again =
            || format!("expected a build of this program: `slablab linux remove {name}`, and build it again");
        let built: Built = serde_json::from_str(&read_text_at_most(&path, ABOUT)?)
            .map_err(|_| Error::new(&path, again()))?;
        if built.format != FORMAT {
            return Err(Error::new(&path, again()));
        }
        Ok(Built { folder, name: name.into(), ..built })
    }

    /// Why a build is not what a new one of the same sources would be.
    pub(crate) fn stale(&self, built: &Built) -> Option<String> {
        if built.recipe != recipe() {
            return Some("it is of another version of slablab".into());
        }
        if !built.tools.are_current() {
            return Some("compiler or linker changed".into());
        }
        None
    }

    /// Why a build is not what a new one would be.
    fn outdated(&self, built: &Built) -> Option<String> {
        if let Some(why) = self.stale(built) {
            return Some(why);
        }
        let path = built.folder.join(SOURCES);
        let read = read_text_at_most(&path, ABOUT).ok();
        let Some(sources) = read.and_then(|text| serde_json::from_str::<Sources>(&text).ok()) else {
            return Some("its list of sources is gone".into());
        };
        match sources.look(&built.tree) {
            Found::Same => None,
            Found::Changed(path) => Some(match path.exists() {
                true => format!("{} changed", path.strip_prefix(&built.tree).unwrap_or(&path).display()),
                false => format!("{} is gone", path.display()),
            }),
            Found::Touched(now) => {
                // Only the next question is faster for it.
                let text = serde_json::to_string(&now).expect("a list of files is JSON");
                let new = path.with_extension(format!("{}", std::process::id()));
                let _ = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
                None
            }
        }
    }

    /// The newest build that is what `request` would build now.
    pub(super) fn current(&self, tree: &Tree, request: &Request, asked: &Asked) -> Option<Built> {
        let mut builds: Vec<Built> = self.names().iter().filter_map(|name| self.read(name).ok()).collect();
        builds.retain(|one| one.is_of(&tree.path, asked.allocator, asked.config.as_deref()));
        builds
            .sort_by_key(|built| (request.name.as_ref() != Some(&built.name), std::cmp::Reverse(built.time)));
        builds.into_iter().find(|built| self.outdated(built).is_none())
    }

    /// Waits for the lock of a folder of kbuild, and makes the folder.
    pub(super) fn lock(&self, key: &str, said: &mut Listener) -> std::result::Result<File, Ending> {
        let folder = self.kbuild(key);
        fs::create_dir_all(&folder).at(&folder)?;
        let path = folder.with_extension("lock");
        let file = File::create(&path).at(&path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if said.at(Part::Waiting, 0, 1) => {
                    std::thread::sleep(TRY_EVERY)
                }
                Err(TryLockError::WouldBlock) => return Err(Ending::Stopped),
                Err(TryLockError::Error(error)) => return Err(Error::new(&path, error).into()),
            }
        }
    }

    fn lock_names(&self) -> Result<File> {
        fs::create_dir_all(self.builds()).at(&self.builds())?;
        let path = self.root.join("builds.lock");
        let file = File::create(&path).at(&path)?;
        file.lock().at(&path)?;
        Ok(file)
    }

    /// A new folder for a build; it is removed unless it is kept.
    pub(super) fn draft(&self, key: &str) -> Result<Draft> {
        let folder = self.builds().join(format!(".new-{key}"));
        // Of a process that was killed: the caller holds the lock of `key`.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).at(&folder)?;
        Ok(Draft { folder })
    }

    /// Gives a build its name, in the place of an earlier one of the same tree and configuration.
    ///
    /// # Errors
    /// A name that a build of another tree or configuration has; what the system refuses.
    pub(super) fn keep(&self, draft: Draft, mut built: Built, name: Option<&str>) -> Result<Built> {
        let _lock = self.lock_names()?;
        let is_free = |name: &str| {
            let folder = self.builds().join(name);
            let is_same = |one: Built| one.is_of(&built.tree, built.allocator, built.config.as_deref());
            !folder.exists() || self.read(name).is_ok_and(is_same)
        };
        let name = match name {
            Some(name) if is_free(name) => name.to_string(),
            Some(name) => {
                let what = format!(
                    "a build of another tree or configuration has this name: `slablab linux remove {name}`, or another --name"
                );
                return Err(Error::new(name, what));
            }
            None => {
                let first = super::name::usual(&built);
                let numbered = (2..).map(|number| format!("{first}-{number}"));
                let mut all = std::iter::once(first.clone()).chain(numbered);
                all.find(|name| is_free(name)).expect("numbers do not end")
            }
        };
        let folder = self.builds().join(&name);
        built.name.clone_from(&name);
        let path = draft.folder.join(BUILD);
        fs::write(&path, serde_json::to_string_pretty(&built).expect("a build is JSON")).at(&path)?;
        if folder.exists() {
            // After this the draft's folder has the earlier build.
            renameat_with(CWD, &draft.folder, CWD, &folder, RenameFlags::EXCHANGE)
                .or_else(|_| {
                    let _ = fs::remove_dir_all(&folder);
                    fs::rename(&draft.folder, &folder).map_err(|_| rustix::io::Errno::IO)
                })
                .at(&folder)?;
        } else {
            fs::rename(&draft.folder, &folder).at(&folder)?;
        }
        Ok(Built { folder, ..built })
    }

    /// Another name for a build.
    pub(super) fn alias(&self, built: &Built, name: &str, key: &str) -> Result<Built> {
        let draft = self.draft(key)?;
        for entry in fs::read_dir(&built.folder).at(&built.folder)?.flatten() {
            fs::copy(entry.path(), draft.folder.join(entry.file_name())).at(&draft.folder)?;
        }
        self.keep(draft, built.clone(), Some(name))
    }

    fn discard_kbuild(&self, key: &str) -> Result<u64> {
        self.discard_unless_locked(&self.kbuild(key))
    }

    fn discard_unless_locked(&self, folder: &Path) -> Result<u64> {
        let lock = folder.with_extension("lock");
        let is_free = File::create(&lock).at(&lock)?;
        // A build is under way: it keeps its folder.
        if is_free.try_lock().is_err() {
            return Ok(0);
        }
        let bytes = self.discard(folder)?;
        let _ = fs::remove_file(&lock);
        Ok(bytes)
    }

    /// Removes a folder, which nobody sees half removed, and returns its bytes.
    fn discard(&self, folder: &Path) -> Result<u64> {
        if !folder.exists() {
            return Ok(0);
        }
        let bytes = size_of(folder);
        let away = self.builds().join(format!(".old-{}", std::process::id()));
        fs::create_dir_all(self.builds()).at(folder)?;
        fs::rename(folder, &away).at(folder)?;
        fs::remove_dir_all(&away).at(folder)?;
        Ok(bytes)
    }
}

/// The folder of a build that has no name yet.
pub(super) struct Draft {
    pub(super) folder: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A question about a name that looks like a wrong one.
fn meant(name: &str, names: &[String]) -> String {
    let near = nearest(name, names.iter().map(String::as_str), 1);
    near.first().map_or_else(String::new, |near| format!(": did you mean {near}?"))
}

/// Bytes of all files in a folder.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
