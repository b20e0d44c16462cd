//! The answer of native costs beside those of the model.

use crate::predicted::Row;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::{Answer, Document};

#[derive(Serialize, JsonSchema)]
struct NativeDocument {
    rows: Vec<RowDocument>,
}

/// A pattern on an engine: ns for an allocation and a free together.
#[derive(Serialize, JsonSchema)]
struct RowDocument {
    engine: &'static str,
    /// Whether the model was fitted to this row.
    fitted: bool,
    modelled_ns: f64,
    /// The median of the blocks.
    native_ns: f64,
    /// The upper quartile of the blocks.
    native_ns_high: f64,
    /// The lower quartile of the blocks.
    native_ns_low: f64,
    pattern: &'static str,
    /// Modelled over native.
    ratio: f64,
}

impl Document for NativeDocument {
    const NAME: &str = "slablab.native.1";
    const TITLE: &str = "slablab calibrate native: measured costs beside those of the model";
}

/// The schema of this answer.
pub(super) fn schema() -> Named {
    named::<NativeDocument>()
}

/// The answer of `calibrate native`.
pub fn native_answer(rows: &[Row]) -> Answer {
    let columns = columns();
    let pattern = |row: &Row| Cell::Text(row.pattern.into());
    let keys = ["engine", "native_ns", "native_ns_low", "native_ns_high", "modelled_ns", "shown"];
    let label = ("an allocation and a free, ns", &pattern as &dyn Fn(&Row) -> Cell);
    Answer::new("Native costs and the model's", sentence(rows))
        .document(&NativeDocument { rows: rows.iter().map(document).collect() })
        .rows(columns.frame(rows))
        .table(columns.text(label, &keys, rows, Style::Units).numbers(2..7), &["high", "low"])
        .page_table("An allocation and a free together.", columns.html(label, &keys, rows))
}

/// How far the model is off, but for the row that it was fitted to.
fn sentence(rows: &[Row]) -> String {
    let free: Vec<&Row> = rows.iter().filter(|row| !row.fitted).collect();
    let off = |row: &&&Row| row.ratio().ln().abs();
    let Some(worst) = free.iter().max_by(|a, b| off(a).total_cmp(&off(b))) else {
        return "No cost was measured beside the one that the model is fitted to.".into();
    };
    let ratios = || free.iter().map(|row| row.ratio());
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    format!(
        "The model predicts {least:.2} to {most:.2} times the native cost of {} rows that it is not fitted to; it \
         is off most in \"{}\" of {}: {:.1} ns, where {:.1} ns were measured.",
        free.len(),
        worst.pattern,
        worst.engine,
        worst.modelled,
        worst.native[1]
    )
}

fn document(row: &Row) -> RowDocument {
    let [native_ns_low, native_ns, native_ns_high] = row.native;
    RowDocument {
        engine: row.engine,
        fitted: row.fitted,
        modelled_ns: row.modelled,
        native_ns,
        native_ns_high,
        native_ns_low,
        pattern: row.pattern,
        ratio: row.ratio(),
    }
}

fn columns() -> Columns<Row> {
    let quartile = |which: usize| move |row: &Row| Cell::Number(row.native[which], 1);
    Columns::default()
        .key("pattern", |row: &Row| Cell::Text(row.pattern.into()))
        .add("engine", "engine", "engine", |row| Cell::Text(row.engine.into()))
        .words()
        .add("native_ns", "native", "native, ns", quartile(1))
        .add("native_ns_low", "low", "from", quartile(0))
        .add("native_ns_high", "high", "to", quartile(2))
        .add("modelled_ns", "model", "model, ns", |row| Cell::Number(row.modelled, 1))
        .key("ratio", |row| Cell::Number(row.ratio(), 2))
        .key("fitted", |row| Cell::Text(if row.fitted { "yes" } else { "no" }.into()))
        .people("shown", "model / native", "model over native", |row| match row.fitted {
            true => Cell::Text("fitted".into()),
            false => Cell::Number(row.ratio(), 2),
        })
}
