//! What can be wrong with a script.

use slablab_choices::near::edits;
use std::fmt;

/// A line of a script that is not in the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file of the line, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The words that should be there.
    pub expected: String,
    /// The words that are there.
    pub found: String,
    /// Names that are known there and look like `found`, the best first.
    pub near: Vec<String>,
}

impl ScriptError {
    /// The error without the file, for a caller that names files itself.
    pub fn what(&self) -> String {
        let ScriptError { line, expected, found, near, .. } = self;
        let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
        format!("line {line}: expected {expected}, found `{found}`{near}")
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.what())
    }
}

impl std::error::Error for ScriptError {}

/// The most names of [`ScriptError::near`].
const NEAR: usize = 3;

/// The names of `known` in which at least half of the longer one agrees.
pub(super) fn near<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wrong = |name: &'a str| (edits(found, name), name);
    let is_near = |&(edits, name): &(usize, &str)| 2 * edits <= found.len().max(name.len());
    let mut names: Vec<(usize, &str)> = known.map(wrong).filter(is_near).collect();
    names.sort_unstable();
    names.into_iter().take(NEAR).map(|(_, name)| name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn near_names() {
        #[track_caller]
        fn check(found: &str, expected: &[&str]) {
            let known = ["acc", "anon", "stat", "statuni", "rewind", "inter"];
            assert_eq!(near(found, known.into_iter()), expected, "{found}");
        }
        check("ac", &["acc"]);
        check("stats", &["stat", "statuni"]);
        check("stauni", &["statuni", "stat"]);
        check("rewnid", &["rewind"]);
        check("x", &[]);
    }
}
