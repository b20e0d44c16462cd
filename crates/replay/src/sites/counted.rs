//! /proc/allocinfo: what lines of code hold now, and by how much that grew.

use super::text::contents;
use rustc_hash::FxHashMap;
use slablab_readers::allocinfo::AllocSite;
use slablab_readers::pasted;
use slablab_report::error::{At, Error, Result};
use std::path::{Path, PathBuf};

/// The function that allocates the pages of slabs: its bytes are those of the objects again.
const SLAB_PAGES: &str = "alloc_slab_page";

/// What lines of code hold.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The file.
    pub path: PathBuf,
    /// The earlier file.
    pub since: Option<PathBuf>,
    /// The lines, in the order asked for.
    pub sites: Vec<Growth>,
    /// Sentences on what the numbers are.
    pub notes: Vec<String>,
}

/// A line of code, now and before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Now.
    pub now: AllocSite,
    /// Bytes and calls before; `None` without an earlier file.
    pub before: Option<(i64, i64)>,
}

impl Growth {
    /// Change in bytes since the earlier file.
    pub fn bytes(&self) -> Option<i64> {
        self.before.map(|(bytes, _)| self.now.bytes.saturating_sub(bytes))
    }

    /// Change in calls since the earlier file.
    pub fn calls(&self) -> Option<i64> {
        self.before.map(|(_, calls)| self.now.calls.saturating_sub(calls))
    }

    /// The source file and its line.
    pub fn place(&self) -> String {
        format!("{}:{}", self.now.file, self.now.line)
    }
}

impl Counted {
    /// Reads the file, and perhaps an earlier one. Lines that hold nothing in both are left out. With an
    /// earlier file the lines that grew most are first, else those that hold most.
    ///
    /// # Errors
    /// Files that are no /proc/allocinfo, or in which profiling is off.
    pub fn read(path: &Path, since: Option<&Path>) -> Result<Counted> {
        let load = |path: &Path| pasted::allocinfo(&contents(path)?).at(path);
        let now = load(path)?;
        let mut sites: Vec<Growth> =
            now.sites.into_iter().map(|now| Growth { now, before: since.map(|_| (0, 0)) }).collect();
        if let Some(since) = since {
            add_earlier(&mut sites, load(since)?.sites);
        }
        sites.retain(|site| {
            site.now.bytes != 0 || site.now.calls != 0 || site.before.is_some_and(|before| before != (0, 0))
        });
        if sites.is_empty() {
            let what = "every line holds 0 bytes: profiling is off (sysctl vm.mem_profiling=1, or at boot \
                        sysctl.vm.mem_profiling=1)";
            return Err(Error::new(path, what));
        }
        sites.sort_by(|left, right| {
            let weight = |site: &Growth| (site.bytes().unwrap_or(0), site.now.bytes);
            weight(right).cmp(&weight(left)).then_with(|| left.place().cmp(&right.place()))
        });
        let mut notes = Vec::new();
        if let Some(pages) = sites.iter().find(|site| site.now.function == SLAB_PAGES) {
            notes.push(format!(
                "{} ({SLAB_PAGES}) holds the slabs in which the objects of other lines lie: it is not added to them",
                pages.place()
            ));
        }
        let inaccurate = sites.iter().filter(|site| !site.now.accurate).count();
        if inaccurate > 0 {
            notes.push(format!(
                "of {inaccurate} lines the kernel does not count all allocations (accurate:no)"
            ));
        }
        Ok(Counted { path: path.to_path_buf(), since: since.map(Path::to_path_buf), sites, notes })
    }

    /// Bytes of all lines but that of the slabs' pages.
    pub fn bytes(&self) -> i64 {
        self.own().map(|site| site.now.bytes).sum()
    }

    /// All lines but that of the slabs' pages.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Growth> {
        self.sites.iter().filter(|site| site.now.function != SLAB_PAGES)
    }
}

/// Adds what the lines held before. A line that is gone held it and holds nothing now.
fn add_earlier(sites: &mut Vec<Growth>, earlier: Vec<AllocSite>) {
    type Key = (String, u32, String, Option<String>);
    let key = |site: &AllocSite| -> Key {
        (site.file.clone(), site.line, site.function.clone(), site.module.clone())
    };
    let mut at: FxHashMap<Key, usize> =
        sites.iter().enumerate().map(|(index, site)| (key(&site.now), index)).collect();
    for before in earlier {
        let index = *at.entry(key(&before)).or_insert_with(|| {
            sites.push(Growth { now: AllocSite { bytes: 0, calls: 0, ..before.clone() }, before: None });
            sites.len() - 1
        });
        // A module that was loaded twice has two lines of one place.
        let (bytes, calls) = sites[index].before.unwrap_or((0, 0));
        sites[index].before = Some((bytes + before.bytes, calls + before.calls));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places with their bytes and growth, in order.
    fn found(now: &str, since: Option<&str>) -> Result<Vec<(String, i64, Option<i64>)>> {
        let folder = std::env::temp_dir();
        let file = |name: &str, text: &str| {
            let thread = std::thread::current().name().unwrap_or("").replace(':', "-");
            let path = folder.join(format!("slablab-{}-{thread}-{name}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            path
        };
        let since = since.map(|text| file("before", text));
        let now = file("now", now);
        let counted = Counted::read(&now, since.as_deref());
        std::fs::remove_file(now).unwrap();
        if let Some(path) = since {
            std::fs::remove_file(path).unwrap();
        }
        let counted = counted?;
        let row = |site: &Growth| (site.place(), site.now.bytes, site.bytes());
        Ok(counted.sites.iter().map(row).collect())
    }

    #[test]
    fn what_grew_most_is_first() {
        let before = "100 1 a.c:1 func:a\n50 1 b.c:2 func:b\n7 1 gone.c:3 func:g\n";
        let now = "110 1 a.c:1 func:a\n90 2 b.c:2 func:b\n5 1 new.c:4 func:n\n0 0 idle.c:5 func:i\n";
        let row = |place: &str, bytes, growth| (place.to_string(), bytes, growth);
        assert_eq!(
            found(now, Some(before)).unwrap(),
            [
                row("b.c:2", 90, Some(40)),
                row("a.c:1", 110, Some(10)),
                row("new.c:4", 5, Some(5)),
                row("gone.c:3", 0, Some(-7)),
            ]
        );
        assert_eq!(
            found(now, None).unwrap(),
            [row("a.c:1", 110, None), row("b.c:2", 90, None), row("new.c:4", 5, None)]
        );
    }

    #[test]
    fn profiling_that_is_off_is_an_error() {
        let error = found("0 0 a.c:1 func:a\n", None).unwrap_err();
        assert!(error.what.contains("profiling is off"), "{error}");
    }
}
