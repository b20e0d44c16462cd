//! What order rules say: a table of sizes for one machine, a line per machine for several; JSON and CSV of
//! both.

use crate::orders::{Answer, Question, Run, Slabs};
use serde_json::{Value, json};
use slablab_report::column::Columns;
use slablab_report::csv::Csv;
use slablab_report::html::Cell;
use slablab_report::text::{Table, grouped};
use slablab_slabs::order::OrderRule;
use std::fmt::Write;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.orders.1";

/// Text: the sizes if one machine was asked about, else how many there are on each.
pub fn orders_table(question: &Question, answers: &[Answer]) -> String {
    let mut text = heading(question);
    match answers {
        [answer] => {
            text += &machine(question, answer);
            if !answer.runs.is_empty() {
                text += "\n";
                text += &runs(question, answer);
            }
        }
        answers => text += &counts(question, answers),
    }
    text
}

fn heading(question: &Question) -> String {
    let named = |rule: OrderRule| format!("{} ({})", rule.name(), rule.whose());
    match question.against {
        Some(against) => format!("{}\nagainst {}\n", named(question.rule), named(against)),
        None => format!("{}\n", named(question.rule)),
    }
}

fn machine(question: &Question, answer: &Answer) -> String {
    let least = 1 << answer.cpus.ilog2();
    let mut text =
        format!("{}K pages, {} CPUs, or any from {least} to ", answer.page_size / 1024, answer.cpus);
    writeln!(text, "{}: {} objects wanted", 2 * least as u64 - 1, answer.wanted).expect("memory");
    let sizes = answer.sizes;
    let count = grouped(answer.count);
    write!(text, "{count} sizes, {} to {} by {}", sizes.first, sizes.last, sizes.step).expect("memory");
    if question.against.is_some() {
        let differ = grouped(answer.up + answer.down);
        let (up, down) = (grouped(answer.up), grouped(answer.down));
        write!(text, ": {differ} differ, {up} up, {down} down").expect("memory");
    }
    text + "\n"
}

/// A row per run of sizes. Objects are those of its first and its last size.
fn runs(question: &Question, answer: &Answer) -> String {
    let rules = question.against.into_iter().chain([question.rule]);
    let columns = rules.flat_map(|rule| [rule.name().to_string(), "objects".into(), "tail".into()]);
    let mut table = Table::new(["from", "to", "sizes"].into_iter().map(String::from).chain(columns));
    for run in &answer.runs {
        let cells = run.against.iter().chain([&run.slab]).flat_map(|slabs| cells(slabs, answer, run));
        let sizes = [run.first.to_string(), run.last.to_string(), run.count.to_string()];
        table.row(sizes.into_iter().chain(cells));
    }
    table.print()
}

fn cells(slabs: &Slabs, answer: &Answer, run: &Run) -> [String; 3] {
    let objects = match (slabs.objects_first, slabs.objects_last) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}..{last}"),
    };
    let tail = format!("{:.1} %", slabs.tail_percent(answer.page_size, run.count));
    [slabs.order.to_string(), objects, tail]
}

/// A row per machine.
fn counts(question: &Question, answers: &[Answer]) -> String {
    let mut header = vec!["pages", "CPUs", "wanted", "sizes"];
    let orders: Vec<String> = (0..=question.max_order).map(|order| format!("order {order}")).collect();
    match question.against {
        Some(_) => header.extend(["differ", "up", "down"]),
        None => header.extend(orders.iter().map(String::as_str)),
    }
    let mut table = Table::new(header);
    for answer in answers {
        let machine = [
            format!("{}K", answer.page_size / 1024),
            answer.cpus.to_string(),
            answer.wanted.to_string(),
            answer.count.to_string(),
        ];
        let of_order = |order| {
            answer.runs.iter().filter(|run| run.slab.order == order).map(|run| run.count).sum::<u64>()
        };
        let figures: Vec<u64> = match question.against {
            Some(_) => vec![answer.up + answer.down, answer.up, answer.down],
            None => (0..=question.max_order).map(of_order).collect(),
        };
        table.row(machine.into_iter().chain(figures.iter().map(u64::to_string)));
    }
    table.print()
}

/// JSON: every run of every machine.
pub fn orders_json(question: &Question, answers: &[Answer]) -> Value {
    json!({
        "schema": SCHEMA,
        "policy": question.rule.name(),
        "against": question.against.map(OrderRule::name),
        "min_order": question.min_order,
        "max_order": question.max_order,
        "min_objects": question.min_objects,
        "machines": answers.iter().map(|answer| json!({
            "page_size_bytes": answer.page_size,
            "cpus": answer.cpus,
            "objects_wanted": answer.wanted,
            "size_first_bytes": answer.sizes.first,
            "size_last_bytes": answer.sizes.last,
            "size_step_bytes": answer.sizes.step,
            "sizes": answer.count,
            "sizes_up": answer.up,
            "sizes_down": answer.down,
            "runs": answer.runs.iter().map(run_json).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn run_columns() -> Columns<Run> {
    Columns::default()
        .key("first_bytes", |run: &Run| Cell::Count(run.first.into()))
        .key("last_bytes", |run| Cell::Count(run.last.into()))
        .key("sizes", |run| Cell::Count(run.count))
}

fn slabs_columns() -> Columns<Slabs> {
    Columns::default()
        .key("order", |slabs: &Slabs| Cell::Count(slabs.order.into()))
        .key("objects_first", |slabs| Cell::Count(slabs.objects_first))
        .key("objects_last", |slabs| Cell::Count(slabs.objects_last))
        .key("tail_bytes", |slabs| Cell::Count(slabs.tail))
}

fn run_json(run: &Run) -> Value {
    let mut json = run_columns().json(run);
    json.insert("slab".into(), slabs_columns().json(&run.slab).into());
    json.insert("slab_against".into(), run.against.as_ref().map(|slabs| slabs_columns().json(slabs)).into());
    json.into()
}

/// CSV: a row per run of every machine; without a rule to compare with, its columns are empty.
pub fn orders_csv(answers: &[Answer]) -> String {
    let (runs, slabs) = (run_columns(), slabs_columns());
    let keys =
        ["page_size_bytes", "cpus"].into_iter().chain(runs.keys()).chain(slabs.keys()).map(String::from);
    let mut out = Csv::new(keys.chain(slabs.keys().map(|key| format!("{key}_against"))));
    for answer in answers {
        for run in &answer.runs {
            let machine = [answer.page_size, answer.cpus.into()].map(Cell::Count);
            let against = run.against.as_ref().map(|against| slabs.cells(against).collect());
            let against = against.unwrap_or_else(|| vec![Cell::Empty; slabs.keys().count()]);
            out.row(machine.into_iter().chain(runs.cells(run)).chain(slabs.cells(&run.slab)).chain(against));
        }
    }
    out.finish()
}
