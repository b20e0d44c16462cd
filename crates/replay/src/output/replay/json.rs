//! JSON: everything a table shows, and every counter. Units are in the keys.

use super::columns::{self, Row};
use super::figures::{Sums, figures};
use super::{remarks, violations};
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome};
use crate::replay::timeline::{Sample, Timeline};
use serde_json::{Value, json};
use slablab_platform::Event;
use slablab_report::column::Columns;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.replay.1";

/// A replay as JSON.
pub fn replay_json(replay: &Replay) -> Value {
    json_of(replay, &|_| true)
}

/// A replay with one cache in the list of each engine, as directory or alias; `None` if no engine has it.
/// Totals are of all.
pub fn cache_json(replay: &Replay, name: &str) -> Option<Value> {
    let found = replay.outcomes.iter().find_map(|outcome| outcome.cache(name))?.index;
    Some(json_of(replay, &|cache| cache.index == found))
}

fn json_of(replay: &Replay, shown: &dyn Fn(&CacheOutcome) -> bool) -> Value {
    let losses = &replay.metadata.losses;
    let mut json = json!({
        "schema": SCHEMA,
        "recording": replay.path.display().to_string(),
        "recording_fingerprint": replay.fingerprint.to_string(),
        "release": replay.metadata.release,
        "events_lost": losses.events,
        "lost_records": losses.records,
        "cut_off": replay.metadata.cut_off,
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
    });
    if let Some(start) = replay.start.json() {
        json["start"] = start;
    }
    if let Some(before) = &replay.before {
        json["before"] = json!({
            "path": before.path.display().to_string(),
            "caches": before.caches,
            "active_objects": before.active,
        });
    }
    json
}

fn engine(outcome: &Outcome, shown: &dyn Fn(&CacheOutcome) -> bool) -> Value {
    let columns = columns::caches();
    let caches = outcome.caches.iter().filter(|cache| shown(cache));
    json!({
        "engine": outcome.engine().to_string(),
        "rows": outcome.rows,
        "violations": violations::json(outcome),
        "total": figures().json(&Sums::new(outcome)),
        "timeline": timeline(&outcome.timeline),
        "pages": counters(|event| outcome.global.get(event)),
        "caches": caches.map(|one| cache(&columns, &Row::new(outcome, one))).collect::<Vec<_>>(),
    })
}

/// The samples as columns of one length, ready to plot.
fn timeline(timeline: &Timeline) -> Value {
    let column = |of: fn(&Sample) -> Value| timeline.samples.iter().map(of).collect::<Vec<_>>();
    json!({
        "every_s": timeline.every_ns as f64 / 1e9,
        "time_s": column(|sample| json!(sample.time_ns as f64 / 1e9)),
        "slab_bytes": column(|sample| json!(sample.slab_bytes)),
        "live_bytes": column(|sample| json!(sample.live_bytes)),
    })
}

fn cache<'a>(columns: &Columns<Row<'a>>, row: &Row<'a>) -> Value {
    let mut value = columns.json(row);
    value.insert("aliases".into(), json!(row.cache.aliases));
    value.insert("counters".into(), counters(|event| row.cache.counts.get(event)));
    Value::Object(value)
}

fn counters(count: impl Fn(Event) -> u64) -> Value {
    let counted = Event::ALL.iter().filter(|event| count(**event) > 0 && !event.is_of_traces());
    Value::Object(counted.map(|event| (event.name().to_string(), json!(count(*event)))).collect())
}
