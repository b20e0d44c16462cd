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

/// The name of a document, and its JSON Schema.
pub type Named = (&'static str, Value);

/// The schema of a document by its name: what a crate lists of each of its documents.
pub fn named<D: Document>() -> Named {
    (D::NAME, schema_of::<D>())
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
    match members.get_mut("oneOf").and_then(Value::as_array_mut) {
        // A document of several kinds: each of them has all keys.
        Some(kinds) => {
            kinds.iter_mut().filter_map(Value::as_object_mut).for_each(|kind| require(kind, &known))
        }
        None => require(members, &known),
    }
    schema
}

/// Adds keys that each document has.
fn require(members: &mut Map<String, Value>, known: &[(&str, Value)]) {
    let properties = members.entry("properties").or_insert_with(|| Map::new().into());
    known.iter().for_each(|(name, schema)| properties[*name] = schema.clone());
    let required = members.entry("required").or_insert_with(|| json!([]));
    let required = required.as_array_mut().expect("a list of names");
    required.extend(known.iter().map(|(name, _)| Value::from(*name)));
    required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    // A document that is also a part of another one names its schema itself.
    required.dedup();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "of", rename_all = "lowercase")]
    enum Kinds {
        Slabs(Slabs),
        Objects {
            /// How many.
            objects: u64,
        },
    }

    #[derive(Serialize, JsonSchema)]
    struct Slabs {
        slabs: u64,
    }

    impl Document for Kinds {
        const NAME: &str = "slablab.kinds.1";
        const TITLE: &str = "a document of two kinds";
    }

    #[test]
    fn each_kind_of_a_document_has_all_keys_and_no_other() {
        let schema = schema_of::<Kinds>();
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let whole = |kind: Kinds| {
            let mut value = crate::json::with_program(kind.value());
            value["answer"] = "Yes.".into();
            value
        };
        for value in [whole(Kinds::Slabs(Slabs { slabs: 3 })), whole(Kinds::Objects { objects: 4 })] {
            assert!(validator.is_valid(&value), "{value} {schema:#}");
            for key in ["answer", "program", "schema", "of"] {
                let mut without = value.clone();
                without.as_object_mut().expect("an object").remove(key);
                assert!(!validator.is_valid(&without), "without {key}: {schema:#}");
            }
            let mut more = value.clone();
            more["more"] = 1.into();
            assert!(!validator.is_valid(&more), "{more} {schema:#}");
        }
    }
}
