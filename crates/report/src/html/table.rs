//! Tables: what every figure says, in numbers.

use super::number::{self, Parts, byte_parts};
use super::{escape, number::sign};
use std::cmp::Ordering;
use std::fmt::Write;

/// A table with a header.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns. Every row has a cell for each, or one cell as a heading.
    pub columns: Vec<Head>,
    /// The rows. A row of one cell is a heading over the rows below it.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// The unit, said once in the header; empty where the cells carry it or there is none.
    pub unit: String,
    /// Text to the left, numbers to the right.
    pub align: Align,
}

/// To which side a column goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A cell. What it prints is for reading; the exact value is in its tooltip.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words of this program. A text from an input that CSV has is a [`Cell::Name`].
    Text(String),
    /// A name from an input or one that a user types: a cache, a file, a parameter. A page does not break it
    /// across lines; CSV puts an apostrophe before a name that a spreadsheet would compute.
    Name(String),
    /// Bytes, printed in KiB, MiB and so on.
    Bytes(u64),
    /// A change in bytes.
    ByteChange(i64),
    /// A number of things.
    Count(u64),
    /// A change in a number of things.
    Change(i64),
    /// A part of a change, which is rounded. What rounds to 0 has the sign of the exact number, unless that
    /// is 0 itself.
    Part {
        /// The rounded number.
        rounded: i64,
        /// The exact number beside 0.
        exact: Ordering,
        /// Half of the interval around it, if the number is an estimate.
        give_or_take: Option<u64>,
        /// Whether these are bytes.
        bytes: bool,
    },
    /// A number, and the decimal places to print.
    Number(f64, usize),
    /// Percent; `None` where there was nothing to count.
    Percent(Option<f64>),
    /// Nothing to say.
    Empty,
}

impl Head {
    /// A column of words.
    pub fn text(name: &str) -> Head {
        Head { name: name.into(), unit: String::new(), align: Align::Left }
    }

    /// A column of numbers.
    pub fn number(name: &str) -> Head {
        Head { name: name.into(), unit: String::new(), align: Align::Right }
    }

    /// The column's head with a unit behind it.
    pub fn unit(mut self, unit: &str) -> Head {
        self.unit = unit.into();
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Head>) -> Table {
        Table { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row: a cell per column, or one cell as a heading.
    ///
    /// # Panics
    /// If the row has another number of cells.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut Table {
        let cells: Vec<Cell> = cells.into_iter().collect();
        let (found, expected) = (cells.len(), self.columns.len());
        assert!(found == expected || found == 1, "a row of {found} cells in a table of {expected} columns");
        self.rows.push(cells);
        self
    }

    /// The table as HTML; it scrolls by itself where the page is narrower.
    pub(super) fn html(&self, caption: Option<&str>) -> String {
        let mut out = String::from("<div class=\"scroll\" tabindex=\"0\"><table>\n");
        if let Some(caption) = caption {
            writeln!(out, "<caption>{}</caption>", escape(caption)).expect("a string");
        }
        out.push_str("<thead><tr>");
        for column in &self.columns {
            write!(out, "<th scope=\"col\"{}>{}", class(column.align), escape(&column.name))
                .expect("a string");
            if !column.unit.is_empty() {
                write!(out, " <span class=\"unit\">{}</span>", escape(&column.unit)).expect("a string");
            }
            out.push_str("</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let precise: Vec<bool> = (0..self.columns.len()).map(|column| self.is_precise(column)).collect();
        for row in &self.rows {
            self.write_row(&mut out, row, &precise);
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    /// Whether a column has bytes that are not whole in their unit: then all have three digits, so that they
    /// line up.
    fn is_precise(&self, column: usize) -> bool {
        let in_column =
            self.rows.iter().filter(|row| row.len() == self.columns.len()).map(|row| &row[column]);
        in_column.filter_map(Cell::size).any(|bytes| byte_parts(bytes, false).number.contains('.'))
    }

    fn write_row(&self, out: &mut String, row: &[Cell], precise: &[bool]) {
        out.push_str("<tr>");
        if let ([heading], true) = (row, self.columns.len() > 1) {
            write!(
                out,
                "<th scope=\"rowgroup\" colspan=\"{}\">{}</th>",
                self.columns.len(),
                heading.html(false)
            )
            .expect("a string");
        } else {
            for (index, (column, cell)) in self.columns.iter().zip(row).enumerate() {
                let class = class(column.align);
                let title = cell.exact().map_or(String::new(), |exact| format!(" title=\"{exact}\""));
                let tag = if index == 0 { "th scope=\"row\"" } else { "td" };
                let end = if index == 0 { "th" } else { "td" };
                write!(out, "<{tag}{class}{title}>{}</{end}>", cell.html(precise[index])).expect("a string");
            }
        }
        out.push_str("</tr>\n");
    }
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"n\"",
    }
}

impl Cell {
    /// The bytes of it, without a sign.
    fn size(&self) -> Option<u64> {
        match self {
            Cell::Bytes(bytes) => Some(*bytes),
            Cell::ByteChange(change) => Some(change.unsigned_abs()),
            _ => None,
        }
    }

    /// What is printed; bytes with three digits if so wished.
    fn html(&self, precise: bool) -> String {
        match self {
            Cell::Text(text) => escape(text),
            Cell::Name(name) => format!("<code>{}</code>", escape(name)),
            Cell::Bytes(bytes) => with_unit("", byte_parts(*bytes, precise)),
            Cell::ByteChange(change) => with_unit(sign(*change), byte_parts(change.unsigned_abs(), precise)),
            Cell::Count(count) => number::count(*count),
            Cell::Change(change) => number::signed(*change),
            Cell::Part { rounded, exact, give_or_take, bytes } => {
                let number = match rounded {
                    0 if exact.is_ne() => format!("{}0", sign(*exact as i64)),
                    rounded if *bytes => number::signed_bytes(*rounded),
                    rounded => number::signed(*rounded),
                };
                let half = if *bytes { number::bytes } else { number::count };
                number + &give_or_take.map_or(String::new(), |number| format!(" \u{b1} {}", half(number)))
            }
            Cell::Number(number, places) => number::fixed(*number, *places),
            Cell::Percent(Some(percent)) => number::percent(*percent),
            Cell::Percent(None) => number::NONE.into(),
            Cell::Empty => String::new(),
        }
    }

    /// The exact value, if the printed one is rounded.
    fn exact(&self) -> Option<String> {
        match self {
            Cell::Bytes(bytes) => Some(format!("{} bytes", number::count(*bytes))),
            Cell::ByteChange(change) => Some(format!("{} bytes", number::signed(*change))),
            _ => None,
        }
    }

    /// The cell in plain text, as a headline of the page says it.
    pub(super) fn plain(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Name(text) => text.clone(),
            Cell::Bytes(bytes) => number::bytes(*bytes),
            Cell::ByteChange(change) => number::signed_bytes(*change),
            numbers => numbers.html(false),
        }
    }
}

/// Number and unit apart: in a column the numbers end, and the units begin, at one place.
fn with_unit(sign: &str, Parts { number, unit }: Parts) -> String {
    format!("{sign}{number}<span class=\"u\">{unit}</span>")
}
