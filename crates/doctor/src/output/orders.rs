//! What order rules say: the sizes on one machine, how many there are on each of several.

use crate::orders::{Machine, Question, Run, Slabs};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::column::{Columns, Style};
use slablab_report::html::Cell;
use slablab_report::text::{counted, grouped};
use slablab_report::{Answer, Document};
use slablab_slabs::order::OrderRule;

/// Every run of every machine.
#[derive(Serialize, JsonSchema)]
pub(super) struct OrdersDocument<'a> {
    /// The rule that it is compared with.
    against: Option<&'static str>,
    machines: &'a [Machine],
    max_order: u8,
    /// 0: computed from the CPUs.
    min_objects: u32,
    min_order: u8,
    /// The rule.
    policy: &'static str,
}

impl Document for OrdersDocument<'_> {
    const NAME: &'static str = "slablab.orders.1";
    const TITLE: &'static str = "slablab orders: slab orders by size";
}

/// The answer of `orders`: of one machine its runs of sizes, of several how many sizes there are on each.
pub fn orders_answer(question: &Question, machines: &[Machine]) -> Answer {
    let document = OrdersDocument {
        against: question.against.map(OrderRule::name),
        machines,
        max_order: question.max_order,
        min_objects: question.min_objects,
        min_order: question.min_order,
        policy: question.rule.name(),
    };
    let rows: Vec<Row> =
        machines.iter().flat_map(|machine| machine.runs.iter().map(move |run| (machine, run))).collect();
    let columns = run_columns(question);
    let title = format!("Slab orders by {}", question.rule.name());
    let answer = Answer::new(title, sentence(question, machines)).document(&document);
    let answer = answer.rows(columns.frame(&rows)).section("Orders");
    let answer = match machines {
        [_] if rows.is_empty() => answer,
        [_] => {
            let keys = ["last_bytes", "sizes", "order_against", "objects_against", "tail_against"];
            let keys = if question.against.is_some() { &keys[..] } else { &keys[..2] };
            let keys = [keys, &["order", "objects", "tail"]].concat();
            let first: (&str, &dyn Fn(&Row) -> Cell) = ("from", &|row| Cell::Count(row.1.first.into()));
            answer
                .table(columns.text(first, &keys, &rows, Style::Kib), &["sizes", "tail", "objects"])
                .page_table(
                    "A row for each run of sizes; objects are those of its first and its last size.",
                    columns.html(first, &keys, &rows),
                )
        }
        _ => {
            let columns = machine_columns(question);
            let keys: Vec<String> = columns.keys().map(String::from).collect();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let pages: (&str, &dyn Fn(&Machine) -> Cell) = ("pages", &|machine| Cell::Text(pages(machine)));
            answer
                .table(columns.text(pages, &keys, machines, Style::Kib), &["wanted"])
                .page_table("Numbers of sizes on each machine.", columns.html(pages, &keys, machines))
        }
    };
    answer.remarks(basis(question, machines))
}

/// A run of sizes on a machine.
type Row<'a> = (&'a Machine, &'a Run);

/// `64K`.
fn pages(machine: &Machine) -> String {
    format!("{}K", machine.page_size / 1024)
}

fn on(machine: &Machine) -> String {
    let cpus = if machine.cpus == 1 { "CPU" } else { "CPUs" };
    format!("{} pages and {} {cpus}", pages(machine), machine.cpus)
}

fn sentence(question: &Question, machines: &[Machine]) -> String {
    let rule = question.rule.name();
    let differ = |machine: &Machine| machine.up + machine.down;
    let of_all =
        |machine: &Machine| format!("{} of {} sizes", grouped(differ(machine)), grouped(machine.count));
    let many = machines.len();
    match (question.against.map(OrderRule::name), machines) {
        (Some(against), [one]) if differ(one) == 0 => {
            format!(
                "{rule} gives each of {} sizes the order of {against} on {}.",
                grouped(one.count),
                on(one)
            )
        }
        (Some(against), [one]) => format!(
            "{rule} gives {} another order than {against} on {}: {} a larger one, {} a smaller one.",
            of_all(one),
            on(one),
            grouped(one.up),
            grouped(one.down)
        ),
        (Some(against), _) => {
            let most = machines.iter().rev().max_by_key(|machine| differ(machine));
            match most.filter(|most| differ(most) > 0) {
                Some(most) => format!(
                    "{rule} gives sizes another order than {against} on {} of {many} machines; most on {}: {}.",
                    machines.iter().filter(|machine| differ(machine) > 0).count(),
                    on(most),
                    of_all(most)
                ),
                None => format!("{rule} gives every size the order of {against} on all {many} machines."),
            }
        }
        (None, _) => {
            let orders = || machines.iter().flat_map(|machine| &machine.runs).map(|run| run.slab.order);
            let (least, most) = (orders().min().unwrap_or(0), orders().max().unwrap_or(0));
            let orders = match least == most {
                true => format!("order {least}"),
                false => format!("orders {least} to {most}"),
            };
            match machines {
                [one] => {
                    format!("{rule} gives {} sizes slabs of {orders} on {}.", grouped(one.count), on(one))
                }
                _ => format!("{rule} chooses {orders} on {many} machines."),
            }
        }
    }
}

/// Whose the rules are, and what was asked of one machine.
fn basis(question: &Question, machines: &[Machine]) -> Vec<String> {
    let rules = std::iter::once(question.rule).chain(question.against);
    let mut basis: Vec<String> = rules.map(|rule| format!("{}: {}", rule.name(), rule.whose())).collect();
    if let [one] = machines {
        let least = 1 << one.cpus.ilog2();
        let most = 2 * least - 1;
        let (pages, cpus, wanted, sizes) = (pages(one), one.cpus, one.wanted, one.sizes);
        let any = if most > least { format!(", or any from {least} to {most}") } else { String::new() };
        let (cpus, wanted) = (counted(cpus.into(), "CPU"), counted(wanted, "object"));
        basis.push(format!("{pages} pages, {cpus}{any}: {wanted} wanted"));
        basis.push(format!("sizes: {} to {} by {}", sizes.first, sizes.last, sizes.step));
    }
    basis
}

/// The columns of a run, with the slabs of both rules; those of the second are empty without it.
fn run_columns<'a>(question: &Question) -> Columns<Row<'a>> {
    let columns = Columns::<Row>::default()
        .key("page_size_bytes", |row| Cell::Count(row.0.page_size))
        .key("cpus", |row| Cell::Count(row.0.cpus.into()))
        .key("first_bytes", |row| Cell::Count(row.1.first.into()))
        .add("last_bytes", "to", "to", |row| Cell::Count(row.1.last.into()))
        .add("sizes", "sizes", "sizes", |row| Cell::Count(row.1.count));
    let against = question.against.map_or("", OrderRule::name);
    let columns = slabs_columns(columns, "", question.rule.name(), |run| Some(&run.slab));
    slabs_columns(columns, "_against", against, |run| run.against.as_ref())
}

/// Columns of the slabs that the rule of this name gives a run.
fn slabs_columns<'a>(
    columns: Columns<Row<'a>>,
    suffix: &str,
    rule: &'static str,
    slabs: fn(&Run) -> Option<&Slabs>,
) -> Columns<Row<'a>> {
    let cell = move |row: &Row, of: fn(&Slabs) -> u64| {
        slabs(row.1).map_or(Cell::Empty, |slabs| Cell::Count(of(slabs)))
    };
    let words = move |row: &Row, of: &dyn Fn(&Slabs) -> String| {
        slabs(row.1).map_or(Cell::Empty, |slabs| Cell::Text(of(slabs)))
    };
    columns
        .add(format!("order{suffix}"), rule, rule, move |row| cell(row, |slabs| slabs.order.into()))
        .key(format!("objects_first{suffix}"), move |row| cell(row, |slabs| slabs.objects_first))
        .key(format!("objects_last{suffix}"), move |row| cell(row, |slabs| slabs.objects_last))
        .key(format!("tail_bytes{suffix}"), move |row| cell(row, |slabs| slabs.tail))
        .people(format!("objects{suffix}"), "objects", "objects", move |row| {
            words(row, &|slabs| match (slabs.objects_first, slabs.objects_last) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first}..{last}"),
            })
        })
        .people(format!("tail{suffix}"), "tail", "tail", move |row| {
            words(row, &|slabs| format!("{:.1} %", slabs.tail_percent(row.0.page_size, row.1.count)))
        })
}

/// Numbers of sizes on a machine: those that differ, or those of each order.
fn machine_columns(question: &Question) -> Columns<Machine> {
    let columns = Columns::<Machine>::default()
        .add("cpus", "CPUs", "CPUs", |machine| Cell::Count(machine.cpus.into()))
        .add("wanted", "wanted", "objects wanted", |machine| Cell::Count(machine.wanted))
        .add("sizes", "sizes", "sizes", |machine| Cell::Count(machine.count));
    if question.against.is_some() {
        return columns
            .add("differ", "differ", "differ", |machine| Cell::Count(machine.up + machine.down))
            .add("up", "up", "larger order", |machine| Cell::Count(machine.up))
            .add("down", "down", "smaller order", |machine| Cell::Count(machine.down));
    }
    (0..=question.max_order).fold(columns, |columns, order| {
        let head = format!("order {order}");
        columns.add(head.clone(), head.clone(), head, move |machine| {
            let runs = machine.runs.iter().filter(|run| run.slab.order == order);
            Cell::Count(runs.map(|run| run.count).sum())
        })
    })
}
