//! The blocks of an explanation's page: the part of each policy, as bars and in numbers.

use super::columns::{self, Differing, Moving, Together, change};
use super::{ends, method_words, rounded, strong_pairs};
use crate::explain::measures::Unit;
use crate::explain::{Explained, Explanation, Part};
use crate::output::replay::recorded;
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Scale, Share, Shares};
use slablab_report::html::{Cell, Head, Table};

/// Measures that have a figure where they differ: memory, slow paths, pages, locks.
const FIGURES: [&str; 8] = [
    "slab_end_bytes",
    "slab_bytes",
    "slab_peak_bytes",
    "loss_bytes",
    "alloc_slowpath",
    "free_slowpath",
    "alloc_slab",
    "lock_node_list",
];

/// The page's blocks: what differs, the part of each policy, every counter, and pairs.
pub(super) fn blocks(answer: Answer, explained: &Explained) -> Answer {
    let [from, to] = ends(explained);
    let mut answer =
        answer.paragraph(&format!("{}.", method_words(explained))).facts(recorded(&explained.replay));
    if !explained.items.is_empty() {
        answer = answer
            .section("What differs")
            .page_table("Policies, and whether they change anything here.", items_table(explained));
    }
    let moving: Vec<&Explanation> = explained.measures.iter().filter(|measure| measure.moves()).collect();
    if !moving.is_empty() {
        answer = answer.section("The part of each policy");
        for explanation in moving.iter().filter(|one| FIGURES.contains(&one.measure.name.as_str())) {
            let caption = format!("{}: parts of the change from {from} to {to}.", explanation.measure.name);
            let table = part_table(explained, explanation);
            answer = answer.figure(&caption, shares(explained, explanation), table);
        }
        answer = answer
            .section("Every counter")
            .page_table(
                "What differs, and the part of each policy that has an effect.",
                all_table(explained, &moving),
            )
            .paragraph(
                "The parts of a row add up to its change; 0 is exactly zero, +0 and -0 are less than \
                 one. Bytes are rounded for reading: their exact numbers are tooltips.",
            );
    }
    let pairs = pairs_table(explained);
    match pairs.rows.is_empty() {
        true => answer,
        false => answer
            .section("Policies that act together")
            .page_table("What both change beyond what each changes without the other.", pairs),
    }
}

fn items_table(explained: &Explained) -> Table {
    let name = |item: &Differing| Cell::Name(item.0.name.clone());
    let keys = ["from", "to", "effect", "what"];
    columns::items(explained).html(("policy", &name), &keys, &columns::differing(explained))
}

/// The items that have an effect on a measure, with their parts.
fn carriers<'a>(explained: &'a Explained, explanation: &'a Explanation) -> Vec<(&'a str, &'a Part, i128)> {
    let named = explained.items.iter().map(|item| item.name.as_str());
    let parts = named.zip(&explanation.parts).zip(rounded(explanation));
    parts.filter(|((_, part), _)| part.moves).map(|((name, part), shown)| (name, part, shown)).collect()
}

fn shares(explained: &Explained, explanation: &Explanation) -> Shares {
    let share = |(name, part, _): (&str, &Part, i128)| Share {
        label: name.into(),
        value: part.mean.value(),
        give_or_take: part.mean.give_or_take,
    };
    let scale = match explanation.measure.unit {
        Unit::Count => Scale::Number,
        Unit::Bytes => Scale::Bytes,
    };
    Shares {
        parts: carriers(explained, explanation).into_iter().map(share).collect(),
        whole: Share { label: "all".into(), value: explanation.change() as f64, give_or_take: None },
        axis: Axis::new(&explanation.measure.name, scale),
    }
}

/// One measure: the part of each policy, and its effect as the first and as the last change.
fn part_table(explained: &Explained, explanation: &Explanation) -> Table {
    let unit = explanation.measure.unit;
    let mut table = Table::new([
        Head::text("policy"),
        Head::number("part"),
        Head::number("alone"),
        Head::number("as the last"),
    ]);
    for (name, part, shown) in carriers(explained, explanation) {
        let ends = [part.alone, part.last].map(|value| change(unit, value));
        table.row([Cell::Name(name.into()), columns::mean(unit, &part.mean, shown)].into_iter().chain(ends));
    }
    table.row([Cell::Text("all".into()), change(unit, explanation.change()), Cell::Empty, Cell::Empty]);
    table
}

fn all_table(explained: &Explained, moving: &[&Explanation]) -> Table {
    let carrying: Vec<usize> = (0..explained.items.len()).filter(|item| explained.carries(*item)).collect();
    let rows: Vec<Moving> = moving.iter().map(|row| Moving::new(row)).collect();
    let keys = columns::keys(explained, &carrying);
    columns::measures(&explained.items).html(("counter", &Moving::name), &keys, &rows)
}

fn pairs_table(explained: &Explained) -> Table {
    let both = |pair: &Together| columns::both(explained, pair);
    let keys = ["counter", "together", "of_moving"];
    columns::pairs().html(("policies", &both), &keys, &strong_pairs(explained))
}
