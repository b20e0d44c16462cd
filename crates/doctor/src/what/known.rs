//! Everything that is known about caches, and how an entry is found.

use super::data::{self, Entry, Method};
use rustc_hash::FxHashMap;
use slablab_report::error::{At, Error, Result};
use slablab_report::{Limit, read_at_most};
use std::path::Path;
use std::sync::OnceLock;

/// The file in the program.
const BUILTIN: &str = include_str!("../../data/caches.toml");

/// Everything that is known about caches.
#[derive(Clone, Debug, Default)]
pub struct Known {
    entries: Vec<Entry>,
    /// Index of the entry by each of its exact names.
    exact: FxHashMap<String, usize>,
    /// Indices of the entries that are patterns, the longest fixed part first.
    patterns: Vec<usize>,
    /// Indices of the entries that were seen in a merged cache, by its made-up name.
    slots: FxHashMap<String, Vec<usize>>,
    methods: FxHashMap<String, Method>,
}

impl Known {
    /// What the program knows by itself. Read once, at the first call, in about a millisecond.
    pub fn builtin() -> &'static Known {
        static KNOWN: OnceLock<Known> = OnceLock::new();
        KNOWN.get_or_init(|| {
            let known = Known::default().and(BUILTIN);
            known.unwrap_or_else(|why| panic!("data/caches.toml: {why}"))
        })
    }

    /// What the program knows, and what a file in the same form adds or says better. The file may use the
    /// methods of the program's own file by name.
    ///
    /// # Errors
    /// A file that cannot be read, is no TOML, or breaks a rule of docs/caches.md; with its name and line.
    pub fn read(path: &Path) -> Result<Known> {
        let expected = "expected entries as docs/caches.md describes them";
        let text = String::from_utf8(read_at_most(path, Limit::mib("a file of caches (TOML)", 16))?);
        let text = text.map_err(|_| format!("{expected}: TOML text in UTF-8")).at(path)?;
        if text.trim().is_empty() {
            return Err(Error::new(path, format!("the file is empty: {expected}")));
        }
        Known::builtin().clone().and(&text).at(path)
    }

    /// Adds the entries of a text; they win over those already here.
    fn and(mut self, text: &str) -> std::result::Result<Known, String> {
        let (methods, entries) = data::parse(text, &self.methods)?;
        self.methods = methods;
        for entry in entries {
            let index = self.entries.len();
            for name in entry.names() {
                if let Some(older) = self.exact.insert(name.to_string(), index) {
                    self.entries[older].forget(name);
                }
            }
            self.entries.push(entry);
        }
        self.index();
        Ok(self)
    }

    /// Drops entries whose every name was taken by a newer one, sorts, and builds the indices anew.
    fn index(&mut self) {
        self.entries.retain(|entry| !entry.name.is_empty());
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        self.exact.clear();
        self.patterns.clear();
        self.slots.clear();
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.is_pattern() {
                self.patterns.push(index);
            }
            self.exact.extend(entry.names().map(|name| (name.to_string(), index)));
            for slot in entry.sizes.iter().filter_map(|size| size.slot.as_ref()) {
                let seen = self.slots.entry(slot.clone()).or_default();
                if seen.last() != Some(&index) {
                    seen.push(index);
                }
            }
        }
        self.patterns.sort_by_key(|index| std::cmp::Reverse(self.entries[*index].name.len()));
    }

    /// All entries, by name; patterns among them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The way to free objects that has this name.
    pub fn method(&self, id: &str) -> Option<&Method> {
        self.methods.get(id)
    }

    /// The entry for a cache: its own, or that of the family it belongs to.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let exact = self.exact.get(name).copied();
        let family = || self.patterns.iter().copied().find(|index| self.entries[*index].matches(name));
        exact.or_else(family).map(|index| &self.entries[index])
    }

    /// The names that look most like `name`, the best first; at most `most`, and none that is too far off to
    /// be meant.
    pub fn nearest(&self, name: &str, most: usize) -> Vec<&str> {
        let names = self.entries.iter().filter(|entry| !entry.is_pattern()).flat_map(Entry::names);
        slablab_report::nearest::nearest(name, names, most)
    }

    /// The caches seen in a merged cache of this made-up name: kernel, and names.
    pub fn in_slot(&self, slot: &str) -> Vec<(String, Vec<&str>)> {
        let mut seen: Vec<(String, Vec<&str>)> = Vec::new();
        for entry in self.entries_in(slot) {
            for size in entry.sizes.iter().filter(|size| size.slot.as_deref() == Some(slot)) {
                let machine = size.machine();
                match seen.iter_mut().find(|(other, _)| *other == machine) {
                    Some((_, names)) => names.push(&entry.name),
                    None => seen.push((machine, vec![&entry.name])),
                }
            }
        }
        seen.sort();
        seen
    }

    /// The entries seen in a merged cache of this made-up name.
    fn entries_in(&self, slot: &str) -> impl Iterator<Item = &Entry> {
        self.slots.get(slot).into_iter().flatten().map(|index| &self.entries[*index])
    }

    /// The caches that shared their slabs with this one in some kernel, by name.
    pub fn seen_merged_with(&self, entry: &Entry) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for size in &entry.sizes {
            let Some(slot) = &size.slot else { continue };
            let machine = size.machine();
            let others = self.entries_in(slot).filter(|other| {
                other.name != entry.name
                    && other
                        .sizes
                        .iter()
                        .any(|theirs| theirs.slot.as_ref() == Some(slot) && theirs.machine() == machine)
            });
            names.extend(others.map(|other| other.name.as_str()));
        }
        names.sort_unstable();
        names.dedup();
        names
    }
}
