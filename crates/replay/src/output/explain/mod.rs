//! Which policy carries what: tables with a column per policy, and JSON with every part as an exact fraction.

mod columns;
mod page;

pub use page::explain_page;

use super::replay::remarks;
use crate::explain::{Explained, Explanation};
use columns::{Differing, Moving, Together};
use serde_json::{Map, Value, json};
use slablab_report::column::Style;
use slablab_report::frame::Frame;
use slablab_report::html::Cell;
use slablab_report::text::grouped;
use slablab_report::visible;
use slablab_stats::shapley::{Mean, SEED};
use std::fmt::Write;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.explain.1";
/// Policies side by side: more go into a table below.
const COLUMNS: usize = 5;
/// Interactions listed.
const PAIRS: usize = 15;
/// A pair is worth saying from this part of what moves in its measure, in percent.
const PAIR_FROM_PERCENT: f64 = 5.0;
/// And from this number of things or bytes: of a few events more or less there is nothing to learn.
const PAIR_FROM: f64 = 10.0;

/// Text: what differs, what each policy carries, and which policies act together.
pub fn explain_table(explained: &Explained) -> String {
    let mut text = heading(explained);
    if explained.items.is_empty() {
        return text + "\nnothing differs\n";
    }
    text.push('\n');
    text += &items_table(explained);
    let (carrying, idle): (Vec<usize>, Vec<usize>) =
        (0..explained.items.len()).partition(|item| explained.carries(*item));
    let name = |item: &usize| explained.items[*item].name.as_str();
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(name).collect();
        writeln!(text, "\nwithout any effect here: {}", names.join(", ")).expect("memory");
    }
    let moving: Vec<&Explanation> = explained.measures.iter().filter(|measure| measure.moves()).collect();
    for columns in carrying.chunks(COLUMNS) {
        text.push('\n');
        text += &parts_table(explained, &moving, columns, carrying.len() > COLUMNS);
    }
    if carrying.is_empty() {
        text += "\nno counter differs\n";
    }
    text += &pairs_text(explained);
    if !moving.is_empty() {
        text +=
            "\nThe parts of a row add up to its change. 0 is exactly zero; +0 and -0 are less than one.\n";
    }
    visible::lines(&text).into_owned()
}

fn heading(explained: &Explained) -> String {
    let [from, to] = ends(explained);
    let of = explained.cache.as_ref().map_or(String::new(), |cache| format!(", cache {cache}"));
    let how = method_words(explained);
    format!("{from} to {to}{of}: {how}\n")
}

/// The method in words: policies that differ, replays, sampling.
pub(crate) fn method_words(explained: &Explained) -> String {
    let differ = match explained.items.len() {
        0 => return "the same".into(),
        1 => "1 policy differs".to_string(),
        items => format!("{items} policies differ"),
    };
    let replays = grouped(explained.replays as u64);
    match explained.sampled {
        None => format!("{differ}, all {replays} combinations replayed: exact"),
        Some(orders) => format!(
            "{differ}, {replays} combinations replayed along {orders} sampled orders: 95 % intervals after \
             \u{b1}"
        ),
    }
}

pub(crate) fn ends(explained: &Explained) -> [String; 2] {
    [0, 1].map(|end| explained.replay.outcomes[end].engine().to_string())
}

fn items_table(explained: &Explained) -> String {
    let name = |item: &Differing| Cell::Name(item.0.name.clone());
    let rows = columns::differing(explained);
    let keys = ["from", "to", "what"];
    columns::items(explained).text(("policy", &name), &keys, &rows, Style::Grouped).numbers(0..0).print()
}

fn parts_table(explained: &Explained, moving: &[&Explanation], policies: &[usize], more: bool) -> String {
    // Of several tables each has the rows in which its policies do something.
    let does = |row: &&&Explanation| !more || policies.iter().any(|item| row.parts[*item].moves);
    let rows: Vec<Moving> = moving.iter().filter(does).map(|row| Moving::new(row)).collect();
    let keys = columns::keys(explained, policies);
    columns::measures(explained).text(("", &Moving::name), &keys, &rows, Style::Grouped).print()
}

/// The parts as whole numbers that still add up: all are rounded down, and those with the largest rest up
/// again until the sum is right. A part of exactly zero has no rest and stays zero.
pub(crate) fn rounded(explanation: &Explanation) -> Vec<i128> {
    let mut shown: Vec<i128> =
        explanation.parts.iter().map(|part| part.mean.sum.div_euclid(part.mean.over)).collect();
    let missing = explanation.change() - shown.iter().sum::<i128>();
    let mut by_rest: Vec<usize> = (0..shown.len()).collect();
    let rest = |item: &usize| {
        let mean = &explanation.parts[*item].mean;
        mean.sum.rem_euclid(mean.over)
    };
    by_rest.sort_by_key(|item| (std::cmp::Reverse(rest(item)), *item));
    by_rest.iter().take(missing as usize).for_each(|item| shown[*item] += 1);
    shown
}

/// The pairs that are worth printing, strongest first: the measure, the pair, and its share of all effects on
/// that measure.
pub(crate) fn strong_pairs(explained: &Explained) -> Vec<Together<'_>> {
    let mut pairs: Vec<_> = explained
        .measures
        .iter()
        .flat_map(|explanation| {
            let parts: f64 = explanation.parts.iter().map(|part| part.mean.value().abs()).sum();
            let pairs = explanation.interactions.iter();
            pairs.map(move |pair| (explanation, pair, 100.0 * pair.mean.value().abs() / parts.max(1.0)))
        })
        .filter(|(_, pair, percent)| {
            *percent >= PAIR_FROM_PERCENT && pair.mean.value().abs() >= PAIR_FROM && sure(&pair.mean)
        })
        .collect();
    pairs.sort_by(|a, b| b.2.total_cmp(&a.2));
    pairs.truncate(PAIRS);
    pairs
}

/// Whether a mean is not nothing, as far as its interval tells.
fn sure(mean: &Mean) -> bool {
    mean.give_or_take.is_none_or(|half| mean.value().abs() > half)
}

fn pairs_text(explained: &Explained) -> String {
    let pairs = strong_pairs(explained);
    if pairs.is_empty() {
        return String::new();
    }
    let together = |pair: &Together| columns::both(explained, pair);
    let keys = ["counter", "together", "of_moving"];
    let table = columns::pairs().text(("together", &together), &keys, &pairs, Style::Grouped);
    format!("\n{}", table.numbers(2..4).print())
}

/// JSON: every measure that is not zero in all combinations, every part and every pair.
pub fn explain_json(explained: &Explained) -> Value {
    let [from, to] = ends(explained);
    let replay = &explained.replay;
    let (items, measures) = (columns::items(explained), columns::measures(explained));
    let policies = columns::differing(explained).into_iter().map(|item| {
        let mut json = items.json(&item);
        json.insert("has_effect".into(), json!(item.1));
        json
    });
    json!({
        "schema": SCHEMA,
        "recording": replay.path.display().to_string(),
        "release": replay.metadata.release,
        "events_lost": replay.metadata.losses.events,
        "lost_records": replay.metadata.losses.records,
        "cut_off": replay.metadata.cut_off,
        "start": replay.start.json(),
        "remarks": remarks(replay),
        "from": from,
        "to": to,
        "cache": explained.cache,
        "method": {
            "kind": if explained.sampled.is_some() { "sampled" } else { "exact" },
            "replays": explained.replays,
            "orders_sampled": explained.sampled,
            "seed": explained.sampled.map(|_| SEED),
            "interval_percent": explained.sampled.map(|_| 95),
        },
        "policies": policies.collect::<Vec<_>>(),
        "notes": explained.notes,
        "measures": explained.measures.iter().map(|one| {
            let mut json = measures.json(&Moving::new(one));
            json.extend(shared_json(explained, one));
            json
        }).collect::<Vec<_>>(),
    })
}

/// A row for each measure and policy: what the policy carries of the measure's change.
pub fn explain_frame(explained: &Explained) -> Frame {
    let keys = ["measure", "unit", "from", "to", "change", "policy", "part", "give_or_take", "alone", "last"];
    let mut frame = Frame::new(keys);
    let columns = columns::measures(explained);
    for one in &explained.measures {
        let measure: Vec<Cell> = columns.cells(&Moving::new(one)).take(5).collect();
        for (item, part) in explained.items.iter().zip(&one.parts) {
            let ends = [part.alone, part.last].map(|end| Cell::Change(end as i64));
            let policy = [Cell::Name(item.name.clone())];
            let cells = measure.iter().cloned().chain(policy).chain(mean_cells(&part.mean));
            frame.row(cells.chain(ends));
        }
    }
    frame
}

/// A row for each measure and pair of policies: what both do beyond what each does without the other.
pub fn explain_pairs_frame(explained: &Explained) -> Frame {
    let mut frame = Frame::new(["measure", "policy", "other_policy", "together", "give_or_take"]);
    for one in &explained.measures {
        for pair in &one.interactions {
            let names = pair.players.map(|item| Cell::Name(explained.items[item].name.clone()));
            let measure = std::iter::once(Cell::Name(one.measure.name.clone()));
            frame.row(measure.chain(names).chain(mean_cells(&pair.mean)));
        }
    }
    frame
}

/// A mean, and half of its interval if it is an estimate.
fn mean_cells(mean: &Mean) -> [Cell; 2] {
    [Cell::Number(mean.value(), 0), mean.give_or_take.map_or(Cell::Empty, |half| Cell::Number(half, 0))]
}

/// A measure's parts and interactions.
fn shared_json(explained: &Explained, explanation: &Explanation) -> [(String, Value); 2] {
    let name = |item: usize| explained.items[item].name.as_str();
    let parts = explanation.parts.iter().enumerate().map(|(item, part)| {
        let mut json = mean_json(&part.mean);
        json.insert("alone".into(), json!(part.alone as i64));
        json.insert("last".into(), json!(part.last as i64));
        (name(item).to_string(), Value::Object(json))
    });
    let pairs = explanation.interactions.iter().map(|pair| {
        let mut json = mean_json(&pair.mean);
        json.insert("policies".into(), json!(pair.players.map(name)));
        if let Some(seen) = pair.seen {
            json.insert("seen".into(), json!(seen));
        }
        Value::Object(json)
    });
    [("parts".into(), Value::Object(parts.collect())), ("interactions".into(), Value::Array(pairs.collect()))]
}

/// A mean as a number and as the fraction it is.
fn mean_json(mean: &Mean) -> Map<String, Value> {
    let mut json = Map::new();
    json.insert("value".into(), json!(mean.value()));
    json.insert("exact".into(), json!(mean.exact()));
    if let Some(half) = mean.give_or_take {
        json.insert("give_or_take".into(), json!(half));
    }
    json
}
