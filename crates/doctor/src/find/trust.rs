//! Findings about how far the numbers can be trusted.

use super::finding::{Finding, Kind};
use crate::measure::{Line, Measured};
use crate::words::{counted, release_text, size};
use slablab_report::text::grouped;
use slablab_slabs::Release;

/// Since then the free objects of long partial lists are estimated from a sample.
const APPROXIMATED_SINCE: Release = Release::new(6, 10, 0);
/// Slabs of a partial list above which they are.
const LONG_LIST: u64 = 10_000;

/// What must be said of the numbers themselves.
pub(crate) fn find(measured: &Measured) -> Vec<Finding> {
    [approximated(measured), raced(measured)].into_iter().flatten().collect()
}

/// Caches whose number of partial slabs is above the limit up to which the kernel counts their objects.
fn approximated(measured: &Measured) -> Option<Finding> {
    let release = measured.state.release.filter(|release| *release >= APPROXIMATED_SINCE);
    release?;
    let partial = |line: &Line| {
        let listed = line.cache.attrs.as_ref().and_then(|attrs| attrs.partial.as_ref());
        let longest = listed.and_then(|partial| partial.nodes.iter().map(|(_, count)| count.value).max());
        longest.or(listed.map(|partial| partial.total.value)).unwrap_or(0)
    };
    let lines: Vec<&Line> = measured.lines.iter().filter(|line| partial(line) > LONG_LIST).collect();
    let bytes = lines.iter().map(|line| line.split.free).sum();
    (!lines.is_empty()).then(|| {
        Finding::of_caches(Kind::Approximated, &lines, bytes, format!(
            "{} estimates the active objects of {}, whose partial lists have more than {} slabs: {} of free \
             objects is an estimate too",
            release_text(release), counted(lines.len() as u64, "cache"), grouped(LONG_LIST), size(bytes)
        ))
    })
}

/// Counters that cannot all be right at once.
fn raced(measured: &Measured) -> Option<Finding> {
    let lines: Vec<&Line> = measured.lines.iter().filter(|line| line.split.raced < 0).collect();
    let bytes = measured.total.raced.unsigned_abs();
    (!lines.is_empty()).then(|| {
        Finding::of_caches(Kind::Raced, &lines, bytes, format!(
            "{} with more active objects than objects, by {}: the kernel counted while objects moved, and \
             the sum says so in a line of its own",
            counted(lines.len() as u64, "cache"), size(bytes)
        ))
    })
}
