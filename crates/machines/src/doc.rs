//! A TOML text with positions: values by kind, and errors that name the line.

use slablab_report::nearest::nearest;
use std::fmt;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a machine file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The line, from 1.
    pub line: usize,
    /// What was found, and what was expected.
    pub what: String,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Bad {}

/// A value of a file, or what is wrong with it.
pub type Read<T> = std::result::Result<T, Bad>;
/// A value with its place.
pub type Value<'i> = Spanned<DeValue<'i>>;

/// Nearest names that a message has at most.
const NEAREST: usize = 3;

/// The text of a file, to find lines in.
#[derive(Clone, Copy)]
pub struct Doc<'i>(&'i str);

impl<'i> Doc<'i> {
    /// Understands the text as TOML.
    ///
    /// # Errors
    /// What is no TOML, with its line.
    pub fn parse(text: &'i str) -> Read<(Doc<'i>, DeTable<'i>)> {
        let doc = Doc(text);
        match DeTable::parse(text) {
            Ok(table) => Ok((doc, table.into_inner())),
            Err(error) => Err(doc.bad_at(error.span().map_or(0, |span| span.start), error.message())),
        }
    }

    /// An error about the line of a value.
    pub fn bad(&self, value: &Value<'_>, what: impl fmt::Display) -> Bad {
        self.bad_at(value.span().start, what)
    }

    fn bad_at(&self, place: usize, what: impl fmt::Display) -> Bad {
        let before = &self.0.as_bytes()[..place.min(self.0.len())];
        Bad { line: before.iter().filter(|byte| **byte == b'\n').count() + 1, what: what.to_string() }
    }

    /// Refuses a name that is not one of `names`.
    ///
    /// # Errors
    /// A name that is none of them, with the nearest ones.
    pub fn known(&self, table: &DeTable<'_>, names: &[&str]) -> Read<()> {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if names.contains(&name) {
                continue;
            }
            let near = nearest(name, names.iter().copied(), NEAREST);
            let expected = match near.is_empty() {
                true => format!("expected one of {}", names.join(", ")),
                false => format!("near it: {}", near.join(", ")),
            };
            return Err(self.bad_at(key.span().start, format!("`{name}` is not known; {expected}")));
        }
        Ok(())
    }

    /// A number within limits.
    ///
    /// # Errors
    /// Another value, with its line.
    pub fn number(&self, value: &Value<'_>, name: &str, limits: RangeInclusive<u64>) -> Read<u64> {
        let number =
            value.get_ref().as_integer().and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok());
        number.filter(|number| limits.contains(number)).ok_or_else(|| {
            let expected = format!("expected a number from {} to {}", limits.start(), limits.end());
            self.bad(value, format!("{name} = {}: {expected}", shown(value.get_ref())))
        })
    }

    /// A factor from 1 to 100.
    ///
    /// # Errors
    /// Another value, with its line.
    pub fn factor(&self, value: &Value<'_>, name: &str) -> Read<f64> {
        let found = match value.get_ref() {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
            DeValue::Float(n) => n.as_str().parse::<f64>().ok(),
            _ => None,
        };
        found.filter(|factor| (1.0..=100.0).contains(factor)).ok_or_else(|| {
            let found = shown(value.get_ref());
            self.bad(value, format!("{name} = {found}: expected a factor from 1 to 100"))
        })
    }

    /// A number of bytes, plain or as a text like "64G".
    ///
    /// # Errors
    /// Another value, with its line.
    pub fn bytes(&self, value: &Value<'_>, name: &str) -> Read<u64> {
        let bytes = match value.get_ref() {
            DeValue::String(text) => bytes(text),
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
            _ => None,
        };
        bytes.ok_or_else(|| {
            let found = shown(value.get_ref());
            self.bad(value, format!("{name}: expected bytes, or a text like \"64G\", found {found}"))
        })
    }

    /// A text that is not empty.
    ///
    /// # Errors
    /// Another value, with its line.
    pub fn text(&self, value: &Value<'_>, name: &str) -> Read<String> {
        let text = value.get_ref().as_str().map(str::trim).filter(|text| !text.is_empty());
        text.map(String::from).ok_or_else(|| {
            self.bad(value, format!("{name} = {}: expected a text in quotes", shown(value.get_ref())))
        })
    }

    /// One of several words.
    ///
    /// # Errors
    /// Another value, with its line.
    pub fn word<T: Copy>(&self, value: &Value<'_>, name: &str, words: &[(&str, T)]) -> Read<T> {
        let given = value.get_ref().as_str();
        let found = words.iter().find(|(word, _)| given == Some(*word));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let expected = words.join(" or ");
            self.bad(value, format!("{name} = {}: expected {expected}", shown(value.get_ref())))
        })
    }

    /// A table.
    ///
    /// # Errors
    /// Another value, with its line.
    pub fn table<'v>(&self, value: &'v Value<'i>, name: &str, expected: &str) -> Read<&'v DeTable<'i>> {
        value.get_ref().as_table().ok_or_else(|| {
            self.bad(value, format!("{name} = {}: expected {expected}", shown(value.get_ref())))
        })
    }

    /// The elements of an array.
    ///
    /// # Errors
    /// Another value, with its line.
    pub fn array<'v>(
        &self,
        value: &'v Value<'i>,
        name: &str,
    ) -> Read<impl Iterator<Item = &'v Value<'i>> + use<'v, 'i>> {
        match value.get_ref().as_array() {
            Some(array) => Ok(array.iter()),
            None => {
                let found = shown(value.get_ref());
                Err(self.bad(value, format!("{name} = {found}: expected an array: [ .. ]")))
            }
        }
    }
}

/// A value as the file has it.
pub fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        other => format!("a value of the type {}", other.type_str()),
    }
}

fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
