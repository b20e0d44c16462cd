//! What is worth saying, in plain words, each with a number.
//!
//! A finding is reported only if its bytes reach [`WORTH_PERCENT`] of the slab memory and [`WORTH_BYTES`], or
//! if it is about the trust in the numbers. The other thresholds are next to their findings. docs/doctor.md
//! lists all.

use crate::act::report::{Line, Report};
use slablab_report::text::grouped;
use slablab_slabs::Release;
use std::fmt::Write;

/// Percent of all slab memory.
pub const WORTH_PERCENT: u64 = 1;
/// Bytes.
pub const WORTH_BYTES: u64 = 64 << 10;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One cache has a large part of the memory.
    Dominates,
    /// Much of a cache is free objects.
    Fragmented,
    /// Much of a cache is behind the last objects of its slabs.
    Tail,
    /// Much of a cache is alignment and free pointers.
    Metadata,
    /// Debugging takes room.
    Debugging,
    /// CPUs park much.
    Parked,
    /// Large kmallocs, outside all caches.
    LargeKmalloc,
    /// meminfo and the caches do not agree, and it is not clear why.
    MeminfoGap,
    /// Nodes without memory.
    MemorylessNodes,
    /// Slabs got at the smallest order.
    Fallback,
    /// Orders that the page allocator has no block of.
    HighOrder,
    /// Much can be reclaimed.
    Reclaimable,
    /// Much of the machine's memory is slabs that cannot be reclaimed.
    Unreclaimable,
    /// A cache grows along a line.
    Leak,
    /// A cache grew, and there are not enough snapshots to say more.
    Growth,
    /// A cache grew that the kernel shrinks by itself.
    CacheGrowth,
    /// Removed cgroups that still hold memory.
    DyingCgroups,
    /// Merged caches: the kernel does not tell which of them holds the memory.
    Merged,
    /// The kernel estimated its counts.
    Approximated,
    /// The kernel counted while objects moved.
    Raced,
    /// Slabs of large pages, held by CPUs.
    BigPages,
    /// kmallocs got more than they asked for.
    Rounding,
    /// A message of the kernel: it could not get a slab.
    AllocFailed,
    /// A report of the OOM killer, or of an allocation of pages that failed.
    OutOfMemory,
    /// Directory entries, and how many of them the kernel can free.
    Dentries,
    /// The largest cache of a text cannot be reclaimed.
    Suspect,
    /// The largest cache of a text can be reclaimed.
    Benign,
    /// Caches with nearly the same number of objects.
    Together,
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: Kind,
    /// The caches it is about, by name and ordinal; none if it is about the machine.
    pub caches: Vec<(String, u32)>,
    /// The bytes it is about: findings are sorted by it. 0 where the number is not of bytes.
    pub bytes: u64,
    /// The words.
    pub text: String,
}

impl Kind {
    /// Every kind with its key for machines.
    pub const ALL: [(Kind, &'static str); 28] = [
        (Kind::Dominates, "dominates"),
        (Kind::Fragmented, "fragmented"),
        (Kind::Tail, "tail"),
        (Kind::Metadata, "metadata"),
        (Kind::Debugging, "debugging"),
        (Kind::Parked, "parked"),
        (Kind::LargeKmalloc, "large_kmalloc"),
        (Kind::MeminfoGap, "meminfo_gap"),
        (Kind::MemorylessNodes, "memoryless_nodes"),
        (Kind::Fallback, "fallback"),
        (Kind::HighOrder, "high_order"),
        (Kind::Reclaimable, "reclaimable"),
        (Kind::Unreclaimable, "unreclaimable"),
        (Kind::Leak, "leak"),
        (Kind::Growth, "growth"),
        (Kind::CacheGrowth, "cache_growth"),
        (Kind::DyingCgroups, "dying_cgroups"),
        (Kind::Merged, "merged"),
        (Kind::Approximated, "approximated"),
        (Kind::Raced, "raced"),
        (Kind::BigPages, "big_pages"),
        (Kind::Rounding, "rounding"),
        (Kind::AllocFailed, "alloc_failed"),
        (Kind::OutOfMemory, "out_of_memory"),
        (Kind::Dentries, "dentries"),
        (Kind::Suspect, "suspect"),
        (Kind::Benign, "benign"),
        (Kind::Together, "together"),
    ];

    /// Its key for machines.
    pub fn key(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, key)| key)
    }
}

/// The least bytes that make a finding on this machine.
pub fn worth(report: &Report) -> u64 {
    (report.total.bytes / 100 * WORTH_PERCENT).max(WORTH_BYTES)
}

/// What the sum of the caches is: slab memory, unless a text has a part of the caches.
pub(crate) fn sum_name(report: &Report) -> &'static str {
    if report.state.has_all_caches() { "slab memory" } else { "the caches in the text" }
}

/// A finding about several.
pub(crate) fn several(kind: Kind, lines: &[&Line], bytes: u64, text: String) -> Finding {
    let caches = lines.iter().map(|line| (line.cache.name.clone(), line.cache.ordinal)).collect();
    Finding { kind, caches, bytes, text }
}

/// A cache's name, with its ordinal if it is not the first cache of that name.
pub fn named(line: &Line) -> String {
    let mut name = line.cache.name.clone();
    if line.cache.ordinal > 0 {
        write!(name, "#{}", line.cache.ordinal + 1).expect("a string");
    }
    name
}

/// Bytes for a sentence: the unit that leaves up to four digits before the point.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let places = if value.fract() == 0.0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.places$} {}", UNITS[unit])
}

/// 1 CPU, 2 CPUs.
pub fn counted(number: u64, what: &str) -> String {
    let many = if number == 1 { "" } else { "s" };
    format!("{} {what}{many}", grouped(number))
}

/// A part of a whole. Only all of it is 100 %, and only nothing is 0 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    match (part < whole, part > 0) {
        (true, _) if percent >= 99.95 => "over 99.9 %".into(),
        (_, true) if percent < 0.05 => "below 0.1 %".into(),
        (true, true) if !(1.0..99.5).contains(&percent) => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A part and its whole, with one unit if they have the same: `43.8 of 44.5 GiB`.
pub(crate) fn part_of(part: u64, whole: u64) -> String {
    let (part, whole) = (size(part), size(whole));
    match (part.split_once(' '), whole.split_once(' ')) {
        (Some((number, unit)), Some((_, of))) if unit == of => format!("{number} of {whole}"),
        _ => format!("{part} of {whole}"),
    }
}

/// The release of a kernel in words.
pub(crate) fn release_text(release: Option<Release>) -> String {
    release.map_or("this kernel".into(), |release| format!("Linux {release}"))
}
