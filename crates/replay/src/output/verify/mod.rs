//! A verification: each predicted value with the real value.

mod document;

use super::replay::{leading, recorded, rests_on};
use crate::replay::Replay;
use crate::verify::counters::ALL;
use crate::verify::{Change, Compared, Counter, Dumps, Skill, Tally, Values, Verified};
use document::{ChangeDocument, CountersDocument};
use slablab_report::Answer;
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::chart::{Axis, Pair, Pairs, Scale};
use slablab_report::html::{Cell, Head, Table, name_of, number};
use slablab_report::text;
use slablab_report::text::counted;

/// Rows of a figure; its table has all.
const ROWS: usize = 24;

/// The answer of `verify`: text and CSV have the first `top` rows.
pub fn verify_answer(verified: &Verified, replay: &Replay, top: usize) -> Answer {
    let title = format!("Model and kernel: {}", name_of(&replay.path));
    let answer = match &verified.compared {
        Compared::Changes(changes, skill, dumps) => {
            let answer = Answer::new(title, change_sentence(changes, *skill, dumps, replay));
            let document = ChangeDocument::new(replay, (changes, *skill), dumps);
            changes_blocks(answer.document(&document), changes, *skill, top)
        }
        Compared::Counters(counters, counted) => {
            let answer = Answer::new(title, counter_sentence(counters, replay));
            let document = CountersDocument::new(replay, counters, counted);
            counters_blocks(answer.document(&document), counters, top)
        }
    };
    answer
        .warnings(leading(replay))
        .section("The recording and the machine")
        .facts(recorded(replay))
        .remarks(verified.summary.iter().cloned().chain(rests_on(replay)))
}

/// The schemas of the answers of `verify`.
pub(crate) fn schemas() -> [Named; 2] {
    [named::<ChangeDocument>(), named::<CountersDocument>()]
}

fn engine(replay: &Replay) -> String {
    replay.outcomes.first().map_or(String::new(), |outcome| outcome.engine().to_string())
}

fn pairs(names: [&str; 2], axis: Axis, rows: Vec<Pair>) -> Pairs {
    Pairs { names: names.map(String::from), rows, axis }
}

/// Bytes of slabs by which all caches together changed: really and predicted.
fn changed_bytes(changes: &[Change]) -> (i64, i64) {
    let sum = |of: fn(&Change) -> i64| changes.iter().map(of).sum::<i64>();
    (sum(|change| change.real.slab_bytes), sum(|change| change.predicted.slab_bytes))
}

fn change_sentence(changes: &[Change], skill: Skill, dumps: &Dumps, replay: &Replay) -> String {
    let (real, predicted) = changed_bytes(changes);
    let changed = match real {
        0 => "kept its size".into(),
        ..0 => format!("shrank by {}", number::bytes(real.unsigned_abs())),
        1.. => format!("grew by {}", number::bytes(real.unsigned_abs())),
    };
    let (engine, predicted) = (engine(replay), number::signed_bytes(predicted));
    let all = number::fixed(skill.slabs, 3);
    let traced = &dumps.groups[0];
    let Some((of_traced, _)) = traced.skills.filter(|_| dumps.truth.is_some()) else {
        return format!(
            "Between the two dumps slab memory {changed}; {engine} predicts {predicted}: skill {all} in bytes of \
             slabs (1: perfect, 0: what predicting no change would get)."
        );
    };
    let whole: u64 = dumps.groups.iter().map(|group| group.real_bytes).sum();
    format!(
        "{engine} predicts the change of slab memory with skill {} over the caches whose events are traced \
         (1: perfect, 0: what predicting no change would get); {:.1} % of the bytes that changed are of others, \
         and with them it is {all}. Between the two snapshots slab memory {changed}, predicted {predicted}.",
        number::fixed(of_traced, 3),
        100.0 * (whole - traced.real_bytes) as f64 / whole.max(1) as f64
    )
}

fn changes_blocks(answer: Answer, changes: &[Change], skill: Skill, top: usize) -> Answer {
    let (real, predicted) = changed_bytes(changes);
    let exact = changes.iter().filter(|change| change.error_bytes() == 0).count();
    let answer = answer
        .facts([
            ("Skill, slabs", Cell::Number(skill.slabs, 3)),
            ("Skill, active objects", Cell::Number(skill.objects, 3)),
            ("Real change", Cell::ByteChange(real)),
            ("Predicted", Cell::ByteChange(predicted)),
            ("Exact, of caches that changed", Cell::Text(format!("{exact} of {}", changes.len()))),
        ])
        .rows(change_columns().frame(&changes[..top.min(changes.len())]));
    let answer = shown(answer, changes.len(), top, || change_text(&changes[..top.min(changes.len())]))
        .section("Slabs");
    let answer = change_figure(
        answer,
        "Change of slab memory, cache by cache, the largest first.",
        changes,
        &|change| (change.real.slab_bytes, change.predicted.slab_bytes),
        change_table(changes),
    );
    let answer = answer.section("Objects").paragraph(
        "Objects as the kernel counts them: objects parked at CPUs count as active, so this number \
         also changes when objects are parked.",
    );
    change_figure(
        answer,
        "Change of the memory of active objects, cache by cache, the largest first.",
        changes,
        &Change::active_bytes,
        objects_table(changes),
    )
}

/// The text table of the first `top` of `rows` rows, and how many there are beyond.
fn shown(answer: Answer, rows: usize, top: usize, table: impl FnOnce() -> text::Table) -> Answer {
    match rows.saturating_sub(top) {
        0 => answer.table(table(), &LEFT_OUT),
        hidden if top == 0 => answer.line(format!("Rows: none of {hidden} shown (--top 0)")),
        hidden => answer
            .table(table(), &LEFT_OUT)
            .line(format!("... and {} (--top)", counted(hidden as u64, "more row"))),
    }
}

fn change_figure(
    answer: Answer,
    caption: &str,
    changes: &[Change],
    bytes: &dyn Fn(&Change) -> (i64, i64),
    table: Table,
) -> Answer {
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
    answer.figure(caption, chart, table)
}

/// The columns of the change between two dumps.
fn change_columns() -> Columns<Change> {
    Columns::default()
        .key("cache", |change: &Change| Cell::Name(change.name.clone()))
        .add("slabs_start", "slabs", "slabs before", |change| Cell::Count(change.start.0))
        .add("slabs_change_real", "real", "real", |change| Cell::Change(change.real.slabs))
        .add("slabs_change_predicted", "predicted", "predicted", |change| {
            Cell::Change(change.predicted.slabs)
        })
        .key("slab_bytes_change_real", |change| Cell::ByteChange(change.real.slab_bytes))
        .key("slab_bytes_change_predicted", |change| Cell::ByteChange(change.predicted.slab_bytes))
        .people("object", "", "object", |change| Cell::Count(change.bytes.1))
        .unit("bytes")
        .add("active_start", "active", "active before", |change| Cell::Count(change.start.1))
        .add("active_change_real", "real", "real", |change| Cell::Change(change.real.active))
        .add("active_change_predicted", "predicted", "predicted", |change| {
            Cell::Change(change.predicted.active)
        })
        .add("error_bytes", "error", "error", |change| Cell::Bytes(change.error_bytes()))
        .bytes()
        .add("why", "why", "why", |change| {
            Cell::Text(if change.real == change.predicted { "" } else { &change.cause }.into())
        })
        .words()
        .csv_alone()
        .key("why", |change| Cell::Text(change.cause.clone()))
        .json_alone()
}

fn cache_name(change: &Change) -> Cell {
    Cell::Name(change.name.clone())
}

fn change_table(changes: &[Change]) -> Table {
    let keys = ["slabs_start", "slabs_change_real", "slabs_change_predicted", "error_bytes", "why"];
    change_columns().html(("cache", &cache_name), &keys, changes)
}

fn objects_table(changes: &[Change]) -> Table {
    let keys = ["object", "active_start", "active_change_real", "active_change_predicted"];
    change_columns().html(("cache", &cache_name), &keys, changes)
}

fn counter_sentence(counters: &[Counter], replay: &Replay) -> String {
    let tally = Tally::of(counters);
    format!(
        "Of {} counters of a kernel that counts, {} predicts {} exactly; all errors together are {:.1} % of what \
         the kernel counted.",
        tally.counters,
        engine(replay),
        tally.exact,
        tally.error_percent()
    )
}

fn counters_blocks(answer: Answer, counters: &[Counter], top: usize) -> Answer {
    let first = &counters[..top.min(counters.len())];
    let all: Vec<&Counter> = counters.iter().filter(|counter| counter.cache == ALL).collect();
    let percents: Vec<&Counter> =
        counters.iter().filter(|counter| matches!(counter.values, Values::Percent(..))).collect();
    let each: Vec<&Counter> = counters.iter().filter(|counter| counter.cache != ALL).collect();
    let pair = |counter: &&Counter| {
        let values = match counter.values {
            Values::Counts(real, predicted) => [real as f64, predicted as f64],
            Values::Percent(real, predicted) => [real, predicted],
        };
        Pair { label: counter.counter.clone(), values }
    };
    let counts = pairs(
        ["real", "predicted"],
        Axis::new("count, each doubling as wide as the next", Scale::Doublings),
        all.iter().map(pair).collect(),
    );
    let label = |counter: &&Counter| Pair {
        label: format!("{} {}", counter.cache, counter.counter.trim_end_matches(" %")),
        ..pair(counter)
    };
    let mut rows: Vec<Pair> = percents.iter().map(label).collect();
    let apart = |pair: &Pair| (pair.values[0] - pair.values[1]).abs();
    rows.sort_by(|a, b| apart(b).total_cmp(&apart(a)).then_with(|| a.label.cmp(&b.label)));
    rows.truncate(ROWS);
    let shares = pairs(["real", "predicted"], Axis::new("served by the fast path", Scale::Percent), rows);
    shown(answer.rows(counter_columns().frame(first)), counters.len(), top, || counter_text(first))
        .section("All caches together")
        .figure(
            "Counters over all caches whose trace is complete. What was never counted stands at the left end.",
            counts,
            counter_table(&all),
        )
        .section("Fast paths")
        .figure(
            "Share of the fast path, the caches where model and kernel differ most.",
            shares,
            counter_table(&percents),
        )
        .section("Every cache")
        .page_table("Every counter of every cache whose trace is complete.", counter_table(&each))
}

/// Real, predicted, their difference, and the difference in percent of the real value; the difference of two
/// percentages is in points.
fn numbers(counter: &Counter) -> [Cell; 4] {
    let count = |number: i64| u64::try_from(number).map_or(Cell::Change(number), Cell::Count);
    match counter.values {
        Values::Counts(real, predicted) => {
            let difference = predicted - real;
            let percent = (real != 0).then(|| 100.0 * difference as f64 / real as f64);
            [count(real), count(predicted), Cell::Change(difference), Cell::Percent(percent)]
        }
        Values::Percent(real, predicted) => {
            let [real, predicted, points] =
                [real, predicted, predicted - real].map(|of| Cell::Percent(Some(of)));
            [real, predicted, points, Cell::Empty]
        }
    }
}

/// Counters under the name of their cache.
fn counter_table(counters: &[&Counter]) -> Table {
    let columns = ["real", "predicted", "difference", "of real"].map(Head::number);
    let mut table = Table::new([Head::text("counter")].into_iter().chain(columns));
    for (index, counter) in counters.iter().enumerate() {
        if index == 0 || counters[index - 1].cache != counter.cache {
            table.row([Cell::Name(counter.cache.clone())]);
        }
        let [real, predicted, mut difference, mut percent] = numbers(counter);
        match counter.values {
            _ if counter.is_exact() => (difference, percent) = (Cell::Empty, Cell::Empty),
            Values::Counts(0, _) => percent = Cell::Empty,
            Values::Counts(..) => {}
            Values::Percent(real, predicted) => difference = Cell::Text(number::points(predicted - real)),
        }
        table.row([Cell::Name(counter.counter.clone()), real, predicted, difference, percent]);
    }
    table
}

fn counter_columns() -> Columns<Counter> {
    let columns = Columns::default()
        .key("cache", |counter: &Counter| Cell::Name(counter.cache.clone()))
        .key("counter", |counter| Cell::Name(counter.counter.clone()));
    let keys = ["real", "predicted", "difference", "difference_percent"];
    keys.into_iter().enumerate().fold(columns, |columns, (index, key)| {
        columns.key(key, move |counter| numbers(counter)[index].clone())
    })
}

/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 2] = ["why", "error"];

fn change_text(changes: &[Change]) -> text::Table {
    let keys = ["slabs_start", "slabs_change_real", "slabs_change_predicted"];
    let active = ["active_start", "active_change_real", "active_change_predicted"];
    let keys = [&keys[..], &active, &["error_bytes", "why"]].concat();
    change_columns().text(("cache", &cache_name), &keys, changes, Style::Kib)
}

fn counter_text(counters: &[Counter]) -> text::Table {
    let mut table = text::Table::new(["cache", "counter", "real", "predicted", "difference"]);
    counters.iter().for_each(|counter| table.row(counter_row(counter)));
    table
}

fn counter_row(counter: &Counter) -> [String; 5] {
    let [real, predicted, difference] = match counter.values {
        Values::Counts(real, predicted) => {
            let difference = match predicted - real {
                0 => String::new(),
                difference if real == 0 => format!("{difference:+}"),
                difference => format!("{difference:+} ({:+.1} %)", 100.0 * difference as f64 / real as f64),
            };
            [real.to_string(), predicted.to_string(), difference]
        }
        Values::Percent(real, predicted) => {
            [format!("{real:.1}"), format!("{predicted:.1}"), format!("{:+.1} points", predicted - real)]
        }
    };
    [counter.cache.clone(), counter.counter.clone(), real, predicted, difference]
}
