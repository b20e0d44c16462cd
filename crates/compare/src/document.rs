//! A file with a result.

use crate::answer::Answer;
use crate::kinds::{self, Kind};
use serde_json::Value;
use slablab_report::error::{Error, Result};
use slablab_report::nearest::nearest;
use slablab_report::{Limit, read_at_most};
use std::path::{Path, PathBuf};

/// A result. That of a replay of ten engines and a thousand caches has 10 MiB.
pub const RESULT: Limit = Limit::mib("a result (JSON)", 256);

/// A result, with the name of its column.
#[derive(Debug)]
pub struct Document {
    pub(crate) name: String,
    pub(crate) kind: &'static Kind,
    pub(crate) answer: Answer,
}

impl Document {
    /// Reads the result of a verb from a file. `name` is its column's.
    ///
    /// # Errors
    /// A file that cannot be read; those of [`Document::parse`].
    pub fn read(name: &str, path: &Path) -> Result<Document> {
        Document::parse(name, path, &read_at_most(path, RESULT)?)
    }

    /// Reads a result. `name` is its column's, `path` its name in errors.
    ///
    /// # Errors
    /// If the bytes are not a result that can be compared.
    pub fn parse(name: &str, path: &Path, bytes: &[u8]) -> Result<Document> {
        if bytes.trim_ascii().is_empty() {
            return Err(Error::new(
                path,
                "the file is empty: expected what a verb writes with --format json",
            ));
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            Error::new(path, format!("no JSON: {error}; expected what a verb writes with --format json"))
        })?;
        let kind = kind(&value).map_err(|what| Error::new(path, what))?;
        let answer = (kind.read)(&value)
            .map_err(|what| Error::new(path, format!("{what}; expected what {} writes", kind.words)))?;
        Ok(Document { name: name.to_string(), kind, answer })
    }
}

/// The names of columns for files: theirs without their ends, or their paths if two of them have one name.
pub fn names(files: &[PathBuf]) -> Vec<String> {
    let stem = |path: &PathBuf| match path == Path::new("-") {
        true => "standard input".to_string(),
        false => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    let is_alone = |name: &String| stems.iter().filter(|one| *one == name).count() == 1;
    match stems.iter().all(is_alone) {
        true => stems,
        false => files.iter().map(|path| path.display().to_string()).collect(),
    }
}

/// How the names of schemas begin.
const PREFIX: &str = "slablab.";

/// The kind that a document's schema names.
fn kind(value: &Value) -> std::result::Result<&'static Kind, String> {
    let expected = || {
        let mut verbs: Vec<&str> = kinds::ALL.iter().map(|kind| kind.verb).collect();
        verbs.dedup();
        format!(
            "expected what one of {} writes with --format json, or hyperfine --export-json",
            verbs.join(", ")
        )
    };
    let Some(schema) = value["schema"].as_str() else {
        return kinds::foreign(value).ok_or_else(|| format!("no key `schema`: {}", expected()));
    };
    if let Some(kind) = kinds::ALL.iter().find(|kind| kind.schema == schema) {
        return Ok(kind);
    }
    let stem = |name: &str| name.rsplit_once('.').map_or(String::new(), |(stem, _)| stem.to_string());
    if let Some(kind) = kinds::ALL.iter().find(|kind| stem(kind.schema) == stem(schema)) {
        let what = "of another version of slablab: run both with one version";
        return Err(format!("schema {schema}, {what}; expected {}", kind.schema));
    }
    let known = kinds::ALL.iter().filter_map(|kind| kind.schema.strip_prefix(PREFIX));
    let like = nearest(schema.trim_start_matches(PREFIX), known, 1);
    let like = like.first().map_or(String::new(), |like| format!(" (did you mean {PREFIX}{like}?)"));
    Err(format!("schema {schema}{like}: its results have no table of their own to compare; {}", expected()))
}
