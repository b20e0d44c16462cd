//! What is kept of each commit: a file, so that an interrupted series goes on.
//!
//! ```text
//! FOLDER/COMMIT-KEY.json    an Entry; KEY names all that the numbers depend on beside the commit
//! ```

use super::{Entry, State};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slablab_report::error::At;
use slablab_report::{AtomicFile, Limit, Result, read_text_at_most};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The largest file about a commit that is read.
const ABOUT: Limit = Limit::mib("the numbers of a commit", 64);

/// Digits of a commit in the name of its file.
const DIGITS: usize = 12;

/// A folder of entries.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
    key: String,
}

/// A file.
#[derive(Serialize, Deserialize)]
struct File {
    entry: Entry,
    /// Files of the tree that the build read; of a base alone.
    sources: Vec<String>,
}

impl Kept {
    /// The entries in `folder` whose numbers depend on `words`, beside the commit: program, compiler,
    /// configuration, what is run and how. Of `files` the contents count.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn new(folder: &Path, words: &[String], files: &[PathBuf]) -> Result<Kept> {
        let mut digest = Sha256::new();
        digest.update(words.join("\n"));
        for path in files {
            digest.update(Sha256::digest(fs::read(path).at(path)?));
        }
        let digest = digest.finalize();
        let key = digest[..8].iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string");
            text
        });
        Ok(Kept { folder: folder.into(), key })
    }

    /// What is kept of a commit, and the files that its build read.
    pub fn read(&self, id: &str) -> Option<(Entry, Vec<String>)> {
        let text = read_text_at_most(&self.path(id), ABOUT).ok()?;
        let File { entry, sources } = serde_json::from_str(&text).ok()?;
        (entry.id == id && entry.state != State::NotRun).then_some((entry, sources))
    }

    /// Keeps a commit.
    ///
    /// # Errors
    /// What the system refuses.
    ///
    /// # Panics
    /// Never: numbers are JSON.
    pub fn write(&self, entry: &Entry, sources: &[String]) -> Result<()> {
        fs::create_dir_all(&self.folder).at(&self.folder)?;
        let path = self.path(&entry.id);
        let file = File { entry: entry.clone(), sources: sources.to_vec() };
        let mut to = AtomicFile::create(&path)?;
        to.write_all(serde_json::to_string(&file).expect("numbers are JSON").as_bytes()).at(&path)?;
        to.commit()
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{}-{}.json", id.get(..DIGITS).unwrap_or(id), self.key))
    }
}
