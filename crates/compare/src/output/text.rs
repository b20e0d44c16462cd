//! Text for a mail: plain, at most 72 columns, numbers as mmtests prints them.
//!
//! A table's line is a name, then for each result `%12.*f (%7.2f%%)`. The percentage is against the first
//! result, above 0 if it is better. Stars stand around one that differs after Holm's correction.

use crate::answer::Role;
use crate::comparison::{Comparison, Row, Section};
use slablab_report::text::wrapped_within;
use slablab_report::visible;
use slablab_stats::table::Verdict;
use std::fmt::Write;

/// The widest line.
const WIDE: usize = 72;
/// Characters of a number, of a number with its percentage, and of a row's name.
const NUMBER: usize = 12;
const COLUMN: usize = NUMBER + 11;
const LABEL: usize = WIDE - 2 * COLUMN;

/// A comparison as text.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    let [base, others @ ..] = &comparison.columns[..] else { unreachable!("two or more results") };
    out += &line(&format!("{}: {} against {base}", comparison.kind.words, others.join(", ")), "");
    for caution in &comparison.cautions {
        out += &wrapped_within(WIDE, &format!("{caution}."), "caution: ", "  ");
    }
    out.push('\n');
    out += "what differs\n";
    if comparison.differs.is_empty() {
        out += "  nothing that the results say\n";
    }
    for (name, values) in &comparison.differs {
        out += &line(name, "  ");
        for (column, value) in comparison.columns.iter().zip(values) {
            out += &line(&format!("{column}: {}", value.as_deref().unwrap_or("not said")), "    ");
        }
    }
    let same: Vec<String> = comparison.same.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !same.is_empty() {
        out += &wrapped_within(WIDE, &same.join("; "), "the same: ", "  ");
    }
    if !comparison.unknown.is_empty() {
        out += &wrapped_within(WIDE, &comparison.unknown.join(", "), "not said: ", "  ");
    }
    for alone in &comparison.alone {
        out += &line(&format!("not compared: {alone}"), "");
    }
    for section in &comparison.sections {
        out.push('\n');
        out += &table(comparison, section);
        out += &line(&remark(comparison, section), "");
    }
    out
}

/// A paragraph.
fn line(text: &str, indent: &str) -> String {
    wrapped_within(WIDE, text, indent, &format!("{indent}  "))
}

/// What a table has, as a heading.
pub(super) fn title(role: Role) -> &'static str {
    match role {
        Role::Answer => "",
        Role::Detail => "what differs most",
        Role::Control => "controls: not slablab's code",
    }
}

/// A table, in blocks of two results: the base, and another.
fn table(comparison: &Comparison, section: &Section) -> String {
    let mut out = String::new();
    let title = title(section.role);
    if !title.is_empty() {
        writeln!(out, "{title}").expect("a string");
    }
    for other in 1..comparison.columns.len() {
        if other > 1 {
            out.push('\n');
        }
        out += &heads([&comparison.columns[0], &comparison.columns[other]]);
        let mut group = "";
        for row in &section.rows {
            if row.group != group {
                group = &row.group;
                out += &line(group, "");
            }
            out += &numbers(row, other);
        }
    }
    out
}

/// The names of two results, right-aligned over their numbers. A name that is too wide keeps its end, where
/// paths differ.
fn heads(names: [&str; 2]) -> String {
    let head = |name: &str| {
        let name = visible::name(name).into_owned();
        let count = name.chars().count();
        let shown: String = match count > COLUMN - 1 {
            true => std::iter::once('~').chain(name.chars().skip(count - (COLUMN - 2))).collect(),
            false => name,
        };
        format!(" {shown:>width$}", width = COLUMN - 1)
    };
    format!("{}{}{}\n", " ".repeat(LABEL), head(names[0]), head(names[1]))
}

/// A row: its name, the base's number and another's. A name that is too wide has a line of its own.
fn numbers(row: &Row, other: usize) -> String {
    let name = visible::name(&row.name);
    let (mut out, label) = match name.chars().count() > LABEL {
        true => (line(&name, ""), String::new()),
        false => (String::new(), name.into_owned()),
    };
    write!(out, "{label:<LABEL$}").expect("a string");
    let pair = &row.pairs[other - 1];
    let told = matches!(pair.verdict, Verdict::Better | Verdict::Worse);
    for (side, gain, stars) in [(0, Some(0.0), false), (other, pair.gain_percent, told)] {
        match row.sides[side] {
            None => write!(out, " {:>width$}", "-", width = COLUMN - 1),
            Some(of) => {
                let percent = percent(gain);
                let (open, close) = if stars { ('*', '*') } else { ('(', ')') };
                let decimals = row.decimals;
                write!(out, "{:NUMBER$.decimals$} {open}{percent}%{close}", of.value)
            }
        }
        .expect("a string");
    }
    out.truncate(out.trim_end().len());
    out + "\n"
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

/// The sentence below a table.
pub(super) fn remark(comparison: &Comparison, section: &Section) -> String {
    let pairs = || section.rows.iter().flat_map(|row| &row.pairs);
    let count = |wanted: Verdict| pairs().filter(|pair| pair.verdict == wanted).count();
    let hidden = match section.hidden {
        0 => String::new(),
        more => format!(" {more} more rows differ less (--top)."),
    };
    if section.tests == 0 {
        let exact = match section.role {
            Role::Answer => format!("One value each, so no test: {}. ", comparison.kind.exact),
            _ => String::new(),
        };
        return format!("{exact}A percentage above 0 is better.{hidden}");
    }
    let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
    let withheld = match pairs().filter(|pair| pair.is_withheld).count() {
        0 => String::new(),
        some => format!(" {some} verdicts are withheld: see the cautions."),
    };
    let by = if comparison.kind.medians { "Medians" } else { "Means" };
    let rules = section.rules;
    format!(
        "{by}; a percentage above 0 is better. {better} better, {worse} worse (stars), in {} no difference can \
         be told: {}, Holm's correction over {} tests, {} %.{withheld}{hidden}",
        pairs().count() - better - worse,
        rules.test,
        section.tests,
        rules.significance * 100.0
    )
}
