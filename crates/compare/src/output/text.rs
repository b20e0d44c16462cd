//! The tables of the text, numbers as mmtests prints them: `%.*f (%7.2f%%)`. The percentage is against the
//! first result, above 0 if it is better. Stars stand around one that differs after Holm's correction.

use super::words::{name, title};
use crate::comparison::{Comparison, Row, Section};
use slablab_report::Answer;
use slablab_report::text::{Table, cut, width};
use slablab_report::visible;
use slablab_stats::table::Verdict;

/// The widest name of a result. One that is wider keeps its end, where paths differ.
const HEAD: usize = 22;

/// A table of each result beside the base. Rows stand below the name of their group, or begin with it if most
/// groups have one row.
pub(super) fn tables(answer: Answer, comparison: &Comparison, section: &Section) -> Answer {
    let groups: Vec<&[Row]> = section.rows.chunk_by(|a, b| a.group == b.group).collect();
    let others = 1..comparison.columns.len();
    if section.rows.len() < 2 * groups.len() {
        // A name that all rows have is said once.
        let alike = section.rows.windows(2).all(|pair| pair[0].name == pair[1].name);
        let (label, words) = match alike && section.rows.len() > 1 {
            true => {
                (group_of as fn(&Row) -> String, format!("{}: {}", title(section.role), section.rows[0].name))
            }
            false => (name as fn(&Row) -> String, title(section.role).to_string()),
        };
        let rows: Vec<(String, &Row)> = section.rows.iter().map(|row| (label(row), row)).collect();
        let answer = answer.heading(words);
        return others.fold(answer, |answer, other| answer.table(table(comparison, &rows, other), &[]));
    }
    groups.into_iter().fold(answer, |answer, group| {
        let words = match group[0].group.as_str() {
            "" => title(section.role).to_string(),
            group => format!("{}: {group}", title(section.role)),
        };
        let rows: Vec<(String, &Row)> = group.iter().map(|row| (row.name.clone(), row)).collect();
        let answer = answer.heading(words);
        others.clone().fold(answer, |answer, other| answer.table(table(comparison, &rows, other), &[]))
    })
}

fn group_of(row: &Row) -> String {
    row.group.clone()
}

/// Names, the base's numbers and another's. Names are cut to what the terminal leaves them.
fn table(comparison: &Comparison, rows: &[(String, &Row)], other: usize) -> Table {
    let heads = [0, other].map(|column| head(&comparison.columns[column]));
    let numbers: Vec<[String; 2]> = rows.iter().map(|(_, row)| numbers(row, other)).collect();
    let widest = |column: usize| {
        let cells = numbers.iter().map(|cells| &cells[column]).chain([&heads[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    // Each column has a blank on both sides.
    let room = width().saturating_sub(widest(0) + widest(1) + 6).max(HEAD);
    let mut table = Table::new(std::iter::once(String::new()).chain(heads.clone()));
    for ((name, _), numbers) in rows.iter().zip(numbers) {
        table.row(std::iter::once(cut(name, room)).chain(numbers));
    }
    table
}

fn head(name: &str) -> String {
    let name = visible::name(name).into_owned();
    let count = name.chars().count();
    match count > HEAD {
        true => std::iter::once('~').chain(name.chars().skip(count - (HEAD - 1))).collect(),
        false => name,
    }
}

/// The base's number and another's.
fn numbers(row: &Row, other: usize) -> [String; 2] {
    let pair = &row.pairs[other - 1];
    let told = matches!(pair.verdict, Verdict::Better | Verdict::Worse);
    [(0, Some(0.0), false), (other, pair.gain_percent, told)].map(|(side, gain, stars)| {
        let (open, close) = if stars { ('*', '*') } else { ('(', ')') };
        row.sides[side]
            .map_or("-".into(), |of| format!("{:.*} {open}{}%{close}", row.decimals, of.value, percent(gain)))
    })
}

/// A percentage in seven characters, as many decimals as fit.
fn percent(gain: Option<f64>) -> String {
    match gain {
        None => format!("{:>7}", "-"),
        Some(gain) if gain.abs() < 999.995 => format!("{:7.2}", gain + 0.0),
        Some(gain) if gain.abs() < 999_999.5 => format!("{gain:7.0}"),
        Some(gain) => format!("{gain:7.0e}"),
    }
}
