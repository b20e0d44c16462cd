//! Which modules of a crate use which, read from sources as text, and the cycles among them.
//!
//! A module is a file or a folder directly below `src`; `lib.rs` or `main.rs` is the module [`ROOT`]. A
//! module uses another one if its code names it by `crate::` or, one level up, by `super::`, directly or
//! through a `pub use` of the root. Code after `#[cfg(test)]` does not count. Text cannot show a method
//! that another module implements for a type.

use super::{code, read, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crate's root file. It names all modules, so a module that uses an item of the root is in a cycle.
const ROOT: &str = "lib.rs";

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The cycles: sets of modules in which each module reaches every other one.
pub(crate) fn knots(src: &Path) -> Vec<BTreeSet<String>> {
    let graph = graph(src);
    let reached: Graph = graph.keys().map(|from| (from.clone(), reached(&graph, from))).collect();
    let mut knots: Vec<BTreeSet<String>> = Vec::new();
    for (module, to) in &reached {
        let back = to.iter().filter(|other| reached.get(*other).is_some_and(|to| to.contains(module)));
        let knot: BTreeSet<String> = back.cloned().collect();
        if knot.len() > 1 && !knots.contains(&knot) {
            knots.push(knot);
        }
    }
    knots
}

fn reached(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if seen.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    seen
}

/// For each module, the modules that it uses.
fn graph(src: &Path) -> Graph {
    let is_root = |path: &Path| path == src.join("lib.rs") || path == src.join("main.rs");
    let (root, files): (Vec<_>, Vec<_>) = sources(src).into_iter().partition(|path| is_root(path));
    let place = |path: &Path| -> Vec<String> {
        let below = path.strip_prefix(src).expect("a source is below src").with_extension("");
        below.iter().map(|part| part.to_string_lossy().into_owned()).collect()
    };
    let mut graph: Graph = files.iter().map(|path| (place(path)[0].clone(), BTreeSet::new())).collect();
    let top = root.iter().map(|path| code(&read(path))).collect::<String>();
    let reexports = reexports(&top);
    let owner = |name: &str| match reexports.get(name) {
        _ if graph.contains_key(name) => Some(name.to_owned()),
        Some(module) => graph.contains_key(module).then(|| module.clone()),
        None => Some(ROOT.to_owned()),
    };
    let mut uses = Vec::new();
    for path in &files {
        let place = place(path);
        let is_top = place.len() == 1 || (place.len() == 2 && place[1] == "mod");
        let stripped = code(&read(path));
        let shipped = &stripped[..stripped.find("#[cfg(test)]").unwrap_or(stripped.len())];
        let named = names(shipped, is_top);
        uses.extend(named.iter().filter_map(|name| Some((place[0].clone(), owner(name)?))));
    }
    graph.insert(ROOT.to_owned(), graph.keys().cloned().collect());
    for (module, used) in uses.into_iter().filter(|(module, used)| module != used) {
        graph.entry(module).or_default().insert(used);
    }
    graph
}

/// Names that the root imports by `use`, each with the first part of its path: a module or another crate.
fn reexports(root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in root.split(';').filter_map(|text| text.split_once("use ").map(|(_, path)| path)) {
        let path = statement.trim().trim_start_matches("crate::").trim_start_matches("self::");
        let Some((first, rest)) = path.split_once("::") else { continue };
        for name in rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            found.insert(name.to_owned(), first.to_owned());
        }
    }
    found
}

/// The first names after `crate::`, and after `super::` if that is the root. Macros and visibilities do not
/// count.
fn names(code: &str, super_is_root: bool) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for prefix in ["crate::", "super::"].into_iter().filter(|prefix| *prefix == "crate::" || super_is_root) {
        for (at, _) in code.match_indices(prefix) {
            let before = &code[..at];
            if before.ends_with("in ") || before.ends_with("::") || before.ends_with(is_word) {
                continue;
            }
            let after = &code[at + prefix.len()..];
            match after.strip_prefix('{') {
                Some(group) => found.extend(group_names(group)),
                None => {
                    let name = &after[..after.find(|c| !is_word(c)).unwrap_or(after.len())];
                    let is_name = !name.is_empty() && !after[name.len()..].starts_with('!');
                    found.extend(is_name.then(|| name.to_owned()));
                }
            }
        }
    }
    found
}

/// The first names of the paths in a braced group. `group` begins after the opening brace, and continues
/// after the closing brace.
fn group_names(group: &str) -> Vec<String> {
    let mut depth = 1;
    let mut names = vec![String::new()];
    let mut in_name = true;
    for c in group.chars() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        match c {
            _ if depth == 0 => break,
            ',' if depth == 1 => {
                names.push(String::new());
                in_name = true;
            }
            _ if in_name && (c.is_alphanumeric() || c == '_') => {
                names.last_mut().expect("there is a first").push(c);
            }
            _ if !c.is_whitespace() => in_name = false,
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn names_of_modules_are_found() {
    let text = "use crate::{a::{x, y}, b, c::z}; pub(in crate::d) fn f() { crate::e::g(); crate::m!(); } use super::h::i;";
    let found = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(found(names(text, false)), "a b c e");
    assert_eq!(found(names(text, true)), "a b c e h");
    let root = reexports("mod a; pub use a::{B, C as D}; use other::E;");
    assert_eq!(root.get("D").map(String::as_str), Some("a"));
    assert_eq!(root.get("E").map(String::as_str), Some("other"));
}

#[test]
fn cycles_are_found() {
    let edges = [("a", "b"), ("b", "c"), ("c", "b"), ("d", "a"), ("c", "c")];
    let mut graph = Graph::new();
    for (from, to) in edges {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    assert!(reached(&graph, "b").contains("b"), "b reaches itself through c");
    assert!(!reached(&graph, "a").contains("a"), "nothing below a reaches a");
    assert!(!reached(&graph, "d").contains("d"));
}
