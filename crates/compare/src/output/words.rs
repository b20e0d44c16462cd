//! What a comparison says in sentences.

use crate::answer::Role;
use crate::comparison::{Against, Comparison, Row, Section};
use slablab_report::html::number;
use slablab_report::text::{counted, plural};
use slablab_stats::table::Verdict;

/// The names of all results but the first.
pub(super) fn others(comparison: &Comparison) -> String {
    comparison.columns[1..].join(", ")
}

/// What a table has, as a heading.
pub(super) fn title(role: Role) -> &'static str {
    match role {
        Role::Answer => "Result",
        Role::Detail => "What differs most",
        Role::Control => "Controls: not slablab's code",
    }
}

/// The name of a row with the table that it is in.
pub(super) fn name(row: &Row) -> String {
    if row.group.is_empty() { row.name.clone() } else { format!("{}: {}", row.group, row.name) }
}

/// How many rows of the first table are better and worse, and the largest difference.
pub(super) fn sentence(comparison: &Comparison) -> String {
    let (base, others) = (&comparison.columns[0], others(comparison));
    let Some(section) = comparison.sections.first() else {
        return format!("No number of {others} differs from that of {base}.");
    };
    let pairs: Vec<(&Row, &Against, Verdict)> = section
        .rows
        .iter()
        .flat_map(|row| row.pairs.iter().map(move |pair| told(section, row, pair)))
        .collect();
    let count = |wanted: Verdict| pairs.iter().filter(|(.., told)| *told == wanted).count();
    let (better, worse, all) = (count(Verdict::Better), count(Verdict::Worse), pairs.len());
    let (is, rows) = match comparison.columns.len() {
        2 => ("is", plural(all as u64, "row")),
        _ => ("are", plural(all as u64, "comparison")),
    };
    let withheld = pairs.iter().filter(|(_, pair, _)| pair.is_withheld).count();
    match (better + worse, section.tests) {
        (0, 0) => format!("{others} and {base} have the same numbers in all {all} {rows}."),
        (0, _) if withheld > 0 => {
            let verdicts = counted(withheld as u64, "verdict");
            let are = if withheld == 1 { "is" } else { "are" };
            format!("None of {all} {rows} tells {others} from {base}: {verdicts} {are} withheld.")
        }
        (0, _) => format!("None of {all} {rows} tells {others} from {base}, beyond the scatter of the runs."),
        (_, tests) => {
            let beyond = if tests > 0 { ", beyond the scatter of the runs" } else { "" };
            let largest = largest(&pairs).map_or(String::new(), |largest| format!("; {largest}"));
            format!(
                "{others} {is} better than {base} in {better} of {all} {rows}, worse in {worse}{beyond}{largest}."
            )
        }
    }
}

/// A row with what can be told of it: by the test, or by the numbers where each is exact.
fn told<'a>(section: &Section, row: &'a Row, pair: &'a Against) -> (&'a Row, &'a Against, Verdict) {
    let told = match (section.tests, pair.gain_percent) {
        (1.., _) => pair.verdict.clone(),
        (0, Some(gain)) if gain > 0.0 => Verdict::Better,
        (0, Some(gain)) if gain < 0.0 => Verdict::Worse,
        (0, None) if pair.is_worse_than_0 => Verdict::Worse,
        _ => Verdict::NoDifference,
    };
    (row, pair, told)
}

/// The largest difference of those that can be told, by its percentage.
fn largest(pairs: &[(&Row, &Against, Verdict)]) -> Option<String> {
    let is_told = |(.., told): &&(&Row, &Against, Verdict)| matches!(told, Verdict::Better | Verdict::Worse);
    let gains = pairs.iter().filter(is_told).filter_map(|(row, pair, _)| Some((row, pair.gain_percent?)));
    let (row, gain) = gains.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let side = if gain > 0.0 { "better" } else { "worse" };
    Some(format!("the largest difference: {}: {} {side}", name(row), number::percent(gain.abs())))
}

/// Whether some number is of several runs.
fn has_runs(section: &Section) -> bool {
    section.rows.iter().flat_map(|row| &row.sides).flatten().any(|side| side.n > 1)
}

/// The sentence below a table.
pub(super) fn remark(comparison: &Comparison, section: &Section) -> String {
    let pairs = || section.rows.iter().flat_map(|row| &row.pairs);
    let count = |wanted: Verdict| pairs().filter(|pair| pair.verdict == wanted).count();
    let hidden = match section.hidden {
        0 => String::new(),
        1 => " 1 more row differs less (--top).".into(),
        more => format!(" {more} more rows differ less (--top)."),
    };
    if section.tests == 0 {
        let exact = match section.role {
            Role::Answer if has_runs(section) => "Runs differ by less than 0.01 %, so no test. ".to_string(),
            Role::Answer => format!("One value each, so no test: {}. ", comparison.kind.exact),
            _ => String::new(),
        };
        return format!("{exact}A percentage above 0 is better.{hidden}");
    }
    let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
    let withheld = match pairs().filter(|pair| pair.is_withheld).count() {
        0 => String::new(),
        1 => " 1 verdict is withheld: see the cautions.".into(),
        some => format!(" {some} verdicts are withheld: see the cautions."),
    };
    let by = if comparison.kind.medians { "Medians" } else { "Means" };
    let rules = section.rules;
    format!(
        "{by}; a percentage above 0 is better. {better} better, {worse} worse (stars), in {} no difference can \
         be told: {}, Holm's correction over {}, {} %.{withheld}{hidden}",
        pairs().count() - better - worse,
        rules.test,
        counted(section.tests as u64, "test"),
        rules.significance * 100.0
    )
}
