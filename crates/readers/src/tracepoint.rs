//! The format text of a tracepoint: where its fields lie in the payload, and the flag names of its print
//! format.
//!
//! The text is what tracefs shows in `events/<system>/<event>/format` and what perf.data and trace.dat carry
//! along. A payload must be decoded with the text of its own recording: fields move, appear and go between
//! kernels.

use crate::gfp::GfpTable;

/// A format text that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A line that should describe a field, or the header, does not.
    #[error("line {line} of the format text: expected {expected}, found `{found}`")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// What should have been there.
        expected: &'static str,
        /// What was there, shortened.
        found: String,
    },
    /// The event lacks a field without which it means nothing.
    #[error("event `{event}` has no field `{field}` that can be read as a number")]
    Missing {
        /// Event name.
        event: String,
        /// Field name.
        field: &'static str,
    },
}

/// A parsed format text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The event's name.
    pub name: String,
    /// The number in `common_type` of each payload.
    pub id: u16,
    /// Common fields first, then the event's own.
    pub fields: Vec<Field>,
    /// The text after `print fmt:`.
    pub print: String,
}

/// One field of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its C type as written.
    pub type_text: String,
    /// Byte offset in the payload.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// Whether a number is signed.
    pub signed: bool,
}

impl Field {
    /// Whether the field is a `__data_loc` word: length in the high half, payload offset in the low half.
    pub fn is_data_loc(&self) -> bool {
        self.type_text.starts_with("__data_loc")
    }

    /// As [`Field::is_data_loc`], with the offset counted from the end of the word (since 5.18).
    pub fn is_rel_loc(&self) -> bool {
        self.type_text.starts_with("__rel_loc")
    }
}

impl Format {
    /// Reads a format text.
    ///
    /// # Errors
    /// The line that is not as tracefs writes it.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let (mut name, mut id, mut print, mut fields) = (None, None, String::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let error = |expected| FormatError::Syntax { line: index + 1, expected, found: shorten(line) };
            let trimmed = line.trim();
            if let Some(rest) = trimmed.strip_prefix("name:") {
                name = Some(rest.trim().to_string());
            } else if let Some(rest) = trimmed.strip_prefix("ID:") {
                id = Some(rest.trim().parse().map_err(|_| error("an event number below 65536"))?);
            } else if let Some(rest) = trimmed.strip_prefix("print fmt:") {
                print = rest.trim().to_string();
            } else if trimmed.starts_with("field") {
                fields.push(
                    parse_field(trimmed)
                        .ok_or_else(|| error("`field:<type> <name>; offset:<n>; size:<n>;`"))?,
                );
            }
        }
        let missing = |expected| FormatError::Syntax { line: 1, expected, found: shorten(text) };
        let name = name.ok_or_else(|| missing("a line `name: <event>`"))?;
        let id = id.ok_or_else(|| missing("a line `ID: <number>`"))?;
        Ok(Format { name, id, fields, print })
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The flag list that the print format applies to `field` with `__print_flags`: number and name of each
    /// flag. Empty when there is none. Entries whose number is not a constant (kernels 6.10 to 6.15 print the
    /// names of enum constants there) are left out.
    pub fn flags(&self, field: &str) -> GfpTable {
        let mut rest = &*self.print;
        while let Some(at) = rest.find("__print_flags(") {
            rest = &rest[at + "__print_flags(".len()..];
            let arguments = balanced(rest, b')');
            rest = &rest[arguments.len()..];
            let mut parts = arguments.splitn(2, ',');
            if parts.next().is_some_and(|first| first.contains(&format!("REC->{field}"))) {
                return GfpTable::new(flag_list(parts.next().unwrap_or("")));
            }
        }
        GfpTable::default()
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

fn parse_field(line: &str) -> Option<Field> {
    let (mut declaration, mut offset, mut size, mut signed) = (None, None, None, false);
    for part in line.split(';') {
        let (key, value) = match part.trim().split_once(':') {
            Some((key, value)) => (key.trim(), value.trim()),
            None => continue,
        };
        match key {
            "field" | "field special" => declaration = Some(value),
            "offset" => offset = Some(value.parse().ok()?),
            "size" => size = Some(value.parse().ok()?),
            "signed" => signed = value == "1",
            _ => {}
        }
    }
    let declaration = declaration?;
    let before_array = match declaration.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        Some((head, _)) if !head.ends_with(char::is_whitespace) => head,
        _ => declaration,
    };
    let name_at = before_array.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    let (type_text, name) = before_array.split_at_checked(name_at)?;
    if name.is_empty() {
        return None;
    }
    let type_text = format!("{}{}", type_text.trim_end(), &declaration[before_array.len()..]);
    Some(Field { name: name.to_string(), type_text, offset: offset?, size: size?, signed })
}

/// `text` up to the `close` that matches an opening before it; all of it if there is none.
fn balanced(text: &str, close: u8) -> &str {
    let (mut depth, mut quoted) = (0usize, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            _ if byte == close && depth == 0 => return &text[..at],
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text
}

/// The `{ number, "name" }` entries of a flag list.
fn flag_list(text: &str) -> Vec<(u64, String)> {
    let mut entries = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let entry = balanced(&rest[at + 1..], b'}');
        rest = &rest[at + 1 + entry.len()..];
        if let Some((number, name)) = entry.rsplit_once(',')
            && let Some(name) = name.trim().strip_prefix('"').and_then(|name| name.strip_suffix('"'))
            && let Some(number) = constant(number)
        {
            entries.push((number, name.to_string()));
        }
    }
    entries
}

/// The value of a C constant expression of integers, `|`, `&`, `~`, `<<`, parentheses and casts, as the
/// kernel's flag lists use. `None` for anything else, such as the name of an enum constant.
fn constant(text: &str) -> Option<u64> {
    let mut expression = Expression { text: text.as_bytes(), depth: 0 };
    let value = expression.or()?;
    expression.skip_spaces();
    expression.text.is_empty().then_some(value)
}

struct Expression<'a> {
    text: &'a [u8],
    depth: u32,
}

impl Expression<'_> {
    /// Nesting deeper than this is not a kernel's; it would cost stack.
    const DEPTH_LIMIT: u32 = 64;

    fn skip_spaces(&mut self) {
        self.text = self.text.trim_ascii_start();
    }

    fn eat(&mut self, token: &[u8]) -> bool {
        self.skip_spaces();
        let rest = self.text.strip_prefix(token);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn or(&mut self) -> Option<u64> {
        let mut value = self.and()?;
        while self.eat(b"|") {
            value |= self.and()?;
        }
        Some(value)
    }

    fn and(&mut self) -> Option<u64> {
        let mut value = self.shift()?;
        while self.eat(b"&") {
            value &= self.shift()?;
        }
        Some(value)
    }

    fn shift(&mut self) -> Option<u64> {
        let mut value = self.unary()?;
        while self.eat(b"<<") {
            value = value.checked_shl(u32::try_from(self.unary()?).ok()?)?;
        }
        Some(value)
    }

    fn unary(&mut self) -> Option<u64> {
        self.depth += 1;
        if self.depth > Self::DEPTH_LIMIT {
            return None;
        }
        let value = if self.eat(b"~") {
            !self.unary()?
        } else if self.eat(b"(") {
            if self.eat_cast() {
                self.unary()?
            } else {
                let value = self.or()?;
                self.eat(b")").then_some(value)?
            }
        } else {
            self.number()?
        };
        self.depth -= 1;
        Some(value)
    }

    /// After `(`: eats `unsigned long)` and its like, if that is what follows.
    fn eat_cast(&mut self) -> bool {
        let end = self.text.iter().position(|&byte| byte == b')').unwrap_or(0);
        let inside = &self.text[..end];
        let is_type = inside.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b' ');
        let starts = inside.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic);
        let known: [&[u8]; 3] = [b"gfp_t", b"long", b"int"];
        let cast = is_type && starts && known.iter().any(|name| inside.trim_ascii_end().ends_with(name));
        if cast {
            self.text = &self.text[end + 1..];
        }
        cast
    }

    fn number(&mut self) -> Option<u64> {
        self.skip_spaces();
        let end = self.text.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        let word = std::str::from_utf8(word).ok()?.trim_end_matches(['u', 'U', 'l', 'L']);
        let value = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => word.parse().ok()?,
        };
        self.text = rest;
        Some(value)
    }
}
