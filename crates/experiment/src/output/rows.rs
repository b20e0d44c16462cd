//! The JSON Schema of rows that columns give.

use schemars::Schema;
use serde_json::{Value, json};
use slablab_report::column::Columns;

/// What a gain is.
pub(super) const ABOUT_GAIN: &str =
    "How much better the other value is than the base, in percent; below 0 if it is worse.";
/// What a corrected p-value is.
pub(super) const ABOUT_HOLM: &str = "The p-value after Holm's correction over the table.";

/// The schema of a row. `full` has a value in every cell; where `least` has none, a row may have null.
/// `about` has descriptions by key.
pub(super) fn row_schema<R>(columns: &Columns<R>, [full, least]: [&R; 2], about: &[(&str, &str)]) -> Value {
    let mut schema = columns.schema(full);
    let least = columns.schema(least);
    for (key, property) in schema["properties"].as_object_mut().into_iter().flatten() {
        if least["properties"][key] == json!({}) && property["type"].is_string() {
            property["type"] = json!([property["type"], "null"]);
        }
    }
    for (key, words) in about {
        schema["properties"][*key]["description"] = (*words).into();
    }
    schema
}

/// The schema of a list of `items`.
pub(super) fn array_of(items: Value) -> Schema {
    Schema::try_from(json!({ "type": "array", "items": items })).expect("an object is a schema")
}
