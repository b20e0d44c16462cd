//! JSON: everything. Units are in the keys.

use super::columns;
use super::parts::PARTS;
use super::words::{evidence, messages};
use crate::act::Report;
use crate::act::knobs::knobs;
use crate::measure::Line;
use crate::measure::grown::Grown;
use crate::measure::history::Growth;
use crate::measure::split::Split;
use crate::what::Known;
use serde_json::{Value, json};
use slablab_report::column::Columns;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.doctor.1";

/// The report as JSON.
pub fn doctor_json(report: &Report) -> Value {
    let (state, columns) = (report.measured.state, columns::caches());
    json!({
        "schema": SCHEMA,
        "input": state.path.display().to_string(),
        "release": state.dump.release,
        "host": state.dump.host,
        "boot_id": state.dump.boot_id,
        "verdict": { "kind": report.verdict.judgement.key(), "text": report.verdict.text },
        "page_size_bytes": state.page_size,
        "cpus_online": state.cpus.map(|cpus| cpus.online),
        "nodes": state.dump.nodes.len(),
        "taken_s": state.taken_s,
        "up_s": state.up_s,
        "total": split(&report.measured.total),
        "object_sizes_unknown": report.measured.unknown_sizes,
        "meminfo": report.measured.meminfo.as_ref().map(|meminfo| json!({
            "slab_bytes": meminfo.slab,
            "reclaimable_bytes": meminfo.reclaimable,
            "unreclaimable_bytes": meminfo.unreclaimable,
            "outside_caches_bytes": state.has_all_caches().then_some(meminfo.gap),
            "counters_lag_bytes": meminfo.lag,
            "explanation": state.has_all_caches().then(|| meminfo.explanation()),
        })),
        "growth": report.measured.history.as_ref().map(|history| json!({
            "hours": history.hours,
            "snapshots": history.points(),
            "times_from": history.times_from,
            "total": growth(&history.total()),
            "snapshots_from": history.states().iter().map(|state| state.path.display().to_string()).collect::<Vec<_>>(),
            "groups": report.measured.grown.iter().map(|group| grown(report, group)).collect::<Vec<_>>(),
        })),
        "cgroups": report.measured.charged.iter().map(|charged| json!({
            "path": charged.cgroup.path,
            "name": charged.name,
            "reclaimable_bytes": charged.cgroup.reclaimable,
            "unreclaimable_bytes": charged.cgroup.unreclaimable,
            "kernel_bytes": charged.cgroup.kernel,
            "growth_bytes": charged.growth,
        })).collect::<Vec<_>>(),
        "dying_cgroups": state.dump.owners.dying(),
        "kmalloc": report.measured.rounding.map(|rounding| json!({
            "recording": rounding.path.display().to_string(),
            "live_objects": rounding.objects,
            "requested_bytes": rounding.requested,
            "allocated_bytes": rounding.allocated,
            "rounding_bytes": rounding.bytes(),
            "events_lost": rounding.losses.events,
            "classes": rounding.classes.iter().map(|(allocated, (objects, requested))| json!({
                "object_bytes": allocated, "live_objects": objects, "requested_bytes": requested,
            })).collect::<Vec<_>>(),
        })),
        "findings": report.found.findings.iter().map(|finding| json!({
            "kind": finding.kind.key(),
            "bytes": finding.bytes,
            "caches": finding.caches.iter().map(|(cache, ordinal)| json!({
                "cache": cache, "ordinal": ordinal,
            })).collect::<Vec<_>>(),
            "text": finding.text,
        })).collect::<Vec<_>>(),
        "actions": report.actions.iter().map(|action| json!({
            "knob": action.knob,
            "when": action.way.words(),
            "command": action.command,
            "because": action.because.iter().map(|kind| kind.key()).collect::<Vec<_>>(),
            "saves_low_bytes": action.saves.0,
            "saves_high_bytes": action.saves.1,
            "basis": action.basis,
            "cost": action.cost,
        })).collect::<Vec<_>>(),
        "messages": messages(report).iter().map(|failure| failure.json(Known::builtin())).collect::<Vec<_>>(),
        "all_caches": state.has_all_caches(),
        "knobs": knobs(state).map(|knob| json!({
            "knob": knob.key, "name": knob.name, "when": knob.way.words(),
        })).collect::<Vec<_>>(),
        "caches": report.measured.lines.iter().map(|line| cache(&columns, line)).collect::<Vec<_>>(),
        "evidence": evidence(report),
        "missing": state.missing.iter().map(|missing| json!({
            "file": missing.file, "why": missing.why, "costs": missing.costs, "command": missing.command,
        })).collect::<Vec<_>>(),
    })
}

fn cache<'a>(columns: &Columns<Line<'a>>, line: &Line<'a>) -> Value {
    let mut value = columns.json(line);
    value.insert("aliases".into(), json!(line.cache.aliases));
    value.insert("growth".into(), json!(line.growth.as_ref().map(growth)));
    value.insert("what".into(), json!(line.what.map(|entry| entry.what.as_str())));
    Value::Object(value)
}

/// Every part; an unknown one is null.
fn split(split: &Split) -> Value {
    Value::Object(PARTS.iter().map(|part| (part.key.to_string(), json!((part.get)(split)))).collect())
}

/// Caches that grew together.
fn grown(report: &Report, group: &Grown) -> Value {
    let caches = group.lines.iter().map(|at| &report.measured.lines[*at].cache);
    json!({
        "caches": caches.map(|cache| json!({ "cache": cache.name, "ordinal": cache.ordinal })).collect::<Vec<_>>(),
        "names": group.names,
        "objects": group.objects,
        "bytes": group.bytes,
        "reclaimable": group.benign,
        "steady": group.steady,
    })
}

fn growth(growth: &Growth) -> Value {
    json!({
        "bytes": growth.bytes,
        "objects": growth.objects,
        "bytes_per_hour": growth.fit.map(|fit| fit.bytes_per_hour),
        "bytes_per_hour_error": growth.fit.and_then(|fit| fit.error),
        "r2": growth.fit.and_then(|fit| fit.r2),
        "points": growth.fit.map(|fit| fit.points),
        "slab_bytes": growth.points,
        "all_of_this_name": growth.together,
    })
}
