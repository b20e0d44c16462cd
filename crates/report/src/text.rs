//! Text for a terminal: tables, paragraphs, grouped numbers.

use crate::visible;
use comfy_table::{CellAlignment, presets};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A table. Unless [`Table::numbers`] says otherwise, every column but the first holds numbers.
pub struct Table {
    header: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    /// Columns that are aligned to the right.
    numbers: Range<usize>,
    /// The column whose cells may be cut, and the characters that are left of them at least.
    cut: Option<(usize, usize)>,
    /// Whether long heads are broken into lines.
    heads_in_lines: bool,
    /// Columns whose heads are names, which letters may stand for.
    names: Range<usize>,
}

/// Characters from which a head is broken into lines, if it may be.
const LONG_HEAD: usize = 20;
/// Characters from which a name of what is compared becomes a letter, where the table is too wide.
const LONG_NAME: usize = 14;

impl Table {
    /// A table with its header.
    pub fn new<S: AsRef<str>>(header: impl IntoIterator<Item = S>) -> Table {
        Table { header: Some(visible_cells(header)), ..Table::headless() }
    }

    /// A table without a header.
    pub fn headless() -> Table {
        Table {
            header: None,
            rows: Vec::new(),
            numbers: 1..usize::MAX,
            cut: None,
            heads_in_lines: false,
            names: 0..0,
        }
    }

    /// The table with numbers, which are aligned to the right, in these columns alone.
    pub fn numbers(mut self, columns: Range<usize>) -> Table {
        self.numbers = columns;
        self
    }

    /// The table with a column whose cells [`Table::fitted`] cuts before it leaves a column out: a cell that
    /// is cut ends with a `~`, and `least` characters of it are left at least.
    pub fn cut(mut self, column: usize, least: usize) -> Table {
        self.cut = Some((column, least));
        self
    }

    /// The table with heads that are names of engines: in text, a long one has a line for each of its knobs.
    pub fn heads_in_lines(mut self) -> Table {
        self.heads_in_lines = true;
        self
    }

    /// The table with heads that are names of what is compared, in these columns: if the table is too wide
    /// with a long one, [`Table::fitted`] puts letters in their places, and the names above the table.
    pub fn names(mut self, columns: Range<usize>) -> Table {
        self.names = columns;
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
        self.block(&all, usize::MAX)
    }

    /// The table as text in lines of at most `width` characters: while it is wider, the column with the next
    /// head of `order` is left out. What does not fit even so follows in further blocks, each beside the
    /// first column again. The line below names the columns that were left out.
    pub fn fitted(&self, width: usize, order: &[&str]) -> String {
        let mut columns: Vec<usize> = (0..self.columns()).collect();
        let mut text = self.cut_to(width, &columns);
        if fits(&text, width) {
            return text;
        }
        if let Some((legend, table)) = self.lettered() {
            let lines = legend.iter().map(|line| wrapped_within(width, line, " ", "    "));
            return lines.chain([table.fitted(width, order)]).collect();
        }
        let folded = self.folded(width);
        let table = if self.cut.is_some() { self } else { &folded };
        text = table.cut_to(width, &columns);
        let head = |column: usize| self.header.as_ref().and_then(|heads| heads.get(column));
        let mut left_out = Vec::new();
        for next in order {
            if fits(&text, width) {
                break;
            }
            let before = columns.len();
            columns.retain(|column| head(*column).is_none_or(|head| head != next));
            left_out.extend((columns.len() < before).then_some(*next));
            text = table.cut_to(width, &columns);
        }
        if !fits(&text, width) {
            text = table.blocks(&columns, width);
        }
        match left_out.is_empty() {
            true => text,
            false => {
                let line = format!("Not shown: {} (--wide).", left_out.join(", "));
                text + &wrapped_within(width, &line, "", "  ")
            }
        }
    }

    /// The table with letters for the names of its columns, and what each stands for; `None` if no name is
    /// long.
    fn lettered(&self) -> Option<(Vec<String>, Table)> {
        let mut header = self.header.clone()?;
        let names = header.get_mut(self.names.clone())?;
        let is_long = names.iter().any(|name| name.chars().count() >= LONG_NAME);
        let letters = ('A'..='Z').take(names.len());
        let legend: Vec<String> = letters
            .zip(names.iter_mut())
            .map(|(letter, name)| format!("{letter}: {}", std::mem::replace(name, letter.to_string())))
            .collect();
        let of = || Table {
            header: Some(header),
            rows: self.rows.clone(),
            numbers: self.numbers.clone(),
            cut: self.cut,
            heads_in_lines: self.heads_in_lines,
            names: 0..0,
        };
        (is_long && legend.len() == self.names.len()).then(|| (legend, of()))
    }

    /// These columns as text; if they are wider than `width`, with cells that are cut as far as they may be.
    fn cut_to(&self, width: usize, columns: &[usize]) -> String {
        let text = self.block(columns, usize::MAX);
        let over = widest_line(&text).saturating_sub(width);
        match self.cut.filter(|(column, _)| over > 0 && columns.contains(column)) {
            None => text,
            Some((column, least)) => {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
                self.block(columns, widest.saturating_sub(over).max(least))
            }
        }
    }

    /// The table as text in lines of at most `width` characters: columns that do not fit follow in further
    /// blocks, each beside the first column again. Names and heads wider than half of `width` are folded. A
    /// block of two columns may be wider.
    pub fn print_within(&self, width: usize) -> String {
        self.fitted(width, &[])
    }

    /// The table with first cells and heads that are wider than half of `width` in several lines, broken at
    /// blanks and after commas.
    fn folded(&self, width: usize) -> Table {
        let widest = (width / 2).max(NAME_MIN);
        let row = |row: &Vec<String>| {
            let mut row = row.clone();
            row.iter_mut().take(1).for_each(|cell| *cell = folded(cell, widest));
            row
        };
        let heads = |heads: &Vec<String>| heads.iter().map(|head| folded(head, widest)).collect();
        Table {
            header: self.header.as_ref().map(heads),
            rows: self.rows.iter().map(row).collect(),
            numbers: self.numbers.clone(),
            cut: None,
            heads_in_lines: self.heads_in_lines,
            names: 0..0,
        }
    }

    /// These columns in as many blocks as keep to `width`.
    fn blocks(&self, wanted: &[usize], width: usize) -> String {
        let widest = self.cut.map_or(usize::MAX, |(_, least)| least);
        let Some((first, others)) = wanted.split_first() else { return self.block(wanted, widest) };
        let mut blocks = Vec::new();
        let mut columns = vec![*first];
        for column in others {
            columns.push(*column);
            if columns.len() > 2 && !fits(&self.block(&columns, widest), width) {
                columns.pop();
                blocks.push(self.block(&columns, widest));
                columns = vec![*first, *column];
            }
        }
        blocks.push(self.block(&columns, widest));
        blocks.join("\n")
    }

    /// The table in Markdown. A table without a header gets an empty one, which Markdown needs.
    pub fn markdown(&self) -> String {
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

    /// These columns as text, with at most `widest` characters in the cells that may be cut.
    fn block(&self, columns: &[usize], widest: usize) -> String {
        let pick = |cells: &Vec<String>| -> Vec<String> {
            columns.iter().filter_map(|column| cells.get(*column).cloned()).collect()
        };
        let is_cut = |column: usize| self.cut.is_some_and(|(cut, _)| cut == column);
        let shown = |cells: &Vec<String>| -> Vec<String> {
            let cell = |column: &usize| {
                let cell = cells.get(*column)?;
                Some(if is_cut(*column) { cut(cell, widest) } else { cell.clone() })
            };
            columns.iter().filter_map(cell).collect()
        };
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        if let Some(header) = &self.header {
            let in_lines = |head: String| match self.heads_in_lines && head.chars().count() >= LONG_HEAD {
                true => head.replace('\n', "").replace(',', ",\n"),
                false => head,
            };
            table.set_header(pick(header).into_iter().map(in_lines));
        }
        self.rows.iter().for_each(|row| {
            table.add_row(shown(row));
        });
        for (column, shown) in columns.iter().zip(table.column_iter_mut()) {
            if self.numbers.contains(column) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
    }
}

/// The narrowest column of names that is folded.
const NAME_MIN: usize = 24;

fn fits(text: &str, width: usize) -> bool {
    widest_line(text) <= width
}

fn widest_line(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// A cell in lines of at most `widest` characters, broken at blanks and after commas.
fn folded(cell: &str, widest: usize) -> String {
    let mut lines = vec![String::new()];
    for piece in cell.split_inclusive([' ', ',']) {
        let line = lines.last_mut().expect("there is a line");
        let is_full = line.chars().count() + piece.trim_end().chars().count() > widest;
        match is_full && !line.trim().is_empty() {
            true => lines.push(piece.into()),
            false => *line += piece,
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
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

/// A number of things: `1 row`, `1,234 rows`. `one` is the word for one thing. The word for several ends with
/// an `s`; with `ies` behind a consonant's `y`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {}", grouped(number), plural(number, one))
}

/// The word for so many things, of the word for one.
pub fn plural(number: u64, one: &str) -> Cow<'_, str> {
    let is_vowel = |char: char| "aeiou".contains(char);
    match one.strip_suffix('y').filter(|stem| !stem.ends_with(is_vowel)) {
        _ if number == 1 => one.into(),
        Some(stem) => format!("{stem}ies").into(),
        None if one.ends_with('s') || one.ends_with("ch") => format!("{one}es").into(),
        None => format!("{one}s").into(),
    }
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
    fn things_are_counted() {
        let check = |number, one, expected: &str| assert_eq!(counted(number, one), expected);
        check(0, "row", "0 rows");
        check(1, "row", "1 row");
        check(1, "entry", "1 entry");
        check(12_345, "entry", "12,345 entries");
        check(2, "day", "2 days");
        check(2, "class", "2 classes");
        check(2, "batch", "2 batches");
        check(1000, "free object", "1,000 free objects");
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
        check(30, &format!("{two}Not shown: objects, slabs\n  (--wide).\n"));
        // Nothing else may go.
        check(1, &format!("{two}Not\n  shown:\n  objects,\n  slabs\n  (--wide).\n"));
    }

    #[test]
    fn letters_stand_for_long_names() {
        let mut table =
            Table::new(["", "linux:tree.4b825dc642cb@7.2.13", "linux:mine.1a2b3c4d@7.2.13", "change"]);
        table.row(["slabs taken", "1,904", "1,263", "-33.7 %"]);
        let table = table.names(1..3);
        let expected = " A: linux:tree.4b825dc642cb@7.2.13
 B: linux:mine.1a2b3c4d@7.2.13
                  A      B   change
 slabs taken  1,904  1,263  -33.7 %
";
        assert_eq!(table.fitted(72, &[]), expected);
        assert_eq!(table.fitted(90, &[]), table.to_text(), "there is room for the names");
        assert!(!table.names(0..0).fitted(72, &[]).contains("A:"));
    }

    #[test]
    fn long_names_are_folded() {
        let mut table = Table::new(["", "slub@7.0,sheaf_capacity=32,max_order=0", "of"]);
        table.row(["vm=vm@2.4.9-ac15+aging disk=ide-7200 buffer_ms=3000", "1.25", "2"]);
        let expected = "                                  slub@7.0,  of
                         sheaf_capacity=32,
                                max_order=0
 vm=vm@2.4.9-ac15+aging                1.25   2
 disk=ide-7200
 buffer_ms=3000
";
        assert_eq!(table.print_within(52), expected, "\n{}", table.print_within(52));
    }

    #[test]
    fn names_are_cut_before_columns_are_left_out() {
        let mut names = Table::new(["cache", "slabs", "objects"]).cut(0, 8);
        names.row(["kmalloc-rnd-15-1k", "12", "768"]);
        names.row(["dentry", "3", "63"]);
        let check =
            |width, expected: &str| assert_eq!(names.fitted(width, &["objects"]), expected, "{width}");
        check(35, &names.to_text());
        check(
            30,
            " cache          slabs  objects\n kmalloc-rnd-~     12      768\n dentry             3       63\n",
        );
        let one = " cache            slabs\n kmalloc-rnd-15~     12\n dentry               3\n";
        check(23, &format!("{one}Not shown: objects\n  (--wide).\n"));
        let least = " cache     slabs\n kmalloc~     12\n dentry        3\n";
        check(10, &format!("{least}Not shown:\n  objects\n  (--wide).\n"));
        // No column may be left out: they follow in blocks.
        let blocks = format!("{least}\n cache     objects\n kmalloc~      768\n dentry         63\n");
        assert_eq!(names.fitted(23, &[]), blocks);
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
