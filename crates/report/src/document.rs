//! The documents of `--format json`: each a type, from which both its JSON and its JSON Schema come.
//!
//! A comment on a field is its description in the schema. A schema lists every key: an object has no others.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A document.
pub trait Document: Serialize + JsonSchema {
    /// Its name and version, `slablab.verify.1`.
    const NAME: &str;
    /// The verb that writes it, and what it has.
    const TITLE: &str;

    /// The document as JSON.
    ///
    /// # Panics
    /// If the type does not serialize as an object.
    fn value(&self) -> Value {
        let mut value = serde_json::to_value(self).expect("a document is JSON");
        value["schema"] = Self::NAME.into();
        value
    }
}

/// The JSON Schema of a document, as `slablab generate schemas` writes it.
///
/// # Panics
/// If the type does not serialize as an object.
pub fn schema_of<D: Document>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.for_serialize().into_generator().into_root_schema_for::<D>();
    let mut schema = schema.to_value();
    close(&mut schema);
    let members = schema.as_object_mut().expect("a schema is an object");
    members.insert("$id".into(), format!("urn:slablab:schema:{}", short(D::NAME)).into());
    members.insert("title".into(), D::TITLE.into());
    members.remove("description");
    let known = [
        ("schema", json!({ "const": D::NAME })),
        ("answer", json!({ "type": "string", "description": "The answer in one sentence." })),
        ("program", program()),
    ];
    let properties = members.entry("properties").or_insert_with(|| Map::new().into());
    known.iter().for_each(|(name, schema)| properties[*name] = schema.clone());
    let required = members.entry("required").or_insert_with(|| json!([]));
    let required = required.as_array_mut().expect("a list of names");
    required.extend(known.iter().map(|(name, _)| Value::from(*name)));
    required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    schema
}

/// Denies keys that a schema of an object does not list.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

/// What [`crate::json::with_program`] adds.
fn program() -> Value {
    json!({
        "type": "object",
        "description": "The program that wrote the answer, and its version.",
        "properties": { "name": { "const": "slablab" }, "version": { "type": "string" } },
        "required": ["name", "version"],
        "additionalProperties": false,
    })
}

fn short(name: &str) -> &str {
    name.strip_prefix("slablab.").unwrap_or(name)
}
