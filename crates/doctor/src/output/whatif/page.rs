//! The page of a what-if: slab memory over the values of a knob, or today and then, cache by cache.

use super::columns::counts;
use super::text::reordered;
use crate::whatif::{Against, Change, Prediction, Row, Total};
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Bar, Bars, Lines, Pair, Pairs, Scale, Series, Shape};
use slablab_report::html::{Cell, Head, Table, number};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// All predictions over a knob, and the one that takes least with at most `listed` caches.
pub(super) fn sections(answer: Answer, predictions: &[Prediction], listed: usize) -> Answer {
    let Some(least) = predictions.iter().min_by_key(|prediction| prediction.whatif.bytes) else {
        return answer;
    };
    let answer = match predictions.len() {
        1 => answer,
        _ => curves(answer.section("Slab memory"), predictions)
            .section(&format!("The least slab memory: {}", least.change)),
    };
    let answer = detail(answer, least, listed);
    match least.unexplained.as_slice() {
        [] => answer,
        some => answer.paragraph(&format!(
            "The rules do not give today's order of {}: their predicted orders may be wrong too.",
            some.join(", ")
        )),
    }
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
fn curves(answer: Answer, predictions: &[Prediction]) -> Answer {
    let with_values =
        KNOBS.iter().enumerate().map(|(at, knob)| (knob.values(predictions), Reverse(at), knob));
    let knob = with_values.max_by_key(|(values, at, _)| (*values, *at)).filter(|(values, ..)| *values > 1);
    let table = overview(predictions);
    let Some((_, _, knob)) = knob else {
        return answer.figure("Slab memory today and with each change.", bars(predictions), table);
    };
    let range = |total: &Total| Some((total.low, total.high));
    answer
        .figure(
            "All slabs, with the range that the theory allows.",
            lines(predictions, knob, |total| total.bytes, range, "slab memory"),
            table,
        )
        .figure(
            "The tails of all slabs: memory behind the last object.",
            lines(predictions, knob, |total| total.waste, |_| None, "waste"),
            waste_table(predictions),
        )
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
    let known = predictions.iter().filter(|prediction| prediction.range.unknown().is_none());
    let then = known.map(|prediction| bar(prediction.change.to_string(), &prediction.whatif));
    Bars {
        parts: PARTS.map(String::from).to_vec(),
        first_colour: 0,
        bars: today.into_iter().chain(then).collect(),
        axis: Axis::new("slab memory", Scale::Bytes),
        remainder: false,
    }
}

fn change(today: u64, then: u64) -> Cell {
    Cell::Percent((today > 0).then(|| 100.0 * (then as f64 / today as f64 - 1.0)))
}

/// A figure of a prediction, or a question mark where slab memory is not predicted.
fn known(prediction: &Prediction, cell: Cell) -> Cell {
    if prediction.range.unknown().is_some() { Cell::Text("?".into()) } else { cell }
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
            Cell::Count(reordered(prediction) as u64),
            known(prediction, Cell::Count(then.slabs)),
            known(prediction, Cell::Bytes(then.bytes)),
            known(prediction, change(prediction.today.bytes, then.bytes)),
            known(prediction, Cell::Bytes(then.low)),
            known(prediction, Cell::Bytes(then.high)),
            known(prediction, Cell::Bytes(then.waste)),
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
    for one in predictions {
        let Prediction { change: what, today, whatif, .. } = one;
        let cells =
            [Cell::Bytes(whatif.waste), Cell::Percent(share(whatif)), change(today.waste, whatif.waste)];
        table.row([Cell::Name(what.to_string())].into_iter().chain(cells.map(|cell| known(one, cell))));
    }
    table
}

/// One change: the sums, then the caches that change most.
fn detail(answer: Answer, prediction: &Prediction, listed: usize) -> Answer {
    let (today, then) = (&prediction.today, &prediction.whatif);
    let answer = answer.facts([
        ("Slab memory today", Cell::Bytes(today.bytes)),
        ("then", known(prediction, Cell::Bytes(then.bytes))),
        ("change", known(prediction, change(today.bytes, then.bytes))),
        ("Waste today", Cell::Bytes(today.waste)),
        ("then", known(prediction, Cell::Bytes(then.waste))),
        ("Orders changed", Cell::Count(reordered(prediction) as u64)),
    ]);
    let mut rows: Vec<&Row> = prediction.rows.iter().filter(|row| row.today != row.whatif).collect();
    if rows.is_empty() {
        return answer.paragraph("No cache would be any different.");
    }
    let apart = |row: &Row| row.today.bytes.abs_diff(row.whatif.bytes);
    rows.sort_by_key(|row| (Reverse(apart(row)), Reverse(row.whatif.bytes), &row.cache, row.ordinal));
    let most = &rows[..listed.min(rows.len())];
    let pair =
        |row: &&Row| Pair { label: name(row), values: [row.today.bytes as f64, row.whatif.bytes as f64] };
    let chart = Pairs {
        names: ["today".into(), "then".into()],
        rows: most.iter().map(pair).collect(),
        axis: Axis::new("slab memory", Scale::Bytes),
    };
    let caption = format!("The {} caches that change most, of {} that change.", most.len(), rows.len());
    match prediction.range.unknown() {
        Some(_) => answer.page_table(&caption, rows_table(prediction, most)),
        None => answer.figure(&caption, chart, rows_table(prediction, most)),
    }
}

/// Compares the prediction with a boot that had the change, and with two guesses without a model.
pub(super) fn real(answer: Answer, prediction: &Prediction, against: &Against) -> Answer {
    let exact = |count: usize| Cell::Text(format!("{count} of {}", against.caches));
    let answer = answer
        .section("A boot that had the change")
        .facts([
            ("Sizes exact", exact(against.sizes)),
            ("Orders exact", exact(against.orders)),
            ("Objects in a slab exact", exact(against.objects_per_slab)),
        ])
        .page_table("Slab memory of all caches.", memory_table(prediction, against));
    let columns = ["slabs predicted", "slabs of the boot", "predicted beyond it"].map(Head::number);
    let mut table = Table::new([Head::text("cache")].into_iter().chain(columns));
    for off in &against.worst {
        let counts = [Cell::Count(off.slabs), Cell::Count(off.real_slabs), Cell::ByteChange(off.bytes)];
        table.row([Cell::Name(off.cache.clone())].into_iter().chain(counts));
    }
    let answer = answer.page_table("The caches that are off most.", table);
    if against.mismatches.is_empty() {
        return answer;
    }
    let columns =
        ["size", "size of the boot", "order", "order of the boot", "objects", "objects of the boot"];
    let mut table = Table::new([Head::text("cache")].into_iter().chain(columns.map(Head::number)));
    for of in &against.mismatches {
        let [order, real_order] = [of.order, of.real_order].map(u64::from);
        let sizes = [of.size, of.real_size, order, real_order, of.objects_per_slab, of.real_objects_per_slab];
        table.row([Cell::Name(of.cache.clone())].into_iter().chain(sizes.map(Cell::Count)));
    }
    answer.page_table("Caches whose slabs are of another shape than predicted.", table)
}

/// The memory of a boot, as predicted, and by two guesses.
fn memory_table(prediction: &Prediction, against: &Against) -> Table {
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
    table
}

fn name(row: &Row) -> String {
    if row.ordinal == 0 { row.cache.clone() } else { format!("{}#{}", row.cache, row.ordinal + 1) }
}

fn rows_table(prediction: &Prediction, rows: &[&Row]) -> Table {
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
            known(prediction, Cell::Bytes(then.bytes)),
            known(prediction, Cell::ByteChange(change)),
            Cell::Bytes(today.waste),
            known(prediction, Cell::Bytes(then.waste)),
        ];
        let counts = counts().map(|figure| match figure.is_layout {
            true => both(figure.both(row)),
            false => known(prediction, both(figure.both(row))),
        });
        table.row([Cell::Name(name(row))].into_iter().chain(counts).chain(memory));
    }
    table
}
