//! `slablab replay`: counts of engines on a recording.

use super::{Kind, Shown, caches, list, singles, text};
use crate::answer::{Answer, Fact, Role, program};
use serde_json::Value;
use slablab_report::text::{counted, grouped};
use slablab_stats::table::Better::{Higher, Lower};

pub(super) const KIND: Kind = Kind {
    verb: "replay",
    words: "slablab replay",
    schema: "slablab.replay.1",
    medians: false,
    exact: "a replay gives the same numbers each time: a difference is one of the engines on this recording",
    read,
};

const TOTALS: &[Shown] = &[
    ("slab_peak_bytes", "slab peak, KiB", 1024.0, 0, Lower),
    ("slab_end_bytes", "slab end, KiB", 1024.0, 0, Lower),
    ("parked_bytes", "parked, KiB", 1024.0, 0, Lower),
    ("free_bytes", "free, KiB", 1024.0, 0, Lower),
    ("tail_bytes", "tails, KiB", 1024.0, 0, Lower),
    ("slabs_taken", "slabs taken", 1.0, 0, Lower),
    ("slabs_returned", "slabs returned", 1.0, 0, Lower),
    ("slab_pages_taken", "pages taken", 1.0, 0, Lower),
    ("allocs_fast_percent", "fast allocs, %", 1.0, 1, Higher),
    ("frees_fast_percent", "fast frees, %", 1.0, 1, Higher),
    ("lock_node_list", "list locks", 1.0, 0, Lower),
    ("lock_barn", "barn locks", 1.0, 0, Lower),
    ("lock_zone", "zone locks", 1.0, 0, Lower),
];

fn read(document: &Value) -> Result<Answer, String> {
    let engines = list(document, "engines")?;
    let machine = &document["machine"];
    let mut answer = Answer {
        inputs: [
            recording(document, engines.first().map(|engine| &engine["rows"])),
            vec![Fact::new("start", Some(before(document)))],
        ]
        .concat(),
        settings: vec![
            program(document),
            Fact::of("recorded kernel", &document["release"]),
            Fact::of("CPUs", &machine["cpus"]),
            Fact::of("page size", &machine["page_size_bytes"]),
            Fact::of("bytes of nodes", &machine["node_memory_bytes"]),
            Fact::of("node of each CPU", &machine["cpu_node"]),
            Fact::of("seed", &machine["seed"]),
            Fact::of("hotplug", &hotplug(document)),
            Fact::of("file", &document["recording"]),
        ],
        cautions: lost(document),
        ..Answer::default()
    };
    for (at, engine) in engines.iter().enumerate() {
        answer.engines.push(text(engine, "engine")?.to_string());
        let of = &engine["total"];
        answer.quantities.extend(singles(of, TOTALS, (Some(at), "", Role::Answer)));
        answer.quantities.extend(caches(list(engine, "caches")?, Some(at)));
    }
    Ok(answer)
}

/// The state that a replay begins with. The same dump may have another path.
fn before(document: &Value) -> String {
    match &document["before"] {
        Value::Null => "the recording's own".into(),
        before => {
            format!("a dump of {} active objects in {} caches", before["active_objects"], before["caches"])
        }
    }
}

/// The recording that a result is of.
pub(super) fn recording(document: &Value, rows: Option<&Value>) -> Vec<Fact> {
    let rows = rows.unwrap_or(&document["recording_rows"]);
    vec![
        Fact::new("recording, rows", rows.as_u64().map(grouped)),
        Fact::of("recording, fingerprint", &document["recording_fingerprint"]),
    ]
}

/// The sentence about lost events, if there are any.
pub(super) fn lost(document: &Value) -> Vec<String> {
    match document["events_lost"].as_u64() {
        Some(lost) if lost > 0 => vec![format!("the recording lost {}", counted(lost, "event"))],
        _ => Vec::new(),
    }
}

fn hotplug(document: &Value) -> Value {
    let commands = document["hotplug"].as_array().into_iter().flatten();
    let commands: Vec<Value> = commands.map(|one| one["command"].clone()).collect();
    if commands.is_empty() { "none".into() } else { commands.into() }
}
