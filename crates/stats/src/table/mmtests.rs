//! The table that mmtests' `compare-kernels.sh` prints:
//!
//! ```text
//!                     6.7.0                  6.8.0
//!                   vanilla                patched
//! Amean     1        1.2727 (   0.00%)      1.2450 *   2.18%*
//! Amean     296    108.6893 (   0.00%)    108.0870 (   0.56%)
//! ```
//!
//! A mean of times is arithmetic (`Amean`), one of rates harmonic (`Hmean`), or arithmetic where the values
//! of the runs are not known. A percentage above 0 is an improvement. Stars stand around the percentage of a
//! mean that differs from the base's.
//!
//! Widths, in the printf of mmtests: `%-9s %-*s` for the statistic and the row, then `%12.*f (%7.2f%%)` for
//! each column, and heads right-aligned over these 23 characters.

use super::{Better, Cell, Pairs, Row, Rules, Table, Test, Verdict, gain_percent};
use crate::sample::Sample;
use std::fmt::Write;

/// Characters of a number, and of a number with its percentage.
const NUMBER: usize = 12;
const COLUMN: usize = NUMBER + 11;
/// Characters of the statistic's name with its blank, and the fewest of a row's name.
const STATISTIC: usize = 10;
const NAME_MIN: usize = 12;

/// Which means get stars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stars {
    /// As mmtests: Welch's test of each mean alone at 5 %. Of 20 rows without a difference, one gets stars.
    EachRow,
    /// Holm's correction over the table.
    Holm,
}

/// The rows that mmtests prints of each quantity, by their names there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest value.
    Min,
    /// The mean: `Amean` or `Hmean`.
    Mean,
    /// The standard deviation.
    Stddev,
    /// The standard deviation in percent of the arithmetic mean.
    CoeffVar,
    /// The largest value.
    Max,
}

/// A number from which on two decimals touch the column before.
const WIDE: f64 = 1e8;
/// Most decimals that a column has room for.
const MOST_DECIMALS: usize = 9;

/// How the table is printed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decimals of the numbers: mmtests prints 4 for hackbench, 2 for most others. A row with a number below
    /// 0.1, of which they would leave one figure or none, has as many as give it three; one with a number
    /// from 100 million on has none.
    pub decimals: usize,
    /// The statistics, each for all rows before the next.
    pub statistics: Vec<Statistic>,
    /// Which means get stars.
    pub stars: Stars,
    /// The widest line: 72 for a mail. Columns that do not fit follow in further blocks, each beside the base
    /// again. A block has at least two columns, even if they are wider. mmtests never wraps.
    pub wrap: Option<usize>,
}

impl Default for Options {
    /// Means with 2 decimals, mmtests' stars, no wrapping.
    fn default() -> Options {
        Options { decimals: 2, statistics: vec![Statistic::Mean], stars: Stars::EachRow, wrap: None }
    }
}

/// Prints a table. A name that is wider than its column is a letter there, and stands above the table. Where
/// lines are wrapped, a row's name has several of them if it leaves no room for two columns.
pub fn print(table: &Table, options: &Options) -> String {
    let (legend, table) = &lettered(table);
    let rows: Vec<Line> = options
        .statistics
        .iter()
        .flat_map(|statistic| table.rows().iter().map(|row| Line::new(*statistic, row)))
        .collect();
    let starred = starred(table, options.stars);
    let widest = table.rows().iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let room =
        options.wrap.map_or(usize::MAX, |wrap| wrap.saturating_sub(STATISTIC + 2 * COLUMN).max(NAME_MIN));
    let widest = widest.min(room);
    let label = STATISTIC + widest;
    let fit = options.wrap.map_or(usize::MAX, |wrap| wrap.saturating_sub(label) / COLUMN).max(2);
    let others: Vec<usize> = (1..table.columns().len()).collect();
    let mut blocks: Vec<Vec<usize>> = others.chunks(fit - 1).map(|part| [&[0], part].concat()).collect();
    if others.is_empty() && !table.columns().is_empty() {
        blocks.push(vec![0]);
    }
    let mut printed = Vec::new();
    for columns in blocks {
        let mut out = heads(table, &columns, label);
        for (at, line) in rows.iter().enumerate() {
            let mut parts = folded(line.name, widest).into_iter();
            write!(out, "{:<9} {:<widest$}", line.statistic, parts.next().unwrap_or_default())
                .expect("a string");
            for column in &columns {
                let stars = line.is_mean && starred.contains(&(at % table.rows().len(), *column));
                out += &line.cell(*column, line.decimals(options.decimals), stars);
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
            parts.for_each(|part| writeln!(out, "{:<9} {part}", "").expect("a string"));
        }
        printed.push(out);
    }
    legend.clone() + &printed.join("\n")
}

/// The names that are wider than a column, each with its letter; and the table with letters for all names.
fn lettered(table: &Table) -> (String, Table) {
    let is_wide = |name: &String| {
        let (release, rest) = release(name);
        release.chars().count().max(rest.chars().count()) >= COLUMN
    };
    let names = table.columns();
    if names.len() > 26 || !names.iter().any(is_wide) {
        return (String::new(), table.clone());
    }
    let letters = || ('A'..='Z').map(String::from).take(names.len());
    let legend = letters().zip(names).map(|(letter, name)| format!("{letter}: {name}\n")).collect::<String>();
    let mut short = Table::new(letters());
    for row in table.rows() {
        short.row(row.clone()).expect("as many cells as before");
    }
    (legend + "\n", short)
}

/// A name in parts of at most `widest` characters, broken at blanks where it has some.
fn folded(name: &str, widest: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in name.split(' ') {
        let chars: Vec<char> = word.chars().collect();
        match parts.last_mut() {
            Some(last) if last.chars().count() + 1 + chars.len() <= widest => {
                last.push(' ');
                last.push_str(word);
            }
            _ => parts.extend(chars.chunks(widest.max(1)).map(String::from_iter)),
        }
    }
    parts
}

/// The heads of these columns. A name that begins with a kernel's release has it in a line of its own.
fn heads(table: &Table, columns: &[usize], label: usize) -> String {
    let split: Vec<(&str, &str)> = columns.iter().map(|column| release(&table.columns()[*column])).collect();
    let line = |part: fn(&(&str, &str)) -> String| {
        let cells: String = split.iter().map(|head| format!(" {:>1$}", part(head), COLUMN - 1)).collect();
        format!("{}{cells}\n", " ".repeat(label))
    };
    let releases =
        if split.iter().all(|head| head.0.is_empty()) { String::new() } else { line(|h| h.0.into()) };
    releases + &line(|head| head.1.into())
}

/// `5.16.0-rc1-vanilla` as `5.16.0-rc1` and `vanilla`. The release is empty if the name begins with none.
fn release(name: &str) -> (&str, &str) {
    let digits_and_dots =
        |part: &str| part.contains('.') && part.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_candidate = |part: &str| {
        part.strip_prefix("rc")
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
    };
    let Some((version, rest)) = name.split_once('-').filter(|(version, _)| digits_and_dots(version)) else {
        return ("", name);
    };
    match rest.split_once('-').filter(|(candidate, _)| is_candidate(candidate)) {
        Some((candidate, rest)) => (&name[..version.len() + 1 + candidate.len()], rest),
        None => (version, rest),
    }
}

/// Rows and columns whose mean differs from the base's.
fn starred(table: &Table, stars: Stars) -> Vec<(usize, usize)> {
    let rules = Rules { pairs: Pairs::WithFirst, test: Test::Welch, ..Rules::default() };
    let pairs = table.compare(rules);
    let differs = |pair: &&super::Pair| match stars {
        Stars::EachRow => pair.p.is_some_and(|p| p <= rules.significance),
        Stars::Holm => matches!(pair.verdict, Verdict::Better | Verdict::Worse),
    };
    pairs.iter().filter(differs).map(|pair| (pair.row, pair.other)).collect()
}

/// A statistic of one row.
struct Line<'a> {
    statistic: &'static str,
    is_mean: bool,
    name: &'a str,
    /// Which values of the statistic are better: less scatter always is.
    /// Whether it is a number of the row itself, not of its scatter.
    is_of_unit: bool,
    better: Better,
    /// The statistic of each column, or why there is none.
    values: Vec<Result<f64, &'a str>>,
}

impl<'a> Line<'a> {
    fn new(statistic: Statistic, row: &'a Row) -> Line<'a> {
        let harmonic = row.better == Better::Higher && row.cells.iter().all(has_harmonic_mean);
        let name = match statistic {
            Statistic::Min => "Min",
            Statistic::Mean if harmonic => "Hmean",
            Statistic::Mean => "Amean",
            Statistic::Stddev => "Stddev",
            Statistic::CoeffVar => "CoeffVar",
            Statistic::Max => "Max",
        };
        let scatter = matches!(statistic, Statistic::Stddev | Statistic::CoeffVar);
        Line {
            statistic: name,
            is_mean: statistic == Statistic::Mean,
            is_of_unit: !scatter,
            name: &row.name,
            better: if scatter { Better::Lower } else { row.better },
            values: row.cells.iter().map(|cell| value(statistic, harmonic, cell)).collect(),
        }
    }

    /// As many decimals, or those that show three figures of the smallest number, or none if the largest
    /// fills its column with them.
    fn decimals(&self, least: usize) -> usize {
        let numbers = || self.values.iter().filter_map(|value| value.as_ref().ok()).map(|value| value.abs());
        let smallest = numbers().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        match self.is_of_unit {
            true if numbers().fold(0.0, f64::max) >= WIDE => 0,
            true if smallest < 0.1 => least.max((-smallest.log10()).ceil() as usize + 2).min(MOST_DECIMALS),
            _ => least,
        }
    }

    /// The number of a column and its percentage, in 23 characters.
    fn cell(&self, column: usize, decimals: usize, stars: bool) -> String {
        let value = match self.values[column] {
            Ok(value) => value,
            Err(why) => return format!(" {why:>width$}", width = COLUMN - 1),
        };
        let gain = self.values[0].ok().and_then(|base| gain_percent(self.better, base, value));
        let percent = gain.map_or_else(|| format!("{:>7}", "-"), |gain| format!("{gain:7.2}"));
        let (open, close) = if stars { ('*', '*') } else { ('(', ')') };
        format!("{value:NUMBER$.decimals$} {open}{percent}%{close}")
    }
}

fn has_harmonic_mean(cell: &Cell) -> bool {
    match cell {
        Cell::Runs(sample) => sample.harmonic_mean().is_some(),
        Cell::Moments(_) => false,
        Cell::Nothing(_) => true,
    }
}

fn value(statistic: Statistic, harmonic: bool, cell: &Cell) -> Result<f64, &str> {
    let moments = match cell {
        Cell::Nothing(why) => return Err(why),
        cell => cell.moments().expect("a cell with a number"),
    };
    let of_runs = |of: fn(&Sample) -> f64| cell.runs().map(of).ok_or("runs not given");
    match statistic {
        Statistic::Min => of_runs(Sample::min),
        Statistic::Max => of_runs(Sample::max),
        Statistic::Mean if harmonic => of_runs(|sample| sample.harmonic_mean().unwrap_or(sample.mean())),
        Statistic::Mean => Ok(moments.mean()),
        Statistic::Stddev => Ok(moments.sd()),
        Statistic::CoeffVar if moments.mean() == 0.0 => Ok(0.0),
        Statistic::CoeffVar => Ok(moments.sd() * 100.0 / moments.mean()),
    }
}
