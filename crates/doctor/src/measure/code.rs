//! The lines of code behind the objects of a cache, where the kernel counts them (/proc/allocinfo).
//!
//! That file has the live bytes and the live calls of each line of code that allocates, and no cache. But
//! an object of a cache has a size that is known: a line whose bytes are its calls times that size
//! allocates such objects. With an earlier snapshot both are growth. The number of calls beside that of the
//! cache's objects is the evidence.

use super::line::Line;
use crate::state::State;
use slablab_readers::allocinfo::AllocSite;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A line of code that allocates objects of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The function, with its module in brackets.
    pub function: String,
    /// The source file and the line.
    pub place: String,
    /// Objects that it allocated and that live; with an earlier snapshot, how many more.
    pub objects: u64,
}

/// Lines that are named for a cache.
const NAMED: usize = 3;
/// Per cent of a cache's growth that its lines of code have at least, together, if they are named.
const OF_GROWTH: u64 = 50;
/// Per cent of a cache's objects now, of which CPUs park some: at least, and at most.
const OF_NOW: (u64, u64) = (70, 102);
/// Bytes from which on the size of an object may be that of pages, which the same file counts.
const PAGE: u64 = 4096;

/// What the file says of each place, and what it said before.
#[derive(Debug, Default)]
pub(super) struct Sites<'a> {
    now: Vec<&'a AllocSite>,
    before: Option<BTreeMap<Key<'a>, (i64, i64)>>,
}

type Key<'a> = (&'a str, u32, &'a str);

fn key(site: &AllocSite) -> Key<'_> {
    (&site.file, site.line, &site.function)
}

/// The lines of a dump, or of a text.
fn sites(state: &State) -> &[AllocSite] {
    match state.dump.pasted.as_ref().filter(|_| state.dump.alloc_sites.is_empty()) {
        Some(pasted) => &pasted.alloc_sites,
        None => &state.dump.alloc_sites,
    }
}

impl<'a> Sites<'a> {
    /// What lives now, and in the first snapshot if there is one with the file.
    pub(super) fn of(now: &'a State, first: Option<&'a State>) -> Sites<'a> {
        let before = first.map(sites).filter(|sites| !sites.is_empty()).map(|sites| {
            let mut before: BTreeMap<Key, (i64, i64)> = BTreeMap::new();
            for site in sites {
                let sum = before.entry(key(site)).or_default();
                *sum = (sum.0.saturating_add(site.bytes), sum.1.saturating_add(site.calls));
            }
            before
        });
        Sites { now: sites(now).iter().collect(), before }
    }

    /// The lines whose live objects grew as a cache's did, most first; none where they do not explain it.
    pub(super) fn of_growth(&self, line: &Line, objects: i64) -> Vec<Code> {
        let Some(before) = &self.before else { return Vec::new() };
        let grew = |site: &AllocSite| {
            let (bytes, calls) = before.get(&key(site)).copied().unwrap_or_default();
            (site.bytes.saturating_sub(bytes), site.calls.saturating_sub(calls))
        };
        let objects = u64::try_from(objects).unwrap_or(0);
        // One line alone may not have more than the cache.
        let most = objects.saturating_add(objects / 20);
        let found = self.of_size(line.cache.size, grew, most);
        let all = found.iter().fold(0u64, |sum, code| sum.saturating_add(code.objects));
        let explains = objects > 0 && all >= objects / 100 * OF_GROWTH;
        if explains { first(found) } else { Vec::new() }
    }

    /// The lines that have as many live objects as a cache has now, most first.
    pub(super) fn of_now(&self, line: &Line) -> Vec<Code> {
        let objects = line.cache.active_objects;
        let most = objects / 100 * OF_NOW.1;
        let found = self.of_size(line.cache.size, |site| (site.bytes, site.calls), most);
        // Several caches have objects of one size: all of them together would be more than this one has.
        let all = found.iter().fold(0u64, |sum, code| sum.saturating_add(code.objects));
        let fits = all >= objects / 100 * OF_NOW.0 && all <= most;
        if fits { first(found) } else { Vec::new() }
    }

    fn of_size(&self, size: u64, amount: impl Fn(&AllocSite) -> (i64, i64), most: u64) -> Vec<Code> {
        let size = match i64::try_from(size) {
            Ok(size) if size > 1 => size,
            _ => return Vec::new(),
        };
        // The allocator's own pages are in the file too.
        let is_own =
            |site: &AllocSite| site.file.starts_with("mm/slub.c") || site.file.starts_with("mm/page_");
        let of = |site: &&AllocSite| {
            let (bytes, calls) = amount(site);
            let fits = calls > 0 && calls.checked_mul(size) == Some(bytes) && calls as u64 <= most;
            let module = site.module.as_ref().map_or(String::new(), |module| format!(" [{module}]"));
            (fits && !is_own(site)).then(|| Code {
                function: format!("{}{module}", site.function),
                place: format!("{}:{}", site.file, site.line),
                objects: calls as u64,
            })
        };
        let mut found: Vec<Code> = self.now.iter().filter_map(of).collect();
        found.sort_by(|a, b| (Reverse(a.objects), &a.place).cmp(&(Reverse(b.objects), &b.place)));
        // Whole pages have such a size as well: one line must have nearly all.
        if size as u64 >= PAGE {
            found.retain(|code| code.objects >= most / 100 * OF_NOW.0);
        }
        found
    }
}

fn first(mut found: Vec<Code>) -> Vec<Code> {
    // Those that matter beside the first.
    const PART: u64 = 20;
    let least = found.first().map_or(0, |code| code.objects / PART);
    found.retain(|code| code.objects >= least);
    found.truncate(NAMED);
    found
}
