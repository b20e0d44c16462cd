//! Metrics of every cell beside the published figures: a table for each `[[shown]]` of the experiment.

use crate::file::shown::Shown;
use crate::run::results::Results;
use serde_json::{Value, json};
use slablab_report::text;

/// The tables, each with what it shows.
pub(super) fn shown_tables(results: &Results) -> Vec<(String, text::Table)> {
    let file = &results.experiment.file;
    let table = |shown: &Shown| {
        let metrics = shown.metrics.iter().map(|at| &file.workload.metrics[*at]);
        let unit = metrics.clone().next().map_or("", |metric| metric.unit);
        let (pattern, heads) = heads(&metrics.clone().map(|metric| metric.name).collect::<Vec<_>>());
        let heads = std::iter::once(String::new()).chain(heads);
        let mut table = text::Table::new(heads).numbers(1..shown.metrics.len() + 1);
        for cell in results.plan.selected(&results.experiment, &shown.cell) {
            let numbers = metrics.clone().map(|metric| match results.shown(cell, metric) {
                Some(sample) => format!("{:.*}", metric.decimals, sample.mean()),
                None => "-".into(),
            });
            table.row(std::iter::once(label(results, cell)).chain(numbers));
        }
        let unit = if unit == "1" { String::new() } else { format!(", {unit}") };
        (format!("{} ({pattern}){unit}: means", shown.name), table)
    };
    file.shown.iter().map(table).collect()
}

/// What the names of metrics share, with a star for the rest; and the rest of each.
fn heads(names: &[&str]) -> (String, Vec<String>) {
    let words: Vec<Vec<&str>> = names.iter().map(|name| name.split('_').collect()).collect();
    let shortest = words.iter().map(Vec::len).min().unwrap_or(0);
    let is_shared =
        |at: &dyn Fn(&[&str]) -> usize| words.iter().all(|one| one[at(one)] == words[0][at(&words[0])]);
    let first = (0..shortest).take_while(|at| is_shared(&|_| *at)).count().min(shortest.saturating_sub(1));
    let room = shortest - first - usize::from(shortest > 0);
    let last = (1..=room).take_while(|at| is_shared(&|one| one.len() - at)).count();
    let rest = words.iter().map(|one| one[first..one.len() - last].join("_")).collect();
    let Some(one) = words.first() else { return (String::new(), rest) };
    let star = one[..first].iter().chain([&"*"]).chain(&one[one.len() - last..]);
    (star.copied().collect::<Vec<_>>().join("_"), rest)
}

/// The tables for programs.
pub(super) fn shown_json(results: &Results) -> Vec<Value> {
    let file = &results.experiment.file;
    let of = |shown: &Shown| {
        let cell = |cell: usize| {
            let mean = |at: &usize| results.shown(cell, &file.workload.metrics[*at]).map(|one| one.mean());
            let modelled = shown.metrics.iter().map(mean).collect::<Vec<_>>();
            json!({ "cell": label(results, cell), "modelled": modelled })
        };
        let cells = results.plan.selected(&results.experiment, &shown.cell);
        json!({
            "name": shown.name,
            "metrics": shown.metrics.iter().map(|at| file.workload.metrics[*at].name).collect::<Vec<_>>(),
            "unit": shown.metrics.first().map(|at| file.workload.metrics[*at].unit),
            "cells": cells.into_iter().map(cell).collect::<Vec<_>>(),
        })
    };
    file.shown.iter().map(of).collect()
}

/// What tells a cell from the others.
fn label(results: &Results, cell: usize) -> String {
    let (label, engines) = (results.label(cell), &results.experiment.file.engines);
    match engines.len() {
        1 => label,
        _ => format!("{label} {}", engines[results.plan.cells[cell].engine].0),
    }
}

#[cfg(test)]
mod tests {
    use super::heads;

    #[test]
    fn heads_are_what_names_do_not_share() {
        let check = |names: &[&str], pattern: &str, rest: &[&str]| {
            let (found, heads) = heads(names);
            assert_eq!((found.as_str(), heads), (pattern, rest.iter().map(|one| one.to_string()).collect()));
        };
        check(&["inodes_boot", "inodes_close"], "inodes_*", &["boot", "close"]);
        check(&["absent_each_daemon_kib", "absent_apps_kib"], "absent_*_kib", &["each_daemon", "apps"]);
        check(&["rotate_ps", "office_ps"], "*_ps", &["rotate", "office"]);
        check(&["a_ps", "a_b_ps"], "a_*", &["ps", "b_ps"]);
        check(&["skips", "elapsed_ps"], "*", &["skips", "elapsed_ps"]);
        check(&["skips"], "*", &["skips"]);
    }
}
