//! The text of a what-if.

use super::columns::counts;
use crate::whatif::errors::Range;
use crate::whatif::sheaves::SCATTER;
use crate::whatif::{Against, Prediction, Row};
use slablab_report::Answer;
use slablab_report::text::{Table, cut, grouped};
use std::cmp::Reverse;

/// Columns that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 6] = ["O/S", "Waste KiB", "Slabs", "waste KiB", "slabs", "orders"];

/// The tables: one prediction in detail, with `lines` caches, or a line for each of several.
pub(super) fn tables(answer: Answer, predictions: &[Prediction], lines: usize) -> Answer {
    match predictions {
        [one] => detail(answer, one, lines),
        several => answer.table(overview(several), &LEFT_OUT),
    }
}

fn detail(answer: Answer, prediction: &Prediction, lines: usize) -> Answer {
    let mut rows: Vec<&Row> = prediction.rows.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.today.bytes.abs_diff(row.whatif.bytes)), Reverse(row.whatif.bytes)));
    let mut table = Table::new(["Cache"].into_iter().chain(counts().map(|figure| figure.short)).chain([
        "KiB",
        "then",
        "Waste KiB",
    ]));
    let is_known = prediction.range.unknown().is_none();
    let beside =
        |[today, then]: [u64; 2]| if is_known { beside([today, then]) } else { format!("{today}>?") };
    for row in rows.iter().take(lines) {
        let counts = counts().map(|figure| match figure.is_layout {
            true => self::beside(figure.both(row)),
            false => beside(figure.both(row)),
        });
        let then = if is_known { (row.whatif.bytes >> 10).to_string() } else { "?".into() };
        let kib = [(row.today.bytes >> 10).to_string(), then];
        let waste = beside([row.today.waste, row.whatif.waste].map(|bytes| bytes >> 10));
        table.row([name(row)].into_iter().chain(counts).chain(kib).chain([waste]));
    }
    let answer = match rows.len().saturating_sub(lines) {
        0 => answer.table(table, &LEFT_OUT),
        all if lines == 0 => answer.line(format!("Caches: none of {all} listed (-N 0)")),
        more => answer
            .table(table, &LEFT_OUT)
            .line(format!("... and {more} more, those that change most first (-N)")),
    };
    answer.table(totals(prediction), &[]).line(range(prediction))
}

fn totals(prediction: &Prediction) -> Table {
    let (today, then) = (&prediction.today, &prediction.whatif);
    let mut table = Table::new(["All caches", "today", "then", "change"]);
    let mut add = |name: &str, today: u64, then: u64| {
        let (then, change) = match prediction.range.unknown() {
            Some(_) => ("?".into(), "?".into()),
            None => (grouped(then), self::change(prediction, today, then)),
        };
        table.row([name.into(), grouped(today), then, change]);
    };
    add("slab memory, KiB", today.bytes >> 10, then.bytes >> 10);
    add("waste, KiB", today.waste >> 10, then.waste >> 10);
    add("slabs", today.slabs, then.slabs);
    add("objects", today.objects, then.objects);
    table
}

fn range(prediction: &Prediction) -> String {
    let (then, changed) = (&prediction.whatif, reordered(prediction));
    match prediction.range {
        Range::Unchanged => format!("predicted: no change of slab memory: {}", prediction.range),
        Range::Unknown(_) => {
            format!("slab memory is {}; {changed} caches change order", prediction.range)
        }
        range => format!(
            "predicted: {} to {} KiB of slab memory ({range}); {changed} caches change order",
            grouped(then.low >> 10),
            grouped(then.high >> 10)
        ),
    }
}

/// Caches whose order changes.
pub(super) fn reordered(prediction: &Prediction) -> usize {
    prediction.rows.iter().filter(|row| row.today.order != row.whatif.order).count()
}

/// Compares the prediction with a boot that had the change.
pub(super) fn beside_reality(answer: Answer, against: &Against) -> Answer {
    let Against { caches, orders, objects_per_slab, sizes, .. } = against;
    let exact = format!(
        "of {caches} caches in both, {orders} have the predicted order, {objects_per_slab} the predicted \
         objects per slab, {sizes} the predicted bytes per object"
    );
    let mismatches = against.mismatches.iter().map(|of| {
        format!(
            "{}: predicted {} objects of {} bytes in order {}, measured {} of {} bytes in order {}",
            of.cache,
            of.objects_per_slab,
            of.size,
            of.order,
            of.real_objects_per_slab,
            of.real_size,
            of.real_order
        )
    });
    let answer = answer.heading("Against the boot that had the change").entry(exact, mismatches);
    let answer = match against.only_one.as_slice() {
        [] => answer,
        some => answer.line(format!("in one of the two boots alone: {}", some.join(", "))),
    };
    let by_cpus = against
        .error_by_cpus
        .map_or(String::new(), |error| format!(", of the guess \"in proportion to CPUs\" {}", signed(error)));
    let memory = format!(
        "measured: {} KiB of slab memory; error of the prediction {}, of the guess \"no change\" {}{by_cpus}",
        grouped(against.real >> 10),
        signed(against.error),
        signed(against.error_unchanged)
    );
    let mut table = Table::new(["Largest errors", "predicted", "measured", "KiB"]);
    for off in &against.worst {
        let [slabs, real] = [off.slabs, off.real_slabs].map(|slabs| slabs.to_string());
        table.row([cut(&off.cache, 20), slabs, real, format!("{:+}", off.bytes / 1024)]);
    }
    answer.line(memory).table(table, &[])
}

fn signed(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * ratio)
}

fn overview(predictions: &[Prediction]) -> Table {
    let today = predictions.first().map(|prediction| prediction.today).unwrap_or_default();
    let mut table = Table::new(["What if", "orders", "slabs", "KiB", "change", "waste KiB"]);
    table.row([
        "today".into(),
        String::new(),
        today.slabs.to_string(),
        (today.bytes >> 10).to_string(),
        String::new(),
        (today.waste >> 10).to_string(),
    ]);
    for prediction in predictions {
        let then = &prediction.whatif;
        let known = |text: String| if prediction.range.unknown().is_some() { "?".into() } else { text };
        table.row([
            prediction.change.to_string(),
            reordered(prediction).to_string(),
            known(then.slabs.to_string()),
            known((then.bytes >> 10).to_string()),
            known(change(prediction, today.bytes, then.bytes)),
            known((then.waste >> 10).to_string()),
        ]);
    }
    table
}

/// `3>0`, or one number where nothing changes.
fn beside([today, then]: [u64; 2]) -> String {
    if today == then { today.to_string() } else { format!("{today}>{then}") }
}

/// The change of a figure in percent. A model never tells that nothing changes: boots of one kernel differ.
fn change(prediction: &Prediction, today: u64, then: u64) -> String {
    let said = percent(today, then);
    match prediction.range {
        Range::Modelled { .. } if said.ends_with("0.0 %") && said.len() == "+0.0 %".len() => {
            format!("within {:.0} %", 100.0 * SCATTER)
        }
        _ => said,
    }
}

fn percent(today: u64, then: u64) -> String {
    if today == 0 { "-".into() } else { format!("{:+.1} %", 100.0 * (then as f64 / today as f64 - 1.0)) }
}

/// The cache's name, with its ordinal if it is not the first cache of that name.
fn name(row: &Row) -> String {
    const WIDEST: usize = 20;
    let ordinal = if row.ordinal > 0 { format!("#{}", row.ordinal + 1) } else { String::new() };
    cut(&row.cache, WIDEST.saturating_sub(ordinal.len())) + &ordinal
}
