//! Text for people, at most 80 columns wide.

use super::figures::counts;
use super::reconciled::reconciled;
use crate::output::doctor::title;
use crate::state::State;
use crate::whatif::errors::Range;
use crate::whatif::{Against, Prediction, Row, evidence, missing};
use slablab_report::text::{Table, cut, grouped, wrapped};
use slablab_report::visible;
use std::cmp::Reverse;

/// Predictions as text. One prediction is printed in detail, with this number of caches, and compared with
/// the boot that had the change. Several predictions are printed as one line each.
pub fn whatif_table(
    state: &State,
    predictions: &[Prediction],
    against: Option<&Against>,
    lines: usize,
) -> String {
    let mut out = match predictions {
        [one] => detail(state, one, lines),
        several => overview(state, several),
    };
    out += &wrapped(&reconciled(state), "", "  ");
    out += &against.map_or(String::new(), beside_reality);
    let of_changes = predictions.iter().flat_map(|prediction| prediction.assumed.iter().cloned());
    let lacking = missing(state)
        .map(|missing| format!("{}: {}; unknown: {}", missing.file, missing.why, missing.costs));
    let mut said: Vec<String> = Vec::new();
    for text in evidence(state).chain(of_changes).chain(lacking) {
        if !said.contains(&text) {
            said.push(text);
        }
    }
    if !said.is_empty() {
        out += "\nWhat the numbers assume\n";
        said.iter().for_each(|text| out += &wrapped(text, "- ", "  "));
    }
    visible::lines(&out).into_owned()
}

fn detail(state: &State, prediction: &Prediction, lines: usize) -> String {
    let mut out = wrapped(&format!("{}: {}", title(state), prediction.change), "", "  ") + "\n";
    let mut rows: Vec<&Row> = prediction.rows.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.today.bytes.abs_diff(row.whatif.bytes)), Reverse(row.whatif.bytes)));
    let mut table = Table::new(["Cache"].into_iter().chain(counts().map(|figure| figure.short)).chain([
        "KiB",
        "then",
        "Waste KiB",
    ]));
    for row in rows.iter().take(lines) {
        let counts = counts().map(|figure| beside(figure.both(row)));
        let kib = [row.today.bytes, row.whatif.bytes].map(|bytes| (bytes >> 10).to_string());
        let waste = beside([row.today.waste, row.whatif.waste].map(|bytes| bytes >> 10));
        table.row([name(row)].into_iter().chain(counts).chain(kib).chain([waste]));
    }
    if lines > 0 {
        out += &table.print();
    }
    if lines == 0 {
        out += &format!("Caches: none of {} listed (-N 0)\n", rows.len());
    } else if rows.len() > lines {
        out += &format!("... and {} more, those that change most first (-N)\n", rows.len() - lines);
    }
    out.push('\n');
    out + &totals(prediction)
}

fn totals(prediction: &Prediction) -> String {
    let (today, then) = (&prediction.today, &prediction.whatif);
    let mut table = Table::new(["All caches", "today", "then", "change"]);
    let mut add = |name: &str, today: u64, then: u64| {
        table.row([name.into(), grouped(today), grouped(then), percent(today, then)]);
    };
    let changed = prediction.rows.iter().filter(|row| row.today.order != row.whatif.order).count();
    add("slab memory, KiB", today.bytes >> 10, then.bytes >> 10);
    add("waste, KiB", today.waste >> 10, then.waste >> 10);
    add("slabs", today.slabs, then.slabs);
    add("objects", today.objects, then.objects);
    let range = match prediction.range {
        Range::Unchanged => format!("predicted: no change of slab memory: {}", prediction.range),
        Range::Unknown => format!(
            "predicted for the objects of today: {} KiB of slab memory ({}); {changed} caches change order",
            grouped(then.bytes >> 10),
            prediction.range
        ),
        range => format!(
            "predicted: {} to {} KiB of slab memory ({range}); {changed} caches change order",
            grouped(then.low >> 10),
            grouped(then.high >> 10)
        ),
    };
    table.print() + &wrapped(&range, "", "  ")
}

/// Compares the prediction with a boot that had the change.
fn beside_reality(against: &Against) -> String {
    let Against { caches, orders, objects_per_slab, sizes, .. } = against;
    let mut out = String::from("\nAgainst the boot that had the change\n");
    let exact = format!(
        "of {caches} caches in both, {orders} have the predicted order, {objects_per_slab} the predicted \
         objects per slab, {sizes} the predicted bytes per object"
    );
    out += &wrapped(&exact, "- ", "  ");
    for mismatch in &against.mismatches {
        let ((size, order, objects), real) = (mismatch.predicted, mismatch.real);
        let text = format!(
            "{}: predicted {objects} objects of {size} bytes in order {order}, measured {} of {} bytes in \
             order {}",
            mismatch.cache, real.2, real.0, real.1
        );
        out += &wrapped(&text, "  ", "    ");
    }
    if !against.only_one.is_empty() {
        let text = format!("in one of the two boots alone: {}", against.only_one.join(", "));
        out += &wrapped(&text, "- ", "  ");
    }
    let by_cpus = against
        .error_by_cpus
        .map_or(String::new(), |error| format!(", of the guess \"in proportion to CPUs\" {}", signed(error)));
    let memory = format!(
        "measured: {} KiB of slab memory; error of the prediction {}, of the guess \"no change\" {}{by_cpus}",
        grouped(against.real >> 10),
        signed(against.error),
        signed(against.error_unchanged)
    );
    out += &wrapped(&memory, "- ", "  ");
    let mut table = Table::new(["Largest errors", "predicted", "measured", "KiB"]);
    for (cache, predicted, real, bytes) in &against.worst {
        table.row([cut(cache, 20), predicted.to_string(), real.to_string(), format!("{:+}", bytes / 1024)]);
    }
    out + &table.print()
}

fn signed(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * ratio)
}

fn overview(state: &State, predictions: &[Prediction]) -> String {
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
        let changed = prediction.rows.iter().filter(|row| row.today.order != row.whatif.order).count();
        table.row([
            prediction.change.to_string(),
            changed.to_string(),
            then.slabs.to_string(),
            (then.bytes >> 10).to_string(),
            percent(today.bytes, then.bytes),
            (then.waste >> 10).to_string(),
        ]);
    }
    wrapped(&title(state), "", "  ") + "\n" + &table.print()
}

/// `3>0`, or one number where nothing changes.
fn beside([today, then]: [u64; 2]) -> String {
    if today == then { today.to_string() } else { format!("{today}>{then}") }
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
