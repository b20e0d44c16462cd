//! Every citation, link and path in the documents and sources has a target that exists.
//!
//! A citation is the file and the section, `docs/theory/slub.md 4.4`; a section is a heading that begins with
//! its number. Links are relative Markdown links, with or without an anchor. Paths begin with a folder of the
//! repository, in any text. Module paths (`slabs::order`) are in backticks, in pages. The tests cannot show
//! that the cited section supports the claim of the citing line.

mod constants;
mod paths;
mod rules;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Endings of the files that the tests read: sources, pages, manifests, scripts, headers.
const EXTENSIONS: [&str; 9] = ["rs", "md", "toml", "py", "h", "c", "cpp", "sh", "yml"];

/// Folders of the repository; a path in a text begins with one of them.
const FOLDERS: [&str; 7] = ["crates/", "docs/", "examples/", "scripts/", "fuzz/", "xtask/", ".ci/"];

/// Folders that were never in the repository. The parts are joined at run time, so that this file passes.
const FOREIGN: [(&str, &str); 3] = [("reference", "/"), ("../shared", "/"), ("shared", "/truth")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// A text file of the repository.
struct Text {
    /// The path in the repository.
    path: String,
    lines: Vec<String>,
}

impl Text {
    fn is_page(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// The lines of a paragraph or of a comment as one string, with the number of the first line: a citation
    /// may be broken over two lines.
    fn paragraphs(&self) -> Vec<(usize, String)> {
        let mut paragraphs: Vec<(usize, String)> = Vec::new();
        let mut goes_on = false;
        for (number, line) in self.lines.iter().enumerate() {
            let bare = line.trim().trim_start_matches(['/', '!', '#']).trim();
            if bare.is_empty() || bare.starts_with('|') {
                paragraphs.push((number + 1, bare.to_owned()));
                goes_on = false;
            } else if goes_on && (self.is_page() || line.trim().starts_with("//")) {
                let last = &mut paragraphs.last_mut().expect("a paragraph was begun").1;
                last.push(' ');
                last.push_str(bare);
            } else {
                paragraphs.push((number + 1, bare.to_owned()));
                goes_on = true;
            }
        }
        paragraphs
    }
}

/// Every text of the repository, without build products.
fn texts() -> Vec<Text> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a folder of the repository can be read").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if path.is_dir() {
                // A link is a second name of a folder, for a package that needs its files.
                if !["target", ".git"].contains(&name) && !path.is_symlink() {
                    folders.push(path);
                }
            } else if EXTENSIONS.contains(&extension) || folder.ends_with(".ci") {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let path = path.strip_prefix(&root).expect("below the root");
                let path = path.to_str().expect("plain names").to_owned();
                found.push(Text { path, lines: text.lines().map(str::to_owned).collect() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The lines of a page outside of its code blocks.
fn prose(text: &Text) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines.iter().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!code && !fence).then_some((number + 1, line.as_str()))
    })
}

/// The headings of a page, without `#`.
fn headings(text: &Text) -> impl Iterator<Item = &str> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| line.trim_start_matches('#').trim())
}

/// The anchor of a heading: lower case, hyphens instead of spaces, no punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The number that a heading begins with: `4.4` of `4.4 CPU partial lists`, `1` of `1. Eras`.
fn section(heading: &str) -> Option<&str> {
    let number = heading.split(' ').next()?.trim_end_matches('.');
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(number)
}

/// The section numbers that follow a cited file: `2, 5.2 to 5.4` or `3 and 4`.
fn cited_sections(mut rest: &str) -> Vec<&str> {
    let mut sections = Vec::new();
    let mut joint = " ";
    while let Some(after) =
        rest.strip_prefix(joint).filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))
    {
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
        sections.push(after[..end].trim_end_matches('.'));
        if after[..end].ends_with('.') {
            break;
        }
        rest = &after[end..];
        joint = [", ", " to ", " and "].into_iter().find(|joint| rest.starts_with(joint)).unwrap_or("\n");
    }
    sections
}

/// The path in a text that begins at `at`.
fn path_at(text: &str, at: usize) -> &str {
    let path = |c: char| c.is_ascii_alphanumeric() || "/._-{},*@+".contains(c);
    let end = text[at..].find(|c: char| !path(c)).unwrap_or(text.len() - at);
    text[at..at + end].trim_end_matches(['.', ',', '-', '}'].as_slice())
}

/// Whether a path begins at `at`, and `at` is not in the middle of a longer path.
fn begins(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    before.is_none_or(|c| !c.is_ascii_alphanumeric() && !"/._-{}>".contains(c))
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn braces(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
        Some((head, (names, tail))) => names.split(',').map(|name| format!("{head}{name}{tail}")).collect(),
        None => vec![path.to_owned()],
    }
}

/// An error: its place and its text.
fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} have no target:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_citation_resolves() {
    let texts = texts();
    let sections: HashMap<&str, HashSet<&str>> = texts
        .iter()
        .filter(|text| text.is_page())
        .map(|page| (page.path.as_str(), headings(page).filter_map(section).collect()))
        .collect();
    let (mut wrong, mut resolved) = (Vec::new(), 0);
    for text in &texts {
        for (line, paragraph) in text.paragraphs() {
            for (end, _) in paragraph.match_indices(".md ") {
                let start =
                    paragraph[..end].rfind(|c: char| !c.is_ascii_alphanumeric() && !"/._-".contains(c));
                let file = &paragraph[start.map_or(0, |at| at + 1)..end + 3];
                let cited = cited_sections(&paragraph[end + 3..]);
                for number in &cited {
                    match sections.get(file) {
                        Some(known) if known.contains(number) => resolved += 1,
                        Some(_) => {
                            wrong.push(format!("{}:{line}: {file} has no section {number}", text.path))
                        }
                        None => wrong.push(format!("{}:{line}: no page {file} {number}", text.path)),
                    }
                }
            }
        }
    }
    report(&wrong);
    println!("{resolved} citations resolved");
    assert!(resolved > 100, "only {resolved} citations were found: the reader of this test is broken");
}

#[test]
fn every_link_resolves() {
    let texts = texts();
    let anchors: HashMap<&str, HashSet<String>> = texts
        .iter()
        .filter(|text| text.is_page())
        .map(|page| (page.path.as_str(), headings(page).map(anchor).collect()))
        .collect();
    let (mut wrong, mut resolved) = (Vec::new(), 0);
    for text in texts.iter().filter(|text| text.is_page()) {
        for (line, content) in prose(text) {
            for (at, _) in content.match_indices("](") {
                let target = &content[at + 2..content[at..].find(')').map_or(content.len(), |end| at + end)];
                if target.contains("://") {
                    continue;
                }
                let (file, hash) = target.split_once('#').unwrap_or((target, ""));
                let folder = Path::new(&text.path).parent().expect("a file is in a folder");
                let path = if file.is_empty() { text.path.clone() } else { plain(&folder.join(file)) };
                if !root().join(&path).exists() {
                    wrong.push(format!("{}:{line}: no file {path}", text.path));
                } else if !hash.is_empty()
                    && !anchors.get(path.as_str()).is_some_and(|all| all.contains(hash))
                {
                    wrong.push(format!("{}:{line}: {path} has no heading #{hash}", text.path));
                } else {
                    resolved += 1;
                }
            }
        }
    }
    report(&wrong);
    println!("{resolved} links resolved");
}

/// A path without `..`.
fn plain(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.iter().filter_map(|part| part.to_str()) {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn no_text_names_a_folder_outside_the_repository() {
    let foreign: Vec<String> = FOREIGN.iter().map(|(head, tail)| format!("{head}{tail}")).collect();
    let mut wrong = Vec::new();
    for text in &texts() {
        for (number, line) in text.lines.iter().enumerate() {
            for name in &foreign {
                let lower = line.to_lowercase();
                if lower
                    .match_indices(name.as_str())
                    .any(|(at, _)| begins(&lower, at) || name.starts_with('.'))
                {
                    wrong.push(format!("{}:{}: {name}", text.path, number + 1));
                }
            }
        }
    }
    report(&wrong);
}

#[test]
fn the_parsers_of_this_test_work() {
    assert_eq!(cited_sections(" 5.3 to 5.6)"), ["5.3", "5.6"]);
    assert_eq!(cited_sections(" 2, 5.2 to 5.4). Then 7"), ["2", "5.2", "5.4"]);
    assert_eq!(cited_sections(" 4. 12 objects"), ["4"]);
    assert_eq!(cited_sections(" 3; 4.7)"), ["3"]);
    assert_eq!(cited_sections(" has it"), [""; 0]);
    assert_eq!(anchor("5.7 kmalloc caches"), "57-kmalloc-caches");
    assert_eq!(anchor("`a_b`: which?"), "a_b-which");
    assert_eq!(section("4.4 CPU partial lists (3.2 to 6.19)"), Some("4.4"));
    assert_eq!(section("1. Eras"), Some("1"));
    assert_eq!(section("Sources"), None);
    assert_eq!(braces("x/{a,b}.rs"), ["x/a.rs", "x/b.rs"]);
    assert_eq!(path_at("see a/b.md, then", 4), "a/b.md");
}
