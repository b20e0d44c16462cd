//! Which caches grew together, and under which names.
//!
//! One open socket is an inode, a directory entry, a file and a protocol's socket, each in a cache of its
//! own: caches that grew by the same number of objects are one thing that grew. They also name each other.
//! Where slabinfo has only one of the names of merged caches, the name is meant whose data shares a way to
//! free objects, or a subsystem, with a cache that grew equally and is not merged.

use super::line::{Line, named};
use super::reclaim::Reclaim;
use crate::what::{Entry, Known};
use std::collections::BTreeMap;

/// Objects from which equal growth is no accident.
const TOGETHER_FROM: i64 = 1000;
/// The largest part by which growth of caches that grew together differs: CPUs park some objects.
const DIFFER_BY: f64 = 0.01;

/// Caches that grew by the same number of objects, or one cache.
#[derive(Clone, Debug)]
pub struct Grown {
    /// Indices of the caches in the report's lines, the one that says what grew first.
    pub lines: Vec<usize>,
    /// Their names: for a merged cache those that its partners point to.
    pub names: Vec<String>,
    /// Objects by which the first of them grew.
    pub objects: i64,
    /// Bytes by which all of them grew.
    pub bytes: u64,
    /// Whether the kernel frees such objects by itself when it needs memory.
    pub benign: bool,
    /// Whether each interval between two snapshots has growth; `None` with fewer than three snapshots.
    pub steady: Option<bool>,
    /// What the first of them is for.
    pub what: Option<&'static Entry>,
}

/// Every cache that grew, caches of equal growth together: those first that the kernel does not free by
/// itself, then by bytes.
pub(crate) fn grown(lines: &[Line]) -> Vec<Grown> {
    let mut left: Vec<(usize, i64)> = lines
        .iter()
        .enumerate()
        // Of several caches that are followed as one, the first stands for all.
        .filter_map(|(at, line)| {
            let growth = line.growth.as_ref().filter(|growth| growth.bytes > 0)?;
            (!growth.together || line.cache.ordinal == 0).then_some((at, growth.objects))
        })
        .collect();
    left.sort_by_key(|(at, objects)| (std::cmp::Reverse(*objects), *at));
    let mut groups = Vec::new();
    while !left.is_empty() {
        let (_, most) = left[0];
        let least = most - (most as f64 * DIFFER_BY) as i64;
        let count = match most >= TOGETHER_FROM {
            true => left.iter().take_while(|(_, objects)| *objects >= least).count(),
            false => 1,
        };
        let group: Vec<usize> = left.drain(..count).map(|(at, _)| at).collect();
        groups.push(group_of(lines, group));
    }
    groups.sort_by_key(|group| (group.benign, std::cmp::Reverse(group.bytes), group.lines[0]));
    groups
}

fn group_of(lines: &[Line], mut group: Vec<usize>) -> Grown {
    let kinds = || group.iter().map(|at| lines[*at].reclaim);
    // A socket's inode holds its directory entry. An inode of a file is freed with what hangs on it; an entry
    // of the directory alone does not tell, since open files and pipes hold one each.
    let inode = |at: &usize| {
        let line = &lines[*at];
        matches!(line.reclaim, Reclaim::Shrinker | Reclaim::PageCache) && line.cache.name != "dentry"
    };
    let benign = !kinds().any(|kind| kind == Reclaim::Holder)
        && (group.iter().any(inode) || kinds().all(Reclaim::by_kernel));
    let plain: Vec<&Entry> = group
        .iter()
        .filter(|at| lines[**at].cache.aliases.is_empty())
        .filter_map(|at| lines[*at].what)
        .collect();
    let untangled: BTreeMap<usize, Vec<&'static Entry>> =
        group.iter().map(|at| (*at, untangle(&lines[*at], &plain))).collect();
    let growth = |at: usize| lines[at].growth.as_ref().map_or(0, |growth| growth.bytes);
    // What says most: a cache whose objects are not freed by the kernel, and that has one name.
    group.sort_by_key(|at| {
        let line = &lines[*at];
        let merged = !line.cache.aliases.is_empty();
        (line.reclaim.by_kernel() != benign, merged, line.what.is_none(), std::cmp::Reverse(growth(*at)), *at)
    });
    let names = group.iter().map(|at| name(&lines[*at], &untangled[at])).collect();
    let lead = &lines[group[0]];
    let bytes = group.iter().map(|at| growth(*at).max(0) as u64).sum();
    let first = lead.growth.as_ref().expect("it grew");
    let rises = |points: &[u64]| points.windows(2).all(|pair| pair[1] > pair[0]);
    Grown {
        names,
        objects: first.objects,
        bytes,
        benign,
        steady: (first.points.len() > 2).then(|| rises(&first.points)),
        what: untangled[&group[0]].first().copied().or(lead.what),
        lines: group,
    }
}

/// The entries of those names of a merged cache that its partners point to most; none if they do not.
fn untangle(line: &Line, partners: &[&Entry]) -> Vec<&'static Entry> {
    if line.cache.aliases.is_empty() {
        return Vec::new();
    }
    let names = std::iter::once(&line.cache.name).chain(&line.cache.aliases);
    let votes = |entry: &Entry| partners.iter().filter(|partner| belong(entry, partner)).count();
    let known = names.filter_map(|name| Known::builtin().find(name));
    let known: Vec<(&'static Entry, usize)> = known.map(|entry| (entry, votes(entry))).collect();
    let most = known.iter().map(|(_, votes)| *votes).max().unwrap_or(0);
    let mut best: Vec<&Entry> =
        known.into_iter().filter(|(_, votes)| *votes == most && most > 0).map(|(entry, _)| entry).collect();
    best.dedup_by(|a, b| a.name == b.name);
    best
}

/// Whether objects of two caches come and go together: one way frees both. Ways that free much else do not
/// tell.
fn belong(one: &Entry, other: &Entry) -> bool {
    const ANY: [&str; 4] = ["drop-inodes", "drop-caches", "cache-pressure", "unload"];
    let ways = one.shrink.iter().filter(|method| !ANY.contains(&method.id.as_str()));
    ways.into_iter().any(|way| other.shrink.iter().any(|theirs| theirs.id == way.id))
}

/// The name of a cache, or those it was found under, with the one that slabinfo has.
fn name(line: &Line, untangled: &[&Entry]) -> String {
    let own = named(line);
    let names: Vec<&str> = untangled.iter().map(|entry| entry.name.as_str()).collect();
    match names[..] {
        [] => own,
        [one] if one == own => own,
        _ => format!("{} (in slabinfo: {own})", names.join(" or ")),
    }
}
