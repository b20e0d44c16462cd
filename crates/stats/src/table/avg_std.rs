//! The tables of Nick Piggin's mail of 16 January 2009 ("Re: Mainline kernel OLTP performance update"), read
//! and printed:
//!
//! ```text
//! hackbench (10 runs, lower better):
//! SLAB AVG=1.34 STD=0.05
//! SLQB AVG=1.31 STD=0.06
//! ```
//!
//! A title that ends with the number of runs and the better direction begins a group of blocks; a block is a
//! row of the table; a line before a block that is no such title is the title of this block.

use super::{Better, Cell, Row, Table};
use crate::sample::Moments;
use std::fmt::Write;

/// How numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// A fixed number of decimals, as with `%.2f`.
    Decimals(usize),
    /// At most this many significant digits, as with `%.6g`, which is what awk prints.
    Significant(usize),
}

/// The line of one column: `SLAB AVG=13.19 STD=0.40`.
pub fn line(name: &str, moments: &Moments, digits: Digits) -> String {
    let number = |value: f64| match digits {
        Digits::Decimals(decimals) => format!("{value:.decimals$}"),
        Digits::Significant(digits) => significant(value, digits.max(1)),
    };
    format!("{name} AVG={} STD={}", number(moments.mean()), number(moments.sd()))
}

/// A number as C's `%.{digits}g` prints it.
fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("the format of {:e}");
    let exponent: i32 = exponent.parse().expect("the format of {:e}");
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent) as usize;
    without_zeros(&format!("{value:.decimals$}"))
}

/// The blocks of a table, one for each row, with the row's name, runs and direction as its title. A cell
/// without a number says why.
pub fn print(table: &Table, digits: Digits) -> String {
    let mut out = String::new();
    for row in table.rows() {
        let better = match row.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        };
        let mut runs: Vec<usize> = row.cells.iter().filter_map(Cell::moments).map(|m| m.n()).collect();
        runs.sort_unstable();
        let runs = match (runs.first(), runs.last()) {
            (Some(least), Some(most)) if least == most => format!("{most} runs, "),
            (Some(least), Some(most)) => format!("{least} to {most} runs, "),
            _ => String::new(),
        };
        writeln!(out, "{} ({runs}{better} better):", row.name).expect("a string");
        for (name, cell) in table.columns().iter().zip(&row.cells) {
            let text = match cell {
                Cell::Nothing(why) => format!("{name} {why}"),
                cell => line(name, &cell.moments().expect("a cell with a number"), digits),
            };
            writeln!(out, "{text}").expect("a string");
        }
        out.push('\n');
    }
    out
}

/// What is wrong with a mail, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Wrong {
    /// The line, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub what: String,
}

/// Reads the blocks of a mail as rows of one table. A row's name is the title of its group, with the block's
/// own title or its number in the group. Other lines of the mail are skipped.
///
/// # Errors
/// If a line with `AVG=` is malformed or stands under no title, or a block has other columns than the first.
pub fn read(mail: &str) -> Result<Table, Wrong> {
    let mut reader = Reader { table: None, group: None, title: None, block: Vec::new() };
    let mut last = 0;
    for (number, line) in (1..).zip(mail.lines()) {
        reader.line(line.trim(), number)?;
        last = number;
    }
    reader.end_block(last)?;
    reader
        .table
        .ok_or_else(|| Wrong { line: last, what: "no line `NAME AVG=mean STD=deviation`".to_string() })
}

struct Reader {
    table: Option<Table>,
    group: Option<Group>,
    /// The last line that was neither empty nor a number.
    title: Option<String>,
    block: Vec<(String, Moments)>,
}

struct Group {
    name: String,
    runs: usize,
    better: Better,
    blocks: usize,
}

impl Reader {
    fn line(&mut self, line: &str, number: usize) -> Result<(), Wrong> {
        if line.contains(" AVG=") {
            let Some(group) = &self.group else {
                let what = "expected a title before it, such as `hackbench (10 runs, lower better):`";
                return Err(Wrong { line: number, what: what.to_string() });
            };
            self.block.push(measured(line, group.runs).map_err(|what| Wrong { line: number, what })?);
            return Ok(());
        }
        self.end_block(number)?;
        if let Some(group) = group(line) {
            (self.group, self.title) = (Some(group), None);
        } else if !line.is_empty() {
            self.title = Some(line.to_string());
        }
        Ok(())
    }

    fn end_block(&mut self, line: usize) -> Result<(), Wrong> {
        let Some(group) = self.group.as_mut().filter(|_| !self.block.is_empty()) else { return Ok(()) };
        group.blocks += 1;
        let name = match self.title.take() {
            Some(title) => format!("{}: {title}", group.name),
            None => format!("{} {}", group.name, group.blocks),
        };
        let (columns, moments): (Vec<String>, Vec<Moments>) = self.block.drain(..).unzip();
        let table = self.table.get_or_insert_with(|| Table::new(columns.clone()));
        if table.columns() != columns {
            let what =
                format!("the block before it has the columns {columns:?}: expected {:?}", table.columns());
            return Err(Wrong { line, what });
        }
        let cells = moments.into_iter().map(Cell::Moments).collect();
        let row = Row { name, better: group.better, cells };
        table.row(row).map_err(|error| Wrong { line, what: error.to_string() })
    }
}

/// A title `name (10 runs, lower better):`.
fn group(line: &str) -> Option<Group> {
    let (name, rest) = line.trim_end_matches(':').strip_suffix(" better)")?.rsplit_once(" (")?;
    let (runs, better) = rest.split_once(" runs, ")?;
    let better = match better {
        "lower" => Better::Lower,
        "higher" => Better::Higher,
        _ => return None,
    };
    Some(Group { name: name.to_string(), runs: runs.parse().ok()?, better, blocks: 0 })
}

/// A line `SLAB AVG=13.19 STD=0.40`.
fn measured(line: &str, runs: usize) -> Result<(String, Moments), String> {
    let expected = || format!("{line:?}: expected `NAME AVG=mean STD=deviation`");
    let (name, numbers) = line.split_once(" AVG=").ok_or_else(expected)?;
    let (mean, sd) = numbers.split_once(" STD=").ok_or_else(expected)?;
    let number = |text: &str| text.parse::<f64>().map_err(|_| expected());
    let moments = Moments::new(runs, number(mean)?, number(sd)?).map_err(|error| error.to_string())?;
    Ok((name.to_string(), moments))
}
