//! JSON documents.

use crate::visible::is_control;
use serde_json::{Value, json};
use std::fmt::Write;

/// An answer with the program that gave it, as a member `program` with name and version. Other values than
/// objects stay as they are.
pub fn with_program(mut answer: Value) -> Value {
    if let Some(members) = answer.as_object_mut() {
        members.insert("program".into(), json!({ "name": "slablab", "version": env!("CARGO_PKG_VERSION") }));
    }
    answer
}

/// A document as text, indented, with a line end. Control characters are escaped, those of bidirectional text
/// and DEL too, which JSON would let through; a reader gets the name as it is in the input.
///
/// # Panics
/// Never: a [`Value`] has no keys that are not strings.
pub fn document(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).expect("a value is JSON");
    let mut out = String::with_capacity(text.len() + 1);
    // Outside of strings a document holds ASCII and line ends alone. All control characters are below
    // U+10000, so that one escape is enough.
    for char in text.chars() {
        if char != '\n' && is_control(char) {
            write!(out, "\\u{:04x}", u32::from(char)).expect("a string");
        } else {
            out.push(char);
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_reads_back() {
        let value = serde_json::json!({ "a\u{202e}": ["\u{1b}[31m\u{7f}\u{9b}\n", "\u{2066}é", 1.5, null] });
        let text = document(&value);
        assert!(text.chars().all(|char| char == '\n' || !is_control(char)), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
