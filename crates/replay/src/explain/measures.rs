//! What is explained: the counters and amounts of a run, or of one cache in it.
//!
//! All are whole numbers, in one order, and there whether zero or not, so that runs can be compared place by
//! place. Names are those of `slablab replay --format json`.

use crate::replay::outcome::{CacheOutcome, Counts, LOCKS, Outcome, Split, Traffic};
use slablab_platform::Event;

/// Something that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// What one of it is.
    pub unit: Unit,
}

/// What a measure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things that happened or are there.
    Count,
    /// Bytes.
    Bytes,
}

/// Measures with their values.
#[derive(Default)]
struct List(Vec<(Measure, u64)>);

impl List {
    fn count(&mut self, name: impl Into<String>, value: u64) {
        self.0.push((Measure { name: name.into(), unit: Unit::Count }, value));
    }

    fn bytes(&mut self, name: impl Into<String>, value: u64) {
        self.0.push((Measure { name: name.into(), unit: Unit::Bytes }, value));
    }

    fn split(&mut self, split: &Split) {
        self.bytes("live_bytes", split.live);
        self.bytes("parked_bytes", split.parked);
        self.bytes("free_bytes", split.free);
        self.bytes("tail_bytes", split.tail);
        self.bytes("loss_bytes", split.slabs - split.live);
    }

    fn traffic(&mut self, traffic: &Traffic) {
        self.count("allocs", traffic.allocs);
        self.count("frees", traffic.frees);
        self.count("frees_other_cpu", traffic.other_cpu);
        self.count("frees_other_node", traffic.other_node);
        self.count("allocs_failed", traffic.failed);
        self.count("frees_old", traffic.old);
        self.count("allocs_assumed", traffic.bulk);
        self.count("frees_implied", traffic.implied);
    }

    fn events(&mut self, counts: &Counts) {
        Event::ALL.iter().for_each(|event| self.count(event.name(), counts.get(*event)));
    }
}

/// The measures of a run.
pub fn of_run(outcome: &Outcome) -> Vec<(Measure, u64)> {
    let mut list = List::default();
    list.bytes("slab_start_bytes", outcome.start_frames * outcome.page_size);
    list.bytes("slab_peak_bytes", outcome.peak_frames * outcome.page_size);
    list.bytes("slab_end_bytes", outcome.end_frames * outcome.page_size);
    list.split(&outcome.split());
    let orders = outcome.slabs_by_order();
    for order in 0..orders.len() {
        let caches = outcome.caches.iter().filter(|cache| usize::from(cache.geometry.order) == order);
        list.count(format!("pages_end_order_{order}"), caches.map(|cache| cache.end.frames).sum());
    }
    for (order, (taken, _)) in orders.iter().enumerate() {
        list.count(format!("slabs_taken_order_{order}"), *taken);
    }
    for (order, (_, returned)) in orders.iter().enumerate() {
        list.count(format!("slabs_returned_order_{order}"), *returned);
    }
    list.traffic(&outcome.traffic());
    list.count("large_allocs", outcome.large.allocs);
    list.count("large_allocs_failed", outcome.large.failed);
    list.count("frees_unknown", outcome.unknown_frees);
    list.events(&counts_of_run(outcome));
    list.0
}

/// The events of all caches, and those of the page allocator.
///
/// The world counts every lock, also those inside caches, which the engine counts for each cache. The
/// engine's count is the one that `replay` shows, and the only one that begins and ends with the caches'
/// windows.
fn counts_of_run(outcome: &Outcome) -> Counts {
    let mut counts = outcome.total();
    let mut outside = outcome.global.clone();
    LOCKS.into_iter().for_each(|lock| outside.0[lock as usize] = 0);
    counts.add(&outside);
    counts
}

/// The measures of one cache; of one that no slab was made for, all are zero.
pub(super) fn of_cache(outcome: &Outcome, cache: Option<&CacheOutcome>) -> Vec<(Measure, u64)> {
    let mut list = List::default();
    let of = |count: fn(&CacheOutcome) -> u64| cache.map_or(0, count);
    let split =
        cache.map_or(Split::default(), |cache| Split::of(&cache.end, &cache.geometry, outcome.page_size));
    list.bytes("slab_start_bytes", of(|cache| cache.start.frames) * outcome.page_size);
    list.bytes("slab_bytes", split.slabs);
    list.split(&split);
    list.bytes("slab_size_bytes", of(|cache| cache.geometry.size.into()));
    list.count("order", of(|cache| cache.geometry.order.into()));
    list.count("objs_per_slab", of(|cache| cache.geometry.objects.into()));
    list.count("slabs", of(|cache| cache.end.slabs));
    list.count("objects", of(|cache| cache.end.active_objects()));
    list.count("parked_objects", of(|cache| cache.end.parked));
    list.count("partial", of(|cache| cache.end.partial));
    list.count("cpu_slabs", of(|cache| cache.end.cpu_slabs + cache.end.cpu_partial));
    list.traffic(&cache.map_or(Traffic::default(), |cache| cache.traffic));
    list.events(&cache.map_or_else(Counts::default, |cache| cache.counts.clone()));
    list.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{self, Input};
    use crate::output::replay_answer;
    use crate::replay::{Options, replay};
    use slablab_slabs::preset::Choice;
    use std::path::Path;

    /// Every number that `replay` and `explain` both have is the same in both.
    #[test]
    fn explain_counts_what_replay_counts() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/git-grep.trace.parquet");
        let reader = import::open(Input { path: &path, recording: None, formats: None }, &mut |_| {});
        let reader = reader.expect("the recording is right");
        let engines = ["slub@6.1", "slub@7.1", "slab@6.1", "slqb", "slob"];
        let engines = engines.map(|text| Choice::parse(text).expect("a preset").into()).to_vec();
        let options = Options { engines, ..Options::default() };
        let run = replay(&reader, &path, &options, &|_, _| {}).expect("it can be replayed");
        let json = replay_answer(&run, 0).json();
        for (outcome, json) in run.outcomes.iter().zip(json["engines"].as_array().expect("a list")) {
            let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
            let (mut in_both, mut locks) = (0, 0);
            for (Measure { name, .. }, value) in of_run(outcome) {
                let what = format!("{}: {name}", json["engine"]);
                if let Some(total) = json["total"].get(&name).and_then(serde_json::Value::as_u64) {
                    assert_eq!(value, total, "{what}");
                    in_both += 1;
                    locks += if name.starts_with("lock_") { total } else { 0 };
                } else if Event::ALL.iter().any(|event| event.name() == name && !event.is_of_model()) {
                    let caches = json["caches"].as_array().expect("a list");
                    let in_caches: u64 = caches.iter().map(|cache| number(&cache["counters"][&name])).sum();
                    let is_inside = LOCKS.iter().any(|lock| lock.name() == name);
                    let outside = if is_inside { 0 } else { number(&json["pages"][&name]) };
                    assert_eq!(value, in_caches + outside, "{what}");
                }
            }
            assert!(in_both > 10 && locks > 0, "{}: {in_both} numbers, {locks} locks", json["engine"]);
        }
    }
}
