//! JSON: everything. Units are in the keys.

use super::columns;
use super::parts::PARTS;
use super::words::{evidence, messages};
use crate::act::Report;
use crate::act::actions::Action;
use crate::act::knobs::knobs;
use crate::find::Finding;
use crate::measure::cgroups::Charged;
use crate::measure::grown::Grown;
use crate::measure::history::{Growth, History};
use crate::measure::meminfo::Meminfo;
use crate::measure::rounding::Rounding;
use crate::measure::split::Split;
use crate::measure::{Line, Measured};
use crate::state::{Missing, State};
use crate::what::Known;
use serde_json::{Value, json};
use slablab_report::column::Columns;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.doctor.1";

/// The report as JSON.
pub fn doctor_json(report: &Report) -> Value {
    let Report { measured, found, verdict, actions } = report;
    let (state, columns) = (measured.state, columns::caches());
    json!({
        "schema": SCHEMA,
        "input": state.path.display().to_string(),
        "release": state.dump.release,
        "host": state.dump.host,
        "boot_id": state.dump.boot_id,
        "verdict": { "kind": verdict.judgement.key(), "text": verdict.text },
        "page_size_bytes": state.page_size,
        "cpus_online": state.cpus.map(|cpus| cpus.online),
        "nodes": state.dump.nodes.len(),
        "taken_s": state.taken_s,
        "up_s": state.up_s,
        "total": split(&measured.total),
        "object_sizes_unknown": measured.unknown_sizes,
        "meminfo": measured.meminfo.as_ref().map(|known| meminfo(known, state)),
        "growth": measured.history.as_ref().map(|history| growths(measured, history)),
        "cgroups": list(&measured.charged, cgroup),
        "dying_cgroups": state.dump.owners.dying(),
        "kmalloc": measured.rounding.map(kmalloc),
        "findings": list(&found.findings, finding),
        "actions": list(actions, action),
        "messages": list(&messages(report), |failure| failure.json(Known::builtin())),
        "all_caches": state.has_all_caches(),
        "knobs": knobs(state).map(|knob| json!({
            "knob": knob.key, "name": knob.name, "when": knob.way.words(),
        })).collect::<Vec<_>>(),
        "caches": list(&measured.lines, |line| cache(&columns, line)),
        "evidence": evidence(report),
        "missing": list(&state.missing, missing),
    })
}

fn list<T>(values: &[T], json: impl Fn(&T) -> Value) -> Vec<Value> {
    values.iter().map(json).collect()
}

fn meminfo(meminfo: &Meminfo, state: &State) -> Value {
    let is_whole = state.has_all_caches();
    json!({
        "slab_bytes": meminfo.slab,
        "reclaimable_bytes": meminfo.reclaimable,
        "unreclaimable_bytes": meminfo.unreclaimable,
        "outside_caches_bytes": is_whole.then_some(meminfo.gap),
        "counters_lag_bytes": meminfo.lag,
        "explanation": is_whole.then(|| meminfo.explanation()),
    })
}

/// Growth of all caches together, and the caches that grew together.
fn growths(measured: &Measured, history: &History) -> Value {
    let paths = history.states().iter().map(|state| state.path.display().to_string());
    json!({
        "hours": history.hours,
        "snapshots": history.points(),
        "times_from": history.times_from,
        "total": growth(&history.total()),
        "snapshots_from": paths.collect::<Vec<_>>(),
        "groups": list(&measured.grown, |group| grown(measured, group)),
    })
}

fn cgroup(charged: &Charged) -> Value {
    json!({
        "path": charged.cgroup.path,
        "name": charged.name,
        "reclaimable_bytes": charged.cgroup.reclaimable,
        "unreclaimable_bytes": charged.cgroup.unreclaimable,
        "kernel_bytes": charged.cgroup.kernel,
        "growth_bytes": charged.growth,
    })
}

fn kmalloc(rounding: &Rounding) -> Value {
    let classes = rounding.classes.iter().map(|(allocated, (objects, requested))| {
        let (objects, requested) = (*objects, *requested);
        json!({ "object_bytes": allocated, "live_objects": objects, "requested_bytes": requested })
    });
    json!({
        "recording": rounding.path.display().to_string(),
        "live_objects": rounding.objects,
        "requested_bytes": rounding.requested,
        "allocated_bytes": rounding.allocated,
        "rounding_bytes": rounding.bytes(),
        "events_lost": rounding.losses.events,
        "classes": classes.collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "kind": finding.kind.key(),
        "bytes": finding.bytes,
        "caches": list(&finding.caches, |(cache, ordinal)| json!({ "cache": cache, "ordinal": ordinal })),
        "text": finding.text,
    })
}

fn action(action: &Action) -> Value {
    json!({
        "knob": action.knob,
        "when": action.way.words(),
        "command": action.command,
        "because": action.because.iter().map(|kind| kind.key()).collect::<Vec<_>>(),
        "saves_low_bytes": action.saves.0,
        "saves_high_bytes": action.saves.1,
        "basis": action.basis,
        "cost": action.cost,
    })
}

fn missing(missing: &Missing) -> Value {
    let Missing { file, why, costs, command } = missing;
    json!({ "file": file, "why": why, "costs": costs, "command": command })
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
fn grown(measured: &Measured, group: &Grown) -> Value {
    let caches = group.lines.iter().map(|at| &measured.lines[*at].cache);
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
