//! The rows of an answer for programs: CSV, or one typed list of values for each column.
//!
//! A column's type follows from its cells: words, whole numbers, or numbers with a fraction. Whole numbers
//! are signed, so that a reader can subtract two of them.

use crate::csv::Csv;
use crate::html::Cell;
use std::borrow::Cow;

/// Rows of cells under the keys of their columns.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    keys: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// The values of a column. `None` is an unknown value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Words.
    Texts(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers with a fraction, and columns that mix both kinds of numbers.
    Fractions(Vec<Option<f64>>),
    /// So many unknown values: nothing tells the type.
    Unknown(usize),
}

impl Frame {
    /// No rows yet, under these keys.
    pub fn new<'a>(keys: impl IntoIterator<Item = impl Into<Cow<'a, str>>>) -> Frame {
        Frame { keys: keys.into_iter().map(|key| key.into().into_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of cells than there are keys.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.keys.len(), "a cell for each of {:?}", self.keys);
        self.rows.push(cells);
    }

    /// The keys.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A CSV file.
    pub fn csv(self) -> String {
        let mut file = Csv::new(self.keys);
        self.rows.into_iter().for_each(|row| file.row(row));
        file.finish()
    }

    /// The columns, each with its key.
    pub fn columns(&self) -> impl Iterator<Item = (&str, Values)> {
        self.keys.iter().enumerate().map(|(at, key)| {
            let cells = || self.rows.iter().map(move |row| &row[at]);
            let kind = cells().map(kind).max().unwrap_or(Kind::Unknown);
            let values = match kind {
                Kind::Unknown => Values::Unknown(self.rows.len()),
                Kind::Whole => Values::Whole(cells().map(whole).collect()),
                Kind::Fraction => Values::Fractions(cells().map(fraction).collect()),
                Kind::Text => Values::Texts(cells().map(text).collect()),
            };
            (key.as_str(), values)
        })
    }
}

/// What a cell can be a part of; a later kind holds the earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Unknown,
    Whole,
    Fraction,
    Text,
}

fn kind(cell: &Cell) -> Kind {
    match cell {
        Cell::Empty => Kind::Unknown,
        Cell::Bytes(_) | Cell::Count(_) | Cell::ByteChange(_) | Cell::Change(_) | Cell::Part { .. } => {
            Kind::Whole
        }
        Cell::Number(..) | Cell::Percent(_) => Kind::Fraction,
        Cell::Text(_) | Cell::Name(_) => Kind::Text,
    }
}

/// Counts and sizes beyond the largest signed number are of no machine: the largest stands for them.
fn whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Bytes(number) | Cell::Count(number) => Some(i64::try_from(*number).unwrap_or(i64::MAX)),
        Cell::ByteChange(number) | Cell::Change(number) | Cell::Part { rounded: number, .. } => Some(*number),
        _ => None,
    }
}

fn fraction(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(number, _) => Some(*number),
        Cell::Percent(percent) => *percent,
        cell => whole(cell).map(|number| number as f64),
    }
}

fn text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Empty => None,
        cell => Some(crate::csv::text(cell)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cells: &[Cell], expected: Values) {
        let mut frame = Frame::new(["n", "key"]);
        cells.iter().for_each(|cell| frame.row([Cell::Count(1), cell.clone()]));
        let found: Vec<(&str, Values)> = frame.columns().collect();
        assert_eq!(found[1], ("key", expected), "{cells:?}");
        assert_eq!(frame.csv().lines().count(), 1 + cells.len());
    }

    #[test]
    fn a_column_has_the_type_of_its_cells() {
        let name = |text: &str| Cell::Name(text.into());
        check(&[], Values::Unknown(0));
        check(&[Cell::Empty, Cell::Empty], Values::Unknown(2));
        check(
            &[Cell::Bytes(7), Cell::Change(-3), Cell::Empty, Cell::Count(u64::MAX)],
            Values::Whole(vec![Some(7), Some(-3), None, Some(i64::MAX)]),
        );
        check(
            &[Cell::Count(2), Cell::Number(0.5, 1), Cell::Percent(None)],
            Values::Fractions(vec![Some(2.0), Some(0.5), None]),
        );
        // A name has no apostrophe in front here: only spreadsheets compute.
        check(&[name("=1"), Cell::Empty], Values::Texts(vec![Some("=1".into()), None]));
    }
}
