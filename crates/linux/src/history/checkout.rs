//! The one tree of a repository in the cache, moved from commit to commit, and built.

use super::needs::is_needed;
use super::repository::{Commit, Repository};
use crate::build::{
    Allocator, Asked, Built, Ending, Listener, Origin, Part, Request, Step, Tools, hex, recipe,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slablab_report::error::At;
use slablab_report::{AtomicFile, Error, Limit, Result, read_at_most, read_text_at_most};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files that git is told to write at once.
const AT_ONCE: usize = 800;

/// Time between two tries to get the lock.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// The largest file about a checkout that is read.
const ABOUT: Limit = Limit::mib("a file about a checkout", 4);

/// Words of errors about files that a part of a tree may lack.
const LACKS: [&str; 4] = ["No such file", "No rule to make target", "can't open file", "not found"];

/// How commits are built.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// A `.config`; `None`: the program's own.
    pub config: Option<PathBuf>,
    /// `None`: the one of the configuration, or SLUB.
    pub allocator: Option<Allocator>,
    /// Processes at once; `None`: as many as there are CPUs.
    pub jobs: Option<usize>,
}

/// What became of a commit.
#[derive(Debug)]
pub enum Made {
    /// It is built.
    Built(Box<Built>),
    /// It is not: the first error.
    DoesNotBuild(String),
}

/// What the tree in the cache has.
#[derive(Serialize, Deserialize)]
struct Place {
    id: String,
    /// Whether all files are there.
    whole: bool,
}

/// Why a commit was not built, kept beside the tree.
#[derive(Serialize, Deserialize)]
struct Refused {
    /// The commit, and what its build depends on.
    of: String,
    words: String,
}

/// The tree in the cache, which nobody else moves.
pub struct Checkout<'a> {
    repository: &'a Repository,
    tools: Tools,
    /// What names the configuration in names of builds; empty for the program's own.
    suffix: String,
    way: Way,
    _lock: File,
}

impl<'a> Checkout<'a> {
    /// Waits for the tree. `said` is asked whether to go on; `None` if it says no.
    ///
    /// # Errors
    /// Programs that a build needs; a configuration that cannot be read; what the system refuses.
    pub fn of(
        repository: &'a Repository,
        way: &Way,
        said: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Option<Checkout<'a>>> {
        let mut said = Listener::new(said);
        let found = Checkout::locked(repository, way, &mut said);
        ended(found)
    }

    fn locked(
        repository: &'a Repository,
        way: &Way,
        said: &mut Listener,
    ) -> std::result::Result<Checkout<'a>, Ending> {
        let mut suffix = String::new();
        if way.config.is_some() || way.allocator.is_some() {
            let text = way.config.as_ref().map(|path| read_at_most(path, ABOUT)).transpose()?;
            let mut hash = Sha256::new();
            hash.update(text.unwrap_or_default());
            hash.update(way.allocator.map_or("", Allocator::word));
            suffix = format!(".{}", hex(&hash.finalize().as_slice()[..4]));
        }
        let tools = Tools::find(&repository.tree, &mut || said.at(Part::Checkout, 0, 1))?;
        let path = repository.folder.with_extension("lock");
        let lock = File::create(&path).at(&path)?;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if said.at(Part::Waiting, 0, 1) => {
                    std::thread::sleep(TRY_EVERY)
                }
                Err(TryLockError::WouldBlock) => return Err(Ending::Stopped),
                Err(TryLockError::Error(error)) => return Err(Error::new(&path, error).into()),
            }
        }
        Ok(Checkout { repository, tools, suffix, way: way.clone(), _lock: lock })
    }

    /// Compiler and linker, in words: with others the same commit is another build.
    pub fn tools(&self) -> String {
        format!("{}; {}", self.tools.compiler, self.tools.linker)
    }

    /// What names the configuration in names of builds; empty for the program's own.
    pub fn suffix(&self) -> &str {
        &self.suffix
    }

    /// The name of a commit's build, for `--engine linux:NAME`.
    pub fn name(&self, commit: &Commit) -> String {
        format!("{}{}", commit.name, self.suffix)
    }

    /// The build of a commit if it is there already.
    pub fn built(&self, commit: &Commit) -> Option<Built> {
        let built = self.repository.store.read(&self.name(commit)).ok()?;
        let is_same = built.origin.as_ref().is_some_and(|origin| origin.id == commit.id);
        (is_same && self.repository.store.stale(&built).is_none()).then_some(built)
    }

    /// The files of the tree that a build read.
    pub fn sources(&self, built: &Built) -> BTreeSet<String> {
        self.repository.store.sources(built)
    }

    /// Builds a commit. `None` if `said` says to stop: then nothing of it is kept, but what kbuild made.
    ///
    /// # Errors
    /// A full disk; what git or the system refuses. What the commit itself is to blame for is no error.
    pub fn build(
        &mut self,
        commit: &Commit,
        said: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Option<Made>> {
        if let Some(built) = self.built(commit) {
            return Ok(Some(Made::Built(Box::new(built))));
        }
        let refused = self.repository.folder.join("refused").join(self.name(commit));
        let of = format!("{} {} {}", commit.id, recipe(), self.tools());
        let known = read_text_at_most(&refused, ABOUT).ok();
        let known = known.and_then(|text| serde_json::from_str::<Refused>(&text).ok());
        if let Some(known) = known.filter(|known| known.of == of) {
            return Ok(Some(Made::DoesNotBuild(known.words)));
        }
        let made = ended(self.make(commit, false, said))?;
        let made = match made {
            Some(Made::DoesNotBuild(words)) if LACKS.iter().any(|lack| words.contains(lack)) => {
                ended(self.make(commit, true, said))?
            }
            made => made,
        };
        if let Some(Made::DoesNotBuild(words)) = &made {
            let text = serde_json::to_string(&Refused { of, words: words.clone() });
            write(&refused, &text.expect("words are JSON"))?;
        }
        Ok(made)
    }

    fn make(
        &mut self,
        commit: &Commit,
        whole: bool,
        said: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> std::result::Result<Made, Ending> {
        self.move_to(commit, whole, &mut Listener::new(said))?;
        let tree = self.tree();
        let origin = Origin {
            id: commit.id.clone(),
            title: commit.title.clone(),
            repository: self.repository.tree.clone(),
        };
        let request = Request {
            tree: tree.clone(),
            config: self.way.config.clone(),
            name: Some(self.name(commit)),
            allocator: self.way.allocator,
            jobs: self.way.jobs,
            origin: Some(origin),
        };
        match self.repository.store.build(&request, said) {
            Ok(Some(built)) => Ok(Made::Built(Box::new(built))),
            Ok(None) => Err(Ending::Stopped),
            Err(error) if Asked::is_of_host(&error) => Err(error.into()),
            Err(error) => {
                // Where the tree lies says nothing to a reader.
                let words = error.what.replace(&format!("{}/", tree.to_string_lossy()), "");
                Ok(Made::DoesNotBuild(words))
            }
        }
    }

    fn tree(&self) -> PathBuf {
        self.repository.folder.join("tree")
    }

    /// Makes the tree that of a commit: what differs from the one that is there is written.
    fn move_to(&self, commit: &Commit, whole: bool, said: &mut Listener) -> std::result::Result<(), Ending> {
        let Repository { folder, git, .. } = self.repository;
        let (tree, about, index) = (self.tree(), folder.join("at.json"), folder.join("index"));
        let at = read_text_at_most(&about, ABOUT).ok();
        let at =
            at.and_then(|text| serde_json::from_str::<Place>(&text).ok()).filter(|at| at.whole || !whole);
        if at.as_ref().is_some_and(|at| at.id == commit.id) {
            return Ok(());
        }
        let git = git.clone().with("GIT_INDEX_FILE", &index).with("GIT_WORK_TREE", &tree);
        // A tree that is half one commit and half another is written anew.
        let _ = fs::remove_file(&about);
        let _ = fs::remove_file(index.with_extension("lock"));
        said.at(Part::Checkout, 0, 1);
        let whole = at.as_ref().map_or(whole, |at| at.whole);
        let (gone, new) = match &at {
            Some(at) => {
                let words = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", &at.id, &commit.id];
                changes(&git.says(folder, words)?)
            }
            None => {
                away(&tree)?;
                let words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", &commit.id];
                let said = git.says(folder, words)?;
                (Vec::new(), said.split_terminator('\0').map(str::to_string).collect())
            }
        };
        fs::create_dir_all(&tree).at(&tree)?;
        git.does(&tree, ["read-tree", &commit.id], &mut || said.at(Part::Checkout, 0, 1))?;
        for path in gone {
            let _ = fs::remove_file(tree.join(path));
        }
        let new: Vec<&String> = new.iter().filter(|path| whole || is_needed(path)).collect();
        let all = new.len() as u64;
        for (at, paths) in new.chunks(AT_ONCE).enumerate() {
            let done = (at * AT_ONCE) as u64;
            let words = ["checkout-index", "-f", "-q", "--"].into_iter();
            let words = words.chain(paths.iter().map(|path| path.as_str()));
            git.does(&tree, words, &mut || said.at(Part::Checkout, done, all))?;
        }
        let text = serde_json::to_string(&Place { id: commit.id.clone(), whole }).expect("words are JSON");
        write(&about, &text)?;
        Ok(())
    }
}

/// The files that `diff-tree -z --name-status` says are gone, and those that are new or other.
fn changes(said: &str) -> (Vec<String>, Vec<String>) {
    let words: Vec<&str> = said.split_terminator('\0').collect();
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for pair in words.chunks_exact(2) {
        if pair[0] == "D" { &mut gone } else { &mut new }.push(pair[1].to_string());
    }
    (gone, new)
}

/// Removes a folder. A process that ends on the way leaves one of another name.
fn away(folder: &Path) -> Result<()> {
    let old = folder.with_extension("old");
    let _ = fs::remove_dir_all(&old);
    if folder.exists() {
        fs::rename(folder, &old).at(folder)?;
        fs::remove_dir_all(&old).at(&old)?;
    }
    Ok(())
}

/// Writes a file that appears whole or not at all.
fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).at(folder)?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).at(path)?;
    file.commit()
}

/// A stop is no error.
fn ended<T>(found: std::result::Result<T, Ending>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Ending::Stopped) => Ok(None),
        Err(Ending::Bad(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_read() {
        let (gone, new) = changes("M\0mm/a.c\0D\0mm/b.c\0A\0mm/c d.c\0");
        assert_eq!((gone, new), (vec!["mm/b.c".to_string()], vec!["mm/a.c".into(), "mm/c d.c".into()]));
        assert_eq!(changes(""), (vec![], vec![]));
    }
}
