//! What a replay says in one sentence.

use super::columns::Row;
use crate::replay::Replay;
use crate::replay::outcome::{Counts, Outcome};
use slablab_platform::Event;
use slablab_report::html::number::{bytes, count, percent};
use slablab_report::text::counted;

/// What debugging found, then what the recording costs under one engine, or which of several costs least.
pub(super) fn of_all(replay: &Replay) -> String {
    let cost = match replay.outcomes.as_slice() {
        [one] => cost(one),
        all => compared(all),
    };
    let cost = format!("{cost}.");
    match found(&replay.outcomes) {
        Some(found) => format!("{found}; {cost}"),
        // The name of an engine stays as it is.
        None => cost.replacen("under ", "Under ", usize::from(cost.starts_with("under "))),
    }
}

/// Which numbers a patch changes: what differs between two engines, with both values.
pub(super) fn of_patch(differences: &[(String, [String; 2])]) -> String {
    let Some(((name, [from, to]), others)) = differences.split_first() else {
        return "The patch changes no number of this replay.".into();
    };
    let first = format!("{name} from {} to {}", from.trim(), to.trim());
    match others.len() {
        0 => format!("The patch changes 1 number of this replay: {first}."),
        more => format!("The patch changes {} numbers of this replay: {first}, and {more} more.", more + 1),
    }
}

/// The slabs of one cache at the end: under one engine, or which of several has the least memory in them.
pub(super) fn of_cache(rows: &[Option<Row>]) -> String {
    let rows: Vec<&Row> = rows.iter().flatten().collect();
    let [first, ..] = rows.as_slice() else { return String::new() };
    let name = &first.cache.name;
    let held: Vec<(String, u64)> = rows.iter().map(|row| (row.engine(), row.slab_bytes())).collect();
    if let [row] = rows.as_slice() {
        return format!(
            "{name} ends with {} of slabs under {}: {} for {}{}.",
            bytes(row.slab_bytes()),
            row.engine(),
            counted(row.cache.end.slabs, "slab"),
            counted(row.cache.end.active_objects(), "active object"),
            fast(&row.cache.counts)
        );
    }
    match Least::of(&held) {
        Some(least) => format!(
            "{name} ends with least slab memory under {}, {}: {}.",
            least.names(),
            bytes(least.value),
            least.below()
        ),
        None => {
            format!("{name} ends with {} of slabs under each of {} engines.", bytes(held[0].1), held.len())
        }
    }
}

fn cost(outcome: &Outcome) -> String {
    let page = outcome.page_size;
    let total = outcome.total();
    format!(
        "under {} the recording peaks at {} of slab memory, ends with {} and takes {}{}",
        outcome.engine(),
        bytes(outcome.peak_frames * page),
        bytes(outcome.end_frames * page),
        counted(total.get(Event::AllocSlab), "slab"),
        fast(&total)
    )
}

/// The shares of the fast paths, as the end of a sentence.
fn fast(counts: &Counts) -> String {
    let shares = [(counts.fast_allocs_percent(), "allocations"), (counts.fast_frees_percent(), "frees")];
    let known = shares.into_iter().filter_map(|(share, what)| Some(format!("{} of {what}", percent(share?))));
    match known.collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        known => format!("; {} are fast", known.join(" and ")),
    }
}

fn compared(outcomes: &[Outcome]) -> String {
    let of = |value: fn(&Outcome) -> u64| -> Vec<(String, u64)> {
        outcomes.iter().map(|outcome| (outcome.engine().to_string(), value(outcome))).collect()
    };
    let peaks = of(|outcome| outcome.peak_frames * outcome.page_size);
    let taken = of(|outcome| outcome.total().get(Event::AllocSlab));
    let (peak, slabs) = (Least::of(&peaks), Least::of(&taken));
    let memory = match &peak {
        Some(least) => {
            let (names, verb) = (least.names(), least.verb("peaks", "peak"));
            format!("{names} {verb} lowest, at {} of slab memory: {}", bytes(least.value), least.below())
        }
        None => format!(
            "under each of {} engines the recording peaks at {} of slab memory",
            peaks.len(),
            bytes(peaks[0].1)
        ),
    };
    let slabs = match &slabs {
        Some(least) if peak.as_ref().is_some_and(|peak| peak.names == least.names) => {
            format!("{} fewest slabs, {}", least.verb("it also takes", "they also take"), count(least.value))
        }
        Some(least) => {
            format!("{} {} fewest slabs, {}", least.names(), least.verb("takes", "take"), count(least.value))
        }
        None => format!("each takes {}", counted(taken[0].1, "slab")),
    };
    format!("{memory}; {slabs}")
}

/// The least of some values.
struct Least<'a> {
    names: Vec<&'a str>,
    value: u64,
    /// The next value, and whose it is.
    next: (&'a str, u64),
    /// The largest, if that is not the next.
    most: Option<(&'a str, u64)>,
}

impl Least<'_> {
    /// `None` if all values are the same.
    fn of(values: &[(String, u64)]) -> Option<Least<'_>> {
        let value = values.iter().map(|(_, value)| *value).min()?;
        let above = values.iter().filter(|(_, other)| *other > value);
        let next = above.clone().min_by_key(|(_, value)| *value)?;
        let most = above.max_by_key(|(_, value)| *value).filter(|(_, most)| *most > next.1);
        let names = values.iter().filter(|(_, other)| *other == value).map(|(name, _)| name.as_str());
        Some(Least {
            names: names.collect(),
            value,
            next: (next.0.as_str(), next.1),
            most: most.map(|(name, value)| (name.as_str(), *value)),
        })
    }

    fn verb<'b>(&self, of_one: &'b str, of_many: &'b str) -> &'b str {
        if self.names.len() == 1 { of_one } else { of_many }
    }

    fn names(&self) -> String {
        self.names.join(" and ")
    }

    /// By how much the next and the largest are more.
    fn below(&self) -> String {
        let less = |(name, value): (&str, u64)| {
            let less = value - self.value;
            format!("{} ({}) less than {name}", bytes(less), percent(100.0 * less as f64 / value as f64))
        };
        match self.most {
            None => less(self.next),
            Some(most) => format!("{} and {}", less(self.next), less(most)),
        }
    }
}

/// What debugging found under the first engine that has a violation.
fn found(outcomes: &[Outcome]) -> Option<String> {
    let of = |outcome: &Outcome| {
        let found = &outcome.violations;
        let reports: u64 = found.caches.iter().map(|(_, reports)| reports.total).sum();
        let counts = [
            (reports, "damaged or misused objects"),
            (found.freed_again, "rows that free an address again"),
            (found.never_allocated, "rows that free what was not allocated"),
        ];
        let some = counts.into_iter().filter(|(number, _)| *number > 0);
        let words: Vec<String> = some.map(|(number, what)| format!("{what} ({})", count(number))).collect();
        (!words.is_empty())
            .then(|| format!("Debugging in {} finds {}", outcome.engine(), words.join(" and ")))
    };
    let mut all = outcomes.iter().filter_map(of);
    let first = all.next()?;
    Some(match all.count() {
        0 => first,
        more => format!("{first}, as does that in {more} more"),
    })
}
