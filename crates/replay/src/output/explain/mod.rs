//! Which policy carries what: tables with a column per policy, and a document with every part as an exact
//! fraction.

mod columns;
mod document;
mod frames;
mod page;
mod sentence;
mod table;

use super::replay::{leading, rests_on};
use crate::explain::{Explained, Explanation};
use columns::Together;
use document::ExplainDocument;
pub use frames::{explain_frame, explain_pairs_frame};
use slablab_report::Answer;
use slablab_report::document::{Named, named};
use slablab_report::html::name_of;
use slablab_report::text::grouped;
use slablab_stats::shapley::Mean;

/// Pairs listed.
const PAIRS: usize = 15;
/// A pair is worth saying from this part of what moves in its measure, in percent.
const PAIR_FROM_PERCENT: f64 = 5.0;
/// And from this number of things or bytes: of a few events more or less there is nothing to learn.
const PAIR_FROM: f64 = 10.0;

/// The answer of `explain` on a recording.
pub fn explain_answer(explained: &Explained) -> Answer {
    let recording = name_of(&explained.replay.path);
    let answer = Answer::new(format!("{}: {recording}", subject(explained)), sentence::of(explained))
        .warnings(leading(&explained.replay))
        .document(&ExplainDocument::new(explained));
    page::blocks(table::tables(answer, explained), explained)
        .remarks(explained.notes.iter().cloned().chain(rests_on(&explained.replay)))
}

/// The schema of an explanation.
pub(in crate::output) fn schema() -> Named {
    named::<ExplainDocument>()
}

/// From which engine to which, and the cache.
fn subject(explained: &Explained) -> String {
    let [from, to] = ends(explained);
    let of = explained.cache.as_ref().map_or(String::new(), |cache| format!(", cache {cache}"));
    format!("{from} to {to}{of}")
}

/// The method in words: policies that differ, replays, sampling.
fn method_words(explained: &Explained) -> String {
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

fn ends(explained: &Explained) -> [String; 2] {
    [0, 1].map(|end| explained.replay.outcomes[end].engine().to_string())
}

/// The parts as whole numbers that still add up: all are rounded down, and those with the largest rest up
/// again until the sum is right. A part of exactly zero has no rest and stays zero.
fn rounded(explanation: &Explanation) -> Vec<i128> {
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
fn strong_pairs(explained: &Explained) -> Vec<Together<'_>> {
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
