//! Findings about caches: where their bytes are.

use super::finding::{Finding, Kind};
use crate::measure::allocator::Allocator;
use crate::measure::parked::{SHEAVES_FOR_ALL_SINCE, online};
use crate::measure::split::{Fallback, Split};
use crate::measure::{Line, Measured, WORTH_BYTES, named};
use crate::words::{counted, percent, size};
use slablab_report::text::grouped;

/// Caches named in one finding.
const NAMED: usize = 3;

/// What is worth saying about caches.
pub(crate) fn find(measured: &Measured, worth: u64) -> Vec<Finding> {
    let finder = Finder { measured, worth };
    let mut found: Vec<Finding> = Vec::new();
    found.extend(finder.dominates());
    found.extend(finder.fragmented());
    found.extend(finder.tail());
    found.extend(finder.metadata());
    found.extend(finder.debugging());
    found.extend(finder.parked());
    found.extend(finder.big_pages());
    found.extend(finder.merged());
    found.extend(finder.fallback());
    found
}

struct Finder<'a> {
    measured: &'a Measured<'a>,
    worth: u64,
}

impl<'a> Finder<'a> {
    /// Caches with at least `percent` of themselves in a part, and enough of it, most first.
    fn with_much(&self, percent: u64, part: impl Fn(&Split) -> u64) -> Vec<(&'a Line<'a>, u64)> {
        let lines = self.measured.lines.iter().map(|line| (line, part(&line.split)));
        let mut much: Vec<_> = lines
            .filter(|(line, bytes)| *bytes >= self.worth && *bytes >= line.split.bytes / 100 * percent)
            .collect();
        much.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cache.name.cmp(&b.0.cache.name)));
        much
    }

    /// A quarter of all.
    fn dominates(&self) -> Option<Finding> {
        const PERCENT: u64 = 25;
        let all = self.measured.total.bytes;
        let largest = self.measured.lines.iter().max_by_key(|line| line.split.bytes)?;
        let bytes = largest.split.bytes;
        if bytes < self.worth || bytes < all / 100 * PERCENT || self.measured.lines.len() < 2 {
            return None;
        }
        let what = largest.what.map_or(String::new(), |entry| format!(" ({})", first_sentence(&entry.what)));
        Some(Finding::of_caches(
            Kind::Dominates,
            &[largest],
            bytes,
            format!(
                "{} has {} of {} of {}: {}{what}",
                named(largest),
                percent(bytes, all),
                size(all),
                self.measured.sum_name(),
                size(bytes)
            ),
        ))
    }

    /// A quarter of the cache free.
    fn fragmented(&self) -> Vec<Finding> {
        const PERCENT: u64 = 25;
        let found = self.with_much(PERCENT, |split| split.free);
        let say = |(line, free): (&'a Line<'a>, u64)| {
            let cache = line.cache;
            let partial = cache.attrs.as_ref().and_then(|attrs| attrs.partial.as_ref());
            let lists = partial.map_or(String::new(), |partial| {
                format!(", in {} partial slabs", grouped(partial.total.value))
            });
            Finding::of_caches(
                Kind::Fragmented,
                &[line],
                free,
                format!(
                    "{} is fragmented: {} of {} are free objects ({} of {}){lists}",
                    named(line),
                    size(free),
                    size(line.split.bytes),
                    grouped(cache.total_objects - cache.active_objects.min(cache.total_objects)),
                    grouped(cache.total_objects)
                ),
            )
        };
        found.into_iter().map(say).collect()
    }

    /// A sixteenth: what the kernel's own search for an order first tries to stay under.
    fn tail(&self) -> Vec<Finding> {
        const PERCENT: u64 = 6;
        let found = self.with_much(PERCENT, |split| split.tail - split.overstated.min(split.tail));
        let say = |(line, tail): (&'a Line<'a>, u64)| {
            let cache = line.cache;
            let slab = cache.slab_bytes(self.measured.state.page_size);
            Finding::of_caches(
                Kind::Tail,
                &[line],
                tail,
                format!(
                    "{}: {} objects of {} bytes leave {} bytes behind in each slab of {}, {} in all",
                    named(line),
                    cache.objects_per_slab,
                    cache.size,
                    slab.saturating_sub(cache.objects_per_slab.saturating_mul(cache.size)),
                    size(slab),
                    size(tail)
                ),
            )
        };
        found.into_iter().map(say).collect()
    }

    /// A tenth of the cache between its objects, without debugging.
    fn metadata(&self) -> Vec<Finding> {
        const PERCENT: u64 = 10;
        let part = |split: &Split| split.metadata.map_or(0, |metadata| metadata.alignment + metadata.pointer);
        let say = |(line, bytes): (&'a Line<'a>, u64)| {
            let cache = line.cache;
            let align = cache.attrs.as_ref().and_then(|attrs| attrs.align);
            let aligned = align.map_or(String::new(), |align| format!(", aligned to {align}"));
            Finding::of_caches(
                Kind::Metadata,
                &[line],
                bytes,
                format!(
                    "{}: objects of {} bytes take {}{aligned}: {} of {} is padding and free pointers",
                    named(line),
                    cache.object_size.unwrap_or(cache.size),
                    cache.size,
                    size(bytes),
                    size(line.split.bytes)
                ),
            )
        };
        self.with_much(PERCENT, part).into_iter().map(say).collect()
    }

    /// Debugging of any cache: it is on by request alone, but is easily forgotten.
    fn debugging(&self) -> Option<Finding> {
        let of = |line: &&Line| line.split.metadata.is_some_and(|metadata| metadata.debugging > 0);
        let mut lines: Vec<&Line> = self.measured.lines.iter().filter(of).collect();
        let bytes = self.measured.total.metadata.map_or(0, |metadata| metadata.debugging);
        if lines.is_empty() {
            return None;
        }
        let debugging = |line: &Line| line.split.metadata.map_or(0, |metadata| metadata.debugging);
        lines.sort_by(|a, b| debugging(b).cmp(&debugging(a)).then_with(|| a.cache.name.cmp(&b.cache.name)));
        Some(Finding::of_caches(
            Kind::Debugging,
            &lines,
            bytes,
            format!(
                "debugging is on for {} of {} caches: red zones, poison and records of users take {} ({} of \
                 slab memory)",
                lines.len(),
                self.measured.lines.len(),
                size(bytes),
                percent(bytes, self.measured.total.bytes)
            ),
        ))
    }

    /// A tenth of all may be parked.
    fn parked(&self) -> Option<Finding> {
        const PERCENT: u64 = 10;
        let (total, state) = (&self.measured.total, self.measured.state);
        let cpus = online(state).filter(|_| !total.parked_unknown)?;
        if total.parked.high < self.worth || total.parked.high < total.bytes / 100 * PERCENT {
            return None;
        }
        let mut lines: Vec<&Line> = self.measured.lines.iter().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.split.parked.high));
        lines.truncate(NAMED);
        let most: Vec<String> =
            lines.iter().map(|line| format!("{} {}", named(line), size(line.split.parked.high))).collect();
        let held = match (self.measured.allocator(), state.release) {
            (Allocator::Slab, _) => "arrays",
            (_, Some(release)) if release >= SHEAVES_FOR_ALL_SINCE => "sheaves",
            _ => "CPU slabs and what is beside them",
        };
        Some(Finding::of_caches(
            Kind::Parked,
            &lines,
            total.parked.high,
            format!(
                "{} CPUs park between {} and {} that the kernel counts as in use, in {}; most in {}",
                cpus,
                size(total.parked.low),
                size(total.parked.high),
                held,
                most.join(", ")
            ),
        ))
    }

    /// A tenth of all in slabs that CPUs hold, where pages are larger than 4 KiB.
    fn big_pages(&self) -> Option<Finding> {
        const PERCENT: u64 = 10;
        let page = self.measured.state.page_size;
        if page <= 4096 {
            return None;
        }
        let slabs = |line: &Line| {
            line.cache
                .attrs
                .as_ref()
                .and_then(|attrs| attrs.cpu_slabs.as_ref())
                .map_or(0, |counts| counts.total.value)
        };
        let bytes: u64 = self
            .measured
            .lines
            .iter()
            .map(|line| slabs(line).saturating_mul(line.cache.slab_bytes(page)))
            .sum();
        let count: u64 = self.measured.lines.iter().map(slabs).sum();
        let all = self.measured.total.bytes;
        (bytes >= self.worth && bytes >= all / 100 * PERCENT).then(|| {
            Finding::of_machine(
                Kind::BigPages,
                bytes,
                format!(
                    "pages are {} KiB: the {} slabs that CPUs hold take {} ({} of slab memory); slabs of as \
                 many 4 KiB pages would take {}",
                    page / 1024,
                    grouped(count),
                    size(bytes),
                    percent(bytes, all),
                    size(bytes / (page / 4096))
                ),
            )
        })
    }

    /// Merged caches among those that have a twentieth of all each.
    fn merged(&self) -> Option<Finding> {
        const PERCENT: u64 = 5;
        let all = self.measured.total.bytes;
        let many = |line: &&Line| {
            let bytes = line.split.bytes;
            !line.cache.aliases.is_empty() && bytes >= self.worth && bytes >= all / 100 * PERCENT
        };
        let mut lines: Vec<&Line> = self.measured.lines.iter().filter(many).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.split.bytes));
        let bytes = lines.iter().map(|line| line.split.bytes).sum();
        (!lines.is_empty()).then(|| {
            let each: Vec<String> = lines
                .iter()
                .map(|line| {
                    format!(
                        "{} ({}) is also {}",
                        named(line),
                        size(line.split.bytes),
                        some_of(&line.cache.aliases)
                    )
                })
                .collect();
            Finding::of_caches(
                Kind::Merged,
                &lines,
                bytes,
                format!(
                    "the kernel counts merged caches as one, so the owner of {} is unknown: {}",
                    size(bytes),
                    each.join("; ")
                ),
            )
        })
    }

    /// Slabs at a smaller order, if they are too many to be a race between two counters.
    fn fallback(&self) -> Option<Finding> {
        let state = self.measured.state;
        let fallen =
            self.measured.lines.iter().filter_map(|line| Some((line, Fallback::of(line.cache, state)?)));
        let mut fallen: Vec<(&Line, Fallback)> = fallen.collect();
        fallen.sort_by_key(|(_, fallback)| std::cmp::Reverse(fallback.slabs));
        let slabs: u64 = fallen.iter().map(|(_, fallback)| fallback.slabs).sum();
        let bytes = fallen.iter().map(|(_, fallback)| fallback.overstated_bytes).sum();
        let lines: Vec<&Line> = fallen.iter().map(|(line, _)| *line).collect();
        let most: Vec<String> = fallen
            .iter()
            .take(NAMED)
            .map(|(line, fallback)| format!("{} {}", named(line), grouped(fallback.slabs)))
            .collect();
        (bytes >= WORTH_BYTES).then(|| Finding::of_caches(Kind::Fallback, &lines, bytes, format!(
            "{} had to be smaller than preferred, as memory was in pieces ({}); counted with the preferred \
             size they seem {} larger than they are, and that much of the tail is no memory",
            counted(slabs, "slab"), most.join(", "), size(bytes)
        )))
    }
}

fn some_of(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}
