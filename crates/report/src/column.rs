//! The columns of an answer, each written once: its key for programs, its heads for people, and how a row's
//! cell is got.
//!
//! ```text
//! Columns ── csv, frame     a file; typed columns
//!    ├────── json           an object per row
//!    ├────── text           a table of 80 columns   ┐ of the columns picked by key
//!    ├────── html           a table of a page       ┘
//!    ├────── text_rows      ┐ the table turned: a line per column that has a title,
//!    └────── html_rows      ┘ the rows side by side
//! ```

mod turned;

use crate::frame::Frame;
use crate::html::{self, Cell, Head};
pub use crate::style::Style;
use crate::style::text_cell;
use crate::text;
use serde_json::{Map, Value, json};
use std::borrow::{Borrow, Cow};
use std::collections::BTreeSet;

/// A column.
pub struct Column<R> {
    /// Its name in CSV and JSON, with the unit.
    pub key: Cow<'static, str>,
    /// Its head in a text table.
    short: Cow<'static, str>,
    /// Its head on a page.
    head: Cow<'static, str>,
    /// Its name where the table is turned, behind two blanks for each level; empty if it is not there.
    title: Cow<'static, str>,
    /// The unit in its head on a page; empty if the cells carry it or there is none.
    unit: &'static str,
    /// Whether its cells are sizes in bytes: a text table shows KiB unless it is asked for bytes.
    bytes: bool,
    /// Whether its cells are words, which a page aligns to the left.
    words: bool,
    /// Whether CSV has it. A column that neither CSV nor JSON has is rounded for people, or falls back to
    /// another value.
    csv: bool,
    /// Whether JSON has it.
    json: bool,
    /// Whether the column says something of a row: otherwise JSON does not have it, nor a turned table if it
    /// says nothing of any row.
    when: Option<Get<R, bool>>,
    /// `None` for a heading over titles.
    get: Option<Get<R, Cell>>,
    /// Whether a cell may be empty, which is null in JSON.
    unknown: bool,
    /// Its description in a JSON Schema; empty where the key says it.
    described: &'static str,
}

type Get<R, T> = Box<dyn Fn(&R) -> T>;

/// The columns of an answer, in the order of its CSV.
pub struct Columns<R>(Vec<Column<R>>);

/// The first column of a table for people: its head, and a row's label.
pub type Label<'a, R> = (&'a str, &'a dyn Fn(&R) -> Cell);

impl<R> Default for Columns<R> {
    fn default() -> Columns<R> {
        Columns(Vec::new())
    }
}

impl<R> Columns<R> {
    /// Adds a column for programs alone.
    pub fn key(self, key: impl Into<Cow<'static, str>>, get: impl Fn(&R) -> Cell + 'static) -> Columns<R> {
        self.add(key, "", "", get)
    }

    /// Adds a column for programs that has `title` as its name in a turned table, behind two blanks for each
    /// level.
    pub fn row(
        self,
        title: impl Into<Cow<'static, str>>,
        key: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Cell + 'static,
    ) -> Columns<R> {
        self.key(key, get).title(title)
    }

    /// Adds a column for all formats: `short` is its head in text tables, `head` on pages.
    pub fn add(
        self,
        key: impl Into<Cow<'static, str>>,
        short: impl Into<Cow<'static, str>>,
        head: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Cell + 'static,
    ) -> Columns<R> {
        self.push([key.into(), short.into(), head.into()], Some(Box::new(get)))
    }

    /// Adds a column for people alone, as [`Columns::add`].
    pub fn people(
        self,
        key: impl Into<Cow<'static, str>>,
        short: impl Into<Cow<'static, str>>,
        head: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Cell + 'static,
    ) -> Columns<R> {
        self.add(key, short, head, get).last(|column| (column.csv, column.json) = (false, false))
    }

    /// Adds a heading over the titles below it.
    pub fn heading(self, title: &'static str) -> Columns<R> {
        self.push([const { Cow::Borrowed("") }; 3], None).json_alone().csv_alone().title(title)
    }

    fn push(mut self, [key, short, head]: [Cow<'static, str>; 3], get: Option<Get<R, Cell>>) -> Columns<R> {
        self.0.push(Column {
            key,
            short,
            head,
            title: "".into(),
            unit: "",
            bytes: false,
            words: false,
            csv: true,
            json: true,
            when: None,
            get,
            unknown: false,
            described: "",
        });
        self
    }

    /// The column added last has this name in a turned table, behind two blanks for each level.
    pub fn title(self, title: impl Into<Cow<'static, str>>) -> Columns<R> {
        let title = title.into();
        self.last(|column| column.title = title)
    }

    /// The column added last says something of a row only if `when` says so. CSV has it all the same.
    pub fn when(self, when: impl Fn(&R) -> bool + 'static) -> Columns<R> {
        self.last(|column| column.when = Some(Box::new(when)))
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
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.in_csv().map(|column| &*column.key)
    }

    /// A row of CSV.
    pub fn cells(&self, row: &R) -> impl Iterator<Item = Cell> {
        self.in_csv().map(|column| column.cell(row))
    }

    /// A CSV file.
    pub fn csv(&self, rows: impl IntoIterator<Item: Borrow<R>>) -> String {
        self.frame(rows).csv()
    }

    /// The rows for programs, with the columns of CSV.
    pub fn frame(&self, rows: impl IntoIterator<Item: Borrow<R>>) -> Frame {
        let mut frame = Frame::new(self.keys());
        rows.into_iter().for_each(|row| frame.row(self.cells(row.borrow())));
        frame
    }

    /// A row as an object of JSON. An unknown value is null.
    pub fn json(&self, row: &R) -> Map<String, Value> {
        let columns = self.0.iter().filter(|column| column.json && column.says(row));
        columns.map(|column| (column.key.to_string(), json_cell(&column.cell(row)))).collect()
    }

    /// The JSON Schema of [`Columns::json`], with the types of the cells that `example` has; an empty one is
    /// of a column that may have any.
    pub fn schema(&self, example: &R) -> Value {
        self.schema_of(std::slice::from_ref(example))
    }

    /// A text table of the columns with these keys.
    ///
    /// # Panics
    /// If a key is no column's.
    pub fn text<'r>(
        &self,
        label: Label<'_, R>,
        keys: &[&str],
        rows: impl IntoIterator<Item = &'r R>,
        style: Style,
    ) -> text::Table
    where
        R: 'r,
    {
        let picked = self.pick(keys);
        let head = |column: &&Column<R>| {
            format!("{}{}", column.short, if column.bytes && style == Style::Kib { " K" } else { "" })
        };
        let mut table = text::Table::new(std::iter::once(label.0.to_string()).chain(picked.iter().map(head)));
        for row in rows {
            let cells = std::iter::once((label.1)(row)).chain(picked.iter().map(|column| column.cell(row)));
            table.row(cells.map(|cell| text_cell(&cell, style)));
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
        let head = |column: &Column<R>| if column.words { Head::text } else { Head::number }(&column.head);
        let heads = picked.iter().map(|column| head(column).unit(column.unit));
        let mut table = html::Table::new(std::iter::once(Head::text(label.0)).chain(heads));
        for row in rows {
            let cells = picked.iter().map(|column| column.cell(row));
            table.row(std::iter::once((label.1)(row)).chain(cells));
        }
        table
    }

    /// The JSON Schema of [`Columns::json`], with the types of the cells that `examples` have: null is among
    /// them where one of the examples has an empty cell.
    pub fn schema_of(&self, examples: &[R]) -> Value {
        let members = self.0.iter().filter(|column| column.json);
        let properties: Map<String, Value> =
            members.clone().map(|column| (column.key.to_string(), column.schema(examples))).collect();
        let required: Vec<&str> =
            members.filter(|column| column.when.is_none()).map(|column| &*column.key).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    /// The column added last may be unknown: its cell is empty, and null in JSON.
    pub fn or_unknown(self) -> Columns<R> {
        self.last(|column| column.unknown = true)
    }

    /// The column added last has this description in a JSON Schema.
    pub fn described(self, words: &'static str) -> Columns<R> {
        self.last(|column| column.described = words)
    }
}

impl<R> Column<R> {
    fn schema(&self, examples: &[R]) -> Value {
        let cells = examples.iter().flat_map(|example| cell_types(&self.cell(example))).copied();
        let unknown = (self.unknown && !examples.is_empty()).then_some("null");
        let types: BTreeSet<&str> = cells.chain(unknown).collect();
        let types: Vec<&str> = types.into_iter().collect();
        let mut schema = match types[..] {
            [] | ["null"] => json!({}),
            [one] => json!({ "type": one }),
            _ => json!({ "type": types }),
        };
        if !self.described.is_empty() {
            schema["description"] = self.described.into();
        }
        schema
    }

    fn cell(&self, row: &R) -> Cell {
        self.get.as_ref().map_or(Cell::Empty, |get| get(row))
    }

    fn says(&self, row: &R) -> bool {
        self.when.as_ref().is_none_or(|when| when(row))
    }
}

/// A value of JSON: numbers in full, null for an unknown value.
pub fn json_cell(cell: &Cell) -> Value {
    match cell {
        Cell::Text(text) | Cell::Name(text) => json!(text),
        Cell::Bytes(number) | Cell::Count(number) => json!(number),
        Cell::ByteChange(number) | Cell::Change(number) | Cell::Part { rounded: number, .. } => json!(number),
        Cell::Number(number, _) => json!(number),
        Cell::Percent(percent) => json!(percent),
        Cell::Empty => Value::Null,
    }
}

/// The types of JSON of what [`json_cell`] makes of a cell like this one.
fn cell_types(cell: &Cell) -> &'static [&'static str] {
    match cell {
        Cell::Text(_) | Cell::Name(_) => &["string"],
        Cell::Bytes(_) | Cell::Count(_) | Cell::ByteChange(_) | Cell::Change(_) | Cell::Part { .. } => {
            &["integer"]
        }
        Cell::Number(..) => &["number"],
        Cell::Percent(_) => &["null", "number"],
        Cell::Empty => &["null"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_has_the_types_of_its_examples() {
        let columns = Columns::<Option<u64>>::default()
            .key("bytes", |bytes| bytes.map_or(Cell::Empty, Cell::Bytes))
            .key("percent", |bytes| Cell::Percent(bytes.map(|bytes| bytes as f64)))
            .key("never", |_| Cell::Empty)
            .key("even", |_| Cell::Text("even".into()))
            .when(|bytes| bytes.is_some_and(|bytes| bytes.is_multiple_of(2)));
        let check = |examples: &[Option<u64>], bytes: Value| {
            let schema = columns.schema_of(examples);
            let expected = json!({
                "bytes": bytes,
                "percent": { "type": ["null", "number"] },
                "never": {},
                "even": { "type": "string" },
            });
            assert_eq!(schema["properties"], expected, "{examples:?}");
            assert_eq!(schema["required"], json!(["bytes", "percent", "never"]), "{examples:?}");
        };
        check(&[Some(1)], json!({ "type": "integer" }));
        check(&[Some(1), None], json!({ "type": ["integer", "null"] }));
        assert_eq!(columns.schema(&Some(1)), columns.schema_of(&[Some(1)]));
    }

    #[test]
    fn a_schema_has_types_and_descriptions() {
        let columns = Columns::<u64>::default()
            .key("slabs", |slabs| Cell::Count(*slabs))
            .key("age_s", |slabs| Cell::Number(*slabs as f64, 1))
            .or_unknown()
            .described("Since the allocation.")
            .key("any", |_| Cell::Empty)
            .when(|slabs| *slabs > 9);
        let properties = json!({
            "slabs": { "type": "integer" },
            "age_s": { "type": ["null", "number"], "description": "Since the allocation." },
            "any": {},
        });
        let schema = columns.schema(&3);
        assert_eq!((&schema["properties"], &schema["required"]), (&properties, &json!(["slabs", "age_s"])));
    }
}
