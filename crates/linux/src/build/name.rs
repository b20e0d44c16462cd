//! Names of builds: they are parts of the choice of an engine, and folders.

use super::allocator::Allocator;
use super::built::Built;

/// The most characters of a name.
const LONGEST: usize = 64;

/// Checks a name.
///
/// # Errors
/// What a name is, in words.
pub fn check(name: &str) -> Result<(), String> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || ".-_".contains(char);
    let begins = name.starts_with(|char: char| char.is_ascii_alphanumeric());
    if begins && name.len() <= LONGEST && name.chars().all(is_part) {
        return Ok(());
    }
    Err(format!(
        "expected a letter or digit, then letters, digits, ., - and _, {LONGEST} at most, found {name:?}"
    ))
}

/// The name of a build that its user gives none: that of the tree's folder.
pub(super) fn usual(built: &Built) -> String {
    let folder = built.tree.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = folder.filter(|name| check(name).is_ok() && name.len() + 8 <= LONGEST);
    let name = name.unwrap_or_else(|| format!("linux-{}.{}", built.version[0], built.version[1]));
    match built.allocator {
        Allocator::Slub => name,
        other => format!("{name}-{}", other.word()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word_and_a_folder() {
        for name in ["a", "linux-6.1_x", "6.1", &"a".repeat(64)] {
            assert_eq!(check(name), Ok(()));
        }
        for name in ["", ".", "..", "-a", "a/b", "a@b", "a,b", "a:b", "a b", "ä", &"a".repeat(65)] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
