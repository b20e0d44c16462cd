//! `cargo xtask book`: the documents as a book with search, by mdBook.
//!
//! mdBook copies everything beside its pages, and knows links between pages only. So the pages that
//! docs/SUMMARY.md lists are copied to target/book/src, at the same paths, and a link to any other file of
//! the repository becomes its text and path. Every link of the built pages must have a target; a page of
//! docs/ that SUMMARY.md does not list is an error.
//!
//! If `cargo xtask page` has made the page before, the book has it, and the page of each verb that it answers
//! begins with a link to an example there.

use crate::page;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The folder of the book, and the list of its pages.
const BOOK: &str = "target/book";
const SUMMARY: &str = "docs/SUMMARY.md";
/// The name of a folder's first page in the book.
const INDEX: &str = "index.md";
/// The name of slablab in a page in the book.
const TRY: &str = "slablab.html";

/// Pages of verbs, and the example that a reader can try.
const EXAMPLES: &[(&str, &str)] = &[
    ("docs/doctor.md", "a machine that was loaded"),
    ("docs/whatif.md", "slub_max_order of 0, 1, 2"),
    ("docs/orders.md", "orders that a patch changes on 64 KiB pages"),
    ("docs/pressure.md", "a file that is read beside hot memory"),
    ("docs/run.md", "kmalloc and kfree on five releases"),
    ("docs/reproduce.md", "Linux 7.0 with memory on 2 of 8 nodes"),
    ("docs/replay.md", "hackbench on 6.18 and 7.3"),
    ("docs/explain.md", "what sheaves for all caches did to it"),
    ("docs/map.md", "where its mappings lie, event by event"),
    ("docs/sites.md", "which code allocated"),
    ("docs/caches.md", "what dentry and kmalloc-1k are"),
];

/// Builds the book. Returns the number of its pages and of the links that were checked.
pub(crate) fn build(root: &Path) -> Result<(usize, usize), String> {
    let summary = read(&root.join(SUMMARY))?;
    let pages = listed(&summary);
    expect_all_listed(root, &pages)?;
    let book = root.join(BOOK);
    for old in ["src", "html"] {
        let _ = fs::remove_dir_all(book.join(old));
    }
    for page in &pages {
        let text = rewritten(&read(&root.join(page))?, page, &pages);
        write(&book.join("src").join(staged(page)), &with_example(root, page, text))?;
    }
    let page = root.join(page::PAGE);
    if page.is_file() {
        let to = book.join("src/docs").join(TRY);
        fs::copy(&page, &to).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    // The list is at the root of the book's pages: its links are from there.
    let lines = summary.lines().map(|line| match link(line) {
        Some((from, to)) => {
            let target = staged(&resolved(Path::new(SUMMARY), &line[from..to]));
            format!("{}{}{}", &line[..from], target.display(), &line[to..])
        }
        None => line.to_string(),
    });
    write(&book.join("src/SUMMARY.md"), &lines.collect::<Vec<_>>().join("\n"))?;
    write(&book.join("book.toml"), &read(&root.join("docs/book.toml"))?)?;
    let status = Command::new("mdbook").arg("build").arg(&book).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("mdbook build {BOOK}: {status}")),
        Err(error) => return Err(format!("mdbook: {error}; cargo install mdbook")),
    }
    Ok((pages.len(), check_links(&book.join("html"))?))
}

/// A page of the book with a link to its example below its title, if there is one.
fn with_example(root: &Path, page: &Path, text: String) -> String {
    let titled = EXAMPLES.iter().find(|(path, _)| Path::new(path) == page);
    let titled = titled.filter(|_| root.join(page::PAGE).is_file());
    let found = titled.and_then(|(_, title)| Some((title, page::example(title)?)));
    let (Some((title, number)), Some((head, rest))) = (found, text.split_once('\n')) else { return text };
    format!("{head}\n\n[Try it in this browser: {title}]({TRY}#example={number})\n{rest}")
}

/// The name of a page in the book.
fn staged(page: &Path) -> PathBuf {
    if page.ends_with("README.md") { page.with_file_name(INDEX) } else { page.to_path_buf() }
}

/// The pages of the list, by their paths in the repository.
fn listed(summary: &str) -> BTreeSet<PathBuf> {
    let links = summary.lines().filter_map(|line| link(line).map(|(from, to)| &line[from..to]));
    links.map(|target| resolved(Path::new(SUMMARY), target)).collect()
}

/// Where the target of the first link of a line begins and ends.
fn link(line: &str) -> Option<(usize, usize)> {
    let from = line.find("](")? + 2;
    Some((from, from + line[from..].find(')')?))
}

fn expect_all_listed(root: &Path, pages: &BTreeSet<PathBuf>) -> Result<(), String> {
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(root.join(&folder)).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md")
                && path != Path::new(SUMMARY)
                && !pages.contains(&path)
            {
                return Err(format!("{SUMMARY} does not list {}", path.display()));
            }
        }
    }
    Ok(())
}

/// A link's target, from a page, as a path in the repository, without its anchor.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let target = target.split('#').next().unwrap_or_default();
    let mut path = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// A page whose links to files that are no pages of the book are text.
fn rewritten(text: &str, page: &Path, pages: &BTreeSet<PathBuf>) -> String {
    let mut out = String::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let mut rest = line;
        while !in_code && let Some((from, to)) = link(rest) {
            let target = &rest[from..to];
            let path = resolved(page, target);
            let stays = target.starts_with("http") || target.starts_with('#') || pages.contains(&path);
            let open = opening(&rest[..from - 2]);
            match open.filter(|_| !stays) {
                // mdBook writes README.md as index.html, and does not change the links to it.
                None => {
                    out += &rest[..from];
                    out += &if stays { target.replace("README.md", INDEX) } else { target.to_string() };
                    out.push(')');
                }
                Some(open) => {
                    let name = &rest[open + 1..from - 2];
                    out += &rest[..open];
                    out += name;
                    if !name.contains(target) {
                        out += &format!(" (`{}`)", path.display());
                    }
                }
            }
            rest = &rest[to + 1..];
        }
        out += rest;
        out.push('\n');
    }
    out
}

/// Where the bracket of a link's text opens, if the text ends with `before`.
fn opening(before: &str) -> Option<usize> {
    let mut depth = 1;
    before.char_indices().rev().find_map(|(at, char)| {
        depth += i32::from(char == ']') - i32::from(char == '[');
        (depth == 0).then_some(at)
    })
}

/// Checks that every link of the built pages has a target: a file, and an element with the anchor's name.
/// Returns the number of links.
fn check_links(html: &Path) -> Result<usize, String> {
    let mut folders = vec![html.to_path_buf()];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "html") {
                count += check_page(&path, html)?;
            }
        }
    }
    Ok(count)
}

fn check_page(path: &Path, html: &Path) -> Result<usize, String> {
    // These two pages are for other places than their own.
    if ["404.html", "toc.html"].iter().any(|name| path.ends_with(name)) {
        return Ok(0);
    }
    let text = read(path)?;
    let mut count = 0;
    for target in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        if target.contains("://") || target.starts_with("mailto:") || target.starts_with("data:") {
            continue;
        }
        count += 1;
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let to = if file.is_empty() { path.to_path_buf() } else { path.parent().unwrap_or(html).join(file) };
        let shown = || format!("{}: no target of the link {target}", path.display());
        let there = fs::read(&to).map_err(|_| shown())?;
        // What is asked of slablab in a page is no place in it.
        let is_question = to.ends_with(TRY) && anchor.starts_with("example=");
        if !anchor.is_empty()
            && !is_question
            && !String::from_utf8_lossy(&there).contains(&format!("id=\"{anchor}\""))
        {
            return Err(shown());
        }
    }
    Ok(count)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every example that a page leads to is one of the page, and every page is one of the repository.
    #[test]
    fn examples_are_there() {
        let root = crate::run::root();
        for (path, title) in EXAMPLES {
            assert!(root.join(path).is_file(), "{path}");
            assert!(page::example(title).is_some(), "{title}");
        }
    }

    #[test]
    fn links_to_sources_become_text() {
        let pages: BTreeSet<PathBuf> = ["book/a.md", "README.md"].map(PathBuf::from).into();
        let page = Path::new("book/a.md");
        for (line, expected) in [
            ("see [the front](../README.md#try-it), and", "see [the front](../index.md#try-it), and"),
            ("[data](../examples/data/README.md)", "data (`examples/data/README.md`)"),
            ("[../x.rs](../x.rs) and [b](#b)", "../x.rs and [b](#b)"),
            ("[a [b] c](x.rs) [w](https://x.y/(z)", "a [b] c (`book/x.rs`) [w](https://x.y/(z)"),
            ("no link](here), [none]", "no link](here), [none]"),
        ] {
            assert_eq!(rewritten(line, page, &pages), format!("{expected}\n"), "{line}");
        }
        let code = "```\n[x](y.rs)\n```\n[x](y.rs)\n";
        assert_eq!(rewritten(code, page, &pages), "```\n[x](y.rs)\n```\nx (`book/y.rs`)\n");
    }
}
