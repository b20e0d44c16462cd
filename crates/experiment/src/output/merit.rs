//! Orders of merit: published and modelled orders, Kendall's tau, and the null answer.

use crate::judge::merit::{Column, Ordered, merits};
use crate::run::results::Results;
use serde_json::{Value, json};
use slablab_report::text;
use slablab_stats::kendall::order;

/// The orders, with what the columns mean; `None` if the experiment has none.
pub(super) fn merit_table(results: &Results) -> Option<(String, text::Table)> {
    let all = merits(results);
    let first = all.first()?;
    let head = format!(
        "orders of merit by {}, lowest first; what differs by {} % or less is equal. tau: Kendall's tau-b with \
         the published order, 0 for the null answer \"all are equal\"; chance: the part of all orders with \
         this tau or a higher one",
        first.merit.parameter, results.experiment.file.noise_percent
    );
    let mut table = text::Table::new(["", "cells", "order", "tau", "chance %"]).numbers(3..5);
    for one in &all {
        let figures = one.published.iter().map(|(_, figure)| Some(*figure));
        let row = [one.merit.name.clone(), "published".into(), in_order(one, figures, 0.0)];
        table.row(row.into_iter().chain(["".into(), "".into()]));
        for column in &one.columns {
            let modelled = column.modelled.iter().copied();
            let noise = results.experiment.file.noise_percent;
            let shown = |number: fn(&slablab_stats::kendall::Kendall) -> f64, decimals: usize| {
                column.kendall.as_ref().map_or("-".into(), |one| format!("{:.decimals$}", number(one)))
            };
            table.row([
                String::new(),
                column.label.clone(),
                in_order(one, modelled, noise),
                shown(|one| one.tau, 2),
                shown(|one| one.chance * 100.0, 1),
            ]);
        }
    }
    Some((head, table))
}

/// How many pairs of each order agree.
pub(super) fn merit_lines(results: &Results) -> Vec<String> {
    let line = |one: &Ordered| {
        let [agree, undetermined, differ] = one.pairs;
        let flips =
            one.flipped.iter().map(|([base, other], by)| format!("{base} and {other} flip with {by}"));
        let flips: String = flips.map(|flip| format!(" {flip}.")).collect();
        format!(
            "{}: of {} pairs {agree} agree, {undetermined} are undetermined, {differ} differ; the null answer \
             agrees in {}.{flips}",
            one.merit.name,
            one.pairs.iter().sum::<usize>(),
            one.null
        )
    };
    merits(results).iter().map(line).collect()
}

/// How many pairs of all orders agree; `None` if the experiment has no order.
pub(super) fn merit_sum(results: &Results) -> Option<String> {
    let all = merits(results);
    let (mut pairs, mut agree, mut null) = (0, 0, 0);
    for one in &all {
        pairs += one.pairs.iter().sum::<usize>();
        (agree, null) = (agree + one.pairs[0], null + one.null);
    }
    let line = format!("{agree} of {pairs} pairs in orders of merit agree, of the null answer {null}.");
    (!all.is_empty()).then_some(line)
}

/// The orders for programs.
pub(super) fn merit_json(results: &Results) -> Vec<Value> {
    let of = |one: &Ordered| {
        let column = |column: &Column| {
            json!({
                "cells": column.label,
                "modelled": column.modelled,
                "tau": column.kendall.map(|one| one.tau),
                "chance": column.kendall.map(|one| one.chance),
            })
        };
        let flip = |([base, other], by): &([String; 2], String)| json!({ "values": [base, other], "by": by });
        json!({
            "name": one.merit.name,
            "parameter": one.merit.parameter,
            "metric": results.experiment.file.workload.metrics[one.merit.metric].name,
            "values": one.published.iter().map(|(value, _)| value.to_string()).collect::<Vec<_>>(),
            "published": one.published.iter().map(|(_, figure)| figure).collect::<Vec<_>>(),
            "columns": one.columns.iter().map(column).collect::<Vec<_>>(),
            "varied": one.varied.iter().map(column).collect::<Vec<_>>(),
            "flipped": one.flipped.iter().map(flip).collect::<Vec<_>>(),
            "agree": one.pairs[0],
            "undetermined": one.pairs[1],
            "differ": one.pairs[2],
            "null_agrees": one.null,
        })
    };
    merits(results).iter().map(of).collect()
}

/// The values from the lowest figure to the highest: `a < b = c`; those without a figure are left out.
fn in_order(one: &Ordered, figures: impl Iterator<Item = Option<f64>>, noise_percent: f64) -> String {
    let values = one.published.iter().map(|(value, _)| value.to_string());
    let mut rows: Vec<(f64, String)> =
        figures.zip(values).filter_map(|(figure, value)| Some((figure?, value))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut out = String::new();
    for (at, (figure, value)) in rows.iter().enumerate() {
        if at > 0 {
            let is_equal = order(rows[at - 1].0, *figure, noise_percent).is_eq();
            out += if is_equal { " = " } else { " < " };
        }
        out += value.strip_prefix("vm@").unwrap_or(value);
    }
    out
}
