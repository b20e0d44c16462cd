//! The columns of what differs, of measures and of pairs.

use super::{ends, rounded};
use crate::explain::items::Item;
use crate::explain::measures::Unit;
use crate::explain::{Explained, Explanation};
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_stats::shapley::{Interaction, Mean};

/// A policy that differs, and whether it has an effect.
pub(super) type Differing<'a> = (&'a Item, bool);
/// A measure, a pair of policies, and how much of what moves there the pair does, in percent.
pub(super) type Together<'a> = (&'a Explanation, &'a Interaction, f64);

/// A measure, and its parts as whole numbers.
pub(super) struct Moving<'a> {
    of: &'a Explanation,
    parts: Vec<i128>,
}

impl<'a> Moving<'a> {
    pub(super) fn new(of: &'a Explanation) -> Moving<'a> {
        Moving { of, parts: rounded(of) }
    }

    pub(super) fn name(&self) -> Cell {
        Cell::Name(self.of.measure.name.clone())
    }
}

pub(super) fn differing(explained: &Explained) -> Vec<Differing<'_>> {
    explained.items.iter().enumerate().map(|(index, item)| (item, explained.carries(index))).collect()
}

pub(super) fn items<'a>(explained: &Explained) -> Columns<Differing<'a>> {
    let [from, to] = ends(explained);
    Columns::<Differing>::default()
        .key("policy", |item| Cell::Name(item.0.name.clone()))
        .add("from", from.clone(), from, |item| Cell::Text(item.0.from.clone()))
        .words()
        .add("to", to.clone(), to, |item| Cell::Text(item.0.to.clone()))
        .words()
        .people("effect", "", "effect", |item| Cell::Text(if item.1 { "yes" } else { "none" }.into()))
        .words()
        .add("what", "what", "what", |item| Cell::Text(item.0.what.clone()))
        .words()
}

/// The keys of measures for people: the change, and the parts of `policies`.
pub(super) fn keys<'a>(explained: &'a Explained, policies: &[usize]) -> Vec<&'a str> {
    let names = policies.iter().map(|item| explained.items[*item].name.as_str());
    ["from", "to", "change"].into_iter().chain(names).collect()
}

pub(super) fn measures<'a>(items: &[Item]) -> Columns<Moving<'a>> {
    let amount = |row: &Moving, value: u64| match row.of.measure.unit {
        Unit::Count => Cell::Count(value),
        Unit::Bytes => Cell::Bytes(value),
    };
    let columns = Columns::<Moving>::default()
        .key("measure", Moving::name)
        .key("unit", |row| {
            Cell::Text(if row.of.measure.unit == Unit::Bytes { "bytes" } else { "count" }.into())
        })
        .add("from", "from", "from", move |row| amount(row, row.of.from))
        .add("to", "to", "to", move |row| amount(row, row.of.to))
        .add("change", "change", "change", |row| change(row.of.measure.unit, row.of.change()));
    items.iter().enumerate().fold(columns, |columns, (index, Item { name, .. })| {
        let part = move |row: &Moving| mean(row.of.measure.unit, &row.of.parts[index].mean, row.parts[index]);
        columns.people(name.clone(), name.clone(), name.clone(), part)
    })
}

pub(super) fn pairs<'a>() -> Columns<Together<'a>> {
    Columns::<Together>::default()
        .add("counter", "", "counter", |row| Cell::Name(row.0.measure.name.clone()))
        .words()
        .add("together", "both beyond each", "together", |row| {
            mean(row.0.measure.unit, &row.1.mean, row.1.mean.value().round() as i128)
        })
        .add("of_moving", "of what moves", "of what moves", |row| Cell::Percent(Some(row.2)))
}

/// The names of a pair's policies.
pub(super) fn both(explained: &Explained, pair: &Together) -> Cell {
    let [first, second] = pair.1.players.map(|item| explained.items[item].name.as_str());
    Cell::Text(format!("{first} and {second}"))
}

pub(super) fn change(unit: Unit, value: i128) -> Cell {
    match unit {
        Unit::Count => Cell::Change(value as i64),
        Unit::Bytes => Cell::ByteChange(value as i64),
    }
}

/// A mean that is shown as the whole number `rounded`.
pub(super) fn mean(unit: Unit, mean: &Mean, rounded: i128) -> Cell {
    let give_or_take = mean.give_or_take.filter(|half| *half > 0.0).map(|half| half.ceil() as u64);
    if give_or_take.is_none() && (rounded != 0 || mean.sum == 0) {
        return change(unit, rounded);
    }
    let (rounded, bytes) = (rounded as i64, unit == Unit::Bytes);
    Cell::Part { rounded, exact: mean.sum.cmp(&0), give_or_take, bytes }
}
