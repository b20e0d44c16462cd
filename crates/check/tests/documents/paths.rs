//! Paths of files and of modules in the documents exist.

use crate::{FOLDERS, begins, braces, path_at, prose, report, root, texts};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_path_exists() {
    let (mut wrong, mut resolved) = (Vec::new(), 0);
    for text in &texts() {
        for (number, line) in text.lines.iter().enumerate() {
            for (at, _) in FOLDERS.iter().flat_map(|folder| line.match_indices(folder)) {
                let path = path_at(line, at);
                let is_file = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
                // A folder counts as a path only in the backticks of a page. Elsewhere it may be part of a
                // name.
                let quoted = text.is_page() && line[..at].ends_with('`');
                // A text with `*` is a pattern. Braces without a comma are part of a format string.
                let pattern = path.contains('*') || (path.contains('{') && !path.contains(','));
                if !begins(line, at) || pattern || !(is_file || quoted) {
                    continue;
                }
                // A source of a crate may name a file of the crate by its path in the crate.
                let own = root().join(text.path.split('/').take(2).collect::<PathBuf>());
                for path in braces(path) {
                    match root().join(&path).exists() || own.join(&path).exists() {
                        true => resolved += 1,
                        false => wrong.push(format!("{}:{}: no {path}", text.path, number + 1)),
                    }
                }
            }
        }
    }
    report(&wrong);
    println!("{resolved} paths exist");
}

#[test]
fn every_module_path_in_a_page_exists() {
    let crates: HashSet<String> = fs::read_dir(root().join("crates"))
        .expect("the crates are in crates/")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let (mut wrong, mut resolved) = (Vec::new(), 0);
    for text in texts().iter().filter(|text| text.is_page()) {
        for (line, content) in prose(text) {
            for token in content.split('`').skip(1).step_by(2) {
                let path = token.split(['(', '<', ' ', '{']).next().unwrap_or_default().trim_end_matches(':');
                let names: Vec<&str> = path.split("::").collect();
                if names.len() < 2 || !crates.contains(names[0]) {
                    continue;
                }
                match module(&names) {
                    Ok(()) => resolved += 1,
                    Err(missing) => wrong.push(format!("{}:{line}: `{path}`: no {missing}", text.path)),
                }
            }
        }
    }
    report(&wrong);
    println!("{resolved} module paths exist");
}

/// Follows a path of names from a crate: modules as files, then names in the file (or in the files of the
/// folder).
fn module<'a>(names: &[&'a str]) -> Result<(), &'a str> {
    let mut folder = root().join("crates").join(names[0]).join("src");
    let mut file = folder.join("lib.rs");
    for name in &names[1..] {
        let flat = folder.join(format!("{name}.rs"));
        let nested = folder.join(name).join("mod.rs");
        if flat.exists() || nested.exists() {
            file = if flat.exists() { flat } else { nested };
            folder = folder.join(name);
        } else if !says(&file, name) && !says_below(&folder, name) {
            return Err(name);
        }
    }
    Ok(())
}

/// Whether a file has a name as a whole word.
fn says(file: &Path, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    fs::read_to_string(file).is_ok_and(|text| text.split(|c| !part(c)).any(|word| word == name))
}

fn says_below(folder: &Path, name: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| entry.path())
        .any(|path| if path.is_dir() { says_below(&path, name) } else { says(&path, name) })
}
