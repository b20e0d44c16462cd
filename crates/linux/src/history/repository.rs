//! A user's repository: its commits, and patches on them.

use super::git::Git;
use crate::build::{Ending, Store, hex};
use sha2::{Digest, Sha256};
use slablab_report::error::At;
use slablab_report::{Error, Result, visible};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Digits of a commit that are shown, and name a build.
const SHORT: usize = 12;

/// What stands before a commit's line in the log.
const MARK: char = '\u{1}';

/// The tree of a commit, or of a commit with a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// All digits: of a commit, or of a tree.
    pub id: String,
    /// The first line of its message, or the name of the patch.
    pub title: String,
    /// The files that differ from the commit before.
    pub paths: Vec<String>,
    /// The name of its build, without what the configuration adds.
    pub name: String,
}

/// Commits in their order.
#[derive(Clone, Debug)]
pub struct Range {
    /// The commit that the first one is compared with.
    pub base: Commit,
    /// The others.
    pub commits: Vec<Commit>,
}

/// The first digits of an id.
pub fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// A kernel tree with its commits; one without them is kept as one commit in the cache.
pub struct Repository {
    /// The folder of the tree.
    pub(super) tree: PathBuf,
    /// In the cache: what is made of it.
    pub(super) folder: PathBuf,
    pub(super) store: Store,
    pub(super) git: Git,
    /// Whether it is a repository of the user's.
    has_commits: bool,
}

impl Repository {
    /// The repository that has its top at `tree`, for builds in the user's cache.
    ///
    /// # Errors
    /// No git; no folder.
    pub fn open(tree: &Path) -> Result<Repository> {
        Repository::open_in(tree, Store::usual()?)
    }

    /// As [`Repository::open`], for builds in this store.
    ///
    /// # Errors
    /// Those of [`Repository::open`].
    pub fn open_in(tree: &Path, store: Store) -> Result<Repository> {
        let whole = tree.canonicalize().at(tree)?;
        if !whole.is_dir() {
            return Err(Error::new(tree, "expected the folder of a kernel tree, found a file"));
        }
        // The first word to git says whether there is one.
        Git::at(tree).says(&whole, ["--version"])?;
        let found = own(&whole);
        if found.is_none() && !whole.join("mm").is_dir() {
            let what = "expected the top folder of a kernel tree (`-C TREE`), found a folder without mm";
            return Err(Error::new(tree, what));
        }
        let common = found.as_ref().map_or(&whole, |found| &found.common);
        let key = hex(&Sha256::digest(common.to_string_lossy().as_bytes()).as_slice()[..8]);
        let folder = store.commits(&key);
        let objects = folder.join("objects");
        fs::create_dir_all(&objects).at(&objects)?;
        let git = Git::at(tree).with("GIT_OBJECT_DIRECTORY", &objects);
        let git = match &found {
            Some(found) => git
                .with("GIT_DIR", &found.dir)
                .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(&found.objects)),
            None => git.with("GIT_DIR", folder.join("plain.git")),
        };
        let has_commits = found.is_some();
        Ok(Repository { tree: whole, folder, store, git, has_commits })
    }

    /// The folder of the tree.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// The store of its builds.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Commits of `BASE..HEAD`, in the order in which they were made: the way of first parents, so a merge is
    /// one step.
    ///
    /// # Errors
    /// No repository; another form; a name of no commit; a base that is not on the way.
    pub fn range(&self, text: &str) -> Result<Range> {
        if !self.has_commits {
            return Err(Error::new(&self.tree, "expected a git repository: `-C TREE` names its top folder"));
        }
        let bad = |what: String| Error::new(text, what);
        let Some((base, head)) = text.split_once("..").filter(|_| !text.contains("...")) else {
            return Err(bad(format!("expected BASE..HEAD; one commit alone is `{text}~1..{text}`")));
        };
        let (base, head) =
            (if base.is_empty() { "HEAD" } else { base }, if head.is_empty() { "HEAD" } else { head });
        let [from, to] = [base, head].map(|name| self.id(name));
        let (from, to) = (from?, to?);
        let words = [
            "log",
            "-m",
            "--first-parent",
            "--reverse",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--name-only",
            "--format=%x01%H %P%x00%s",
            &format!("{from}..{to}"),
            "--",
        ];
        let said = self.git.says(&self.tree, words)?;
        let found: Vec<(Vec<String>, Commit)> = said.split(MARK).skip(1).filter_map(commit).collect();
        let Some((first, _)) = found.first() else {
            return Err(bad(format!("there is no commit between {base} and {head}")));
        };
        // The first id is the commit's own.
        if first.get(1) != Some(&from) {
            let near = first.get(1).map_or("an earlier commit", |id| short(id));
            return Err(bad(format!(
                "{base} is not on the way of first parents from {head}: expected {near}..{head}"
            )));
        }
        let commits = found.into_iter().map(|(_, commit)| commit).collect();
        Ok(Range { base: self.of(from)?, commits })
    }

    /// The commit that the tree is at. A tree without commits is one as it is; `go` is asked from time to
    /// time whether to go on with that, and `None` says that it did not.
    ///
    /// # Errors
    /// What git says.
    pub fn head(&self, go: &mut dyn FnMut() -> bool) -> Result<Option<Commit>> {
        if self.has_commits {
            return self.id("HEAD").and_then(|id| self.of(id)).map(Some);
        }
        let git = self.git.clone().with("GIT_INDEX_FILE", self.folder.join("plain.index"));
        let git = git.with("GIT_WORK_TREE", &self.tree);
        let dir = self.folder.join("plain.git");
        if !dir.join("HEAD").exists() {
            Git::at(&self.tree)
                .says(&self.folder, ["init".as_ref(), "-q".as_ref(), "--bare".as_ref(), dir.as_os_str()])?;
        }
        let _ = fs::remove_file(self.folder.join("plain.index.lock"));
        // Debian's sources have a .gitignore that names everything: it is for the packages' own repository.
        match git.does(&self.tree, ["add", "-A", "-f", "--", "."], go) {
            Ok(()) => {}
            Err(Ending::Stopped) => return Ok(None),
            Err(Ending::Bad(error)) => return Err(error),
        }
        let id = git.says(&self.tree, ["write-tree"])?.trim().to_string();
        let name = format!("tree.{}", short(&id));
        Ok(Some(Commit { title: visible::path(&self.tree), paths: Vec::new(), name, id }))
    }

    /// A commit with patches on it, in their order. It is a tree of the cache alone. Of several files those
    /// without a difference are left out: the first of a series is its cover letter.
    ///
    /// # Errors
    /// What git says of a patch that does not apply; no file with a difference.
    pub fn patched(&self, base: &Commit, patches: &[PathBuf]) -> Result<Commit> {
        let index = self.folder.join(format!("patch-{}.index", std::process::id()));
        let _gone = Removed(index.clone());
        let git = self.git.clone().with("GIT_INDEX_FILE", &index);
        git.says(&self.tree, ["read-tree", &base.id])?;
        let mut applied = Vec::new();
        for patch in patches {
            if self.apply(&git, patch, base)? {
                applied.push(patch);
            }
        }
        let Some(first) = applied.first() else {
            let names = patches.iter().map(|path| visible::path(path)).collect::<Vec<_>>().join(", ");
            return Err(Error::new(
                names,
                "no difference in it: expected what `git diff` or `git format-patch` writes",
            ));
        };
        let id = git.says(&self.tree, ["write-tree"])?.trim().to_string();
        let words = ["diff-tree", "-r", "--no-renames", "--name-only", &base.id, &id];
        let paths = git.says(&self.tree, words)?.lines().map(str::to_string).collect();
        let stem = first.file_stem().unwrap_or_default().to_string_lossy();
        let title = applied.iter().map(|path| visible::path(path)).collect::<Vec<_>>().join(", ");
        let is_part = |char: &char| char.is_ascii_alphanumeric() || "-_".contains(*char);
        let stem: String = stem.chars().filter(is_part).take(32).collect();
        let stem =
            if stem.starts_with(|char: char| char.is_ascii_alphanumeric()) { stem } else { "patched".into() };
        Ok(Commit { name: format!("{stem}.{}", &short(&id)[..8]), id, title, paths })
    }

    /// Applies a patch to the index; `false` of a file without a difference.
    fn apply(&self, git: &Git, patch: &Path, base: &Commit) -> Result<bool> {
        File::open(patch).at(patch)?;
        let whole = patch.canonicalize().at(patch)?;
        let does = |how: &[&str]| {
            let words = ["apply", "--cached"].iter().chain(how).chain(&["--"]).map(OsStr::new);
            git.says(&self.folder, words.chain([whole.as_os_str()]))
        };
        let Err(error) = does(&[]) else { return Ok(true) };
        if error.what.contains("No valid patches in input") {
            return Ok(false);
        }
        let on = format!("{} ({})", short(&base.id), base.title);
        let what = match does(&["--reverse", "--check"]) {
            Ok(_) => format!("it is in {on} already"),
            Err(_) => {
                format!("it does not apply to {on}: {}", error.what.trim_start_matches("git refused: "))
            }
        };
        Err(Error::new(patch, what))
    }

    /// The digits of a commit.
    fn id(&self, name: &str) -> Result<String> {
        let commit = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let said = self.git.says(&self.tree, words);
        said.map(|id| id.trim().to_string()).map_err(|_| {
            let is_shallow = self.git.says(&self.tree, ["rev-parse", "--is-shallow-repository"]);
            let more = match is_shallow.is_ok_and(|said| said.trim() == "true") {
                true => "; the clone is shallow: `git fetch --deepen=N` or `--unshallow` gets older commits",
                false => "",
            };
            Error::new(name, format!("no commit of {} has this name{more}", visible::path(&self.tree)))
        })
    }

    fn of(&self, id: String) -> Result<Commit> {
        let words = ["log", "-1", "--no-color", "--format=%s", &id, "--"];
        let title = self.git.says(&self.tree, words)?.trim().to_string();
        Ok(Commit { name: short(&id).into(), id, title, paths: Vec::new() })
    }
}

/// Where a repository is.
struct Found {
    dir: PathBuf,
    common: PathBuf,
    objects: PathBuf,
}

/// The repository whose top is this folder.
fn own(tree: &Path) -> Option<Found> {
    let git = Git::at(tree);
    let said = git
        .says(tree, ["rev-parse", "--absolute-git-dir", "--git-common-dir", "--git-path", "objects"])
        .ok()?;
    // In a folder below the top the tree is a part of something else.
    let up = git.says(tree, ["rev-parse", "--show-cdup"]).ok()?;
    let mut lines = said.lines().map(|line| tree.join(line).canonicalize().ok());
    let (dir, common, objects) = (lines.next()??, lines.next()??, lines.next()??);
    up.trim().is_empty().then_some(Found { dir, common, objects })
}

/// A path in a list of paths.
fn listed(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

/// A commit of the log: `ID PARENT.. NUL TITLE`, and the names of files.
fn commit(text: &str) -> Option<(Vec<String>, Commit)> {
    let mut lines = text.lines();
    let (ids, title) = lines.next()?.split_once('\0')?;
    let ids: Vec<String> = ids.split_whitespace().map(str::to_string).collect();
    let id = ids.first()?.clone();
    let paths = lines.filter(|line| !line.is_empty()).map(str::to_string).collect();
    Some((ids, Commit { name: short(&id).into(), id, title: title.into(), paths }))
}

/// A file that goes.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read() {
        let said = "\u{1}aa bb\0mm: one\n\nmm/slub.c\nmm/slab.h\n\u{1}cc aa dd\0Merge\n";
        let found: Vec<_> = said.split(MARK).skip(1).filter_map(commit).collect();
        assert_eq!(found[0].0, ["aa", "bb"]);
        assert_eq!((found[0].1.title.as_str(), found[0].1.paths.len()), ("mm: one", 2));
        assert_eq!((found[1].0.len(), found[1].1.paths.len()), (3, 0));
    }

    #[test]
    fn a_path_in_a_list_is_quoted() {
        assert_eq!(listed(Path::new("/a:b/\"c")), "\"/a:b/\\\"c\"");
    }
}
