//! Findings about what the kernel keeps beside objects: cgroups and lines of code (docs/theory/slub.md 7.1).

use super::finding::{Finding, Kind};
use crate::measure::accounting::{Place, Words, pinning_pairs};
use crate::measure::{Line, Measured, named};
use crate::words::{counted, listed, release_text, size};
use slablab_slabs::accounting::Profiling;
use std::collections::BTreeMap;

/// kmalloc caches that a sentence names.
const NAMED: usize = 3;

/// What is worth saying of accounting.
pub(crate) fn find(measured: &Measured, worth: u64) -> Vec<Finding> {
    let bytes = measured.lines.iter().filter_map(|line| line.words).map(|words| words.bytes).sum::<u64>();
    let large = said(measured).filter(|_| bytes >= worth);
    let large =
        large.map(|said| Finding::of_machine(Kind::Accounting, bytes, format!("accounting takes {said}")));
    large.into_iter().chain(pinned(measured, worth)).collect()
}

/// The bytes beside objects, in words; `None` where there are none.
pub(crate) fn said(measured: &Measured) -> Option<String> {
    let kept: Vec<(&Line, Words)> = measured
        .lines
        .iter()
        .filter_map(|line| Some((line, line.words?)))
        .filter(|(_, words)| words.bytes > 0)
        .collect();
    let charging = measured.charging.filter(|_| !kept.is_empty())?;
    let widest = kept.iter().map(|(_, words)| words.per_object).max()?;
    let bytes = |place: fn(Place) -> bool| -> u64 {
        kept.iter().filter(|(_, words)| place(words.place)).map(|(_, words)| words.bytes).sum()
    };
    let mut classes: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, words) in kept.iter().filter(|(_, words)| words.place == Place::Array) {
        *classes.entry(words.array).or_default() += words.bytes;
    }
    let mut classes: Vec<(u64, u64)> = classes.into_iter().collect();
    classes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let names: Vec<String> =
        classes.iter().take(NAMED).map(|(class, bytes)| format!("{class} ({})", size(*bytes))).collect();
    let whose = match charging.kernel.profiling {
        Profiling::On => {
            "each object, for the line of code that allocated it and the cgroup that it is charged to"
        }
        Profiling::Off | Profiling::Absent => "each object that is charged to a memory cgroup",
    };
    let arrays = match bytes(|place| place == Place::Array) {
        0 => String::new(),
        bytes => format!(", {} of it arrays in kmalloc of {} bytes", size(bytes), listed(&names)),
    };
    Some(format!(
        "{}: at most {widest} bytes beside {whose}, in {}{arrays}",
        size(bytes(|_| true)),
        counted(kept.len() as u64, "cache")
    ))
}

/// Two kmalloc caches whose slabs cannot become empty, as each array of one is in a slab of the other.
fn pinned(measured: &Measured, worth: u64) -> Vec<Finding> {
    let Some(charging) = measured.charging else { return Vec::new() };
    let pairs = pinning_pairs(measured.state, &charging);
    let of = |(one, other): (usize, usize)| {
        let lines = [&measured.lines[one], &measured.lines[other]];
        let free: u64 = lines.iter().map(|line| line.split.free).sum();
        let lines = (free >= worth).then_some(lines)?;
        Some(Finding::of_caches(
            Kind::PinningPair,
            &lines,
            free,
            format!(
                "{} and {} keep each other's slabs: {} profiles allocations, and the array of each slab of one \
                 is an object of the other, so that slabs without any other object stay; {} of both are free \
                 objects (fixed in 7.2 and in stable releases of 2026)",
                named(lines[0]),
                named(lines[1]),
                release_text(measured.state.release),
                size(free)
            ),
        ))
    };
    pairs.into_iter().filter_map(of).collect()
}
