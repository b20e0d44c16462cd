//! Colour for a text that a terminal shows: headings, verdicts and heads of tables. The text says everything
//! without it.
//!
//! Lines are painted by their place and their first words, after control characters of inputs became escapes:
//! no input paints anything.

use std::fmt::Write;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[1;32m";
const YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// The first words of a line and the style of the line.
const WORDS: [(&str, &str); 6] = [
    ("Verdict: climbing", RED),
    ("Verdict: no problem", GREEN),
    ("Verdict: steady", GREEN),
    ("Verdict: ", YELLOW),
    ("- echo ", CYAN),
    ("- sync; echo ", CYAN),
];

/// The text with styles of ANSI terminals, which end with each line.
pub fn paint(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    // Before the first line there is as good as an empty one.
    let mut after_empty = true;
    let mut styled: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let words = line.trim_end_matches('\n');
        // A paragraph goes on in lines that are indented.
        let goes_on = styled.filter(|_| words.starts_with("  ") && !words.trim().is_empty());
        let named = WORDS.iter().find(|(first, _)| words.starts_with(first)).map(|(_, style)| *style);
        let heading = after_empty && is_heading(words);
        let style = goes_on.or(named).or(heading.then_some(BOLD));
        styled = goes_on.or(named.filter(|style| *style != CYAN));
        match style {
            Some(style) => write!(out, "{style}{words}{PLAIN}").expect("a string"),
            None => out.push_str(words),
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
        after_empty = words.trim().is_empty();
    }
    out
}

/// Whether the first line of a paragraph is its heading, or the head of a table: few words, no sentence.
fn is_heading(line: &str) -> bool {
    let said = line.trim_start();
    let few = !said.is_empty() && line.chars().count() <= 100 && !said.ends_with(['.', ':', ';', ',']);
    few && said.starts_with(|char: char| char.is_ascii_uppercase()) && !said.contains(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_verdicts_are_painted() {
        let text = "vm: Linux 6.1\nVerdict: climbing and\n  not reclaimable\n\nFindings\n- a\n\n Cache  Slabs\n x  1\n";
        let expected = "vm: Linux 6.1\n\x1b[1;31mVerdict: climbing and\x1b[0m\n\x1b[1;31m  not reclaimable\x1b[0m\n\n\
            \x1b[1mFindings\x1b[0m\n- a\n\n\x1b[1m Cache  Slabs\x1b[0m\n x  1\n";
        assert_eq!(paint(text), expected);
        assert_eq!(paint("Verdict: no problem: x"), "\x1b[1;32mVerdict: no problem: x\x1b[0m");
        assert_eq!(paint("plain words.\n"), "plain words.\n");
    }
}
