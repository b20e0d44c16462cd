//! The columns of an answer, each written once: its key for programs, its heads for people, and how a row's
//! cell is got.
//!
//! ```text
//! Columns ── csv            a file
//!    ├────── json           an object per row
//!    ├────── text           a table of 80 columns   ┐ of the columns picked by key
//!    └────── html           a table of a page       ┘
//! ```

use crate::csv::{self, Csv};
use crate::html::{self, Cell, Head};
use crate::text;
use serde_json::{Map, Value, json};
use std::borrow::Borrow;

/// A column.
pub struct Column<R> {
    /// Its name in CSV and JSON, with the unit.
    pub key: &'static str,
    /// Its head in a text table.
    pub short: &'static str,
    /// Its head on a page.
    pub head: &'static str,
    /// The unit in its head on a page; empty if the cells carry it or there is none.
    pub unit: &'static str,
    /// Whether its cells are sizes in bytes: a text table shows KiB unless it is asked for bytes.
    bytes: bool,
    /// Whether its cells are words, which a page aligns to the left.
    words: bool,
    /// Whether CSV has it. A column that neither CSV nor JSON has is rounded for people, or falls back to
    /// another value.
    csv: bool,
    /// Whether JSON has it.
    json: bool,
    get: Box<dyn Fn(&R) -> Cell>,
}

/// The columns of an answer, in the order of its CSV.
pub struct Columns<R>(Vec<Column<R>>);

/// The first column of a table for people: its head, and a row's label.
pub type Label<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

impl<R> Default for Columns<R> {
    fn default() -> Columns<R> {
        Columns(Vec::new())
    }
}

impl<R> Columns<R> {
    /// Adds a column for programs alone.
    pub fn key(self, key: &'static str, get: impl Fn(&R) -> Cell + 'static) -> Columns<R> {
        self.add(key, "", "", get)
    }

    /// Adds a column for all formats: `short` is its head in text tables, `head` on pages.
    pub fn add(
        mut self,
        key: &'static str,
        short: &'static str,
        head: &'static str,
        get: impl Fn(&R) -> Cell + 'static,
    ) -> Columns<R> {
        let get = Box::new(get);
        self.0.push(Column {
            key,
            short,
            head,
            unit: "",
            bytes: false,
            words: false,
            csv: true,
            json: true,
            get,
        });
        self
    }

    /// The column added last has cells in bytes.
    pub fn bytes(self) -> Columns<R> {
        self.last(|column| column.bytes = true)
    }

    /// The column added last has words for cells.
    pub fn words(self) -> Columns<R> {
        self.last(|column| column.words = true)
    }

    /// The column added last says its unit in its head on a page.
    pub fn unit(self, unit: &'static str) -> Columns<R> {
        self.last(|column| column.unit = unit)
    }

    /// The column added last is for people alone.
    pub fn people(self) -> Columns<R> {
        self.last(|column| (column.csv, column.json) = (false, false))
    }

    /// The column added last is not in JSON, which has its value in another place.
    pub fn csv_alone(self) -> Columns<R> {
        self.last(|column| column.json = false)
    }

    /// The column added last is not in CSV.
    pub fn json_alone(self) -> Columns<R> {
        self.last(|column| column.csv = false)
    }

    fn last(mut self, change: impl FnOnce(&mut Column<R>)) -> Columns<R> {
        change(self.0.last_mut().expect("a column was added"));
        self
    }

    fn in_csv(&self) -> impl Iterator<Item = &Column<R>> {
        self.0.iter().filter(|column| column.csv)
    }

    fn pick(&self, keys: &[&str]) -> Vec<&Column<R>> {
        let find = |key: &&str| self.0.iter().find(|column| column.key == *key);
        keys.iter().map(|key| find(key).unwrap_or_else(|| panic!("no column {key}"))).collect()
    }

    /// The keys of CSV.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.in_csv().map(|column| column.key)
    }

    /// A row of CSV.
    pub fn cells(&self, row: &R) -> impl Iterator<Item = Cell> {
        self.in_csv().map(|column| (column.get)(row))
    }

    /// A CSV file.
    pub fn csv(&self, rows: impl IntoIterator<Item: Borrow<R>>) -> String {
        let mut file = Csv::new(self.keys());
        rows.into_iter().for_each(|row| file.row(self.cells(row.borrow())));
        file.finish()
    }

    /// A row as an object of JSON. An unknown value is null.
    pub fn json(&self, row: &R) -> Map<String, Value> {
        let columns = self.0.iter().filter(|column| column.json);
        columns.map(|column| (column.key.to_string(), json_cell(&(column.get)(row)))).collect()
    }

    /// A text table of the columns with these keys. Sizes are in KiB, and their heads say so, unless
    /// `in_bytes`.
    ///
    /// # Panics
    /// If a key is no column's.
    pub fn text<'r>(
        &self,
        label: Label<'_, R>,
        keys: &[&str],
        rows: impl IntoIterator<Item = &'r R>,
        in_bytes: bool,
    ) -> text::Table
    where
        R: 'r,
    {
        let picked = self.pick(keys);
        let head = |column: &&Column<R>| {
            format!("{}{}", column.short, if column.bytes && !in_bytes { " K" } else { "" })
        };
        let mut table = text::Table::new(std::iter::once(label.0.to_string()).chain(picked.iter().map(head)));
        for row in rows {
            let cells = picked.iter().map(|column| text_cell(&(column.get)(row), in_bytes));
            table.row(std::iter::once((label.1)(row)).chain(cells));
        }
        table
    }

    /// A page's table of the columns with these keys.
    ///
    /// # Panics
    /// If a key is no column's.
    pub fn html<'r>(
        &self,
        label: Label<'_, R>,
        keys: &[&str],
        rows: impl IntoIterator<Item = &'r R>,
    ) -> html::Table
    where
        R: 'r,
    {
        let picked = self.pick(keys);
        let head = |column: &Column<R>| if column.words { Head::text } else { Head::number }(column.head);
        let heads = picked.iter().map(|column| head(column).unit(column.unit));
        let mut table = html::Table::new(std::iter::once(Head::text(label.0)).chain(heads));
        for row in rows {
            let cells = picked.iter().map(|column| (column.get)(row));
            table.row(std::iter::once(Cell::Name((label.1)(row))).chain(cells));
        }
        table
    }
}

/// A value of JSON: numbers in full, null for an unknown value.
pub fn json_cell(cell: &Cell) -> Value {
    match cell {
        Cell::Text(text) | Cell::Name(text) => json!(text),
        Cell::Bytes(number) | Cell::Count(number) => json!(number),
        Cell::ByteChange(number) | Cell::Change(number) => json!(number),
        Cell::Number(number, _) => json!(number),
        Cell::Percent(percent) => json!(percent),
        Cell::Empty => Value::Null,
    }
}

/// A cell of a text table: sizes in KiB unless `in_bytes`, whole percent, a sign before a change,
/// a dash for an unknown value.
fn text_cell(cell: &Cell, in_bytes: bool) -> String {
    let divisor = if in_bytes { 1 } else { 1024 };
    match cell {
        Cell::Bytes(bytes) => (bytes / divisor).to_string(),
        Cell::ByteChange(bytes) => (bytes / divisor as i64).to_string(),
        Cell::Percent(Some(percent)) => (*percent as u64).to_string(),
        Cell::Percent(None) | Cell::Empty => "-".into(),
        Cell::Number(number, places) => format!("{number:.places$}"),
        Cell::Change(number) => format!("{number:+}"),
        other => csv::text(other),
    }
}
