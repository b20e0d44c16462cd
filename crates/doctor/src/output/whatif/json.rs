//! JSON and CSV: every row of every change, today's figures and those of the change side by side. Units are
//! in the keys.

use super::figures::{FIGURES, Figure};
use crate::state::State;
use crate::whatif::errors::{COVERAGE, Range};
use crate::whatif::{Against, Change, Prediction, Row, Rules, Total, evidence, missing};
use serde_json::{Map, Value, json};
use slablab_report::frame::Frame;
use slablab_report::html::Cell;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.whatif.1";

/// Predictions of one machine as JSON.
pub fn whatif_json(state: &State, predictions: &[Prediction], against: Option<&Against>) -> Value {
    let rows = predictions.iter().flat_map(|prediction| {
        let label = prediction.change.to_string();
        prediction.rows.iter().map(move |row| Value::Object(self::row(row, &label)))
    });
    json!({
        "schema": SCHEMA,
        "input": state.path.display().to_string(),
        "release": state.dump.release,
        "page_size_bytes": state.page_size,
        "cpus_online": state.cpus.map(|cpus| cpus.online),
        "variants": predictions.iter().map(variant).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "against": against.map(self::against),
        "evidence": evidence(state).collect::<Vec<_>>(),
        "missing": missing(state).map(|missing| json!({
            "file": missing.file, "why": missing.why, "costs": missing.costs, "command": missing.command,
        })).collect::<Vec<_>>(),
    })
}

fn variant(prediction: &Prediction) -> Value {
    json!({
        "whatif": prediction.change.to_string(),
        "change": change(&prediction.change),
        "rules": rules(&prediction.rules),
        "rules_whatif": rules(&prediction.rules_whatif),
        "today": total(&prediction.today),
        "total": total(&prediction.whatif),
        "range": range(prediction.range),
        "measured": prediction.range.is_measured(),
        "unexplained": prediction.unexplained,
        "assumed": prediction.assumed,
    })
}

/// Where `total_low_bytes` and `total_high_bytes` are from: null if the change has no effect (`measured`
/// is true), or if the range is unknown (`measured` is false).
fn range(range: Range) -> Value {
    let class = match range {
        Range::Unchanged | Range::Unknown => return Value::Null,
        Range::Measured { class, .. } => Some(class),
        Range::Guess { .. } => None,
    };
    json!({
        "coverage": class.map(|_| COVERAGE),
        "factor": range.ln().exp(),
        "question": class.map(|class| class.question.name()),
        "more_than_8_cpus": class.map(|class| class.large),
        "after_load": class.map(|class| class.loaded),
    })
}

fn change(change: &Change) -> Value {
    json!({
        "engine": change.engine.map(|engine| engine.to_string()),
        "policy": change.policy.map(|policy| policy.name()),
        "max_order": change.max_order,
        "min_order": change.min_order,
        "min_objects": change.min_objects,
        "page_size_bytes": change.page_size,
        "cpus": change.cpus,
        "merge": change.merge,
        "debug": change.debug.map(|debug| debug.to_string()),
    })
}

fn rules(rules: &Rules) -> Value {
    json!({
        "rule": rules.rule.name(),
        "page_size_bytes": rules.page_size,
        "cpus": rules.cpus.present,
        "min_order": rules.min_order,
        "max_order": rules.max_order,
        "min_objects": rules.min_objects,
    })
}

fn total(total: &Total) -> Value {
    json!({
        "slabs": total.slabs,
        "objects": total.objects,
        "total_bytes": total.bytes,
        "total_low_bytes": total.low,
        "total_high_bytes": total.high,
        "waste_bytes": total.waste,
    })
}

fn against(against: &Against) -> Value {
    json!({
        "caches": against.caches,
        "orders_exact": against.orders,
        "objs_per_slab_exact": against.objects_per_slab,
        "slab_sizes_exact": against.sizes,
        "mismatches": against.mismatches.iter().map(|mismatch| json!({
            "cache": mismatch.cache,
            "slab_size_whatif_bytes": mismatch.predicted.0,
            "order_whatif": mismatch.predicted.1,
            "objs_per_slab_whatif": mismatch.predicted.2,
            "slab_size_real_bytes": mismatch.real.0,
            "order_real": mismatch.real.1,
            "objs_per_slab_real": mismatch.real.2,
        })).collect::<Vec<_>>(),
        "only_one": against.only_one,
        "total_real_bytes": against.real,
        "waste_real_bytes": against.real_waste,
        "error": against.error,
        "error_unchanged": against.error_unchanged,
        "error_by_cpus": against.error_by_cpus,
        "worst": against.worst.iter().map(|(cache, predicted, real, bytes)| json!({
            "cache": cache, "slabs_whatif": predicted, "slabs_real": real, "off_bytes": bytes,
        })).collect::<Vec<_>>(),
    })
}

fn row(row: &Row, label: &str) -> Map<String, Value> {
    let names = [("whatif", json!(label)), ("cache", json!(row.cache)), ("ordinal", json!(row.ordinal))];
    let figures = FIGURES.iter().flat_map(|figure| figure.keys().into_iter().zip(figure.both(row)));
    let figures = figures.map(|(key, value)| (key, json!(value)));
    names.map(|(key, value)| (key.to_string(), value)).into_iter().chain(figures).collect()
}

/// A row per change and cache, with the keys of the JSON.
pub fn whatif_csv(predictions: &[Prediction]) -> String {
    whatif_frame(predictions).csv()
}

/// The rows of [`whatif_csv`].
pub fn whatif_frame(predictions: &[Prediction]) -> Frame {
    let names = ["whatif", "cache", "ordinal"].map(String::from);
    let mut out = Frame::new(names.into_iter().chain(FIGURES.iter().flat_map(Figure::keys)));
    for prediction in predictions {
        let label = prediction.change.to_string();
        for row in &prediction.rows {
            let names =
                [Cell::Text(label.clone()), Cell::Name(row.cache.clone()), Cell::Count(row.ordinal.into())];
            let figures = FIGURES.iter().flat_map(|figure| figure.both(row)).map(Cell::Count);
            out.row(names.into_iter().chain(figures));
        }
    }
    out
}

/// The sums of every change, a row for each: today's, and the predicted ones with their range.
pub fn changes_frame(predictions: &[Prediction]) -> Frame {
    let of = ["slabs", "objects", "total_bytes", "waste_bytes"];
    let today = of.map(|key| format!("{key}_today"));
    let keys = ["whatif"].into_iter().map(String::from).chain(today).chain(of.map(String::from));
    let mut out = Frame::new(keys.chain(["total_low_bytes", "total_high_bytes"].map(String::from)));
    for Prediction { change, today, whatif, .. } in predictions {
        let figures = |total: &Total| [total.slabs, total.objects, total.bytes, total.waste].map(Cell::Count);
        let range = [whatif.low, whatif.high].map(Cell::Bytes);
        let sums = figures(today).into_iter().chain(figures(whatif)).chain(range);
        out.row(std::iter::once(Cell::Text(change.to_string())).chain(sums));
    }
    out
}
