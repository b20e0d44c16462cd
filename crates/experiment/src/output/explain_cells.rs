//! Which group of policies carries what of a difference in an experiment, or under a script: text and JSON.

use crate::explain::cells::{CellsExplained, Measured, ROWS_MOST, Row};
use crate::explain::groups::{GROUPS_MOST, Group};
use crate::explain::script::ScriptExplained;
use serde_json::{Value, json};
use slablab_report::text;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.explain-experiment.1";
const SCRIPT_SCHEMA: &str = "slablab.explain-script.1";
/// A pair is told from this part of the largest part, in percent.
const PAIR_FROM_PERCENT: f64 = 5.0;
/// The widest line.
const WIDE: usize = 100;

/// The answer for people; `others` are metrics to take apart beside the main one.
pub fn explain_cells_table(explained: &CellsExplained, others: &[String]) -> String {
    let ends = &explained.ends;
    let (file, plan) = (&ends.experiment.file, &ends.plan);
    let [from, to] = [0, 1].map(|at| explained.names[at].as_str());
    let metric = &file.workload.metrics[file.metric];
    let mut out = text::wrapped_within(
        WIDE,
        &format!(
            "{}: {from} to {to}, {} in {}: {} groups, all {} combinations, {}, size {}, seed {}",
            file.name,
            metric.name,
            metric.unit,
            explained.groups.len(),
            1_u64 << explained.groups.len(),
            plan.repeats.words(),
            plan.size.name(),
            plan.seed
        ),
        "",
        "  ",
    );
    if explained.groups.is_empty() {
        return out + "\nnothing differs\n";
    }
    out += "\n";
    out += &groups_text(&explained.groups, [from, to]);
    for row in &explained.rows {
        out += &row_text(&explained.groups, row, [from, to]);
        for name in others {
            out += &other_text(&explained.groups, row, name, [from, to]);
        }
        out += &counts_text(explained, row, [from, to]);
    }
    if explained.rows.is_empty() {
        out += "\nno row can be taken apart\n";
    }
    out += &format!("\nleft out (at most {GROUPS_MOST} groups, {ROWS_MOST} rows)\n");
    out + &left_out_text(&explained.left_out)
}

/// A metric of the row beside the main one.
fn other_text(groups: &[Group], row: &Row, metric: &str, names: [&str; 2]) -> String {
    let name = format!("{}, {metric}", row.name);
    match row.measures.iter().find(|measured| measured.metric == metric) {
        Some(measured) => row_text(groups, &Row { name, measures: vec![measured.clone()] }, names),
        None => format!("\n{name}: no group changes it\n"),
    }
}

/// The counts that a group changes, with its part of each: the way from the policies to the main metric.
fn counts_text(explained: &CellsExplained, row: &Row, [from, to]: [&str; 2]) -> String {
    let file = &explained.ends.experiment.file;
    let is_count = |measured: &&Measured| {
        let metric = file.workload.metrics.iter().find(|metric| metric.name == measured.metric);
        metric.is_some_and(|metric| metric.better.is_none())
    };
    let mut counts = row.measures.iter().skip(1).filter(is_count).peekable();
    if counts.peek().is_none() {
        return String::new();
    }
    let parts = explained.groups.iter().map(|group| format!("part of {}", group.name));
    let heads = ["count", from, to].map(String::from).into_iter().chain(parts);
    let mut table = text::Table::new(heads);
    for measured in counts {
        let number = |number: f64| format!("{:.*}", measured.decimals, number / measured.unit.1);
        let part = |value: f64| format!("{:+.*}", measured.decimals, value / measured.unit.1);
        let ends = [measured.metric.to_string(), number(measured.from), number(measured.to)];
        table.row(ends.into_iter().chain(measured.parts.iter().map(|one| part(one.value))));
    }
    format!(" what is counted there\n{}", table.print_within(WIDE))
}

fn left_out_text(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| text::wrapped_within(WIDE, sentence, "  ", "    ")).collect()
}

fn groups_text(groups: &[Group], [from, to]: [&str; 2]) -> String {
    let mut table = text::Table::new(["group", "policy", from, to]).numbers(0..0);
    for group in groups {
        for [name, one, other] in &group.values {
            table.row([&group.name, name, one, other]);
        }
    }
    table.print_within(WIDE)
}

/// The answer for a script, for people.
pub fn explain_script_table(explained: &ScriptExplained, script: &str) -> String {
    let ScriptExplained { from, to, seeds, groups, rows, left_out } = explained;
    let [from, to] = [from.to_string(), to.to_string()];
    let heading = format!(
        "{script}: {from} to {to}: {} groups of policies, all {} combinations, {seeds} seeds",
        groups.len(),
        1_u64 << groups.len()
    );
    let mut out = text::wrapped_within(WIDE, &heading, "", "  ");
    if groups.is_empty() {
        return out + "\nnothing differs\n";
    }
    out += "\n";
    out += &groups_text(groups, [&from, &to]);
    for row in rows {
        out += &row_text(groups, row, [&from, &to]);
    }
    if rows.is_empty() {
        out += "\nno count differs\n";
    }
    out + "\nleft out\n" + &left_out_text(left_out)
}

/// The answer for a script in JSON, with parts as numbers and as exact fractions.
pub fn explain_script_json(explained: &ScriptExplained, script: &str) -> Value {
    json!({
        "schema": SCRIPT_SCHEMA,
        "script": script,
        "from": explained.from.to_string(),
        "to": explained.to.to_string(),
        "seeds": explained.seeds,
        "combinations": 1_u64 << explained.groups.len(),
        "groups": groups_json(&explained.groups),
        "rows": rows_json(&explained.groups, &explained.rows),
        "left_out": explained.left_out,
    })
}

fn row_text(groups: &[Group], row: &Row, [from, to]: [&str; 2]) -> String {
    let Some(main) = row.measures.first() else { return String::new() };
    let shown = |number: f64| format!("{:+.*}", main.decimals + 1, number / main.unit.1);
    let plain = |number: f64| format!("{:.*}", main.decimals + 1, number / main.unit.1);
    let change = main.to - main.from;
    let mut out = format!(
        "\n{}: {}{} under {from}, {} under {to}, {}\n",
        row.name,
        plain(main.from),
        if main.unit.0.is_empty() { String::new() } else { format!(" {}", main.unit.0) },
        plain(main.to),
        shown(change)
    );
    let mut table = text::Table::new(["group", "part", "±", "% of change", "alone", "as the last"]);
    for (group, part) in groups.iter().zip(&main.parts) {
        let half = part.give_or_take.map_or("-".to_string(), plain);
        let percent = if change == 0.0 { "-".into() } else { format!("{:.1}", part.value / change * 100.0) };
        match part.moves {
            true => table.row([
                &group.name,
                &shown(part.value),
                &half,
                &percent,
                &shown(part.alone),
                &shown(part.last),
            ]),
            false => table.row([group.name.as_str(), "no effect", "", "", "", ""]),
        }
    }
    out += &table.print_within(WIDE);
    let largest = main.parts.iter().map(|part| part.value.abs()).fold(0.0, f64::max);
    let strong = main.together.iter().filter(|pair| pair.1.abs() * 100.0 >= largest * PAIR_FROM_PERCENT);
    for ([one, other], value) in strong.take(3) {
        let [one, other] = [one, other].map(|group| groups[*group].name.as_str());
        out += &format!(" {one} and {other} together: {} beyond each without the other\n", shown(*value));
    }
    out
}

/// The answer in JSON: every metric, parts as numbers of the metric's unit and as exact fractions.
pub fn explain_cells_json(explained: &CellsExplained) -> Value {
    let ends = &explained.ends;
    let (file, plan) = (&ends.experiment.file, &ends.plan);
    json!({
        "schema": SCHEMA,
        "experiment": file.name,
        "from": explained.names[0],
        "to": explained.names[1],
        "size": plan.size.name(),
        "repeats": plan.repeats.least,
        "seed": plan.seed,
        "combinations": 1_u64 << explained.groups.len(),
        "groups": groups_json(&explained.groups),
        "rows": rows_json(&explained.groups, &explained.rows),
        "left_out": explained.left_out,
    })
}

fn groups_json(groups: &[Group]) -> Vec<Value> {
    let policy = |[name, from, to]: &[String; 3]| json!({ "policy": name, "from": from, "to": to });
    let group = |group: &Group| json!({ "group": group.name, "policies": group.values.iter().map(policy).collect::<Vec<_>>() });
    groups.iter().map(group).collect()
}

fn rows_json(groups: &[Group], rows: &[Row]) -> Vec<Value> {
    let row = |row: &Row| {
        let measures = row.measures.iter().map(|measured| measure_json(groups, measured));
        json!({ "row": row.name, "measures": measures.collect::<Vec<_>>() })
    };
    rows.iter().map(row).collect()
}

fn measure_json(groups: &[Group], measured: &Measured) -> Value {
    let (unit, per_unit) = measured.unit;
    let name = |group: usize| groups[group].name.as_str();
    let part = |(group, part): (usize, &crate::explain::cells::Part)| {
        json!({
            "group": name(group),
            "value": part.value / per_unit,
            "sum_of_repeats": part.sum.exact(),
            "give_or_take": part.give_or_take.map(|half| half / per_unit),
            "alone": part.alone / per_unit,
            "last": part.last / per_unit,
            "has_effect": part.moves,
        })
    };
    let pair = |(players, value): &([usize; 2], f64)| json!({ "groups": players.map(name), "value": value / per_unit });
    json!({
        "metric": measured.metric,
        "unit": unit,
        "per_unit": per_unit,
        "from": measured.from / per_unit,
        "to": measured.to / per_unit,
        "change": (measured.to - measured.from) / per_unit,
        "parts": measured.parts.iter().enumerate().map(part).collect::<Vec<_>>(),
        "interactions": measured.together.iter().map(pair).collect::<Vec<_>>(),
    })
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
        let said = counts_text(
            &CellsExplained {
                names: [from, to].map(String::from),
                ends,
                groups,
                rows: Vec::new(),
                left_out: Vec::new(),
            },
            &row,
            [from, to],
        );
        for words in ["wakes_3", "700", "20", "-680", "part of max_order"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!said.contains("build2_4_ps") && !said.contains("elapsed_ps"), "{said}");
    }
}
