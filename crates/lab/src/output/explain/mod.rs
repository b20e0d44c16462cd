//! Which policy carries what: tables with a column per policy, and JSON with every part as an exact fraction.

mod page;

pub use page::explain_page;

use super::replay::remarks;
use crate::explain::measures::Unit;
use crate::explain::shapley::{Interaction, Mean};
use crate::explain::{Explained, Explanation, Part, SEED};
use serde_json::{Map, Value, json};
use slablab_report::text::{Table, grouped};
use slablab_report::visible;
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
    let [from, to] = ends(explained);
    let mut table = Table::new(["policy".into(), from, to, "what".into()]).numbers(0..0);
    for item in &explained.items {
        table.row([&item.name, &item.from, &item.to, &item.what]);
    }
    table.print()
}

fn parts_table(explained: &Explained, moving: &[&Explanation], columns: &[usize], more: bool) -> String {
    let whole = ["", "from", "to", "change"].map(String::from);
    let names = columns.iter().map(|item| explained.items[*item].name.clone());
    let mut table = Table::new(whole.into_iter().chain(names));
    for explanation in moving {
        // Of several tables each has the rows in which its policies do something.
        if more && !columns.iter().any(|item| explanation.parts[*item].moves) {
            continue;
        }
        let shown = rounded(explanation);
        let parts = columns.iter().map(|item| part_text(&explanation.parts[*item], shown[*item]));
        let ends = [explanation.from, explanation.to].map(grouped);
        let change = signed(explanation.change(), explanation.change());
        let whole = std::iter::once(explanation.measure.name.clone()).chain(ends).chain([change]);
        table.row(whole.chain(parts));
    }
    table.print()
}

fn part_text(part: &Part, shown: i128) -> String {
    let text = signed(shown, part.mean.sum);
    match part.mean.give_or_take.filter(|half| *half > 0.0) {
        Some(half) => format!("{text} \u{b1}{}", grouped(half.ceil() as u64)),
        None => text,
    }
}

/// The rounded number with the sign of `number`, which may round to 0; no sign if `number` is 0.
fn signed(rounded: i128, number: i128) -> String {
    let sign = match number {
        ..0 => "-",
        0 => "",
        1.. => "+",
    };
    format!("{sign}{}", grouped(rounded.unsigned_abs() as u64))
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
pub(crate) fn strong_pairs(explained: &Explained) -> Vec<(&Explanation, &Interaction, f64)> {
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
    let mut table = Table::new(["together", "", "both beyond each", "of what moves"]).numbers(2..4);
    for (explanation, pair, percent) in pairs {
        let [first, second] = pair.players.map(|item| explained.items[item].name.as_str());
        let value = pair.mean.value().round() as i128;
        table.row([
            format!("{first} and {second}"),
            explanation.measure.name.clone(),
            match pair.mean.give_or_take {
                Some(half) => format!("{} \u{b1}{}", signed(value, value), grouped(half.ceil() as u64)),
                None => signed(value, value),
            },
            format!("{percent:.0} %"),
        ]);
    }
    format!("\n{}", table.print())
}

/// JSON: every measure that is not zero in all combinations, every part and every pair.
pub fn explain_json(explained: &Explained) -> Value {
    let [from, to] = ends(explained);
    let replay = &explained.replay;
    let items = explained.items.iter().enumerate().map(|(index, item)| {
        json!({
            "policy": item.name,
            "what": item.what,
            "from": item.from,
            "to": item.to,
            "has_effect": explained.carries(index),
        })
    });
    json!({
        "schema": SCHEMA,
        "recording": replay.path.display().to_string(),
        "release": replay.metadata.release,
        "events_lost": replay.metadata.losses.events,
        "lost_records": replay.metadata.losses.records,
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
        "policies": items.collect::<Vec<_>>(),
        "notes": explained.notes,
        "measures": explained.measures.iter().map(|one| measure_json(explained, one)).collect::<Vec<_>>(),
    })
}

fn measure_json(explained: &Explained, explanation: &Explanation) -> Value {
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
    json!({
        "measure": explanation.measure.name,
        "unit": match explanation.measure.unit {
            Unit::Count => "count",
            Unit::Bytes => "bytes",
        },
        "from": explanation.from,
        "to": explanation.to,
        "change": explanation.change() as i64,
        "parts": parts.collect::<Map<_, _>>(),
        "interactions": pairs.collect::<Vec<_>>(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rounded_to_nothing_keeps_its_sign() {
        let cases =
            [(0, 0, "0"), (0, 1, "+0"), (0, -1, "-0"), (1200, 9, "+1,200"), (-7, -20, "-7"), (0, 3, "+0")];
        for (rounded, number, expected) in cases {
            assert_eq!(signed(rounded, number), expected, "{number} as {rounded}");
        }
    }
}
