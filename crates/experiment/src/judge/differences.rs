//! What else differs between two cells whose main metric differs: shares, locks, lines, events.

use crate::run::results::Results;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_platform::Event;
use std::collections::BTreeMap;

/// Most differences of each kind.
const MOST: usize = 2;
/// Smaller differences of shares, in points, and of other numbers, in percent, are not told.
const LEAST_POINTS: f64 = 0.5;
const LEAST_PERCENT: f64 = 5.0;
/// Events of fewer than one in a thousand allocations are not told.
const LEAST_EVENTS: f64 = 1.0;

/// A number beside the main metric, of both cells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// What it is: a metric, an event, or what was counted of a lock.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its mean over the base's runs.
    pub base: f64,
    /// Its mean over the other's runs.
    pub other: f64,
}

impl Difference {
    fn points(&self) -> f64 {
        (self.other - self.base).abs()
    }

    fn percent(&self) -> f64 {
        100.0 * self.points() / self.base.abs().max(self.other.abs()).max(f64::MIN_POSITIVE)
    }
}

/// The numbers that differ most between two cells of an experiment, at most two of each kind: shares of
/// operations and of time, counts of an operation, locks, events. Locks and events are those of a thousand
/// allocations, since runs of a fixed time do not have equally many.
pub fn differences(results: &Results, [base, other]: [usize; 2]) -> Vec<Difference> {
    let (Some(base), Some(other)) = (means(results, base), means(results, other)) else { return Vec::new() };
    let file = &results.experiment.file;
    let beside = file.workload.metrics.iter().enumerate().filter(|(at, _)| *at != file.metric);
    let of_metrics = |unit: &'static str| {
        beside
            .clone()
            .filter(move |(_, metric)| metric.unit == unit)
            .map(move |(_, metric)| (metric.name, metric.per_unit))
    };
    let number = |numbers: &BTreeMap<String, f64>, name: &str| numbers.get(name).copied().unwrap_or(0.0);
    let metrics = |unit: &'static str| -> Vec<Difference> {
        let of = |(name, per_unit): (&str, f64)| Difference {
            name: name.trim_end_matches("_ppm").trim_end_matches("_milli").replace('_', " "),
            unit: if unit == "1" { "of an operation" } else { unit },
            base: number(&base, name) / per_unit,
            other: number(&other, name) / per_unit,
        };
        of_metrics(unit).map(of).collect()
    };
    let shares = most(metrics("%"), Difference::points, LEAST_POINTS);
    let counts = most(metrics("1"), Difference::percent, LEAST_PERCENT);
    let [allocs, other_allocs] = [&base, &other].map(|numbers| {
        let of = |event: Event| number(numbers, &format!("counter.{}", event.name()));
        of(Event::AllocFastpath) + of(Event::AllocSlowpath)
    });
    if allocs == 0.0 || other_allocs == 0.0 {
        return shares.into_iter().chain(counts).collect();
    }
    let each = |key: &str, scale: f64, name: String, unit: &'static str| Difference {
        name,
        unit,
        base: number(&base, key) / allocs * scale,
        other: number(&other, key) / other_allocs * scale,
    };
    let mut names: Vec<&String> = base.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    let (mut locks, mut events) = (Vec::new(), Vec::new());
    for key in names {
        if let Some(event) = key.strip_prefix("counter.") {
            events.push(each(key, 1e3, event.to_string(), "of 1000 allocations"));
        } else if let Some(lock) = key.strip_prefix("lock.").and_then(|key| key.strip_suffix(".taken")) {
            locks.push(each(key, 1e3, format!("{lock} taken"), "of 1000 allocations"));
        } else if let Some(lock) = key.strip_prefix("lock.").and_then(|key| key.strip_suffix(".wait_ps")) {
            locks.push(each(key, 1.0, format!("{lock} waits"), "ns of 1000 allocations"));
        }
    }
    let is_seen =
        |one: &Difference| one.base.max(one.other) >= LEAST_EVENTS && one.percent() >= LEAST_PERCENT;
    // The shares have the fast and the slow paths already, and the locks their events. SLUB's slab_lock is
    // no lock with a rank: it has the event alone.
    let paths = [Event::AllocFastpath, Event::AllocSlowpath, Event::FreeFastpath, Event::FreeSlowpath];
    let is_told = |one: &Difference| {
        let is_lock = one.name.starts_with("lock_") && one.name != Event::LockSlab.name();
        is_lock || paths.iter().any(|event| event.name() == one.name)
    };
    locks.retain(is_seen);
    events.retain(|one| is_seen(one) && !is_told(one));
    let locks = most(locks, Difference::points, 0.0);
    let events = most(events, Difference::points, 0.0);
    shares.into_iter().chain(counts).chain(locks).chain(events).collect()
}

/// Those that differ most, by `size`.
fn most(mut all: Vec<Difference>, size: fn(&Difference) -> f64, least: f64) -> Vec<Difference> {
    all.retain(|one| size(one) > least);
    all.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.name.cmp(&b.name)));
    all.truncate(MOST);
    all
}

/// The means of all numbers of a cell; `None` without a run that ended well.
fn means(results: &Results, cell: usize) -> Option<BTreeMap<String, f64>> {
    let runs: Vec<_> = results.runs[cell].as_ref()?.iter().flatten().collect();
    let mut sums = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|sample| sample.numbers()) {
        *sums.entry(name).or_insert(0.0) += value as f64 / runs.len() as f64;
    }
    (!runs.is_empty()).then_some(sums)
}
