//! Logs whose lines are records in JSON: of Docker (`{"log":"...","stream":...}`), of the journal
//! (`journalctl -o json`), of programs that collect logs. Each line becomes its message.

use std::borrow::Cow;

/// The keys of messages, in the order in which they are looked for.
const KEYS: [&str; 4] = ["log", "MESSAGE", "message", "msg"];

/// The text with the message of each record in its place, if its lines are records. Other lines stay.
pub(super) fn unpacked(text: Cow<'_, str>) -> Cow<'_, str> {
    if !has_records(&text) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match message(line) {
            Some(message) => out += message.trim_end_matches(['\r', '\n']),
            None => out += line,
        }
        out.push('\n');
    }
    Cow::Owned(out)
}

/// Whether the first lines with something in them are records.
fn has_records(text: &str) -> bool {
    const FIRST: usize = 3;
    let mut first = text.lines().filter(|line| !line.trim().is_empty()).take(FIRST).peekable();
    first.peek().is_some() && first.all(|line| message(line).is_some())
}

/// The message of a record.
fn message(line: &str) -> Option<String> {
    let line = line.trim();
    if !line.starts_with('{') || !line.ends_with('}') {
        return None;
    }
    KEYS.iter().find_map(|key| value(line, key))
}

/// The text of a key.
fn value(line: &str, key: &str) -> Option<String> {
    let quoted = format!("\"{key}\"");
    let mut from = 0;
    while let Some(at) = line[from..].find(&quoted) {
        let rest = line[from + at + quoted.len()..].trim_start();
        if let Some(rest) = rest.strip_prefix(':').and_then(|rest| rest.trim_start().strip_prefix('"')) {
            return unescaped(rest);
        }
        from += at + quoted.len();
    }
    None
}

/// The characters of a text up to its closing quote; `None` if it has none. An end of line within it is
/// written as the return of a cursor, so that lines keep their numbers.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\r'),
                't' => out.push('\t'),
                'r' | 'b' | 'f' => {}
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).ok()?;
                    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_their_messages() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(unpacked(text.into()), expected);
        }
        check(
            "{\"log\":\"Slab: 10 kB\\n\",\"stream\":\"stdout\"}\n{\"log\":\"a \\\"b\\\" \\u003c\"}\n",
            "Slab: 10 kB\na \"b\" <\n",
        );
        check(
            "{ \"PRIORITY\" : \"4\", \"MESSAGE\" : \"SLUB: x\" }\nplain\n\n",
            "{ \"PRIORITY\" : \"4\", \"MESSAGE\" : \"SLUB: x\" }\nplain\n\n",
        );
        check("{\"PRIORITY\":\"4\",\"MESSAGE\":\"SLUB: x\"}\n", "SLUB: x\n");
        // A value that is called like a key is none; a text that is cut off is none.
        check("{\"a\":\"log\",\"log\":\"x\"}\n", "x\n");
        check("{\"log\":\"x\n", "{\"log\":\"x\n");
        check("{\"other\":\"x\"}\n", "{\"other\":\"x\"}\n");
        check("", "");
        check("dentry 1 2 3 4\n", "dentry 1 2 3 4\n");
    }
}
