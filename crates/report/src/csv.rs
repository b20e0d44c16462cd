//! CSV: a header, and rows of as many cells.
//!
//! Control characters become escapes ([`crate::visible`]). A cell that a spreadsheet would take for a
//! formula, because it begins with `=`, `+`, `-` or `@` and is neither a number nor a dash alone, gets an
//! apostrophe in front; so does a cell that begins with an apostrophe, so that `removeprefix("'")` gives
//! every name back.

use crate::visible;
use std::borrow::Cow;

/// A CSV file in memory.
pub struct Csv(csv::Writer<Vec<u8>>);

impl Csv {
    /// A file with its header.
    pub fn new<S: AsRef<str>>(header: impl IntoIterator<Item = S>) -> Csv {
        let mut csv = Csv(csv::Writer::from_writer(Vec::new()));
        csv.row(header);
        csv
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of cells than the header.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        for cell in cells {
            self.0.write_field(&*safe(cell.as_ref())).expect("writing to memory");
        }
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

/// The cell as a spreadsheet may read it.
fn safe(cell: &str) -> Cow<'_, str> {
    let text = visible::name(cell);
    let formula = text.starts_with(['=', '+', '-', '@']) && text != "-" && text.parse::<f64>().is_err();
    if formula || text.starts_with('\'') {
        return Cow::Owned(format!("'{text}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_no_formulas() {
        let cases = [
            ("kmalloc-64", "kmalloc-64"),
            ("=cmd|/C+calc!A1", "'=cmd|/C+calc!A1"),
            ("+1-1", "'+1-1"),
            ("@SUM(1)", "'@SUM(1)"),
            ("-x", "'-x"),
            ("-12.5", "-12.5"),
            ("-", "-"),
            ("'=1", "''=1"),
            ("a,\"b\u{1b}", "\"a,\"\"b\\x1b\""),
            ("", ""),
        ];
        for (cell, expected) in cases {
            let mut csv = Csv::new(["name", "n"]);
            csv.row([cell, "1"]);
            assert_eq!(csv.finish(), format!("name,n\n{expected},1\n"));
        }
    }
}
