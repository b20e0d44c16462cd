//! JSON: everything a table shows, and every counter. Units are in the keys.

use super::{Figure, figures, remarks, violations};
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome, Split};
use crate::replay::timeline::{Sample, Timeline};
use serde_json::{Map, Value, json};
use slablab_platform::Event;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.replay.1";

/// A replay as JSON.
pub fn replay_json(replay: &Replay) -> Value {
    json_of(replay, &|_| true)
}

/// A replay with one cache in the list of each engine, as directory or alias; `None` if no engine has it. Totals are of all.
pub fn cache_json(replay: &Replay, name: &str) -> Option<Value> {
    let found = replay.outcomes.iter().find_map(|outcome| outcome.cache(name))?.index;
    Some(json_of(replay, &|cache| cache.index == found))
}

fn json_of(replay: &Replay, shown: &dyn Fn(&CacheOutcome) -> bool) -> Value {
    let losses = &replay.metadata.losses;
    json!({
        "schema": SCHEMA,
        "recording": replay.path.display().to_string(),
        "release": replay.metadata.release,
        "events_lost": losses.events,
        "lost_records": losses.records,
        "machine": {
            "page_size_bytes": 1u64 << replay.machine.spec.page_shift,
            "cpus": replay.machine.spec.cpu_node.len(),
            "cpu_node": replay.machine.spec.cpu_node,
            "node_memory_bytes": replay.machine.spec.nodes.iter().map(|node| node.bytes).collect::<Vec<_>>(),
            "seed": replay.machine.spec.seed,
        },
        "hotplug": replay.hotplug.iter().map(|command| json!({
            "time_ns": command.time_ns,
            "command": command.text,
        })).collect::<Vec<_>>(),
        "remarks": remarks(replay),
        "engines": replay.outcomes.iter().map(|outcome| engine(outcome, shown)).collect::<Vec<_>>(),
    })
}

fn engine(outcome: &Outcome, shown: &dyn Fn(&CacheOutcome) -> bool) -> Value {
    let caches = outcome.caches.iter().filter(|cache| shown(cache));
    let mut figures_by_key = Map::new();
    for (_, key, figure) in figures(outcome) {
        let value = match figure {
            Figure::Count(count) | Figure::Bytes(count) => json!(count),
            Figure::Percent(percent) => json!(percent),
            Figure::Heading => continue,
        };
        figures_by_key.insert(key, value);
    }
    json!({
        "engine": outcome.engine().to_string(),
        "rows": outcome.rows,
        "violations": violations::json(outcome),
        "total": figures_by_key,
        "timeline": timeline(&outcome.timeline),
        "pages": counters(|event| outcome.global.get(event)),
        "caches": caches.map(|cache| self::cache(cache, outcome.page_size)).collect::<Vec<_>>(),
    })
}

/// Columns of one length: a table for those who plot it.
fn timeline(timeline: &Timeline) -> Value {
    let column = |of: fn(&Sample) -> Value| timeline.samples.iter().map(of).collect::<Vec<_>>();
    json!({
        "every_s": timeline.every_ns as f64 / 1e9,
        "time_s": column(|sample| json!(sample.time_ns as f64 / 1e9)),
        "slab_bytes": column(|sample| json!(sample.slab_bytes)),
        "live_bytes": column(|sample| json!(sample.live_bytes)),
    })
}

fn cache(cache: &CacheOutcome, page_size: u64) -> Value {
    let split = Split::of(&cache.end, &cache.geometry, page_size);
    json!({
        "cache": cache.name,
        "aliases": cache.aliases,
        "object_size_bytes": cache.geometry.object_size,
        "slab_size_bytes": cache.geometry.size,
        "order": cache.geometry.order,
        "objs_per_slab": cache.geometry.objects,
        "slabs_start": cache.start.slabs,
        "objects_start": cache.start.active_objects(),
        "slabs": cache.end.slabs,
        "objects": cache.end.active_objects(),
        "live_objects": cache.end.live_objects(),
        "parked_objects": cache.end.parked,
        "quarantined_objects": cache.end.quarantined,
        "partial": cache.end.partial,
        "cpu_slabs": cache.end.cpu_slabs + cache.end.cpu_partial,
        "slab_bytes": split.slabs,
        "tail_bytes": split.tail,
        "parked_bytes": split.parked,
        "free_bytes": split.free,
        "allocs": cache.traffic.allocs,
        "frees": cache.traffic.frees,
        "frees_other_cpu": cache.traffic.other_cpu,
        "frees_other_node": cache.traffic.other_node,
        "allocs_failed": cache.traffic.failed,
        "frees_old": cache.traffic.old,
        "allocs_assumed": cache.traffic.bulk,
        "frees_implied": cache.traffic.implied,
        "assumed_percent": cache.traffic.assumed_percent(),
        "counters": counters(|event| cache.counts.get(event)),
    })
}

fn counters(count: impl Fn(Event) -> u64) -> Value {
    let counted = Event::ALL.iter().filter(|event| count(**event) > 0);
    Value::Object(counted.map(|event| (event.name().to_string(), json!(count(*event)))).collect())
}
