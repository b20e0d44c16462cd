//! The one place where text of others becomes markup.

use crate::visible::{is_control, shell_word};

/// Text as markup that shows it, inside elements and inside quoted attributes.
///
/// Characters that XML forbids, and those that turn the direction of the text around them, become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(char),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            control if is_control(control) => out.push('\u{fffd}'),
            plain => out.push(plain),
        }
    }
    out
}

/// JSON as the content of a script element: `<` would let a name end the element.
pub(super) fn json_in_script(json: &serde_json::Value) -> String {
    json.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// A command as one could type it again: words with anything unusual in them are quoted.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |word: &'a str| shell_word(word, "-_./,=@:+%");
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_others_becomes_markup() {
        let cases = [
            ("kmalloc-64", "kmalloc-64"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a\" onload='x", "a&quot; onload=&#39;x"),
            ("&amp;", "&amp;amp;"),
            ("a\u{0}b\u{1b}[31m\u{202e}c", "a\u{fffd}b\u{fffd}[31m\u{fffd}c"),
        ];
        for (text, expected) in cases {
            assert_eq!(escape(text), expected);
        }
        let json = serde_json::json!({ "name": "</script><b>" });
        assert_eq!(json_in_script(&json), r#"{"name":"\u003c/script>\u003cb>"}"#);
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let cases: [(&[&str], &str); 3] = [
            (&["slablab", "replay", "a.trace"], "slablab replay a.trace"),
            (&["slablab", "my file", "it's"], r"slablab 'my file' 'it'\''s'"),
            (
                &["slablab", "--engine", "slub@6.1,max_order=0", ""],
                "slablab --engine slub@6.1,max_order=0 ''",
            ),
        ];
        for (words, expected) in cases {
            assert_eq!(command_line(words.iter().copied()), expected);
        }
    }
}
