//! Caches that grew together: how, who holds them, which code allocates from them.

use crate::sites::{Recorded, Site, Stack};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_doctor::measure::Line;
use slablab_doctor::measure::grown::Grown;
use slablab_doctor::measure::held::Held;
use slablab_doctor::measure::holders::Who;
use slablab_doctor::measure::{Measured, named};
use slablab_doctor::what::Method;
use std::cmp::Reverse;

/// Parts of the time that are looked at, each for itself.
const PARTS: usize = 4;
/// The part of all growth that each of them has at least, if growth is even: 1 in so many.
const LEAST_PART: i64 = 12;
/// The part of the growth of caches that a recording sees at least, if it tells their course: 1 in so many.
const SEEN_PART: u64 = 4;
/// Objects of pages, which are in no cache, as call sites name them.
const LARGE: &str = "(large kmalloc)";

/// How growth went over the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// It grew in each part of the time, as a leak does.
    EachPart,
    /// It grew in some parts: a program that starts, or a load that changes.
    SomeParts,
    /// Two snapshots do not tell, and no recording does.
    Unknown,
}

/// Caches that grew together, or whose objects something holds.
pub struct Suspect<'a> {
    /// Their names, the one that says what grew first.
    pub names: Vec<String>,
    /// Objects by which the first of them grew; of one snapshot, those that are held. 0 where only bytes are
    /// known.
    pub objects: i64,
    /// Bytes by which all of them grew; of one snapshot, all of them.
    pub bytes: u64,
    /// Whether the kernel frees such objects by itself when it needs memory.
    pub reclaimable: bool,
    /// How it grew.
    pub course: Course,
    /// What holds the objects.
    pub who: Option<Who>,
    /// What finds the holder and ends it.
    pub ends: Option<&'static Method>,
    /// Call sites whose objects live in these caches, those with most live bytes first.
    pub sites: Vec<&'a Site>,
}

impl<'a> Suspect<'a> {
    /// Caches that grew together.
    pub(super) fn of_growth(
        measured: &Measured,
        group: &Grown,
        recorded: Option<&'a Recorded>,
    ) -> Suspect<'a> {
        let line = |at: &usize| &measured.lines[*at];
        let lead = sites_of(recorded, &|site| has(line(&group.lines[0]), site));
        let sites = sites_of(recorded, &|site| group.lines.iter().any(|at| has(line(at), site)));
        let course = course(if lead.is_empty() { &sites } else { &lead }, &sites, group.bytes);
        let by_snapshots = match group.steady {
            Some(true) => Course::EachPart,
            Some(false) => Course::SomeParts,
            None => Course::Unknown,
        };
        Suspect {
            names: group.names.clone(),
            objects: group.objects,
            bytes: group.bytes,
            reclaimable: group.benign,
            course: if course == Course::Unknown { by_snapshots } else { course },
            who: group.who.clone(),
            ends: group.method(),
            sites,
        }
    }

    /// Caches of one snapshot whose objects something holds.
    pub(super) fn of_now(measured: &Measured, held: &Held) -> Suspect<'a> {
        Suspect {
            names: held.lines.iter().map(|at| named(&measured.lines[*at])).collect(),
            objects: held.who.count.min(i64::MAX as u64) as i64,
            bytes: held.bytes,
            reclaimable: false,
            course: Course::Unknown,
            who: Some(held.who.clone()),
            ends: Some(held.ends),
            sites: Vec::new(),
        }
    }

    /// Slab memory in no cache, which grew by `bytes`.
    pub(super) fn of_large(bytes: u64, recorded: Option<&'a Recorded>) -> Suspect<'a> {
        let sites = sites_of(recorded, &|site| site.cache == LARGE);
        Suspect {
            names: vec!["slab memory in no cache (kmallocs that are too large for one)".into()],
            objects: 0,
            bytes,
            reclaimable: false,
            course: course(&sites, &sites, bytes),
            who: None,
            ends: None,
            sites,
        }
    }

    /// Its place among all: what grows on and is not freed first, then most bytes.
    pub(super) fn rank(&self) -> (bool, bool, Reverse<u64>) {
        (self.reclaimable, self.course != Course::EachPart, Reverse(self.bytes))
    }

    /// The call site to name: the first whose own live bytes grew in each part, else that with most.
    pub fn site(&self) -> Option<&'a Site> {
        let even = self.sites.iter().find(|site| of_line(&site.line) == Course::EachPart);
        even.or(self.sites.first()).copied()
    }
}

/// The call chain of a site that has most live bytes, from the site outwards; empty without chains.
pub(crate) fn chain<'a>(recorded: &'a Recorded, site: &Site) -> Vec<&'a str> {
    let of_site = |stack: &&Stack| {
        stack.cache == site.cache && stack.frames.last().is_some_and(|last| *last == site.name)
    };
    let most = recorded.stacks.iter().filter(of_site).max_by_key(|stack| (stack.live_bytes, stack.allocs));
    most.map_or(Vec::new(), |stack| stack.frames.iter().rev().map(String::as_str).collect())
}

/// How live bytes of a site went.
pub(crate) fn of_line(line: &[u64]) -> Course {
    if line.len() <= PARTS {
        return Course::Unknown;
    }
    let at = |part: usize| line[part * (line.len() - 1) / PARTS] as i64;
    let all = at(PARTS) - at(0);
    let grew = |part: usize| at(part + 1) - at(part) >= (all / LEAST_PART).max(1);
    match all > 0 && (0..PARTS).all(grew) {
        true => Course::EachPart,
        false => Course::SomeParts,
    }
}

/// How caches grew, by the sites of the cache that leads them; unknown if all sites of the caches are not
/// what grew by `bytes`.
fn course(lead: &[&Site], all: &[&Site], bytes: u64) -> Course {
    let Some(length) = lead.iter().map(|site| site.line.len()).max() else { return Course::Unknown };
    let live: u64 = all.iter().map(|site| site.live_bytes).sum();
    if live < bytes / SEEN_PART {
        return Course::Unknown;
    }
    let sum = |at: usize| lead.iter().filter_map(|site| site.line.get(at)).sum();
    of_line(&(0..length).map(sum).collect::<Vec<u64>>())
}

/// The sites with live objects that `is_of` takes, most live bytes first.
fn sites_of<'a>(recorded: Option<&'a Recorded>, is_of: &dyn Fn(&Site) -> bool) -> Vec<&'a Site> {
    let all = recorded.into_iter().flat_map(|recorded| &recorded.sites);
    let mut sites: Vec<&Site> = all.filter(|site| site.live > 0 && is_of(site)).collect();
    sites.sort_by_key(|site| (Reverse(site.live_bytes), &site.name));
    sites
}

/// Whether a site allocates from the cache of a line. Events of kmalloc have a class and not the copy of its
/// cache that the kernel drew (`kmalloc-rnd-05-64`).
fn has(line: &Line, site: &Site) -> bool {
    let is_it = |name: &String| *name == site.cache || drawn(name).is_some_and(|class| class == site.cache);
    is_it(&line.cache.name) || line.cache.aliases.iter().any(is_it)
}

fn drawn(name: &str) -> Option<String> {
    let (_, class) = name.strip_prefix("kmalloc-rnd-")?.split_once('-')?;
    Some(format!("kmalloc-{class}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_grows_in_each_part_of_the_time() {
        #[track_caller]
        fn check(line: &[u64], expected: Course) {
            assert_eq!(of_line(line), expected, "{line:?}");
        }
        check(&[0, 10, 20, 30, 40], Course::EachPart);
        check(&[5, 10, 12, 30, 33], Course::EachPart);
        // A program that starts, and then runs; a burst at the end; a load that comes and goes.
        check(&[0, 40, 40, 40, 40], Course::SomeParts);
        check(&[0, 0, 0, 0, 40], Course::SomeParts);
        check(&[0, 30, 10, 30, 40], Course::SomeParts);
        check(&[40, 30, 20, 10, 0], Course::SomeParts);
        check(&[7; 9], Course::SomeParts);
        // Less than a twelfth in one part is no even growth.
        check(&[0, 20, 40, 41, 60], Course::SomeParts);
        check(&[0, 40], Course::Unknown);
        check(&[], Course::Unknown);
    }

    #[test]
    fn a_recording_that_saw_little_tells_no_course() {
        let site = Site { live_bytes: 400, line: vec![0, 100, 200, 300, 400], ..Site::default() };
        let other = Site { live_bytes: 4000, line: vec![4000; 5], ..Site::default() };
        assert_eq!(course(&[&site], &[&site], 1600), Course::EachPart);
        assert_eq!(course(&[&site], &[&site], 1604), Course::Unknown);
        assert_eq!(course(&[&site], &[&site, &other], 1604), Course::EachPart);
        assert_eq!(course(&[], &[], 0), Course::Unknown);
    }

    #[test]
    fn copies_of_a_kmalloc_cache_have_its_class() {
        assert_eq!(drawn("kmalloc-rnd-05-2k").as_deref(), Some("kmalloc-2k"));
        assert_eq!(drawn("kmalloc-2k"), None);
    }
}
