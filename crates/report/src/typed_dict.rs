//! The types of Python of a document, from its JSON Schema: a `TypedDict` for each object with known keys.

use serde_json::{Map, Value};

/// Names of Python that a key of a class cannot have.
const RESERVED: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The classes of a document: `name` is that of the document's own class, which comes last.
pub fn typed_dicts(name: &str, schema: &Value) -> String {
    let mut classes = Classes::default();
    let title = schema["title"].as_str();
    classes.object(name, schema, title);
    classes.text
}

/// The name of a document's class: `slablab.explain-script.1` becomes `ExplainScript1`.
pub fn class_name(document: &str) -> String {
    let name = document.strip_prefix("slablab.").unwrap_or(document);
    name.split(|char: char| !char.is_ascii_alphanumeric()).map(capitalized).collect()
}

/// The classes that were written so far.
#[derive(Default)]
struct Classes {
    text: String,
}

impl Classes {
    /// The type of a value; classes that it needs are written before.
    fn of(&mut self, name: &str, schema: &Value) -> String {
        if let Some(value) = schema.get("const") {
            return literal(std::slice::from_ref(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return literal(values);
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(schemas) = schema.get(several).and_then(Value::as_array) {
                let types = schemas.iter().enumerate();
                return union(types.map(|(at, schema)| self.of(&numbered(name, at), schema)));
            }
        }
        match &schema["type"] {
            Value::String(word) => self.of_word(name, word, schema),
            Value::Array(words) => {
                union(words.iter().filter_map(Value::as_str).map(|word| self.of_word(name, word, schema)))
            }
            _ => "Any".into(),
        }
    }

    fn of_word(&mut self, name: &str, word: &str, schema: &Value) -> String {
        match word {
            "null" => "None".into(),
            "boolean" => "bool".into(),
            "integer" => "int".into(),
            "number" => "float".into(),
            "string" => "str".into(),
            "array" => self.list(name, schema),
            "object" => self.object(name, schema, None),
            _ => "Any".into(),
        }
    }

    fn list(&mut self, name: &str, schema: &Value) -> String {
        match (schema.get("prefixItems").and_then(Value::as_array), schema.get("items")) {
            (Some(places), _) => {
                let types = places.iter().enumerate();
                union_list(types.map(|(at, schema)| self.of(&numbered(name, at), schema)))
            }
            (None, Some(items)) => format!("list[{}]", self.of(&singular(name), items)),
            (None, None) => "list[Any]".into(),
        }
    }

    /// The type of an object: a class, or a dictionary if its keys are not known.
    fn object(&mut self, name: &str, schema: &Value, about: Option<&str>) -> String {
        let Some(known) = schema.get("properties").and_then(Value::as_object) else {
            return match schema.get("additionalProperties") {
                Some(Value::Object(values)) => {
                    format!("dict[str, {}]", self.of(&singular(name), &Value::Object(values.clone())))
                }
                _ => "dict[str, Any]".into(),
            };
        };
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let about = about.or(schema["description"].as_str());
        let types: Vec<(&str, String)> = known
            .iter()
            .map(|(key, schema)| (key.as_str(), self.of(&format!("{name}{}", camel(key)), schema)))
            .collect();
        // A key that a class cannot have, such as `from`, is in a base class that a call makes.
        let (named, others): (Vec<_>, Vec<_>) = types.into_iter().partition(|(key, _)| is_name(key));
        let is_required = |(key, _): &(&str, String)| required.contains(key);
        let mut bases = Vec::new();
        for (ends, others) in split(others, is_required).into_iter().filter(|(_, keys)| !keys.is_empty()) {
            let base = format!("_{name}{}", bases.len() + 1);
            self.called(&base, &others, ends);
            bases.push(base);
        }
        let [(_, always), (ends, sometimes)] = split(named, is_required);
        let mut last = ("", &always);
        if !sometimes.is_empty() {
            let base = format!("_{name}");
            self.class(&format!("{base}({})", bases_or_none(&bases)), None, &always, known);
            (bases, last) = (vec![base], (ends, &sometimes));
        }
        self.class(&format!("{name}({}{})", bases_or_none(&bases), last.0), about, last.1, known);
        name.into()
    }

    /// Writes a class by a call.
    fn called(&mut self, name: &str, types: &[(&str, String)], ends: &str) {
        let keys: Vec<String> = types.iter().map(|(key, of)| format!("{key:?}: {of}")).collect();
        self.text += &format!("{name} = TypedDict({name:?}, {{{}}}{ends})\n\n\n", keys.join(", "));
    }

    /// Writes a class with these keys.
    fn class(
        &mut self,
        head: &str,
        about: Option<&str>,
        types: &[(&str, String)],
        known: &Map<String, Value>,
    ) {
        let mut line = |line: &str| {
            self.text.push_str(line);
            self.text.push('\n');
        };
        line(&format!("class {head}:"));
        if let Some(about) = about {
            line(&format!("    \"\"\"{}\"\"\"\n", one_line(about)));
        }
        for (key, of) in types {
            line(&format!("    {key}: {of}"));
            if let Some(about) = known[*key]["description"].as_str() {
                line(&format!("    \"\"\"{}\"\"\"", one_line(about)));
            }
        }
        if types.is_empty() && about.is_none() {
            line("    pass");
        }
        line("\n");
    }
}

/// The keys that are always there, and those that are not, with what ends the call or the head of their
/// class.
fn split<T>(keys: Vec<T>, is_required: impl Fn(&T) -> bool) -> [(&'static str, Vec<T>); 2] {
    let (always, sometimes) = keys.into_iter().partition(is_required);
    [("", always), (", total=False", sometimes)]
}

fn bases_or_none(bases: &[String]) -> String {
    if bases.is_empty() { "TypedDict".into() } else { bases.join(", ") }
}

/// One of these values.
fn literal(values: &[Value]) -> String {
    let word = |value: &Value| match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        other => other.to_string(),
    };
    format!("Literal[{}]", values.iter().map(word).collect::<Vec<_>>().join(", "))
}

/// One of these types, each named once.
fn union(types: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    types.for_each(|of| {
        if !all.contains(&of) {
            all.push(of);
        }
    });
    all.join(" | ")
}

fn union_list(types: impl Iterator<Item = String>) -> String {
    format!("list[{}]", union(types))
}

/// The name of the class of one of several choices.
fn numbered(name: &str, at: usize) -> String {
    if at == 0 { name.into() } else { format!("{name}{}", at + 1) }
}

/// The name of the class of an item: `Caches` becomes `Cache`.
fn singular(name: &str) -> String {
    match name {
        _ if name.ends_with("sses") || name.ends_with("tches") => name[..name.len() - 2].into(),
        _ if name.ends_with("ies") => format!("{}y", &name[..name.len() - 3]),
        _ if name.ends_with('s') && !name.ends_with("ss") => name[..name.len() - 1].into(),
        _ => format!("{name}Item"),
    }
}

fn camel(key: &str) -> String {
    key.split(|char: char| !char.is_ascii_alphanumeric()).map(capitalized).collect()
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}

fn is_name(key: &str) -> bool {
    let is_word = key.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    is_word
        && !key.starts_with(|char: char| char.is_ascii_digit())
        && !key.is_empty()
        && !RESERVED.contains(&key)
}

/// A description on one line of a docstring.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('\\', "\\\\").replace('"', "'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, expected: &str) {
        assert_eq!(typed_dicts("Answer", &schema), expected);
    }

    #[test]
    fn objects_become_classes() {
        let caches = json!({ "type": "array", "items": { "type": "object", "description": "A cache.",
            "properties": { "name": { "type": "string" }, "why": { "type": "string" } }, "required": ["name"] } });
        check(
            json!({ "title": "what it has", "properties": { "caches": caches, "schema": { "const": "slablab.x.1" } },
                "required": ["caches", "schema"] }),
            "class _AnswerCache(TypedDict):\n    name: str\n\n\n\
             class AnswerCache(_AnswerCache, total=False):\n    \"\"\"A cache.\"\"\"\n\n    why: str\n\n\n\
             class Answer(TypedDict):\n    \"\"\"what it has\"\"\"\n\n    caches: list[AnswerCache]\n    \
             schema: Literal[\"slablab.x.1\"]\n\n\n",
        );
    }

    #[test]
    fn keys_that_a_class_cannot_have() {
        let text = json!({ "type": "string" });
        check(
            json!({ "properties": { "from": text, "in": text, "to": text, "why": text }, "required": ["from", "to"] }),
            "_Answer1 = TypedDict(\"_Answer1\", {\"from\": str})\n\n\n\
             _Answer2 = TypedDict(\"_Answer2\", {\"in\": str}, total=False)\n\n\n\
             class _Answer(_Answer1, _Answer2):\n    to: str\n\n\n\
             class Answer(_Answer, total=False):\n    why: str\n\n\n",
        );
    }

    #[test]
    fn values() {
        for (schema, of) in [
            (json!({ "type": "object", "additionalProperties": { "type": "integer" } }), "dict[str, int]"),
            (json!({ "type": "object" }), "dict[str, Any]"),
            (json!({ "type": ["string", "null"] }), "str | None"),
            (json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] }), "float | None"),
            (
                json!({ "type": "array", "prefixItems": [{ "type": "integer" }, { "type": "integer" }] }),
                "list[int]",
            ),
            (json!({ "enum": ["a", null] }), "Literal[\"a\", None]"),
            (json!({}), "Any"),
        ] {
            let schema = json!({ "properties": { "x": schema }, "required": ["x"] });
            check(schema, &format!("class Answer(TypedDict):\n    x: {of}\n\n\n"));
        }
    }

    #[test]
    fn names() {
        assert_eq!(class_name("slablab.explain-script.1"), "ExplainScript1");
        for (several, one) in [
            ("Caches", "Cache"),
            ("Batches", "Batch"),
            ("Processes", "Process"),
            ("Policies", "Policy"),
            ("At", "AtItem"),
        ] {
            assert_eq!(singular(several), one);
        }
    }
}
