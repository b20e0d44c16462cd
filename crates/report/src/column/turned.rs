//! Turned tables: a line for each column, the rows side by side; what differs between the rows.

use super::{Column, Columns};
use crate::html::{self, Cell, Head};
use crate::style::{Style, text_cell};
use crate::text;

impl<R> Columns<R> {
    /// The columns that a turned table of `rows` has.
    fn titled(&self, rows: &[Option<R>]) -> impl Iterator<Item = &Column<R>> {
        let says = |column: &&Column<R>| rows.iter().flatten().any(|row| column.says(row));
        self.0.iter().filter(|column| !column.title.is_empty()).filter(says)
    }

    /// A turned text table: a line per title, and the rows side by side under `heads`, of which the first is
    /// that of the titles. A row that is not there has a dash in each line.
    pub fn text_rows(
        &self,
        heads: impl IntoIterator<Item = String>,
        rows: &[Option<R>],
        style: Style,
    ) -> text::Table {
        self.turned(heads, rows, style, |_| None)
    }

    /// As [`Columns::text_rows`], and as the last column the change from the first row to the last: percent
    /// of an amount, points of a percentage.
    pub fn text_rows_and_change(
        &self,
        heads: impl IntoIterator<Item = String>,
        rows: &[Option<R>],
        style: Style,
    ) -> text::Table {
        let value = |column: &Column<R>, row: Option<&Option<R>>| {
            row.and_then(Option::as_ref).map_or(Cell::Empty, |row| column.cell(row))
        };
        self.turned(heads, rows, style, |column| {
            Some(change(&value(column, rows.first()), &value(column, rows.last())))
        })
    }

    fn turned(
        &self,
        heads: impl IntoIterator<Item = String>,
        rows: &[Option<R>],
        style: Style,
        last: impl Fn(&Column<R>) -> Option<String>,
    ) -> text::Table {
        let mut table = text::Table::new(heads);
        for column in self.titled(rows) {
            let cell = |row: &Option<R>| match (&column.get, row) {
                (None, _) => String::new(),
                (Some(get), row) => text_cell(&row.as_ref().map_or(Cell::Empty, get), style),
            };
            let cells = std::iter::once(column.title.to_string()).chain(rows.iter().map(cell));
            table.row(cells.chain(last(column)));
        }
        table
    }

    /// A turned table for a page, as [`Columns::text_rows`].
    pub fn html_rows(&self, heads: impl IntoIterator<Item = Head>, rows: &[Option<R>]) -> html::Table {
        let mut table = html::Table::new(heads);
        for column in self.titled(rows) {
            let name = column.title.trim_start();
            let title = Cell::Text("\u{2003}".repeat((column.title.len() - name.len()) / 2) + name);
            let cell = |row: &Option<R>| row.as_ref().map_or(Cell::Empty, |row| column.cell(row));
            let cells = rows.iter().filter(|_| column.get.is_some()).map(cell);
            table.row(std::iter::once(title).chain(cells));
        }
        table
    }

    /// The columns for a turned table of what differs between `rows`: those whose cells are the same in all
    /// of them are taken out, unless one below them differs. They are returned in words: the titles above
    /// one, its own, and the value.
    pub fn differing(mut self, rows: &[Option<R>], style: Style) -> (Columns<R>, Vec<String>) {
        if rows.len() < 2 || rows.iter().any(Option::is_none) {
            return (self, Vec::new());
        }
        let differs = |column: &Column<R>| column.get.is_some() && column.value_in(rows, style).is_none();
        let is_kept = |at: usize| {
            let column = &self.0[at];
            let titled = self.0[at + 1..].iter().filter(|column| !column.title.is_empty());
            let mut below = titled.take_while(|below| below.level() > column.level());
            column.title.is_empty() || differs(column) || below.any(differs)
        };
        let mut kept = (0..self.0.len()).map(is_kept).collect::<Vec<bool>>().into_iter();
        let (mut above, mut same) = (Vec::new(), Vec::new());
        self.0.retain(|column| {
            let is_kept = kept.next().expect("one for each column");
            if !column.title.is_empty() {
                above.truncate(column.level());
                above.push(column.title.trim_start().to_string());
            }
            let says = rows.iter().flatten().any(|row| column.says(row));
            if let Some(value) = column.value_in(rows, style).filter(|_| says && !is_kept) {
                same.push(format!("{} {value}", above.join(" ")));
            }
            is_kept
        });
        (self, same)
    }

    /// What differs between the first row and the last, in the columns' order: a title in words, and both
    /// cells.
    pub fn differences(&self, rows: &[Option<R>], style: Style) -> Vec<(String, [String; 2])> {
        let ends = rows.first().and_then(Option::as_ref).zip(rows.last().and_then(Option::as_ref));
        let Some((first, last)) = ends else { return Vec::new() };
        let (mut above, mut found) = (Vec::new(), Vec::new());
        for column in self.0.iter().filter(|column| !column.title.is_empty()) {
            above.truncate(column.level());
            above.push(column.title.trim_start());
            let Some(get) = &column.get else { continue };
            let cells = [first, last].map(|row| text_cell(&get(row), style));
            if cells[0] != cells[1] {
                found.push((above.join(" "), cells));
            }
        }
        found
    }
}

impl<R> Column<R> {
    /// How far in its title stands.
    fn level(&self) -> usize {
        (self.title.len() - self.title.trim_start().len()) / 2
    }

    /// Its cell as text, if that is the same in all `rows`.
    fn value_in(&self, rows: &[Option<R>], style: Style) -> Option<String> {
        let get = self.get.as_ref()?;
        let mut cells = rows.iter().flatten().map(|row| text_cell(&get(row), style));
        let first = cells.next()?;
        cells.all(|cell| cell == first).then_some(first)
    }
}

/// The change from one cell to another in words; empty for cells that are no amounts.
fn change(from: &Cell, to: &Cell) -> String {
    match (from, to) {
        (Cell::Bytes(from) | Cell::Count(from), Cell::Bytes(to) | Cell::Count(to)) => match (*from, *to) {
            (from, to) if from == to => "0.0 %".into(),
            (0, _) => "from 0".into(),
            (from, to) => format!("{:+.1} %", (to as f64 / from as f64 - 1.0) * 100.0),
        },
        (Cell::Percent(Some(from)), Cell::Percent(Some(to))) => format!("{:+.1} points", to - from),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_of_amounts() {
        let check = |from: Cell, to: Cell, expected: &str| assert_eq!(change(&from, &to), expected);
        check(Cell::Count(1904), Cell::Count(1263), "-33.7 %");
        check(Cell::Bytes(4096), Cell::Bytes(8192), "+100.0 %");
        check(Cell::Count(0), Cell::Count(3), "from 0");
        check(Cell::Count(0), Cell::Count(0), "0.0 %");
        check(Cell::Percent(Some(87.5)), Cell::Percent(Some(99.9)), "+12.4 points");
        check(Cell::Percent(None), Cell::Percent(Some(99.9)), "");
        check(Cell::Text("slabs".into()), Cell::Text("off".into()), "");
        let columns = Columns::<u64>::default().key("all", |number| Cell::Count(*number)).title("slabs");
        let heads = ["", "a", "b", "change"].map(String::from);
        let table = columns.text_rows_and_change(heads, &[Some(100), Some(150)], Style::Units);
        assert_eq!(table.to_text(), "          a    b   change\n slabs  100  150  +50.0 %\n");
    }

    #[test]
    fn a_turned_table_has_the_titles_that_say_something() {
        let columns = Columns::<u64>::default()
            .key("all", |number| Cell::Count(*number))
            .title("all")
            .heading("parts")
            .key("even", |number| Cell::Count(*number / 2))
            .title("  even")
            .when(|number| number.is_multiple_of(2))
            .key("never", |_| Cell::Empty)
            .title("  never")
            .when(|_| false)
            .key("untitled", |_| Cell::Empty);
        let heads = ["", "one", "two", "none"];
        let text =
            columns.text_rows(heads.map(String::from), &[Some(7), Some(4), None], Style::Units).print();
        let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected =
            [&["one", "two", "none"][..], &["all", "7", "4", "-"], &["parts"], &["even", "3", "2", "-"]];
        assert_eq!(cells, expected, "{text}");
        let page = columns.html_rows(heads.map(Head::number), &[Some(7), Some(4), None]);
        assert_eq!(page.rows[1], [Cell::Text("parts".into())]);
        assert_eq!(page.rows[2][0], Cell::Text("\u{2003}even".into()));
        assert_eq!(columns.json(&7).keys().collect::<Vec<_>>(), ["all", "untitled"]);
    }

    #[test]
    fn columns_whose_cells_are_the_same_become_words() {
        type Row = (u64, u64);
        let columns = || {
            Columns::<Row>::default()
                .key("name", |_: &Row| Cell::Empty)
                .row("allocations", "allocs", |_| Cell::Count(9))
                .row("  fast", "fast", |row| Cell::Count(row.0))
                .row("  large", "large", |_| Cell::Count(2))
                .heading("memory")
                .row("  start", "start", |_| Cell::Count(1000))
                .row("  nothing", "nothing", |_| Cell::Count(0))
                .when(|_| false)
                .row("end", "end", |row| Cell::Count(row.1))
        };
        let check = |rows: &[Option<Row>], titles: &[&str], words: &[&str]| {
            let (columns, same) = columns().differing(rows, Style::Grouped);
            let heads = std::iter::once(String::new()).chain(rows.iter().map(|_| "engine".into()));
            let text = columns.text_rows(heads, rows, Style::Grouped).to_text();
            let found: Vec<&str> =
                text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
            assert_eq!(found, titles, "{text}");
            assert_eq!(same, words, "{text}");
        };
        let all = ["allocations", "fast", "large", "memory", "start", "end"];
        check(
            &[Some((1, 2)), Some((3, 4))],
            &["allocations", "fast", "end"],
            &["allocations large 2", "memory start 1,000"],
        );
        check(
            &[Some((1, 2)), Some((1, 4))],
            &["end"],
            &["allocations 9", "allocations fast 1", "allocations large 2", "memory start 1,000"],
        );
        check(&[Some((1, 2))], &all, &[]);
        check(&[Some((1, 2)), None], &all, &[]);
    }
}
