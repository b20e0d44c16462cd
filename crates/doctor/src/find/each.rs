//! A finding about slabs that were read one by one: how much of the room in slabs is whole slabs, and how
//! much is holes.

use super::finding::{Finding, Kind};
use crate::measure::each::EachSlab;
use crate::measure::{Line, Measured};
use crate::words::{counted, size};
use slablab_report::text::grouped;
use std::cmp::Reverse;

/// Caches that the sentence names.
const NAMED: usize = 3;

/// What the slabs of a recording tell; `None` for an input without them.
pub(crate) fn find(measured: &Measured) -> Option<Finding> {
    let mut each: Vec<(&Line, EachSlab)> = measured
        .lines
        .iter()
        .filter_map(|line| Some((line, EachSlab::of(line.cache, measured.state)?)))
        .collect();
    each.sort_by_key(|(_, each)| Reverse(each.nearly_empty_bytes()));
    let sum = |of: fn(&EachSlab) -> u64| each.iter().map(|(_, each)| of(each)).sum::<u64>();
    let slabs = sum(|each| each.slabs);
    if slabs == 0 {
        return None;
    }
    let needless = sum(|each| each.beyond_need.saturating_mul(each.slab_bytes));
    let empty = sum(|each| each.empty.saturating_mul(each.slab_bytes));
    let most: Vec<&(&Line, EachSlab)> =
        each.iter().take(NAMED).filter(|(_, each)| each.nearly_empty > 0).collect();
    let named: Vec<String> = most
        .iter()
        .map(|(line, each)| {
            format!(
                "{} {} with {} ({})",
                line.cache.name,
                grouped(each.nearly_empty),
                counted(each.in_use_nearly_empty, "object"),
                size(each.nearly_empty_bytes())
            )
        })
        .collect();
    let named = if named.is_empty() { String::new() } else { format!("; most in {}", named.join(", ")) };
    let text = format!(
        "the recorder read {} one by one: the objects in use need {} less; {} are empty slabs that nodes keep, \
         {} slabs with at most an eighth of their objects in use, which stay until these go{named}",
        counted(slabs, "slab"),
        size(needless),
        size(empty),
        size(sum(EachSlab::nearly_empty_bytes)),
    );
    let lines: Vec<&Line> = most.iter().map(|(line, _)| *line).collect();
    Some(Finding::of_caches(Kind::EachSlab, &lines, needless, text))
}
