//! Text for a terminal: tables, paragraphs, grouped numbers.

use crate::visible;
use comfy_table::{CellAlignment, presets};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A table. Unless [`Table::numbers`] says otherwise, every column but the first holds numbers.
pub struct Table {
    header: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    /// Columns that are aligned to the right.
    numbers: Range<usize>,
}

impl Table {
    /// A table with its header.
    pub fn new<S: AsRef<str>>(header: impl IntoIterator<Item = S>) -> Table {
        Table { header: Some(visible_cells(header)), ..Table::headless() }
    }

    /// A table without a header.
    pub fn headless() -> Table {
        Table { header: None, rows: Vec::new(), numbers: 1..usize::MAX }
    }

    /// The table with numbers, which are aligned to the right, in these columns alone.
    pub fn numbers(mut self, columns: Range<usize>) -> Table {
        self.numbers = columns;
        self
    }

    /// Adds a row.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(visible_cells(cells));
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, without blanks at line ends, so that it survives mail.
    pub fn print(self) -> String {
        self.to_text()
    }

    /// [`Table::print`] of a table that is still needed.
    pub fn to_text(&self) -> String {
        let all: Vec<usize> = (0..self.columns()).collect();
        self.block(&all)
    }

    /// The table as text in lines of at most `width` characters: while it is wider, the column with the next
    /// head of `order` is left out. The line below names the columns that were left out.
    pub fn fitted(&self, width: usize, order: &[&str]) -> String {
        let head =
            |column: usize| self.header.as_ref().and_then(|heads| heads.get(column)).map(String::as_str);
        let mut columns: Vec<usize> = (0..self.columns()).collect();
        let mut left_out = Vec::new();
        let mut order = order.iter();
        loop {
            let text = self.block(&columns);
            let is_wide = text.lines().any(|line| line.chars().count() > width);
            let next = if is_wide { order.next() } else { None };
            let Some(next) = next else {
                return match left_out.is_empty() {
                    true => text,
                    false => {
                        text + &wrapped(&format!("Not shown: {} (--wide).", left_out.join(", ")), "", "  ")
                    }
                };
            };
            let before = columns.len();
            columns.retain(|column| head(*column) != Some(*next));
            if columns.len() < before {
                left_out.push(*next);
            }
        }
    }

    /// The table as text in lines of at most `width` characters: columns that do not fit follow in further
    /// blocks, each beside the first column again. A block of two columns may be wider.
    pub fn print_within(self, width: usize) -> String {
        let fits = |text: &str| text.lines().all(|line| line.chars().count() <= width);
        let mut blocks = Vec::new();
        let mut columns = vec![0];
        for column in 1..self.columns() {
            columns.push(column);
            if columns.len() > 2 && !fits(&self.block(&columns)) {
                columns.pop();
                blocks.push(self.block(&columns));
                columns = vec![0, column];
            }
        }
        blocks.push(self.block(&columns));
        blocks.join("\n")
    }

    /// The table in Markdown. A table without a header gets an empty one, which Markdown needs.
    pub fn markdown(self) -> String {
        let columns = self.columns();
        let line = |cells: &[String]| {
            let cell = |at: usize| cells.get(at).map_or(String::new(), |cell| in_markdown(cell));
            (0..columns).map(|column| format!("| {} ", cell(column))).collect::<String>() + "|\n"
        };
        let rule = |column| if self.numbers.contains(&column) { "|---:" } else { "|---" };
        let rules = (0..columns).map(rule).collect::<String>() + "|\n";
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(self.header.as_deref().unwrap_or(&[])) + &rules + &rows
    }

    fn columns(&self) -> usize {
        self.header.iter().chain(&self.rows).map(Vec::len).max().unwrap_or(0)
    }

    /// These columns as text.
    fn block(&self, columns: &[usize]) -> String {
        let pick = |cells: &Vec<String>| -> Vec<String> {
            columns.iter().filter_map(|column| cells.get(*column).cloned()).collect()
        };
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        if let Some(header) = &self.header {
            table.set_header(pick(header));
        }
        self.rows.iter().for_each(|row| {
            table.add_row(pick(row));
        });
        for (column, shown) in columns.iter().zip(table.column_iter_mut()) {
            if self.numbers.contains(column) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
    }
}

/// A cell of a table in Markdown: characters that Markdown or HTML would act on are escaped.
fn in_markdown(cell: &str) -> String {
    let mut out = String::with_capacity(cell.len());
    for char in cell.chars() {
        match char {
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' => out.extend(['\\', char]),
            char => out.push(char),
        }
    }
    out
}

fn visible_cells<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> Vec<String> {
    cells.into_iter().map(|cell| visible::name(cell.as_ref()).into_owned()).collect()
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

/// Columns that [`wrapped`] keeps to.
static WIDTH: AtomicUsize = AtomicUsize::new(80);

/// Sets the columns that [`wrapped`] keeps to: those of the terminal that shows the text. Without it they are
/// 80, so that a file has the same text whatever terminal it was written from.
pub fn set_width(columns: usize) {
    WIDTH.store(columns, Relaxed);
}

/// The columns that [`wrapped`] keeps to.
pub fn width() -> usize {
    WIDTH.load(Relaxed)
}

/// Text in lines of at most [`width`] columns: the first begins with `first`, the others with `others`.
pub fn wrapped(text: &str, first: &str, others: &str) -> String {
    wrapped_within(width(), text, first, others)
}

/// Text in lines of at most `width` columns: the first begins with `first`, the others with `others`. A word
/// that is wider has a line of its own.
pub fn wrapped_within(width: usize, text: &str, first: &str, others: &str) -> String {
    let mut out = String::new();
    let mut line = String::from(first);
    let mut empty = true;
    for word in text.split_whitespace().map(visible::name) {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["cache", "slabs", "objects", "what"]).numbers(1..3);
        table.row(["kmalloc-64", "12", "768", "small|things"]);
        table.row(["dentry", "3", "63", "<names>_*"]);
        table
    }

    #[test]
    fn columns_that_do_not_fit_follow_in_blocks() {
        let whole = " cache       slabs  objects  what
 kmalloc-64     12      768  small|things
 dentry          3       63  <names>_*
";
        let halves = " cache       slabs  objects
 kmalloc-64     12      768
 dentry          3       63

 cache       what
 kmalloc-64  small|things
 dentry      <names>_*
";
        let columns = " cache       slabs
 kmalloc-64     12
 dentry          3

 cache       objects
 kmalloc-64      768
 dentry           63

 cache       what
 kmalloc-64  small|things
 dentry      <names>_*
";
        assert_eq!(table().print(), whole);
        for (width, expected) in [(80, whole), (41, whole), (40, halves), (27, halves), (1, columns)] {
            assert_eq!(table().print_within(width), expected, "{width} characters");
        }
    }

    #[test]
    fn columns_are_left_out_in_their_order() {
        let check = |width, expected: &str| {
            assert_eq!(table().fitted(width, &["objects", "slabs"]), expected, "{width} characters");
        };
        check(41, &table().to_text());
        let one =
            " cache       slabs  what\n kmalloc-64     12  small|things\n dentry          3  <names>_*\n";
        check(40, &format!("{one}Not shown: objects (--wide).\n"));
        let two = " cache       what\n kmalloc-64  small|things\n dentry      <names>_*\n";
        check(30, &format!("{two}Not shown: objects, slabs (--wide).\n"));
        // Nothing else may go.
        check(1, &format!("{two}Not shown: objects, slabs (--wide).\n"));
    }

    #[test]
    fn markdown_is_not_acted_on() {
        let expected = "| cache | slabs | objects | what |
|---|---:|---:|---|
| kmalloc-64 | 12 | 768 | small\\|things |
| dentry | 3 | 63 | \\<names\\>\\_\\* |
";
        assert_eq!(table().markdown(), expected);
        let mut headless = Table::headless();
        headless.row(["a", "1"]);
        assert_eq!(headless.markdown(), "|  |  |\n|---|---:|\n| a | 1 |\n");
    }
}
