//! The form of the data file: what a table may say, and what is wrong with one that does not.

use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slablab_slabs::Release;
use toml::Spanned;

/// One cache, or one family of caches.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Entry {
    /// The cache's name; with one `*`, a pattern.
    pub name: String,
    /// Other names of the same cache, in other kernels.
    pub also: Vec<String>,
    /// Whose it is: "ext4", "network, TCP".
    pub subsystem: String,
    /// What an object of it is.
    pub what: String,
    /// The code that creates the cache, and when it does.
    pub created_by: String,
    /// What makes it grow.
    pub grows_with: Option<String>,
    /// Ways to shrink it, the mildest first. Empty only where `cannot_shrink` says why.
    pub shrink: Vec<Method>,
    /// Why user space cannot shrink it.
    pub cannot_shrink: Option<String>,
    /// The kernel counts its pages as reclaimable (`SReclaimable`; `reclaim_account` in sysfs); unknown for
    /// most patterns.
    pub reclaimable: Option<bool>,
    /// The module that creates it, where the kernel may have it as one and a way to shrink it needs the name.
    pub module: Option<String>,
    /// Sizes seen.
    pub sizes: Vec<Size>,
}

/// One way to shrink a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// The name of the method, by which entries call it.
    #[serde(skip_deserializing)]
    pub id: String,
    /// What to do.
    pub how: String,
    /// The command; words in capitals are for the user to fill in.
    pub run: Option<String>,
    /// Its cost and its limits.
    pub cost: Option<String>,
}

/// The size of an object in one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// The kernel's release: "6.12".
    pub kernel: String,
    /// As `uname -m` says it: "x86_64".
    pub arch: String,
    /// Bytes of a page.
    #[serde(rename(serialize = "page_bytes"))]
    pub page: u64,
    /// Bytes of an object, without alignment and metadata (`object_size` in sysfs).
    #[serde(rename(serialize = "object_bytes"), skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes that an object has at most, where the kernel gave only the largest of the caches it had merged.
    #[serde(rename(serialize = "object_bytes_at_most"), skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// The made-up name of the merged cache it was part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// What else the size depends on: "4 nodes".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

impl Size {
    /// The kernel in a few words: "6.12 x86_64, 4 K pages".
    pub fn machine(&self) -> String {
        format!("{} {}, {} K pages", self.kernel, self.arch, self.page / 1024)
    }
}

impl Entry {
    /// Its exact names; a pattern counts as one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.also).map(String::as_str)
    }

    /// Why user space cannot shrink it, with the name and the files of the asker's kernel: `asked` is the
    /// cache's name there. Without a release the words have both the newer and the older file.
    pub fn cannot_shrink_in(&self, asked: &str, release: Option<Release>) -> Option<String> {
        let mut why = self.cannot_shrink.clone()?;
        let own = &self.name;
        // What is newer, what is older, and the release since which there is the newer.
        let pairs = [
            (format!("slab_debug=U,{own}"), format!("slub_debug=U,{own}"), Release::new(6, 9, 0)),
            (
                format!("/sys/kernel/debug/slab/{own}/alloc_traces"),
                format!("/sys/kernel/slab/{own}/alloc_calls"),
                Release::new(5, 16, 0),
            ),
        ];
        for (newer, older, since) in pairs {
            let both = format!("{newer} (before {}.{} {older})", since.major, since.minor);
            if let Some(release) = release {
                why = why.replace(&both, if release >= since { &newer } else { &older });
            }
        }
        Some(if self.also.iter().any(|also| also == asked) { why.replace(own.as_str(), asked) } else { why })
    }

    /// Whether a shrinker frees unused objects when the kernel needs memory, as the ways to shrink it say.
    pub fn has_shrinker(&self) -> bool {
        self.shrinks_by("drop-inodes") || self.shrinks_by("cache-pressure")
    }

    /// Whether the kernel frees the objects with pages of the page cache.
    pub fn goes_with_pages(&self) -> bool {
        self.shrinks_by("drop-caches")
    }

    fn shrinks_by(&self, way: &str) -> bool {
        self.shrink.iter().any(|method| method.id == way)
    }

    /// Whether it stands for a family of names.
    pub fn is_pattern(&self) -> bool {
        self.name.contains('*')
    }

    /// Whether the pattern is one for `name`.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.name.split_once('*').is_some_and(|(start, end)| {
            name.len() > start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        })
    }

    /// Gives a name up to another entry; an entry without a name is no longer one.
    pub(super) fn forget(&mut self, name: &str) {
        self.also.retain(|other| other != name);
        if self.name == name {
            self.name = if self.also.is_empty() { String::new() } else { self.also.remove(0) };
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    method: FxHashMap<String, Method>,
    #[serde(default)]
    cache: Vec<Table>,
}

/// One `[[cache]]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: Spanned<String>,
    #[serde(default)]
    also: Vec<Spanned<String>>,
    subsystem: String,
    what: String,
    created_by: String,
    grows_with: Option<String>,
    #[serde(default)]
    shrink: Vec<Spanned<String>>,
    cannot_shrink: Option<String>,
    reclaimable: Option<bool>,
    /// For `{module}` in the methods.
    module: Option<String>,
    #[serde(default)]
    sizes: Vec<Spanned<Size>>,
}

type Methods = FxHashMap<String, Method>;

/// Reads a file: all methods, older ones included, and the file's entries.
///
/// # Errors
/// No TOML, an unknown key, a rule broken; with the line.
pub(super) fn parse(text: &str, older: &Methods) -> Result<(Methods, Vec<Entry>), String> {
    let file: File = toml::from_str(text).map_err(|error| match error.span() {
        Some(span) => format!("line {}: {}", line(text, span.start), error.message()),
        None => error.message().to_string(),
    })?;
    let mut methods = older.clone();
    methods.extend(file.method.into_iter().map(|(id, method)| (id.clone(), Method { id, ..method })));
    let mut taken: FxHashSet<String> = FxHashSet::default();
    let mut entries = Vec::with_capacity(file.cache.len());
    for table in file.cache {
        let at = |start: usize, what: String| format!("line {}: {what}", line(text, start));
        for name in std::iter::once(&table.name).chain(&table.also) {
            if !taken.insert(name.get_ref().clone()) {
                return Err(at(name.span().start, format!("a second entry for {:?}", name.get_ref())));
            }
        }
        entries.push(table.entry(&methods).map_err(|(start, what)| at(start, what))?);
    }
    Ok((methods, entries))
}

/// Line of a byte, from 1.
fn line(text: &str, byte: usize) -> usize {
    text.as_bytes()[..byte.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

impl Table {
    /// The entry, or the byte where the fault is and the fault.
    fn entry(self, methods: &Methods) -> Result<Entry, (usize, String)> {
        let start = self.name.span().start;
        let name = self.name.into_inner();
        let fault = |what: String| Err((start, format!("{name}: {what}")));
        match name.matches('*').count() {
            0 => {}
            1 if self.also.is_empty() && self.sizes.is_empty() => {}
            1 => {
                return fault("a pattern has neither other names nor sizes: they belong to one cache".into());
            }
            _ => return fault("expected at most one * in a name".into()),
        }
        for (field, value) in
            [("subsystem", &self.subsystem), ("what", &self.what), ("created_by", &self.created_by)]
        {
            if value.trim().is_empty() {
                return fault(format!("{field} is empty"));
            }
        }
        if self.shrink.is_empty() == self.cannot_shrink.is_none() {
            return fault("expected either shrink, with a method, or cannot_shrink, with the reason".into());
        }
        let mut shrink = Vec::with_capacity(self.shrink.len());
        for id in self.shrink {
            let Some(method) = methods.get(id.get_ref()) else {
                let what =
                    format!("{name}: no [method.{}] in this file or in the program's own", id.get_ref());
                return Err((id.span().start, what));
            };
            shrink.push(match (method.for_module(self.module.as_deref()), &self.module) {
                (Some(method), _) => method,
                (None, _) => {
                    let what = format!("{name}: the method {} needs a key `module` here", method.id);
                    return Err((id.span().start, what));
                }
            });
        }
        for size in &self.sizes {
            if size.get_ref().bytes.is_some() == size.get_ref().at_most.is_some() {
                let what = format!("{name}: expected either bytes or at_most in a size");
                return Err((size.span().start, what));
            }
        }
        Ok(Entry {
            name,
            also: self.also.into_iter().map(Spanned::into_inner).collect(),
            subsystem: self.subsystem,
            what: self.what,
            created_by: self.created_by,
            grows_with: self.grows_with,
            shrink,
            cannot_shrink: self.cannot_shrink,
            reclaimable: self.reclaimable,
            module: self.module,
            sizes: self.sizes.into_iter().map(Spanned::into_inner).collect(),
        })
    }
}

impl Method {
    /// The method with the module's name in it; `None` if it needs one and there is none.
    fn for_module(&self, module: Option<&str>) -> Option<Method> {
        const MODULE: &str = "{module}";
        let needs = |text: &Option<String>| text.as_deref().is_some_and(|text| text.contains(MODULE));
        if !needs(&self.run) && !self.how.contains(MODULE) {
            return Some(self.clone());
        }
        let module = module?;
        let run = self.run.as_ref().map(|run| run.replace(MODULE, module));
        Some(Method { how: self.how.replace(MODULE, module), run, ..self.clone() })
    }
}
