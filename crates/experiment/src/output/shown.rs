//! Metrics of every cell beside the published figures: a table for each `[[shown]]` of the experiment.

use crate::file::shown::Shown;
use crate::run::results::Results;
use schemars::JsonSchema;
use serde::Serialize;
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

/// A table of metrics of every cell as a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownDocument {
    name: String,
    metrics: Vec<&'static str>,
    unit: Option<&'static str>,
    cells: Vec<ShownCell>,
}

#[derive(Serialize, JsonSchema)]
struct ShownCell {
    cell: String,
    /// The mean of each metric; null if a run failed.
    modelled: Vec<Option<f64>>,
}

impl ShownDocument {
    pub(super) fn new(results: &Results, shown: &Shown) -> ShownDocument {
        let metric = |at: &usize| &results.experiment.file.workload.metrics[*at];
        let cell = |cell: usize| {
            let mean = |at: &usize| results.shown(cell, metric(at)).map(|one| one.mean());
            ShownCell { cell: label(results, cell), modelled: shown.metrics.iter().map(mean).collect() }
        };
        let cells = results.plan.selected(&results.experiment, &shown.cell);
        ShownDocument {
            name: shown.name.clone(),
            metrics: shown.metrics.iter().map(|at| metric(at).name).collect(),
            unit: shown.metrics.first().map(|at| metric(at).unit),
            cells: cells.into_iter().map(cell).collect(),
        }
    }
}

/// What tells a cell from the others.
fn label(results: &Results, cell: usize) -> String {
    match results.experiment.file.engines.len() {
        1 => results.label(cell),
        _ => results.name(cell),
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
