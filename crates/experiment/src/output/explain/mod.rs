//! Which group of policies carries what of a difference in an experiment, or under a script.

mod document;

use crate::explain::cells::{CellsExplained, Measured, ROWS_MOST, Row};
use crate::explain::groups::{GROUPS_MOST, Group};
use crate::explain::script::ScriptExplained;
use document::{CellsDocument, ScriptDocument};
use slablab_report::document::{Named, named};
use slablab_report::text::{Table, counted};
use slablab_report::{Answer, Document};

/// A pair is told from this part of the largest part, in percent.
const PAIR_FROM_PERCENT: f64 = 5.0;
/// Columns of parts that are left out on a narrow terminal, in this order.
const PARTS_LEFT_OUT: [&str; 3] = ["as the last", "alone", "% of change"];

/// What an experiment and a script have in common.
struct Difference<'a> {
    /// The experiment's name, or the script's path.
    of: &'a str,
    /// What is compared.
    names: [&'a str; 2],
    groups: &'a [Group],
    rows: &'a [Row],
    left_out: &'a [String],
}

/// The answer of `explain` in an experiment; `others` are metrics to take apart beside the main one.
pub fn explain_cells_answer(explained: &CellsExplained, others: &[String]) -> Answer {
    let CellsExplained { names, ends, groups, rows, left_out } = explained;
    let (file, plan) = (&ends.experiment.file, &ends.plan);
    let metric = &file.workload.metrics[file.metric];
    let is_count = |measured: &Measured| {
        let metric = file.workload.metrics.iter().find(|metric| metric.name == measured.metric);
        metric.is_some_and(|metric| metric.better.is_none())
    };
    let names = [names[0].as_str(), names[1].as_str()];
    let difference = Difference { of: &file.name, names, groups, rows, left_out };
    let of_row = |row: &Row| format!("{} of {}", metric.name, row.name);
    let mut answer = difference.begin(&CellsDocument::new(explained), of_row);
    for row in rows {
        answer = difference.row(answer, &row.name, row.measures.first());
        for name in others {
            let measured = row.measures.iter().find(|measured| measured.metric == name);
            answer = difference.row(answer, &format!("{}, {name}", row.name), measured);
        }
        let counts: Vec<&Measured> =
            row.measures.iter().skip(1).filter(|measured| is_count(measured)).collect();
        if !counts.is_empty() {
            answer = answer.heading(format!("{}: what is counted there", row.name));
            answer = answer.table(counts_table(groups, &counts), &[]);
        }
    }
    let head = format!("Left out (at most {GROUPS_MOST} groups, {ROWS_MOST} rows):");
    difference.end(answer, &head).remarks([format!(
        "{} in {}: {}, all {}, {}, size {}, seed {}.",
        metric.name,
        metric.unit,
        counted(groups.len() as u64, "group"),
        counted(1_u64 << groups.len(), "combination"),
        plan.repeats.words(),
        plan.size.name(),
        plan.seed
    )])
}

/// The answer of `explain` under a script of page accesses, whose path is `script`.
pub fn explain_script_answer(explained: &ScriptExplained, script: &str) -> Answer {
    let ScriptExplained { from, to, seeds, groups, rows, left_out } = explained;
    let [from, to] = [from.to_string(), to.to_string()];
    let difference = Difference { of: script, names: [&from, &to], groups, rows, left_out };
    let begun = difference.begin(&ScriptDocument::new(explained, script), |row| row.name.clone());
    let answer =
        rows.iter().fold(begun, |answer, row| difference.row(answer, &row.name, row.measures.first()));
    difference.end(answer, "Left out:").remarks([format!(
        "{script}: {} of policies, all {}, seeds: {seeds}.",
        counted(groups.len() as u64, "group"),
        counted(1_u64 << groups.len(), "combination")
    )])
}

/// The schemas of these answers.
pub(super) fn schemas() -> [Named; 2] {
    [named::<CellsDocument>(), named::<ScriptDocument>()]
}

impl Difference<'_> {
    /// The sentence, and what differs. `of_row` names what was measured in a row.
    fn begin(&self, document: &impl Document, of_row: impl Fn(&Row) -> String) -> Answer {
        let answer = Answer::new(format!("What explains a difference: {}", self.of), self.sentence(of_row));
        match self.groups {
            [] => answer.document(document),
            groups => answer.document(document).table(groups_table(groups), &["group"]),
        }
    }

    /// The row with the largest difference, and the group that carries most of it.
    fn sentence(&self, of_row: impl Fn(&Row) -> String) -> String {
        let [from, to] = self.names;
        if self.groups.is_empty() {
            return format!("Nothing differs between {from} and {to} in {}.", self.of);
        }
        let main = |row: &Row| row.measures.first().map_or(0.0, relative_change);
        let largest = self.rows.iter().rev().max_by(|a, b| main(a).total_cmp(&main(b)));
        let Some((row, measured)) = largest.and_then(|row| Some((row, row.measures.first()?))) else {
            return format!("No difference between {from} and {to} in {} can be taken apart.", self.of);
        };
        let parts = self.groups.iter().zip(&measured.parts).filter(|(_, part)| part.moves).rev();
        let (change, percent) = (measured.to - measured.from, percent_of(measured));
        let carries = match parts.max_by(|(_, a), (_, b)| a.value.abs().total_cmp(&b.value.abs())) {
            None => ": no group has an effect".into(),
            Some((group, part)) => {
                let percent = percent(part.value).map_or(String::new(), |percent| format!(" ({percent} %)"));
                format!("; the largest part is of {}, {}{percent}", group.name, signed(measured, part.value))
            }
        };
        let others = match self.rows.len() - 1 {
            0 => String::new(),
            1 => "; one other difference is taken apart below".into(),
            others => format!("; {others} other differences are taken apart below"),
        };
        let (row, change, unit) = (of_row(row), signed(measured, change), unit(measured));
        format!("From {from} to {to}, {row} changes by {change}{unit}{carries}{others}.")
    }

    /// A metric of a row: its change, the part of each group, the strongest pairs.
    fn row(&self, answer: Answer, name: &str, measured: Option<&Measured>) -> Answer {
        let Some(measured) = measured else { return answer.heading(format!("{name}: no group changes it")) };
        let [from, to] = self.names;
        let answer = answer.heading(format!(
            "{name}: {}{} under {from}, {} under {to}, {}",
            plain(measured, measured.from),
            unit(measured),
            plain(measured, measured.to),
            signed(measured, measured.to - measured.from)
        ));
        let answer = answer.table(parts_table(self.groups, measured), &PARTS_LEFT_OUT);
        let largest = measured.parts.iter().map(|part| part.value.abs()).fold(0.0, f64::max);
        let strong =
            measured.together.iter().filter(|pair| pair.1.abs() * 100.0 >= largest * PAIR_FROM_PERCENT);
        strong.take(3).fold(answer, |answer, (pair, value)| {
            let [one, other] = pair.map(|group| self.groups[group].name.as_str());
            let value = signed(measured, *value);
            answer.line(format!("{one} and {other} together: {value} beyond each without the other"))
        })
    }

    /// What was left out.
    fn end(&self, answer: Answer, head: &str) -> Answer {
        match self.groups {
            [] => answer,
            _ => answer.heading(head).list(self.left_out.iter().cloned()),
        }
    }
}

/// The change in parts of the larger end: what rows of several units are compared by.
fn relative_change(measured: &Measured) -> f64 {
    let larger = measured.from.abs().max(measured.to.abs());
    if larger == 0.0 { 0.0 } else { (measured.to - measured.from).abs() / larger }
}

fn plain(of: &Measured, number: f64) -> String {
    format!("{:.*}", of.decimals + 1, number / of.unit.1)
}

fn signed(of: &Measured, number: f64) -> String {
    format!("{:+.*}", of.decimals + 1, number / of.unit.1)
}

/// A metric's unit; none of a count.
fn unit(of: &Measured) -> String {
    if ["", "1"].contains(&of.unit.0) { String::new() } else { format!(" {}", of.unit.0) }
}

/// A part in percent of the change; `None` without a change.
fn percent_of(measured: &Measured) -> impl Fn(f64) -> Option<String> {
    let change = measured.to - measured.from;
    move |part| (change != 0.0).then(|| format!("{:.1}", part / change * 100.0))
}

fn groups_table(groups: &[Group]) -> Table {
    let mut table = Table::new(["group", "policy", "from", "to"]).numbers(0..0);
    for (group, policy) in groups.iter().flat_map(|group| group.policies.iter().map(move |one| (group, one)))
    {
        table.row([&group.name, &policy.name, &policy.from, &policy.to]);
    }
    table
}

fn parts_table(groups: &[Group], measured: &Measured) -> Table {
    let mut table = Table::new(["group", "part", "±", "% of change", "alone", "as the last"]);
    let percent = percent_of(measured);
    for (group, part) in groups.iter().zip(&measured.parts) {
        let half = part.give_or_take.map_or("-".to_string(), |half| plain(measured, half));
        let [value, alone, last] = [part.value, part.alone, part.last].map(|value| signed(measured, value));
        let percent = percent(part.value).unwrap_or("-".into());
        match part.moves {
            true => table.row([&group.name, &value, &half, &percent, &alone, &last]),
            false => table.row([group.name.as_str(), "no effect", "", "", "", ""]),
        }
    }
    table
}

/// The counts that a group changes, with its part of each: the way from the policies to the main metric.
fn counts_table(groups: &[Group], counts: &[&Measured]) -> Table {
    let mut table = Table::new(["count", "group", "from", "to", "part"]).numbers(2..5);
    for measured in counts {
        let number = |number: f64| format!("{:.*}", measured.decimals, number / measured.unit.1);
        let mut ends = [measured.metric.to_string(), number(measured.from), number(measured.to)];
        for (group, part) in groups.iter().zip(&measured.parts).filter(|(_, part)| part.moves) {
            let [metric, from, to] = std::mem::take(&mut ends);
            let part = format!("{:+.*}", measured.decimals, part.value / measured.unit.1);
            table.row([metric, group.name.clone(), from, to, part]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::cells::Part;
    use crate::explain::groups::Groups;
    use crate::{Change, Experiment, Plan, Results};
    use slablab_slabs::Preset;
    use slablab_stats::shapley::Mean;
    use std::path::Path;

    #[test]
    fn counts_stand_below_the_main_metric_and_times_do_not() {
        let experiment = Experiment::find(Path::new("000")).expect("an installed experiment");
        let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
        let ends = Results { experiment, plan, runs: Vec::new(), computed: 0, program: "p".into() };
        let [from, to] = ["slub@2.6.29", "slub@2.6.29,max_order=0"];
        let preset = |name| Preset::parse(name).expect("an engine");
        let groups = Groups::new(preset(from), preset(to)).expect("two engines of a kind").groups;
        let measured = |metric, unit, decimals, from: f64, to: f64| {
            let sum = Mean { sum: (to - from) as i128, over: 1, give_or_take: None };
            let (value, half) = (to - from, None);
            let part = Part { sum, value, give_or_take: half, alone: value, last: value, moves: true };
            Measured { metric, unit, decimals, from, to, parts: vec![part], together: Vec::new() }
        };
        let row = Row {
            name: "stoakley".into(),
            measures: vec![
                measured("elapsed_ps", ("s", 1e12), 2, 9e12, 8e12),
                measured("build2_4_ps", ("s", 1e12), 2, 3e12, 1e12),
                measured("wakes_3", ("1", 1.0), 0, 700.0, 20.0),
            ],
        };
        let names = [from, to].map(String::from);
        let explained = CellsExplained { names, ends, groups, rows: vec![row], left_out: Vec::new() };
        let said = explain_cells_answer(&explained, &[]).text(false);
        let (_, said) = said.split_once("stoakley: what is counted there").expect("a heading");
        let (said, _) = said.split_once("Left out").expect("a heading");
        for words in ["wakes_3", "700", "20", "-680", "max_order"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!said.contains("build2_4_ps") && !said.contains("elapsed_ps"), "{said}");
    }

    /// The sentence in the situations that it tells apart, and the columns that its text has at most.
    #[test]
    fn the_sentence_says_what_carries_most() {
        let preset = |name| Preset::parse(name).expect("an engine");
        let all = Groups::new(preset("slub@7.0"), preset("slub@7.1")).expect("two engines of a kind").groups;
        let vm = |name| slablab_vm::preset::Preset::parse(name).expect("a policy");
        let row = |name: &str, to: f64| {
            let sum = Mean { sum: 0, over: 1, give_or_take: None };
            let part = |value: f64| Part {
                sum,
                value,
                give_or_take: None,
                alone: value,
                last: value,
                moves: value != 0.0,
            };
            let parts = vec![part(to * 1.25), part(to * -0.25)];
            let together = vec![([0, 1], to / 2.0)];
            let unit = ("", 1.0);
            Row {
                name: name.into(),
                measures: vec![Measured {
                    metric: "read",
                    unit,
                    decimals: 0,
                    from: 0.0,
                    to,
                    parts,
                    together,
                }],
            }
        };
        let check = |groups: &[Group], rows: Vec<Row>, expected: &str| {
            let explained = ScriptExplained {
                from: vm("vm@6.1"),
                to: vm("vm@6.12"),
                seeds: 3,
                groups: groups.to_vec(),
                rows,
                left_out: vec!["counts whose means differ by less than 64".into()],
            };
            let answer = explain_script_answer(&explained, "scan2.t");
            assert_eq!(answer.sentence(), expected);
            let text = answer.text(false);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        };
        check(&[], Vec::new(), "Nothing differs between vm@6.1 and vm@6.12 in scan2.t.");
        let none = "No difference between vm@6.1 and vm@6.12 in scan2.t can be taken apart.";
        check(&all, Vec::new(), none);
        let one = "From vm@6.1 to vm@6.12, hot, read changes by +100.0; the largest part is of barns, +125.0 (125.0 %)";
        check(&all, vec![row("hot, read", 100.0)], &format!("{one}."));
        let flat = row("cold, read", 0.0);
        let two = format!("{one}; one other difference is taken apart below.");
        check(&all, vec![row("hot, read", 100.0), flat.clone()], &two);
        let three = format!("{one}; 2 other differences are taken apart below.");
        check(&all, vec![flat.clone(), row("hot, read", 100.0), flat.clone()], &three);
        let still = "From vm@6.1 to vm@6.12, cold, read changes by +0.0: no group has an effect.";
        check(&all, vec![flat], still);
    }
}
