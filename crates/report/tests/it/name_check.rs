//! What holds of every text, page and CSV file that has names from an input.

/// Names that set a terminal's title, colour it, turn the direction of text and start formulas.
/// Each has the word by which [`check_names`] finds it.
pub(crate) const HOSTILE: [&str; 3] = [
    "\u{1b}]0;OWNED\u{7}\u{1b}[31mred\u{202e}",
    "=cmd|/C+OWNED!A1\u{9b}\u{7f}\u{2028}",
    "@OWNED\t\r\u{2066}",
];

/// Whether a terminal, a label or a viewer would act on the character.
fn acts(char: char) -> bool {
    let marks = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let bidi = marks || matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (char.is_control() && char != '\n') || bidi
}

/// Checks that a text has a hostile name and no character on which a terminal or a viewer acts.
#[track_caller]
pub(crate) fn check_names(renderer: &str, text: &str) {
    check_characters(renderer, text);
    assert!(text.contains("OWNED"), "{renderer} does not show the name:\n{text}");
}

/// Checks that a text has no character on which a terminal or a viewer acts.
#[track_caller]
pub(crate) fn check_characters(renderer: &str, text: &str) {
    let found = text.lines().find(|line| line.chars().any(acts));
    assert!(found.is_none(), "{renderer} passes on {found:?}");
}
