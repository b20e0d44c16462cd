//! Where the planned start is not what the dump says.

use super::before::Before;
use super::caches::CacheTable;
use super::plan::Plan;
use super::survey::Survey;
use slablab_report::text::counted;

/// Caches that are named in a warning, at most.
const NAMED: usize = 5;

/// A sentence for caches that begin with another number of slabs than in the dump, most bytes first; and one
/// for caches of the recording that the dump does not have.
pub(super) fn found(table: &CacheTable, survey: &Survey, plan: &Plan, before: &Before) -> Vec<String> {
    let mut other: Vec<(u64, String)> = Vec::new();
    let mut missing = Vec::new();
    for (index, entry) in table.entries.iter().enumerate() {
        let planned = plan.caches[index].len() as u64;
        // Of a cache that was read slab by slab a dump of another moment says nothing.
        if before.slabs_of(entry.names()).is_some() {
            continue;
        }
        let Some(row) = entry.before else {
            if !survey.caches[index].initial().is_empty() {
                missing.push(entry.name.as_str());
            }
            continue;
        };
        let Some(slabs) = before.caches[row].slabs.as_ref().map(|slabs| slabs.total.value) else { continue };
        if slabs != planned {
            // Two names of a merged cache: the other one is what people know.
            let known = entry.aliases.first().filter(|_| entry.name.starts_with(':'));
            let name = known.unwrap_or(&entry.name);
            let bytes = slabs.abs_diff(planned) << (entry.order + 12).min(40);
            other.push((bytes, format!("{name} {planned} slabs, not {slabs}")));
        }
    }
    other.sort_by(|(a, first), (b, second)| b.cmp(a).then_with(|| first.cmp(second)));
    let mut warnings = Vec::new();
    if !other.is_empty() {
        let named: Vec<&str> = other.iter().take(NAMED).map(|(_, text)| text.as_str()).collect();
        warnings.push(format!(
            "{} otherwise than {} says: {}{}",
            caches(other.len(), "begins", "begin"),
            before.path.display(),
            named.join(", "),
            if other.len() > NAMED { ", ..." } else { "" }
        ));
    }
    if !missing.is_empty() {
        warnings.push(format!(
            "{} in {}, only in the recording, with the slabs at the start of which it sees objects: {}{}",
            caches(missing.len(), "is not", "are not"),
            before.path.display(),
            missing[..missing.len().min(NAMED)].join(", "),
            if missing.len() > NAMED { ", ..." } else { "" }
        ));
    }
    warnings
}

/// `1 cache begins`, `2 caches begin`.
fn caches(number: usize, one: &str, more: &str) -> String {
    format!("{} {}", counted(number as u64, "cache"), if number == 1 { one } else { more })
}
