//! Which source files of a crate use which, read from sources as text, and the knots among them.
//!
//! A module is a source file, at any depth; `lib.rs` or `main.rs` is the root, the empty path. A module uses
//! the module that owns a name of its code: the path after `crate::`, `super::` or `self::` is followed
//! through files and through the `use` declarations of files. A module and the modules around it are one
//! thing here (`slub/mod.rs` defines the type, `slub/free.rs` its methods), but for the root: a module that
//! uses an item that the root defines uses all modules. Test code does not count. Text cannot show a method
//! that another module implements for a type, nor what a glob brings in.

use super::{code, read, shipped, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The place of a module in its crate: `["engines", "slub", "free"]`.
pub(crate) type Place = Vec<String>;

/// The modules of one crate: what each says, and which names its `use` declarations bring in.
struct Modules {
    code: BTreeMap<Place, String>,
    brought: BTreeMap<Place, BTreeMap<String, Place>>,
}

/// The knots of a crate: sets of modules in which each module reaches every other one.
pub(crate) fn knots(src: &Path) -> Vec<BTreeSet<String>> {
    let mut code: BTreeMap<Place, String> = BTreeMap::new();
    for path in sources(src) {
        let below = path.strip_prefix(src).expect("a source is below src").with_extension("");
        let mut place: Place = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if place.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            place.pop();
        }
        code.entry(place).or_default().push_str(&shipped(&self::code(&read(&path))));
    }
    knots_of(&Modules::new(code))
}

fn knots_of(modules: &Modules) -> Vec<BTreeSet<String>> {
    let graph = modules.graph();
    let reached: BTreeMap<&Place, BTreeSet<&Place>> =
        graph.keys().map(|from| (from, reached(&graph, from))).collect();
    let mut knots: Vec<BTreeSet<String>> = Vec::new();
    for (module, to) in &reached {
        let back = to.iter().filter(|other| reached.get(*other).is_some_and(|to| to.contains(module)));
        let knot: BTreeSet<String> = back.map(|place| name(place)).collect();
        if knot.len() > 1 && !knots.contains(&knot) {
            knots.push(knot);
        }
    }
    knots
}

fn name(place: &Place) -> String {
    if place.is_empty() { "lib.rs".to_owned() } else { place.join("/") }
}

fn reached<'a>(graph: &'a BTreeMap<Place, BTreeSet<Place>>, from: &Place) -> BTreeSet<&'a Place> {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<&Place> = graph.get_key_value(from).map(|(from, _)| from).into_iter().collect();
    while let Some(module) = waiting.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if seen.insert(next) {
                waiting.push(next);
            }
        }
    }
    seen
}

impl Modules {
    fn new(code: BTreeMap<Place, String>) -> Self {
        let mut modules = Self { code, brought: BTreeMap::new() };
        let brought = modules.code.iter().map(|(place, code)| (place.clone(), modules.brings(place, code)));
        modules.brought = brought.collect();
        modules
    }

    /// For each module, the modules that it uses.
    fn graph(&self) -> BTreeMap<Place, BTreeSet<Place>> {
        let mut graph: BTreeMap<Place, BTreeSet<Place>> = BTreeMap::new();
        for (place, code) in &self.code {
            let uses = graph.entry(place.clone()).or_default();
            for path in relative_paths(code) {
                let owner = absolute(place, &path).and_then(|path| self.owner(&path, 0));
                let apart = |owner: &Place| {
                    let around = owner.starts_with(place) || place.starts_with(owner);
                    !around || (owner.is_empty() && !place.is_empty())
                };
                uses.extend(owner.filter(apart));
            }
        }
        let all: BTreeSet<Place> = graph.keys().filter(|place| !place.is_empty()).cloned().collect();
        graph.insert(Place::new(), all);
        graph
    }

    /// The module that defines the item of an absolute path. `None`: an item of another crate.
    fn owner(&self, path: &[String], depth: usize) -> Option<Place> {
        let mut at = Place::new();
        for (index, segment) in path.iter().enumerate() {
            let mut next = at.clone();
            next.push(segment.clone());
            if self.code.contains_key(&next) || self.code.keys().any(|place| place.starts_with(&next)) {
                at = next;
                continue;
            }
            let brought = self.brought.get(&at).and_then(|names| names.get(segment));
            return match brought {
                Some(origin) if depth < 8 => match origin.first().map(String::as_str) {
                    Some("") => None,
                    _ => {
                        let whole: Place = origin.iter().chain(&path[index + 1..]).cloned().collect();
                        self.owner(&whole, depth + 1)
                    }
                },
                _ => Some(at),
            };
        }
        Some(at)
    }

    /// The names that the `use` declarations of a module bring in, each with its absolute path. The path of
    /// an item of another crate begins with an empty part.
    fn brings(&self, place: &Place, code: &str) -> BTreeMap<String, Place> {
        let mut found = BTreeMap::new();
        for (at, _) in code.match_indices("use ") {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            for (path, name) in paths(&code[at + "use ".len()..]) {
                let child =
                    path.first().map(|first| [place.as_slice(), std::slice::from_ref(first)].concat());
                let is_child = child.is_some_and(|child| self.code.contains_key(&child));
                let whole = match absolute(place, &path) {
                    Some(path) => path,
                    None if is_child => [place.as_slice(), &path].concat(),
                    None => [&[String::new()], path.as_slice()].concat(),
                };
                found.insert(name, whole);
            }
        }
        found
    }
}

/// A path that begins with `crate`, `super` or `self`, from the root. `None`: it begins otherwise.
fn absolute(place: &Place, path: &[String]) -> Option<Place> {
    let mut at = match path.first()?.as_str() {
        "crate" => Place::new(),
        "super" | "self" => place.clone(),
        _ => return None,
    };
    for segment in path {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            _ => at.push(segment.clone()),
        }
    }
    Some(at)
}

/// Every path of the code that begins with `crate::`, `super::` or `self::`, in `use` declarations and
/// elsewhere. Macros and visibilities do not count.
fn relative_paths(code: &str) -> Vec<Place> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for prefix in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(prefix) {
            let before = &code[..at];
            // `$crate` is a path of the crate that uses the macro.
            let others = ["in ", "::", "$"].iter().any(|end| before.ends_with(end));
            if others || before.ends_with(is_word) {
                continue;
            }
            found.extend(paths(&code[at..]).into_iter().map(|(path, _)| path));
        }
    }
    found
}

/// The paths of a path or of a tree of paths (`a::{b, c::d as e}`), each with the name that it brings in.
/// A macro's path ends before its name.
fn paths(tree: &str) -> Vec<(Place, String)> {
    let mut path = Place::new();
    let mut rest = tree.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            let inner = members(group).into_iter().flat_map(paths);
            return inner
                .map(|(below, name)| match below.as_slice() {
                    [only] if only == "self" => (path.clone(), path.last().cloned().unwrap_or_default()),
                    _ => ([path.as_slice(), &below].concat(), name),
                })
                .collect();
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (segment, after) = rest.split_at(end);
        if after.starts_with('!') && path.len() < 2 {
            return Vec::new();
        }
        if segment.is_empty() || after.starts_with('!') {
            break;
        }
        path.push(segment.to_owned());
        match after.strip_prefix("::") {
            Some(next) => rest = next,
            None => {
                let alias = after.trim_start().strip_prefix("as ").map(str::trim_start);
                let name = alias.map_or(segment, |alias| {
                    &alias[..alias.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(alias.len())]
                });
                return vec![(path, name.to_owned())];
            }
        }
    }
    if path.is_empty() { Vec::new() } else { vec![(path, String::new())] }
}

/// The members of a braced group. `group` begins after the opening brace, and continues after the closing
/// one.
fn members(group: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&group[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|member| !member.trim().is_empty());
    found
}

#[test]
fn paths_of_trees_are_found() {
    fn check(text: &str, expected: &str) {
        let found = relative_paths(text).iter().map(|path| path.join("/")).collect::<Vec<_>>();
        assert_eq!(found.join(" "), expected, "{text}");
    }
    check("use crate::{a::{x, y}, b::{self}, c};", "crate/a/x crate/a/y crate/b crate/c");
    check("pub(in crate::d) fn f() { crate::e::g(); crate::m!(); }", "crate/e/g");
    check("fn f(a: super::super::b::C<crate::D>) {}", "crate/D super/super/b/C");
    check("use other::crate_::x; use a::super_;", "");
}

#[test]
fn knots_are_found_at_every_depth() {
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let place = |path: &str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let code = files.iter().map(|(path, code)| (place(path), (*code).to_owned())).collect();
        let found: Vec<String> = knots_of(&Modules::new(code))
            .iter()
            .map(|knot| knot.iter().cloned().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(found, expected, "{files:?}");
    }
    // Two files of one folder, by `use` and by a path in a function.
    check(&[("", ""), ("a/b", "use super::c::X;"), ("a/c", "fn f() { super::b::g() }")], &["a/b a/c"]);
    // A folder's own file and its parts are one thing.
    check(&[("", ""), ("a", "mod b; use b::X; pub struct Y;"), ("a/b", "use super::Y;")], &[]);
    // A name that the folder's file brings in belongs to the file that defines it.
    check(
        &[("", ""), ("a", "pub use b::X; pub use c::Z;"), ("a/b", "use super::Z;"), ("a/c", "use super::X;")],
        &["a/b a/c"],
    );
    // Over folders, and through a name of the root.
    check(&[("", "pub use b::Y;"), ("a/x", "use crate::Y;"), ("b", "use crate::a::x::X;")], &["a/x b"]);
    // An item that the root defines.
    check(&[("", "pub struct R;"), ("a", "use crate::R;"), ("b", "")], &["a lib.rs"]);
    // Items of other crates, and one way only.
    check(&[("", "pub use other::E;"), ("a", "use crate::E; use crate::b::X;"), ("b", "use std::a;")], &[]);
}
