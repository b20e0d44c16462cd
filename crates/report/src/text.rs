//! Text for a terminal: tables, paragraphs, grouped numbers.

use crate::visible;
use comfy_table::{CellAlignment, presets};
use std::ops::Range;

/// A table. Unless [`Table::numbers`] says otherwise, every column but the first holds numbers.
pub struct Table {
    table: comfy_table::Table,
    /// Columns that are aligned to the right.
    numbers: Range<usize>,
}

impl Table {
    /// A table with its header.
    pub fn new<S: AsRef<str>>(header: impl IntoIterator<Item = S>) -> Table {
        let mut table = Table::headless();
        table.table.set_header(visible_cells(header));
        table
    }

    /// A table without a header.
    pub fn headless() -> Table {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        Table { table, numbers: 1..usize::MAX }
    }

    /// The table with numbers, which are aligned to the right, in these columns alone.
    pub fn numbers(mut self, columns: Range<usize>) -> Table {
        self.numbers = columns;
        self
    }

    /// Adds a row.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.table.add_row(visible_cells(cells));
    }

    /// The table as text, without blanks at line ends, so that it survives mail.
    pub fn print(mut self) -> String {
        for (index, column) in self.table.column_iter_mut().enumerate() {
            if self.numbers.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
    }
}

fn visible_cells<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> impl Iterator<Item = String> {
    cells.into_iter().map(|cell| visible::name(cell.as_ref()).into_owned())
}

/// A name for a table of 80 columns, with visible characters only. If it is wider than `widest`, it is cut
/// and ends with a `~`.
pub fn cut(name: &str, widest: usize) -> String {
    let name = visible::name(name);
    if name.chars().count() <= widest {
        return name.into_owned();
    }
    name.chars().take(widest.saturating_sub(1)).chain(['~']).collect()
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number in groups of three digits. Only negative numbers have a sign.
pub fn signed(number: i64) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, grouped(number.unsigned_abs()))
}

/// Text in lines of at most 80 columns: the first begins with `first`, the others with `others`.
pub fn wrapped(text: &str, first: &str, others: &str) -> String {
    const WIDTH: usize = 80;
    let mut out = String::new();
    let mut line = String::from(first);
    let mut empty = true;
    for word in text.split_whitespace().map(visible::name) {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += line.trim_end();
            out.push('\n');
            line = String::from(others);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += &word;
        empty = false;
    }
    out + line.trim_end() + "\n"
}
