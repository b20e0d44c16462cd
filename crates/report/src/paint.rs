//! Colour for a text that a terminal shows: the sentence that answers, headings, heads of tables, commands.
//! The text says everything without it.
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

/// The first words of a text, and the style of its first sentence; that of any other text is [`BOLD`].
const SENTENCES: [(&str, &str); 6] = [
    ("Climbing and", RED),
    ("No problem", GREEN),
    ("Steady: ", GREEN),
    ("Not reclaimable", YELLOW),
    ("Unknown: ", YELLOW),
    ("An allocation failed: ", YELLOW),
];

/// The first words of a command.
const COMMANDS: [&str; 2] = ["    echo ", "    sync; echo "];

/// The text with styles of ANSI terminals, which end with each line.
pub fn paint(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let verdict = SENTENCES.iter().find(|(first, _)| text.starts_with(first)).map(|(_, style)| *style);
    // The first sentence goes on until a line ends with its full stop. A table has no sentence over it.
    let is_sentence = !text.starts_with(char::is_whitespace);
    let mut sentence = is_sentence.then_some(verdict.unwrap_or(BOLD));
    // Before the first line there is as good as an empty one.
    let mut after_empty = true;
    for line in text.split_inclusive('\n') {
        let words = line.trim_end_matches('\n');
        let is_empty = words.trim().is_empty();
        sentence = sentence.filter(|_| !is_empty);
        let command = COMMANDS.iter().any(|first| words.starts_with(first)).then_some(CYAN);
        let heading = (after_empty && is_heading(words)).then_some(BOLD);
        match sentence.or(command).or(heading) {
            Some(style) => write!(out, "{style}{words}{PLAIN}").expect("a string"),
            None => out.push_str(words),
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
        sentence = sentence.filter(|_| !words.ends_with('.'));
        after_empty = is_empty;
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
    fn sentences_and_headings_are_painted() {
        let text = "Climbing and\nnot reclaimable.\nvm: Linux 6.1\n\nFindings\n- a\n    echo 1 > b\n\n Cache  Slabs\n x  1\n";
        let expected = "\x1b[1;31mClimbing and\x1b[0m\n\x1b[1;31mnot reclaimable.\x1b[0m\nvm: Linux 6.1\n\n\
            \x1b[1mFindings\x1b[0m\n- a\n\x1b[36m    echo 1 > b\x1b[0m\n\n\x1b[1m Cache  Slabs\x1b[0m\n x  1\n";
        let check = |text: &str, expected: &str| assert_eq!(paint(text), expected, "{text}");
        check(text, expected);
        check("No problem: x", "\x1b[1;32mNo problem: x\x1b[0m");
        check("Two caches\n\nno. 1\n", "\x1b[1mTwo caches\x1b[0m\n\nno. 1\n");
        check("dentry (VFS): Names.\nplain words.\n", "\x1b[1mdentry (VFS): Names.\x1b[0m\nplain words.\n");
        check(" cache  slabs\n x  1\n", " cache  slabs\n x  1\n");
    }
}
