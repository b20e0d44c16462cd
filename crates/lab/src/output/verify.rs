//! A verification, predicted beside real, value by value: text, CSV and a page.

use super::replay::{facts, remarks};
use crate::replay::Replay;
use crate::verify::counters::ALL;
use crate::verify::{Change, Compared, Counter, Skill, Tally, Values, Verified};
use slablab_report::csv::Csv;
use slablab_report::html::chart::{Axis, Pair, Pairs, Scale};
use slablab_report::html::{Cell, Head, Page, Table, name_of, number};
use slablab_report::text;

/// Rows of a figure; its table has all.
const ROWS: usize = 24;

/// A verification as a page; `command` is what made it.
pub fn verify_page(verified: &Verified, replay: &Replay, command: &str) -> String {
    let mut page = Page::new(&format!("Model and kernel: {}", name_of(&replay.path)), command);
    match &verified.compared {
        Compared::Changes(changes, skill) => changes_page(&mut page, changes, *skill, replay),
        Compared::Counters(counters) => counters_page(&mut page, counters, replay),
    }
    let evidence: Vec<String> = verified.summary.iter().cloned().chain(remarks(replay)).collect();
    page.evidence(&evidence);
    page.finish()
}

fn engine(replay: &Replay) -> String {
    replay.outcomes.first().map_or(String::new(), |outcome| outcome.engine().to_string())
}

fn pairs(names: [&str; 2], axis: Axis, rows: Vec<Pair>) -> Pairs {
    Pairs { names: names.map(String::from), rows, axis }
}

fn changes_page(page: &mut Page, changes: &[Change], skill: Skill, replay: &Replay) {
    let sum = |of: fn(&Change) -> i64| changes.iter().map(of).sum::<i64>();
    let (real, predicted) = (sum(|change| change.real.slab_bytes), sum(|change| change.predicted.slab_bytes));
    page.lede(&format!(
        "Between the two dumps slab memory changed by {}; {} predicts {}. The skill in bytes of slabs is {}: 1 would be perfect, 0 is what predicting no change would get.",
        number::signed_bytes(real),
        engine(replay),
        number::signed_bytes(predicted),
        number::fixed(skill.slabs, 3)
    ));
    let exact = changes.iter().filter(|change| change.error_bytes() == 0).count();
    page.facts([
        ("Skill, slabs", Cell::Number(skill.slabs, 3)),
        ("Skill, active objects", Cell::Number(skill.objects, 3)),
        ("Real change", Cell::ByteChange(real)),
        ("Predicted", Cell::ByteChange(predicted)),
        ("Exact, of caches that changed", Cell::Text(format!("{exact} of {}", changes.len()))),
    ]);
    page.section("Slabs");
    change_figure(
        page,
        "Change of slab memory, cache by cache, the largest first.",
        changes,
        &|change| (change.real.slab_bytes, change.predicted.slab_bytes),
        &change_table(changes),
    );
    page.section("Objects");
    page.text("Objects as the kernel counts them: those parked at CPUs are active, so that what is parked moves this count.");
    change_figure(
        page,
        "Change of the memory of active objects, cache by cache, the largest first.",
        changes,
        &Change::active_bytes,
        &objects_table(changes),
    );
    page.section("The recording and the machine");
    facts(replay, page);
}

fn change_figure(
    page: &mut Page,
    caption: &str,
    changes: &[Change],
    bytes: &dyn Fn(&Change) -> (i64, i64),
    table: &Table,
) {
    let mut rows: Vec<(&Change, [i64; 2])> =
        changes.iter().map(|change| (change, bytes(change).into())).collect();
    rows.retain(|row| row.1 != [0, 0]);
    let largest = |row: &(&Change, [i64; 2])| row.1.map(i64::unsigned_abs).into_iter().max();
    rows.sort_by_key(|row| (std::cmp::Reverse(largest(row)), row.0.name.clone()));
    rows.truncate(ROWS);
    let pair = |(change, bytes): &(&Change, [i64; 2])| Pair {
        label: change.name.clone(),
        values: bytes.map(|bytes| bytes as f64),
    };
    let chart =
        pairs(["real", "predicted"], Axis::new("change", Scale::Bytes), rows.iter().map(pair).collect());
    page.figure(caption, &chart, table);
}

fn change_table(changes: &[Change]) -> Table {
    let columns = ["slabs before", "real", "predicted", "error"].map(Head::number);
    let mut table = Table::new([Head::text("cache")].into_iter().chain(columns).chain([Head::text("why")]));
    for change in changes {
        table.row([
            Cell::Name(change.name.clone()),
            Cell::Count(change.start.0),
            Cell::Change(change.real.slabs),
            Cell::Change(change.predicted.slabs),
            Cell::Bytes(change.error_bytes()),
            if change.real == change.predicted { Cell::Empty } else { Cell::Text(change.cause.clone()) },
        ]);
    }
    table
}

fn objects_table(changes: &[Change]) -> Table {
    let columns = ["active before", "real", "predicted"].map(Head::number);
    let size = Head::number("object").unit("bytes");
    let mut table = Table::new([Head::text("cache"), size].into_iter().chain(columns));
    for change in changes {
        table.row([
            Cell::Name(change.name.clone()),
            Cell::Count(change.bytes.1),
            Cell::Count(change.start.1),
            Cell::Change(change.real.active),
            Cell::Change(change.predicted.active),
        ]);
    }
    table
}

fn counters_page(page: &mut Page, counters: &[Counter], replay: &Replay) {
    let tally = Tally::of(counters);
    page.lede(&format!(
        "Every counter of a kernel with SLUB_STATS beside what {} counts: {} of {} are exact.",
        engine(replay),
        tally.exact,
        tally.counters
    ));
    page.section("All caches together");
    let all: Vec<&Counter> = counters.iter().filter(|counter| counter.cache == ALL).collect();
    let pair = |counter: &&Counter| match counter.values {
        Values::Counts(real, predicted) => {
            Pair { label: counter.counter.clone(), values: [real as f64, predicted as f64] }
        }
        Values::Percent(real, predicted) => {
            Pair { label: counter.counter.clone(), values: [real, predicted] }
        }
    };
    let chart = pairs(
        ["real", "predicted"],
        Axis::new("count, each doubling as wide as the next", Scale::Doublings),
        all.iter().map(pair).collect(),
    );
    page.figure(
        "Counters over all caches whose trace is complete. What was never counted stands at the left end.",
        &chart,
        &counter_table(&all),
    );
    page.section("Fast paths");
    let percents: Vec<&Counter> =
        counters.iter().filter(|counter| matches!(counter.values, Values::Percent(..))).collect();
    let label = |counter: &&Counter| Pair {
        label: format!("{} {}", counter.cache, counter.counter.trim_end_matches(" %")),
        ..pair(counter)
    };
    let mut rows: Vec<Pair> = percents.iter().map(label).collect();
    let apart = |pair: &Pair| (pair.values[0] - pair.values[1]).abs();
    rows.sort_by(|a, b| apart(b).total_cmp(&apart(a)).then_with(|| a.label.cmp(&b.label)));
    rows.truncate(ROWS);
    let chart = pairs(["real", "predicted"], Axis::new("served by the fast path", Scale::Percent), rows);
    page.figure(
        "Share of the fast path, the caches where model and kernel differ most.",
        &chart,
        &counter_table(&percents),
    );
    page.section("Every cache");
    let each: Vec<&Counter> = counters.iter().filter(|counter| counter.cache != ALL).collect();
    page.table("Every counter of every cache whose trace is complete.", &counter_table(&each));
    page.section("The recording and the machine");
    facts(replay, page);
}

/// Counters under the name of their cache.
fn counter_table(counters: &[&Counter]) -> Table {
    let columns = ["real", "predicted", "difference", "of real"].map(Head::number);
    let mut table = Table::new([Head::text("counter")].into_iter().chain(columns));
    for (index, counter) in counters.iter().enumerate() {
        if index == 0 || counters[index - 1].cache != counter.cache {
            table.row([Cell::Name(counter.cache.clone())]);
        }
        let numbers = match counter.values {
            Values::Counts(real, predicted) => {
                let difference = predicted - real;
                let percent = (real != 0 && difference != 0).then(|| 100.0 * difference as f64 / real as f64);
                [
                    Cell::Count(real.unsigned_abs()),
                    Cell::Count(predicted.unsigned_abs()),
                    if difference == 0 { Cell::Empty } else { Cell::Change(difference) },
                    percent.map_or(Cell::Empty, |percent| Cell::Percent(Some(percent))),
                ]
            }
            Values::Percent(real, predicted) => [
                Cell::Percent(Some(real)),
                Cell::Percent(Some(predicted)),
                if counter.is_exact() { Cell::Empty } else { Cell::Text(number::points(predicted - real)) },
                Cell::Empty,
            ],
        };
        table.row([Cell::Name(counter.counter.clone())].into_iter().chain(numbers));
    }
    table
}

/// Real and predicted, row by row, as CSV.
pub fn verify_csv(verified: &Verified) -> String {
    let mut out = Csv::new(&verified.header);
    verified.rows.iter().for_each(|row| out.row(row));
    out.finish()
}

/// Real and predicted, row by row.
pub fn verify_table(verified: &Verified) -> String {
    let mut table = text::Table::new(verified.header.clone());
    for row in &verified.rows {
        table.row(row.clone());
    }
    table.print()
}
