//! The page of a what-if: slab memory over the values of a knob, or today and then, cache by cache.

use super::figures::counts;
use super::reconciled::reconciled;
use crate::output::doctor::machine;
use crate::state::State;
use crate::whatif::errors::Range;
use crate::whatif::{Against, Change, Prediction, Row, Total};
use slablab_report::html::chart::{Axis, Bar, Bars, Lines, Pair, Pairs, Scale, Series, Shape};
use slablab_report::html::{Cell, Head, Page, Table, number};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Predictions as a page: all of them over a knob, the one that takes least with at most `lines` caches, and
/// how right it was where a boot tells. `command` is what made it.
pub fn whatif_page(
    state: &State,
    predictions: &[Prediction],
    against: Option<&Against>,
    command: &str,
    lines: usize,
) -> String {
    let mut page = Page::new(&format!("What if: slab memory of {}", machine(state)), command);
    page.lede(&lede(predictions));
    let least = predictions.iter().min_by_key(|prediction| prediction.whatif.bytes);
    if let (Some(least), true) = (least, predictions.len() > 1) {
        page.section("Slab memory");
        curves(predictions, &mut page);
        page.section(&format!("The least slab memory: {}", least.change));
    }
    if let Some(prediction) = least {
        detail(prediction, lines, &mut page);
        page.note(&format!("{}.", reconciled(state)));
        if let Some(against) = against {
            real(prediction, against, &mut page);
        }
    }
    page.evidence(&evidence(state, predictions));
    page.finish()
}

fn lede(predictions: &[Prediction]) -> String {
    let Some(least) = predictions.iter().min_by_key(|prediction| prediction.whatif.bytes) else {
        return "Nothing was asked.".into();
    };
    let (today, then) = (&least.today, &least.whatif);
    let range = match least.range {
        Range::Unknown => format!("{} ({})", number::bytes(then.bytes), least.range),
        _ => format!(
            "{} ({} to {})",
            number::bytes(then.bytes),
            number::bytes(then.low),
            number::bytes(then.high)
        ),
    };
    let now = number::bytes(today.bytes);
    if predictions.len() == 1 {
        return format!("Slabs take {now} today. With {} they would take {range}.", least.change);
    }
    format!(
        "Slabs take {now} today. Of {} changes, {} gives the least slab memory: {range}.",
        predictions.len(),
        least.change
    )
}

/// A knob whose values are numbers.
struct Knob {
    axis: fn() -> Axis,
    get: fn(&Change) -> Option<u64>,
    /// The change as it is without this knob.
    without: fn(Change) -> Change,
}

/// The knobs that can be the horizontal axis, by preference.
const KNOBS: [Knob; 5] = [
    Knob {
        axis: || Axis::new("slub_max_order", Scale::Whole),
        get: |change| change.max_order.map(u64::from),
        without: |change| Change { max_order: None, ..change },
    },
    Knob {
        axis: || Axis::new("CPUs, each doubling as wide as the next", Scale::Doublings),
        get: |change| change.cpus.map(u64::from),
        without: |change| Change { cpus: None, ..change },
    },
    Knob {
        axis: || Axis::new("page size, each doubling as wide as the next", Scale::ByteDoublings),
        get: |change| change.page_size,
        without: |change| Change { page_size: None, ..change },
    },
    Knob {
        axis: || Axis::new("slub_min_objects", Scale::Whole),
        get: |change| change.min_objects.map(u64::from),
        without: |change| Change { min_objects: None, ..change },
    },
    Knob {
        axis: || Axis::new("slub_min_order", Scale::Whole),
        get: |change| change.min_order.map(u64::from),
        without: |change| Change { min_order: None, ..change },
    },
];

impl Knob {
    /// How many values the changes give it; 0 if some change leaves it alone.
    fn values(&self, predictions: &[Prediction]) -> usize {
        let values = predictions.iter().map(|prediction| (self.get)(&prediction.change));
        let mut values: Vec<u64> = values.collect::<Option<_>>().unwrap_or_default();
        values.sort_unstable();
        values.dedup();
        values.len()
    }
}

/// Memory and waste of every change: over the knob with most values if there is one, else as bars.
fn curves(predictions: &[Prediction], page: &mut Page) {
    let with_values =
        KNOBS.iter().enumerate().map(|(at, knob)| (knob.values(predictions), Reverse(at), knob));
    let knob = with_values.max_by_key(|(values, at, _)| (*values, *at)).filter(|(values, ..)| *values > 1);
    let table = overview(predictions);
    let Some((_, _, knob)) = knob else {
        page.figure("Slab memory today and with each change.", &bars(predictions), &table);
        return;
    };
    page.figure(
        "All slabs, with the range that the theory allows.",
        &lines(predictions, knob, |total| total.bytes, |total| Some((total.low, total.high)), "slab memory"),
        &table,
    );
    page.figure(
        "The tails of all slabs: memory behind the last object.",
        &lines(predictions, knob, |total| total.waste, |_| None, "waste"),
        &waste_table(predictions),
    );
}

fn lines(
    predictions: &[Prediction],
    knob: &Knob,
    value: fn(&Total) -> u64,
    range: fn(&Total) -> Option<(u64, u64)>,
    label: &str,
) -> Lines {
    // Series in the order in which they were asked for, points from left to right.
    let mut names: Vec<String> = Vec::new();
    let mut points: BTreeMap<(usize, u64), &Total> = BTreeMap::new();
    for prediction in predictions {
        let rest = (knob.without)(prediction.change);
        let name = if rest == Change::default() { "then".into() } else { rest.to_string() };
        let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        points.insert((at, (knob.get)(&prediction.change).unwrap_or(0)), &prediction.whatif);
    }
    let mut series: Vec<Series> =
        names.into_iter().map(|name| Series { name, ..Series::default() }).collect();
    for ((at, x), total) in &points {
        series[*at].points.push((*x as f64, value(total) as f64));
        series[*at].band.extend(range(total).map(|(low, high)| (low as f64, high as f64)));
    }
    let today = predictions.first().map_or(0, |prediction| value(&prediction.today)) as f64;
    let xs = || points.keys().map(|(_, x)| *x);
    let ends = [xs().min(), xs().max()].into_iter().flatten();
    series.push(Series {
        name: "today".into(),
        points: ends.map(|x| (x as f64, today)).collect(),
        ..Series::default()
    });
    Lines { x: (knob.axis)(), y: Axis::new(label, Scale::Bytes), shape: Shape::Straight, series }
}

/// What a slab is made of, as bars name it.
const PARTS: [&str; 2] = ["room for objects", "tail of slabs"];

fn bars(predictions: &[Prediction]) -> Bars {
    let bar = |label: String, total: &Total| Bar {
        label,
        values: vec![total.bytes.saturating_sub(total.waste) as f64, total.waste as f64],
    };
    let today = predictions.first().map(|prediction| bar("today".into(), &prediction.today));
    let then = predictions.iter().map(|prediction| bar(prediction.change.to_string(), &prediction.whatif));
    Bars {
        parts: PARTS.map(String::from).to_vec(),
        first_colour: 0,
        bars: today.into_iter().chain(then).collect(),
        axis: Axis::new("slab memory", Scale::Bytes),
        remainder: false,
    }
}

/// Caches whose order changes.
fn reordered(prediction: &Prediction) -> u64 {
    prediction.rows.iter().filter(|row| row.today.order != row.whatif.order).count() as u64
}

fn change(today: u64, then: u64) -> Cell {
    Cell::Percent((today > 0).then(|| 100.0 * (then as f64 / today as f64 - 1.0)))
}

fn overview(predictions: &[Prediction]) -> Table {
    let columns = ["orders", "slabs", "memory", "change", "least", "most", "waste"];
    let mut table = Table::new([Head::text("what if")].into_iter().chain(columns.map(Head::number)));
    if let Some(first) = predictions.first() {
        let today = &first.today;
        table.row([
            Cell::Text("today".into()),
            Cell::Empty,
            Cell::Count(today.slabs),
            Cell::Bytes(today.bytes),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Bytes(today.waste),
        ]);
    }
    for prediction in predictions {
        let then = &prediction.whatif;
        table.row([
            Cell::Name(prediction.change.to_string()),
            Cell::Count(reordered(prediction)),
            Cell::Count(then.slabs),
            Cell::Bytes(then.bytes),
            change(prediction.today.bytes, then.bytes),
            Cell::Bytes(then.low),
            Cell::Bytes(then.high),
            Cell::Bytes(then.waste),
        ]);
    }
    table
}

fn waste_table(predictions: &[Prediction]) -> Table {
    let columns = ["waste", "of slab memory", "change"].map(Head::number);
    let mut table = Table::new([Head::text("what if")].into_iter().chain(columns));
    let share = |total: &Total| (total.bytes > 0).then(|| 100.0 * total.waste as f64 / total.bytes as f64);
    if let Some(first) = predictions.first() {
        let today = &first.today;
        let cells = [Cell::Bytes(today.waste), Cell::Percent(share(today)), Cell::Empty];
        table.row([Cell::Text("today".into())].into_iter().chain(cells));
    }
    for Prediction { change: what, today, whatif, .. } in predictions {
        let cells =
            [Cell::Bytes(whatif.waste), Cell::Percent(share(whatif)), change(today.waste, whatif.waste)];
        table.row([Cell::Name(what.to_string())].into_iter().chain(cells));
    }
    table
}

/// One change: the sums, then the caches that change most.
fn detail(prediction: &Prediction, lines: usize, page: &mut Page) {
    let (today, then) = (&prediction.today, &prediction.whatif);
    page.facts([
        ("Slab memory today", Cell::Bytes(today.bytes)),
        ("then", Cell::Bytes(then.bytes)),
        ("change", change(today.bytes, then.bytes)),
        ("Waste today", Cell::Bytes(today.waste)),
        ("then", Cell::Bytes(then.waste)),
        ("Orders changed", Cell::Count(reordered(prediction))),
    ]);
    let mut rows: Vec<&Row> = prediction.rows.iter().filter(|row| row.today != row.whatif).collect();
    if rows.is_empty() {
        page.text("No cache would be any different.");
        return;
    }
    let apart = |row: &Row| row.today.bytes.abs_diff(row.whatif.bytes);
    rows.sort_by_key(|row| (Reverse(apart(row)), Reverse(row.whatif.bytes), &row.cache, row.ordinal));
    let most = &rows[..lines.min(rows.len())];
    let pair =
        |row: &&Row| Pair { label: name(row), values: [row.today.bytes as f64, row.whatif.bytes as f64] };
    let chart = Pairs {
        names: ["today".into(), "then".into()],
        rows: most.iter().map(pair).collect(),
        axis: Axis::new("slab memory", Scale::Bytes),
    };
    page.figure(
        &format!("The {} caches that change most, of {} that change.", most.len(), rows.len()),
        &chart,
        &rows_table(most),
    );
}

/// Compares the prediction with a boot that had the change, and with two guesses without a model.
fn real(prediction: &Prediction, against: &Against, page: &mut Page) {
    page.section("A boot that had the change");
    let exact = |count: usize| Cell::Text(format!("{count} of {}", against.caches));
    page.facts([
        ("Sizes exact", exact(against.sizes)),
        ("Orders exact", exact(against.orders)),
        ("Objects in a slab exact", exact(against.objects_per_slab)),
    ]);
    let percent = |error: f64| Cell::Percent(Some(100.0 * error));
    let mut table = Table::new([Head::text(""), Head::number("slab memory"), Head::number("error")]);
    table.row([Cell::Text("the boot".into()), Cell::Bytes(against.real), Cell::Empty]);
    let then = prediction.whatif.bytes;
    table.row([Cell::Text("predicted".into()), Cell::Bytes(then), percent(against.error)]);
    let today = prediction.today.bytes;
    let unchanged = Cell::Text("guess: as today".into());
    table.row([unchanged, Cell::Bytes(today), percent(against.error_unchanged)]);
    if let Some(error) = against.error_by_cpus {
        let guess = (against.real as f64 * (1.0 + error)) as u64;
        table.row([Cell::Text("guess: by CPUs".into()), Cell::Bytes(guess), percent(error)]);
    }
    page.table("Slab memory of all caches.", &table);
    let columns = ["slabs predicted", "slabs of the boot", "predicted beyond it"].map(Head::number);
    let mut table = Table::new([Head::text("cache")].into_iter().chain(columns));
    for (cache, predicted, real, bytes) in &against.worst {
        let counts = [Cell::Count(*predicted), Cell::Count(*real), Cell::ByteChange(*bytes)];
        table.row([Cell::Name(cache.clone())].into_iter().chain(counts));
    }
    page.table("The caches that are off most.", &table);
    if against.mismatches.is_empty() {
        return;
    }
    let columns =
        ["size", "size of the boot", "order", "order of the boot", "objects", "objects of the boot"];
    let mut table = Table::new([Head::text("cache")].into_iter().chain(columns.map(Head::number)));
    for mismatch in &against.mismatches {
        let (predicted, real) = (mismatch.predicted, mismatch.real);
        let order = |order: u32| Cell::Count(order.into());
        table.row([
            Cell::Name(mismatch.cache.clone()),
            Cell::Count(predicted.0),
            Cell::Count(real.0),
            order(predicted.1),
            order(real.1),
            Cell::Count(predicted.2),
            Cell::Count(real.2),
        ]);
    }
    page.table("Caches whose slabs are of another shape than predicted.", &table);
}

fn name(row: &Row) -> String {
    if row.ordinal == 0 { row.cache.clone() } else { format!("{}#{}", row.cache, row.ordinal + 1) }
}

fn rows_table(rows: &[&Row]) -> Table {
    let columns =
        counts().map(|figure| figure.head).chain(["slab memory", "then", "change", "waste", "then"]);
    let mut table = Table::new([Head::text("cache")].into_iter().chain(columns.map(Head::number)));
    // Two numbers where something changes.
    let both = |[today, then]: [u64; 2]| match today == then {
        true => Cell::Count(today),
        false => Cell::Text(format!("{} \u{2192} {}", number::count(today), number::count(then))),
    };
    for row in rows {
        let (today, then) = (&row.today, &row.whatif);
        let change = (i128::from(then.bytes) - i128::from(today.bytes)) as i64;
        let memory = [
            Cell::Bytes(today.bytes),
            Cell::Bytes(then.bytes),
            Cell::ByteChange(change),
            Cell::Bytes(today.waste),
            Cell::Bytes(then.waste),
        ];
        let counts = counts().map(|figure| both(figure.both(row)));
        table.row([Cell::Name(name(row))].into_iter().chain(counts).chain(memory));
    }
    table
}

/// What the numbers assume, each sentence once, and the caches that the rules do not explain.
fn evidence(state: &State, predictions: &[Prediction]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let all = state.assumed.iter().chain(predictions.iter().flat_map(|prediction| &prediction.assumed));
    for text in all {
        if !said.contains(text) {
            said.push(text.clone());
        }
    }
    if let Some(unexplained) = predictions.first().map(|prediction| &prediction.unexplained)
        && !unexplained.is_empty()
    {
        said.push(format!(
            "the rules do not give today's order of {}: their predicted orders may be wrong too",
            unexplained.join(", ")
        ));
    }
    said
}
