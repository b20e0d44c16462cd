//! Large caches of one snapshot, and what holds their objects.

use super::grown::names_of;
use super::holders::{Holding, Who};
use super::line::Line;
use crate::state::State;
use crate::what::{HolderKind, Method};

/// Per cent of all slabs from which on a cache is asked for.
const PERCENT: u64 = 10;

/// Caches whose objects one holder has.
#[derive(Clone, Debug)]
pub struct Held {
    /// Indices of the caches in the report's lines, most bytes first.
    pub lines: Vec<usize>,
    /// Their bytes.
    pub bytes: u64,
    /// What holds their objects.
    pub who: Who,
    /// What finds it and ends it.
    pub ends: &'static Method,
}

/// Who holds the objects of each cache that has much of all slabs, caches of one holder together.
pub(super) fn held(lines: &[Line], now: &State, all: u64) -> Vec<Held> {
    let holding = Holding::of(now, None);
    let is_large = |line: &Line| {
        let is_large = line.split.bytes > 0 && line.split.bytes >= all / 100 * PERCENT;
        is_large && !line.reclaim.by_kernel() && !line.cache.bytes_only
    };
    let mut large: Vec<usize> = (0..lines.len()).filter(|at| is_large(&lines[*at])).collect();
    large.sort_by_key(|at| (std::cmp::Reverse(lines[*at].split.bytes), *at));
    let mut found: Vec<Held> = Vec::new();
    for at in large {
        let line = &lines[at];
        let takes = |kind: &HolderKind| usize::from(names_of(line).any(|name| kind.takes(name)));
        let Some(explained) = holding.of_now(line.cache.active_objects, &takes) else { continue };
        let bytes = line.split.bytes;
        match found.iter_mut().find(|held| held.who.is_same(&explained.who)) {
            Some(held) => {
                held.lines.push(at);
                held.bytes = held.bytes.saturating_add(bytes);
            }
            None => found.push(Held { lines: vec![at], bytes, who: explained.who, ends: &explained.of.ends }),
        }
    }
    found
}
