//! Cells of text tables.

use crate::csv;
use crate::html::Cell;
use crate::text::{self, grouped};
use std::cmp::Ordering;

/// How a text table prints numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Sizes in KiB, which heads say, and whole percent.
    Kib,
    /// Sizes in bytes, and whole percent.
    Bytes,
    /// Digits in groups of three, sizes in bytes, and whole percent with its sign.
    Grouped,
    /// Digits in groups of three, sizes in KiB, percent with one place, and units in the cells.
    Units,
}

/// A cell of a text table: a sign before a change, a dash for an unknown value.
pub(crate) fn text_cell(cell: &Cell, style: Style) -> String {
    match (cell, style) {
        (Cell::Percent(None) | Cell::Empty, _) => "-".into(),
        (Cell::Number(number, places), _) => format!("{number:.places$}"),
        (Cell::Bytes(bytes), Style::Kib) => (bytes / 1024).to_string(),
        (Cell::ByteChange(bytes), Style::Kib) => (bytes / 1024).to_string(),
        (Cell::Percent(Some(percent)), Style::Kib | Style::Bytes) => (*percent as u64).to_string(),
        (Cell::Change(number), Style::Kib | Style::Bytes) => format!("{number:+}"),
        (Cell::Bytes(bytes), Style::Units) => format!("{} K", grouped(bytes / 1024)),
        (Cell::ByteChange(bytes), Style::Units) => format!("{} K", change(bytes / 1024)),
        (Cell::Percent(Some(percent)), Style::Units) => format!("{percent:.1} %"),
        (Cell::Percent(Some(percent)), Style::Grouped) => format!("{percent:.0} %"),
        (Cell::Count(number) | Cell::Bytes(number), Style::Grouped | Style::Units) => grouped(*number),
        (Cell::Change(number) | Cell::ByteChange(number), Style::Grouped | Style::Units) => change(*number),
        (Cell::Part { rounded, exact, give_or_take, .. }, _) => {
            let sign = match exact {
                Ordering::Less => "-",
                Ordering::Equal => "",
                Ordering::Greater => "+",
            };
            let half = give_or_take.map_or(String::new(), |half| format!(" \u{b1}{}", grouped(half)));
            format!("{sign}{}{half}", grouped(rounded.unsigned_abs()))
        }
        (other, _) => csv::text(other),
    }
}

/// A change in groups of three with its sign.
fn change(number: i64) -> String {
    let sign = if number > 0 { "+" } else { "" };
    format!("{sign}{}", text::signed(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cell: Cell, style: Style, expected: &str) {
        assert_eq!(text_cell(&cell, style), expected, "{cell:?} as {style:?}");
    }

    #[test]
    fn what_is_rounded_to_nothing_keeps_its_sign() {
        use Ordering::{Equal, Greater, Less};
        let cases = [
            (0, Equal, "0"),
            (0, Greater, "+0"),
            (0, Less, "-0"),
            (1200, Greater, "+1,200"),
            (-7, Less, "-7"),
        ];
        for (rounded, exact, expected) in cases {
            let part = |give_or_take| Cell::Part { rounded, exact, give_or_take, bytes: false };
            check(part(None), Style::Grouped, expected);
            check(part(Some(1000)), Style::Grouped, &format!("{expected} \u{b1}1,000"));
        }
    }

    #[test]
    fn styles_of_numbers() {
        let cases = [
            (Cell::Bytes(2048 << 10), ["2048", "2097152", "2,097,152", "2,048 K"]),
            (Cell::ByteChange(-4096), ["-4", "-4096", "-4,096", "-4 K"]),
            (Cell::ByteChange(4096), ["4", "4096", "+4,096", "+4 K"]),
            (Cell::Count(1234), ["1234", "1234", "1,234", "1,234"]),
            (Cell::Change(1234), ["+1234", "+1234", "+1,234", "+1,234"]),
            (Cell::Percent(Some(99.96)), ["99", "99", "100 %", "100.0 %"]),
            (Cell::Percent(None), ["-"; 4]),
        ];
        for (cell, expected) in cases {
            let styles = [Style::Kib, Style::Bytes, Style::Grouped, Style::Units];
            styles.into_iter().zip(expected).for_each(|(style, text)| check(cell.clone(), style, text));
        }
    }
}
