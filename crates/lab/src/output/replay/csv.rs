//! CSV: one row per engine and cache.

use super::busiest;
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome, Split};
use slablab_platform::Event;
use slablab_report::csv::Csv;

/// Every cache of every engine.
pub fn caches_csv(replay: &Replay) -> String {
    let rows = replay
        .outcomes
        .iter()
        .flat_map(|outcome| busiest(outcome).into_iter().map(move |cache| (outcome, cache)));
    write(rows)
}

/// One cache of every engine; `None` if no engine has it.
pub fn cache_csv(replay: &Replay, name: &str) -> Option<String> {
    let rows: Vec<_> =
        replay.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.cache(name)?))).collect();
    (!rows.is_empty()).then(|| write(rows.into_iter()))
}

fn write<'a>(rows: impl Iterator<Item = (&'a Outcome, &'a CacheOutcome)>) -> String {
    const FIXED: [&str; 18] = [
        "engine",
        "cache",
        "object_size_bytes",
        "slab_size_bytes",
        "order",
        "objs_per_slab",
        "slabs_start",
        "slabs",
        "objects",
        "parked_objects",
        "slab_bytes",
        "tail_bytes",
        "parked_bytes",
        "free_bytes",
        "frees_other_cpu",
        "frees_other_node",
        "assumed_percent",
        "allocs_failed",
    ];
    let header = FIXED.iter().copied().chain(Event::ALL.iter().map(|event| event.name()));
    let mut out = Csv::new(header);
    for (outcome, cache) in rows {
        let split = Split::of(&cache.end, &cache.geometry, outcome.page_size);
        let fixed = [
            outcome.engine().to_string(),
            cache.name.clone(),
            cache.geometry.object_size.to_string(),
            cache.geometry.size.to_string(),
            cache.geometry.order.to_string(),
            cache.geometry.objects.to_string(),
            cache.start.slabs.to_string(),
            cache.end.slabs.to_string(),
            cache.end.active_objects().to_string(),
            cache.end.parked.to_string(),
            split.slabs.to_string(),
            split.tail.to_string(),
            split.parked.to_string(),
            split.free.to_string(),
            cache.traffic.other_cpu.to_string(),
            cache.traffic.other_node.to_string(),
            format!("{:.3}", cache.traffic.assumed_percent()),
            cache.traffic.failed.to_string(),
        ];
        let counts = Event::ALL.iter().map(|event| cache.counts.get(*event).to_string());
        out.row(fixed.into_iter().chain(counts));
    }
    out.finish()
}
