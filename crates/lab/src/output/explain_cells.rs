//! Which group of policies carries what of a difference in an experiment: text and JSON.

use crate::explain::cells::{CellsExplained, Measured, ROWS_MOST, Row};
use crate::explain::groups::GROUPS_MOST;
use serde_json::{Value, json};
use slablab_report::text;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.explain-experiment.1";
/// A pair is told from this part of the largest part, in percent.
const PAIR_FROM_PERCENT: f64 = 5.0;
/// The widest line.
const WIDE: usize = 100;

/// The answer for people.
pub fn explain_cells_table(explained: &CellsExplained) -> String {
    let ends = &explained.ends;
    let (file, plan) = (&ends.experiment.file, &ends.plan);
    let [from, to] = [0, 1].map(|at| file.engines[at].0.as_str());
    let metric = &file.workload.metrics[file.metric];
    let mut out = text::wrapped_within(
        WIDE,
        &format!(
            "{}: {from} to {to}, {} in {}: {} groups of policies, all {} combinations, {}, size {}, seed {}",
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
    let mut table = text::Table::new(["group", "policy", from, to]).numbers(0..0);
    for group in &explained.groups {
        for [name, one, other] in &group.values {
            table.row([&group.name, name, one, other]);
        }
    }
    out += &table.print_within(WIDE);
    for row in &explained.rows {
        out += &row_text(explained, row, [from, to]);
    }
    if explained.rows.is_empty() {
        out += "\nno row can be taken apart\n";
    }
    out += &format!("\nleft out (at most {GROUPS_MOST} groups, {ROWS_MOST} rows)\n");
    for sentence in &explained.left_out {
        out += &text::wrapped_within(WIDE, sentence, "  ", "    ");
    }
    out
}

fn row_text(explained: &CellsExplained, row: &Row, [from, to]: [&str; 2]) -> String {
    let Some(main) = row.measures.first() else { return String::new() };
    let shown = |number: f64| format!("{:+.*}", main.decimals + 1, number / main.unit.1);
    let plain = |number: f64| format!("{:.*}", main.decimals + 1, number / main.unit.1);
    let change = main.to - main.from;
    let mut out = format!(
        "\n{}: {} {} under {from}, {} under {to}, {}\n",
        row.name,
        plain(main.from),
        main.unit.0,
        plain(main.to),
        shown(change)
    );
    let mut table = text::Table::new(["group", "part", "±", "% of change", "alone", "as the last"]);
    for (group, part) in explained.groups.iter().zip(&main.parts) {
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
        let [one, other] = [one, other].map(|group| explained.groups[*group].name.as_str());
        out += &format!(" {one} and {other} together: {} beyond each without the other\n", shown(*value));
    }
    out
}

/// The answer in JSON: every metric, parts as numbers of the metric's unit and as exact fractions.
pub fn explain_cells_json(explained: &CellsExplained) -> Value {
    let ends = &explained.ends;
    let (file, plan) = (&ends.experiment.file, &ends.plan);
    let groups = explained.groups.iter().map(|group| {
        let policy = |[name, from, to]: &[String; 3]| json!({ "policy": name, "from": from, "to": to });
        json!({ "group": group.name, "policies": group.values.iter().map(policy).collect::<Vec<_>>() })
    });
    let rows = explained.rows.iter().map(|row| {
        let measures: Vec<Value> =
            row.measures.iter().map(|measured| measure_json(explained, measured)).collect();
        json!({ "row": row.name, "measures": measures })
    });
    json!({
        "schema": SCHEMA,
        "experiment": file.name,
        "from": file.engines[0].0,
        "to": file.engines[1].0,
        "size": plan.size.name(),
        "repeats": plan.repeats.least,
        "seed": plan.seed,
        "combinations": 1_u64 << explained.groups.len(),
        "groups": groups.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "left_out": explained.left_out,
    })
}

fn measure_json(explained: &CellsExplained, measured: &Measured) -> Value {
    let (unit, per_unit) = measured.unit;
    let name = |group: usize| explained.groups[group].name.as_str();
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
