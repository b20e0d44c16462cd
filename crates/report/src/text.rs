//! Text for a terminal: tables, paragraphs, grouped numbers.

use comfy_table::{CellAlignment, Table, presets};

/// A table without lines between its cells.
pub fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Aligns every column but the first to the right.
pub fn right_align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The table without blanks at line ends, so that it survives mail.
pub fn trimmed(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
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

/// Grouped, with a sign where it is below zero.
pub fn signed(number: i64) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, grouped(number.unsigned_abs()))
}

/// Text in lines of at most 80 columns.
pub fn wrapped(text: &str, first: &str, others: &str) -> String {
    const WIDTH: usize = 80;
    let mut out = String::new();
    let mut line = String::from(first);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += line.trim_end();
            out.push('\n');
            line = String::from(others);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    out + line.trim_end() + "\n"
}
