//! CSV: a header, and rows with a cell for each of its keys.
//!
//! Control characters become escapes ([`crate::visible`]). A name from an input ([`Cell::Name`]) may begin
//! with `=`, `+`, `-` or `@`, by which a spreadsheet takes it for a formula. Such a name gets an apostrophe
//! in front, and so does a name that begins with an apostrophe, so that `removeprefix("'")` gives every name
//! back. Other cells never get one: a number below zero stays a number.

use crate::html::Cell;
use crate::visible;
use std::borrow::Cow;

/// A CSV file in memory.
pub struct Csv(csv::Writer<Vec<u8>>);

impl Csv {
    /// A file with its header, the keys of its columns.
    pub fn new<S: AsRef<str>>(header: impl IntoIterator<Item = S>) -> Csv {
        let mut csv = Csv(csv::Writer::from_writer(Vec::new()));
        csv.fields(header.into_iter().map(|key| visible::name(key.as_ref()).into_owned()));
        csv
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of cells than the header.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.fields(cells.into_iter().map(|cell| match &cell {
            Cell::Name(name) => no_formula(name).into_owned(),
            cell => visible::name(&text(cell)).into_owned(),
        }));
    }

    fn fields(&mut self, fields: impl Iterator<Item = String>) {
        fields.for_each(|field| self.0.write_field(field).expect("writing to memory"));
        self.0.write_record(None::<&[u8]>).expect("a row has as many cells as the header");
    }

    /// The file as text.
    ///
    /// # Panics
    /// Never: cells are UTF-8.
    pub fn finish(self) -> String {
        String::from_utf8(self.0.into_inner().expect("writing to memory")).expect("cells are UTF-8")
    }
}

/// A cell as text: numbers in full, percentages with three places, nothing for an unknown value.
pub(crate) fn text(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) | Cell::Name(text) => text.clone(),
        Cell::Bytes(number) | Cell::Count(number) => number.to_string(),
        Cell::ByteChange(number) | Cell::Change(number) | Cell::Part { rounded: number, .. } => {
            number.to_string()
        }
        Cell::Number(number, _) => number.to_string(),
        Cell::Percent(Some(percent)) => format!("{percent:.3}"),
        Cell::Percent(None) | Cell::Empty => String::new(),
    }
}

/// A name that no spreadsheet computes.
fn no_formula(name: &str) -> Cow<'_, str> {
    let name = visible::name(name);
    if name != "-" && name.starts_with(['=', '+', '-', '@', '\'']) {
        return Cow::Owned(format!("'{name}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cell: Cell, expected: &str) {
        let mut csv = Csv::new(["name", "n"]);
        csv.row([cell, Cell::Count(1)]);
        assert_eq!(csv.finish(), format!("name,n\n{expected},1\n"));
    }

    #[test]
    fn names_are_no_formulas() {
        let cases = [
            ("kmalloc-64", "kmalloc-64"),
            ("=cmd|/C+calc!A1", "'=cmd|/C+calc!A1"),
            ("+1-1", "'+1-1"),
            ("@SUM(1)", "'@SUM(1)"),
            ("-x", "'-x"),
            ("-12.5", "'-12.5"),
            ("-", "-"),
            ("'=1", "''=1"),
            ("a,\"b\u{1b}", "\"a,\"\"b\\x1b\""),
            ("", ""),
        ];
        for (name, expected) in cases {
            check(Cell::Name(name.into()), expected);
        }
    }

    #[test]
    fn numbers_and_our_own_texts_stay_as_they_are() {
        let cases = [
            (Cell::Change(-12), "-12"),
            (Cell::ByteChange(-4096), "-4096"),
            (Cell::Number(-0.5, 1), "-0.5"),
            (Cell::Percent(Some(-1.5)), "-1.500"),
            (Cell::Text("+12 objects".into()), "+12 objects"),
            (Cell::Text("\u{1b}".into()), "\\x1b"),
            (Cell::Empty, ""),
        ];
        for (cell, expected) in cases {
            check(cell, expected);
        }
    }
}
