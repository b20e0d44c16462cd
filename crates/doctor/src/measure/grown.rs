//! Which caches grew together, what holds their objects, and under which names.
//!
//! One open socket is an inode, a directory entry, a file and a protocol's socket, each in a cache of its
//! own: caches that grew by the same number of objects are one thing that grew. Such a group has up to two
//! parts. One is what a shrinker can free, the other what only its holder frees, with the names and inodes
//! that the holder keeps: an open file's inode has a shrinker, which frees it once the file is closed. What
//! only looks at others (an inode of /proc for each descriptor that a monitor lists) is in the first part.
//!
//! A merged cache has many names, and slabinfo has one of them. A name is meant if the kind of objects that
//! the growth is of takes it ([`holders`](super::holders)), if as many sockets of that protocol were opened,
//! or if its data shares a way to free objects with a cache that grew equally and is not merged. Else all are
//! said.

use super::history::Growth;
use super::holders::{Explained, Holding, Who};
use super::line::{Line, named};
use super::reclaim::Reclaim;
use super::vectors;
use crate::state::State;
use crate::what::{Entry, HolderKind, Known, Method};

/// Objects from which equal growth is no accident.
pub(super) const TOGETHER_FROM: i64 = 1000;
/// The largest part by which growth of caches that grew together differs: CPUs park some objects.
const DIFFER_BY: f64 = 0.01;
/// Objects that one object of a kind that spreads takes in one cache, at most.
const SPREAD_TO: u64 = 100;

/// The cache of inodes of the kernel's own file systems, as pipes are.
const INODES_OF_ANY: &str = "inode_cache";

/// Caches that grew by the same number of objects, or one cache.
#[derive(Clone, Debug)]
pub struct Grown {
    /// Indices of the caches in the report's lines, the one that says what grew first.
    pub lines: Vec<usize>,
    /// Their names: for a merged cache those that are meant, else all.
    pub names: Vec<String>,
    /// Objects by which the first of them grew.
    pub objects: i64,
    /// Bytes by which all of them grew, and the arrays for their slabs.
    pub bytes: u64,
    /// Whether the kernel frees such objects by itself when it needs memory.
    pub benign: bool,
    /// Whether each interval between two snapshots has growth; `None` with fewer than three snapshots.
    pub steady: Option<bool>,
    /// What the first of them is for; `None` for a merged cache of which no name is known to be meant.
    pub what: Option<&'static Entry>,
    /// What holds the objects.
    pub who: Option<Who>,
    /// What finds the holder and ends it, if a kind of objects explains the growth.
    pub ends: Option<&'static Method>,
    /// The other caches grew with the first, each by a number of its own: one namespace takes many objects.
    pub spreads: bool,
    /// Caches of arrays that the kernel keeps for the slabs of these, by index.
    pub arrays: Vec<usize>,
}

impl Grown {
    /// What finds the holder and ends it: the way that the kind of objects has, or the cache by a name that
    /// is known to be meant.
    pub fn method(&self) -> Option<&'static Method> {
        self.ends.or_else(|| self.what?.shrink.iter().find(|method| method.run.is_some()))
    }
}

/// Every cache that grew, caches of equal growth together: those first that the kernel does not free by
/// itself, then by bytes. `first` is the snapshot since which they grew.
pub(crate) fn grown(lines: &[Line], now: &State, first: Option<&State>) -> Vec<Grown> {
    let Some(first) = first else { return Vec::new() };
    let grouping = Grouping { lines, holding: Holding::of(now, Some(first)) };
    let mut left: Vec<(usize, i64)> = lines
        .iter()
        .enumerate()
        // Of several caches that are followed as one, the first stands for all.
        .filter_map(|(at, line)| {
            // Objects that found room in slabs of before are of the same thing, and take nothing.
            let grew = |growth: &&Growth| growth.bytes > 0 || growth.objects >= TOGETHER_FROM;
            let growth = line.growth.as_ref().filter(grew)?;
            (!growth.together || line.cache.ordinal == 0).then_some((at, growth.objects))
        })
        .collect();
    left.sort_by_key(|(at, objects)| (std::cmp::Reverse(*objects), *at));
    let mut arrays: Vec<(usize, usize)> = Vec::new();
    left.retain(|(at, _)| match vectors::owner(lines, *at, now) {
        Some(owner) => {
            arrays.push((*at, owner));
            false
        }
        None => true,
    });
    let mut groups = Vec::new();
    while !left.is_empty() {
        let (_, most) = left[0];
        let least = most - (most as f64 * DIFFER_BY) as i64;
        let count = match most >= TOGETHER_FROM {
            true => left.iter().take_while(|(_, objects)| *objects >= least).count(),
            false => 1,
        };
        let group: Vec<usize> = left.drain(..count).map(|(at, _)| at).collect();
        groups.extend(grouping.parts(group));
    }
    groups.retain(|group| group.bytes > 0);
    grouping.join(&mut groups);
    grouping.spread(&mut groups);
    grouping.give(&mut groups, &arrays);
    groups.sort_by_key(|group| (group.benign, std::cmp::Reverse(group.bytes), group.lines[0]));
    groups
}

/// The caches, and what is held of their objects.
struct Grouping<'a> {
    lines: &'a [Line<'a>],
    holding: Holding,
}

impl Grouping<'_> {
    /// What only its holder frees of caches that grew equally, and what the kernel frees.
    fn parts(&self, group: Vec<usize>) -> Vec<Grown> {
        let explained = self.explained(&group);
        let kind = explained.as_ref().map(|explained| explained.of);
        let [held, freed] = self.split(group, kind);
        let mut parts = Vec::new();
        if !freed.is_empty() {
            let of_freed = if held.is_empty() { explained.clone() } else { None };
            parts.push(self.group(freed, true, of_freed));
        }
        if !held.is_empty() {
            parts.push(self.group(held, false, explained.filter(|explained| !explained.of.shrinker)));
        }
        parts
    }

    /// What holds as many objects more as these caches grew by.
    fn explained(&self, group: &[usize]) -> Option<Explained> {
        let objects = group.iter().map(|at| self.growth(*at).0).max().unwrap_or(0).max(0) as u64;
        let is_many = objects >= TOGETHER_FROM as u64;
        // What it takes tells more than what it keeps, and that only by a number that is no accident.
        let weight = |kind: &HolderKind| {
            let takes = |at: &&usize| names_of(&self.lines[**at]).any(|name| kind.takes(name));
            let keeps = |at: &&usize| is_many && self.is_freed(at) && self.keeps(kind, **at);
            2 * group.iter().filter(takes).count() + group.iter().filter(keeps).count()
        };
        let bytes = group.iter().map(|at| self.growth(*at).1.max(0) as u64).sum();
        let found = self.holding.of_growth(objects, &weight);
        let found = found.or_else(|| self.holding.of_bytes(bytes, &weight));
        // A cache without a type tells no kind: of these the number alone does.
        let is_untyped = group.iter().all(|at| is_untyped(&self.lines[*at]));
        found.or_else(|| match is_untyped && is_many {
            true => self.holding.of_equal(objects),
            false => None,
        })
    }

    /// What only its holder frees, and what the kernel frees.
    fn split(&self, group: Vec<usize>, kind: Option<&HolderKind>) -> [Vec<usize>; 2] {
        if let Some(kind) = kind.filter(|kind| !kind.shrinker) {
            let is_held = |at: &usize| !self.is_freed(at) || self.keeps(kind, *at);
            return group.into_iter().partition::<Vec<_>, _>(is_held).into();
        }
        let is_held = |at: &usize| !self.is_freed(at) && !is_untyped(&self.lines[*at]);
        let name = |at: &usize| self.lines[*at].cache.name.as_str();
        if !group.iter().any(is_held) {
            // What has no type and as many objects as a file system's inodes hangs on them. An entry of the
            // directory alone does not tell, nor an inode of the kernel itself: pipes have one each.
            let has_disk = group.iter().any(|at| self.is_inode(at) && name(at) != INODES_OF_ANY);
            return match has_disk || group.iter().all(|at| self.is_freed(at)) {
                true => [Vec::new(), group],
                false => group.into_iter().partition::<Vec<_>, _>(|at| !self.is_freed(at)).into(),
            };
        }
        // A file keeps its inode and its name. Without an inode of a file system, the names are of something
        // else.
        let has_files = group.iter().any(|at| name(at) == "filp");
        let has_inodes = group.iter().any(|at| self.is_inode(at));
        let has_holders = group.iter().any(|at| self.lines[*at].reclaim == Reclaim::Holder);
        let keeps = |at: &usize| match name(at) {
            "dentry" => has_holders || (has_files && has_inodes),
            _ => self.is_inode(at) && has_files,
        };
        group.into_iter().partition::<Vec<_>, _>(|at| !self.is_freed(at) || keeps(at)).into()
    }

    fn is_freed(&self, at: &usize) -> bool {
        self.lines[*at].reclaim.by_kernel()
    }

    /// Whether it is the inode of a file, not of what only looks at others.
    fn is_inode(&self, at: &usize) -> bool {
        let line = &self.lines[*at];
        let name = line.cache.name.as_str();
        matches!(line.reclaim, Reclaim::Shrinker | Reclaim::PageCache) && !looks(name) && name != "dentry"
    }

    /// Whether an object of a kind keeps one of this cache.
    fn keeps(&self, kind: &HolderKind, at: usize) -> bool {
        let line = &self.lines[at];
        match line.cache.name.as_str() {
            name if looks(name) => false,
            "dentry" => kind.keeps_dentry,
            _ if self.is_inode(&at) && kind.keeps_inodes => true,
            _ => names_of(line).any(|name| kind.takes(name)),
        }
    }

    fn group(&self, mut group: Vec<usize>, benign: bool, explained: Option<Explained>) -> Grown {
        let kind = explained.as_ref().map(|explained| explained.of);
        let plain: Vec<&Entry> = group
            .iter()
            .filter(|at| self.lines[**at].cache.aliases.is_empty())
            .filter_map(|at| self.lines[*at].what)
            .collect();
        let meant = |at: usize| self.meant(at, kind, &plain);
        // What says most: a cache whose objects are not freed by the kernel, and of which one name is meant.
        group.sort_by_key(|at| {
            let line = &self.lines[*at];
            let doubt = (!line.cache.aliases.is_empty() && meant(*at).len() != 1, line.what.is_none());
            let bytes = std::cmp::Reverse(self.growth(*at).1);
            (is_untyped(line), looks(&line.cache.name), line.reclaim.by_kernel() != benign, doubt, bytes, *at)
        });
        let names = group.iter().map(|at| name(&self.lines[*at], &meant(*at))).collect();
        let lead = &self.lines[group[0]];
        let points = lead.growth.as_ref().map_or(&[][..], |growth| &growth.points);
        let rises = |points: &[u64]| points.windows(2).all(|pair| pair[1] > pair[0]);
        let what = match lead.cache.aliases.is_empty() {
            true => lead.what,
            false => meant(group[0]).first().copied(),
        };
        Grown {
            names,
            objects: self.growth(group[0]).0,
            bytes: group.iter().map(|at| self.growth(*at).1.max(0) as u64).sum(),
            benign,
            steady: (points.len() > 2).then(|| rises(points)),
            what,
            ends: kind.map(|kind| &kind.ends),
            who: explained.map(|explained| explained.who),
            lines: group,
            spreads: false,
            arrays: Vec::new(),
        }
    }

    /// The entries of those names of a merged cache that are meant; none if nothing tells.
    fn meant(&self, at: usize, kind: Option<&HolderKind>, partners: &[&Entry]) -> Vec<&'static Entry> {
        let line = &self.lines[at];
        if line.cache.aliases.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = names_of(line).collect();
        let objects = self.growth(at).0.max(0) as u64;
        let of_protocol = self.holding.protocols(&names, objects);
        let of_kind: Vec<&str> =
            names.iter().copied().filter(|name| kind.is_some_and(|kind| kind.takes(name))).collect();
        let told = if of_protocol.is_empty() { of_kind } else { of_protocol };
        let mut best: Vec<&Entry> = told.iter().filter_map(|name| Known::builtin().find(name)).collect();
        // What a known kind does not take is something else that grew as much.
        if best.is_empty() && kind.is_none() {
            let votes = |entry: &Entry| partners.iter().filter(|partner| belong(entry, partner)).count();
            let known = names.iter().filter_map(|name| Known::builtin().find(name));
            let known: Vec<(&'static Entry, usize)> = known.map(|entry| (entry, votes(entry))).collect();
            let most = known.iter().map(|(_, votes)| *votes).max().unwrap_or(0);
            best = known
                .into_iter()
                .filter(|(_, votes)| *votes == most && most > 0)
                .map(|(entry, _)| entry)
                .collect();
        }
        best.dedup_by(|a, b| a.name == b.name);
        best
    }

    /// Groups that one holder explains are one, if their numbers differ by no more than its own number may.
    fn join(&self, groups: &mut Vec<Grown>) {
        let mut at = 0;
        while at < groups.len() {
            let same = |other: &Grown| {
                let first = &groups[at];
                let both = first.who.as_ref().zip(other.who.as_ref());
                !first.benign
                    && !other.benign
                    && both.is_some_and(|(one, two)| one.is_same(two))
                    && first.ends == other.ends
            };
            let Some(other) = (at + 1..groups.len()).find(|other| same(&groups[*other])) else {
                at += 1;
                continue;
            };
            let more = groups.remove(other);
            // What has a type and no shrinker leads, then the larger one.
            let lead = |group: &Grown| group.lines[0];
            let rank = |group: &Grown| {
                (!is_untyped(&self.lines[lead(group)]), !self.is_freed(&lead(group)), group.bytes)
            };
            let (lead, rest) = if rank(&more) > rank(&groups[at]) {
                (more, &groups[at])
            } else {
                (groups[at].clone(), &more)
            };
            let mut joined = lead;
            joined.lines.extend(&rest.lines);
            joined.names.extend(rest.names.iter().cloned());
            joined.bytes = joined.bytes.saturating_add(rest.bytes);
            groups[at] = joined;
        }
    }

    /// Namespaces and cgroups: the cache that has one object for each leads those that grew with it.
    fn spread(&self, groups: &mut Vec<Grown>) {
        for (explained, count) in self.holding.spreading() {
            let grew = |group: &Grown| group.objects.max(0) as u64 >= count - count / 10;
            let is_lead = |group: &&Grown| {
                let line = &self.lines[group.lines[0]];
                !group.benign
                    && group.who.is_none()
                    && grew(group)
                    && names_of(line).any(|name| explained.of.takes(name))
            };
            let direct = |group: &&Grown| group.who.as_ref().is_some_and(|who| who.is_same(&explained.who));
            let Some(lead) = groups.iter().find(direct).or_else(|| groups.iter().find(is_lead)) else {
                continue;
            };
            let mut lead = self.group(lead.lines.clone(), false, Some(explained.clone()));
            let first = lead.lines[0];
            let goes_with = |group: &Grown| {
                let own = group.lines.contains(&first);
                let small = group.objects.max(0) as u64 <= count.saturating_mul(SPREAD_TO);
                own || (!group.benign && group.who.is_none() && grew(group) && small)
            };
            for group in groups.iter().filter(|group| goes_with(group) && !group.lines.contains(&first)) {
                lead.lines.extend(&group.lines);
                lead.bytes = lead.bytes.saturating_add(group.bytes);
                lead.spreads = true;
            }
            groups.retain(|group| !goes_with(group));
            groups.push(lead);
        }
    }

    /// Arrays belong to the group of the cache whose slabs they are for; without one they are a group.
    fn give(&self, groups: &mut Vec<Grown>, arrays: &[(usize, usize)]) {
        for (at, owner) in arrays {
            match groups.iter_mut().find(|group| group.lines.contains(owner)) {
                Some(group) => {
                    group.arrays.push(*at);
                    group.bytes = group.bytes.saturating_add(self.growth(*at).1.max(0) as u64);
                }
                None => groups.extend(self.parts(vec![*at])),
            }
        }
    }

    /// Objects and bytes by which a cache grew.
    fn growth(&self, at: usize) -> (i64, i64) {
        self.lines[at].growth.as_ref().map_or((0, 0), |growth| (growth.objects, growth.bytes))
    }
}

/// All names of a cache.
pub(crate) fn names_of<'a>(line: &'a Line) -> impl Iterator<Item = &'a str> {
    std::iter::once(&line.cache.name).chain(&line.cache.aliases).map(String::as_str)
}

/// Whether any code may have asked for the objects, by their size alone.
fn is_untyped(line: &Line) -> bool {
    line.cache.name.contains("kmalloc-")
}

/// Whether the objects are of looking at others: whoever lists /proc/PID/fd has an inode of /proc for each
/// descriptor. They neither say what grew nor that it can be freed.
fn looks(name: &str) -> bool {
    name == "proc_inode_cache"
}

/// Whether objects of two caches come and go together: one way frees both. Ways that free much else do not
/// tell.
fn belong(one: &Entry, other: &Entry) -> bool {
    const ANY: [&str; 4] = ["drop-inodes", "drop-caches", "cache-pressure", "unload"];
    let ways = one.shrink.iter().filter(|method| !ANY.contains(&method.id.as_str()));
    ways.into_iter().any(|way| other.shrink.iter().any(|theirs| theirs.id == way.id))
}

/// The name of a cache; of a merged one those that are meant with the one that slabinfo has, else all.
fn name(line: &Line, meant: &[&Entry]) -> String {
    let own = named(line);
    let names: Vec<&str> = meant.iter().map(|entry| entry.name.as_str()).collect();
    match names[..] {
        [] if line.cache.aliases.is_empty() => own,
        [] => format!("{} (merged: {own} in slabinfo)", names_of(line).collect::<Vec<_>>().join(" or ")),
        [one] if one == own => own,
        _ => format!("{} (in slabinfo: {own})", names.join(" or ")),
    }
}
