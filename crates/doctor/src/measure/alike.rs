//! Caches with nearly the same number of objects.

use super::line::{Line, named};
use super::measured::Measured;
use slablab_report::text::grouped;

/// Caches with nearly the same number of active objects.
pub(crate) struct Alike<'a> {
    /// The caches, by their number of active objects.
    pub(crate) lines: Vec<&'a Line<'a>>,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
    /// A cache with twice as many.
    pub(crate) twice: Option<&'a Line<'a>>,
}

/// The largest group of caches with nearly the same number of objects: one thing has one object in each.
pub(crate) fn alike<'a>(measured: &'a Measured<'a>) -> Option<Alike<'a>> {
    // Objects that make chance unlikely, caches that make a group, and the part of slab memory of it.
    const OBJECTS: u64 = 10_000;
    const CACHES: usize = 3;
    const PERCENT: u64 = 10;
    let mut lines: Vec<&Line> = measured
        .lines
        .iter()
        .filter(|line| !line.cache.bytes_only && line.cache.active_objects >= OBJECTS)
        .collect();
    lines.sort_by_key(|line| line.cache.active_objects);
    let objects = |line: &Line| line.cache.active_objects;
    // Within 2 %.
    let near = |low: u64, high: u64| (high - low) * 50 <= high;
    let mut sums = vec![0u64];
    sums.extend(lines.iter().scan(0u64, |sum, line| {
        *sum = sum.saturating_add(line.split.bytes);
        Some(*sum)
    }));
    let group = |start: usize| {
        let count = lines[start..].partition_point(|line| near(objects(lines[start]), objects(line)));
        (start, start + count)
    };
    let groups = (0..lines.len()).map(group).filter(|(start, end)| end - start >= CACHES);
    let (start, end) =
        groups.max_by_key(|&(start, end)| (sums[end] - sums[start], std::cmp::Reverse(start)))?;
    let (bytes, most, least) = (sums[end] - sums[start], objects(lines[end - 1]), objects(lines[start]));
    if bytes < measured.total.bytes / 100 * PERCENT {
        return None;
    }
    let twice = lines[end..].iter().copied().find(|line| {
        let half = objects(line) / 2;
        half >= least - least / 50 && half <= most + most / 50
    });
    Some(Alike { lines: lines[start..end].to_vec(), bytes, twice })
}

impl Alike<'_> {
    /// The names of the first caches in an order, and how many more there are.
    pub(crate) fn names(lines: &[&Line]) -> String {
        const NAMED: usize = 8;
        let mut names: Vec<String> = lines.iter().take(NAMED).map(|line| named(line)).collect();
        if lines.len() > NAMED {
            names.push(format!("{} more", grouped((lines.len() - NAMED) as u64)));
        }
        names.join(", ")
    }
}
