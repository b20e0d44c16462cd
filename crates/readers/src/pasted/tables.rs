//! Rows put together: blocks of a text become tables, and tables of the same caches snapshots.
//!
//! A block is rows of one kind without other lines between them. Blocks of different caches are parts of one
//! table, whose middle was left out, or whose heading a program repeats. Blocks of the same caches are
//! snapshots at different times if they are of similar length; else the shorter is an excerpt of the longer.
//! A block whose names repeat in the same order, as a loop around `grep` prints them, is several snapshots.

use super::row::Row;
use rustc_hash::FxHashSet;

/// What a table was printed by, the most complete first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// /proc/slabinfo.
    Slabinfo,
    /// `kmem -s` of crash.
    Crash,
    /// /proc/spl/kmem/slab: caches of SPL, beside those of the kernel.
    Spl,
    /// `vmstat -m`, or the first columns of /proc/slabinfo.
    Columns,
    /// slabtop.
    Slabtop,
    /// The table of unreclaimable caches of an OOM report.
    Oom,
    /// A list of names and sizes.
    Sizes,
}

/// The caches of a table at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The caches, in the text's order.
    pub rows: Vec<Row>,
}

impl Snapshot {
    /// The first and the last line in the text, from 1.
    pub fn lines(&self) -> (usize, usize) {
        let lines = || self.rows.iter().map(|row| row.line);
        (lines().min().unwrap_or(0), lines().max().unwrap_or(0))
    }
}

/// All snapshots of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it was printed by.
    pub kind: Kind,
    /// Oldest first, as in the text; one at least.
    pub snapshots: Vec<Snapshot>,
    /// Rows that repeat a few caches of a longer list, which are not used.
    pub excerpts: usize,
}

impl Table {
    /// The last snapshot.
    pub fn last(&self) -> &Snapshot {
        self.snapshots.last().expect("a table has a snapshot")
    }
}

/// Rows of one kind, without other lines between them.
pub(super) struct Block {
    pub(super) kind: Kind,
    pub(super) rows: Vec<Row>,
}

/// Most snapshots that are kept of a kind: the last ones.
const SNAPSHOTS: usize = 128;

/// Puts blocks together.
pub(super) fn tables(blocks: Vec<Block>) -> Vec<Table> {
    let mut gathered: Vec<Gathered> = Vec::new();
    for block in blocks {
        let at = gathered.iter().position(|table| table.table.kind == block.kind);
        let at = at.unwrap_or_else(|| {
            gathered.push(Gathered::new(block.kind));
            gathered.len() - 1
        });
        for rows in cycles(block.rows) {
            gathered[at].add(rows);
        }
    }
    let mut tables: Vec<Table> = gathered.into_iter().map(|table| table.table).collect();
    tables.sort_by_key(|table| table.kind);
    tables
}

/// Splits a block whose names repeat in the same order. The last part may be shorter.
fn cycles(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let period = rows.iter().skip(1).position(|row| row.name == rows[0].name).map_or(rows.len(), |at| at + 1);
    let repeats = rows.iter().zip(rows.iter().skip(period)).all(|(one, next)| one.name == next.name);
    if period == rows.len() || !repeats {
        return vec![rows];
    }
    let mut parts: Vec<Vec<Row>> = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        if at % period == 0 {
            parts.push(Vec::with_capacity(period));
        }
        parts.last_mut().expect("a part was begun").push(row);
    }
    parts
}

struct Gathered {
    table: Table,
    /// Names of the last snapshot.
    names: FxHashSet<String>,
}

impl Gathered {
    fn new(kind: Kind) -> Self {
        Gathered { table: Table { kind, snapshots: Vec::new(), excerpts: 0 }, names: FxHashSet::default() }
    }

    fn add(&mut self, rows: Vec<Row>) {
        let names: FxHashSet<String> = rows.iter().map(|row| row.name.clone()).collect();
        let both = names.iter().filter(|name| self.names.contains(*name)).count();
        let (known, new) = (self.names.len(), names.len());
        match self.table.snapshots.last_mut() {
            // Parts of one table.
            Some(last) if both * 2 < known.min(new).max(1) => {
                last.rows.extend(rows);
                self.names.extend(names);
            }
            Some(_) if new * 2 <= known => self.table.excerpts += rows.len(),
            Some(last) if known * 2 <= new => {
                self.table.excerpts += last.rows.len();
                (last.rows, self.names) = (rows, names);
            }
            // The same again is no new snapshot: a reply quotes what it answers.
            Some(last) if same_numbers(&last.rows, &rows) => self.table.excerpts += rows.len(),
            _ => {
                if self.table.snapshots.len() == SNAPSHOTS {
                    self.table.snapshots.remove(0);
                }
                self.table.snapshots.push(Snapshot { rows });
                self.names = names;
            }
        }
    }
}

fn same_numbers(one: &[Row], other: &[Row]) -> bool {
    let at_line_0 = |row: &Row| Row { line: 0, ..row.clone() };
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| at_line_0(a) == at_line_0(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and a number; a bar begins a new block.
    #[track_caller]
    fn check(text: &str, snapshots: &[&str], excerpts: usize) {
        let row = |word: &str| {
            let (name, total) = word.split_at(1);
            Row { name: name.into(), total: total.parse().ok(), ..Row::default() }
        };
        let blocks = text
            .split('|')
            .map(|block| Block { kind: Kind::Slabtop, rows: block.split_whitespace().map(row).collect() });
        let tables = tables(blocks.collect());
        let word = |row: &Row| format!("{}{}", row.name, row.total.unwrap());
        let found: Vec<String> = tables[0]
            .snapshots
            .iter()
            .map(|snapshot| snapshot.rows.iter().map(word).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            (found, tables[0].excerpts),
            (snapshots.iter().map(|text| text.to_string()).collect(), excerpts)
        );
    }

    #[test]
    fn blocks_become_parts_snapshots_and_excerpts() {
        check("a1 b2 c3", &["a1 b2 c3"], 0);
        // A cache may have the name of another.
        check("a1 b2 b3 c4", &["a1 b2 b3 c4"], 0);
        check("a1 b2 | c3 d4", &["a1 b2 c3 d4"], 0);
        check("a1 b2 c3 | a2 b3 c4", &["a1 b2 c3", "a2 b3 c4"], 0);
        check("a1 b2 c3 | b3", &["a1 b2 c3"], 1);
        check("b3 | a1 b2 c3", &["a1 b2 c3"], 1);
        check("a1 b2 | a1 b2", &["a1 b2"], 2);
        // A loop around grep.
        check("a1 a2 a3", &["a1", "a2", "a3"], 0);
        check("a1 b1 a2 b2 a3", &["a1 b1", "a2 b2"], 1);
    }
}
