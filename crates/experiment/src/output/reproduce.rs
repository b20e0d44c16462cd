//! Published beside modelled: figures, relations with verdicts, the score.

use super::experiment::{failures, head};
use super::merit::{merit_json, merit_lines, merit_sum, merit_table};
use super::shown::{shown_json, shown_tables};
use crate::file::linear::Linear;
use crate::file::ranges::Costs;
use crate::file::rows::{Expect, Published, Select, Sign};
use crate::judge::linear::{Fit, fits};
use crate::judge::verdict::{Compared, Judged, Score, Varied, judge, score};
use crate::run::results::Results;
use crate::workload::{self, Metric};
use serde_json::{Value, json};
use slablab_report::csv::Csv;
use slablab_report::html::Cell as Shown;
use slablab_report::text;

/// The widest line of a table that no `--wrap` narrows.
const WIDE: usize = 110;

/// The answer for people.
pub fn reproduce_table(results: &Results, wrap: Option<usize>) -> String {
    let (file, width) = (&results.experiment.file, wrap.unwrap_or(WIDE));
    let judged = judge(results);
    let mut out = head(results);
    let wrapped = |text: &str| text::wrapped_within(width, text, "", "  ");
    if let Some(source) = &file.source {
        out += &wrapped(&format!("published: {source}"));
    }
    if let Some(fitted) = &file.fitted {
        out += &wrapped(&format!("fitted: {}: {}", fitted.parameter, fitted.how));
    }
    out += "\nfigures\n";
    out += &figures(results).print_within(width);
    if !judged.is_empty() {
        out += "\n";
        out += &wrapped(&format!(
            "ratios of two cells, with 95 % intervals over the repeats; x0.5 to x2: the lowest and the highest \
                 ratio with {}",
            what_varies(results)
        ));
        out += &relations(&judged).print_within(width);
        out.push('\n');
        extremes(&judged, file.noise_percent).iter().for_each(|line| out += &wrapped(line));
    }
    for (head, table) in linear(results) {
        out += &format!("\n{}{}", wrapped(&head), table.print_within(width));
    }
    if let Some((head, table)) = merit_table(results) {
        out += &format!("\n{}{}\n", wrapped(&head), table.print_within(width));
        merit_lines(results).iter().for_each(|line| out += &wrapped(line));
    }
    for (head, table) in shown_tables(results) {
        out += &format!("\n{}{}", wrapped(&head), table.print_within(width));
    }
    out.push('\n');
    out += &wrapped(&sum(results, score(&judged)));
    out + &failures(results)
}

/// The answer in Markdown.
pub fn reproduce_markdown(results: &Results) -> String {
    let judged = judge(results);
    let score = sum(results, score(&judged));
    let mut out =
        format!("{}{}\n{}\n", head(results), figures(results).markdown(), relations(&judged).markdown());
    for (head, table) in linear(results) {
        out += &format!("{head}\n\n{}\n", table.markdown());
    }
    if let Some((head, table)) = merit_table(results) {
        out += &format!("{head}\n\n{}\n{}\n\n", table.markdown(), merit_lines(results).join("\n"));
    }
    for (head, table) in shown_tables(results) {
        out += &format!("{head}\n\n{}\n", table.markdown());
    }
    format!("{out}{score}\n")
}

/// The relations, one each line.
pub fn reproduce_csv(results: &Results) -> String {
    let mut file = Csv::new([
        "relation",
        "cells",
        "metric",
        "base_metric",
        "published_ratio",
        "published_sign",
        "modelled_ratio",
        "ratio_low_95",
        "ratio_high_95",
        "p_holm",
        "assumed_low",
        "assumed_low_by",
        "assumed_high",
        "assumed_high_by",
        "verdict",
    ]);
    let number = |number: Option<f64>| number.map_or(Shown::Empty, |number| Shown::Number(number, 4));
    let words = |text: Option<String>| text.map_or(Shown::Empty, Shown::Name);
    for row in judge(results) {
        for pair in &row.compared {
            let range = pair.range();
            let end = |at: usize| range.map(|ends| ends[at]);
            let by = |at: usize| words(end(at).map(|end| end.by.clone()));
            file.row([
                Shown::Name(row.expect.name.clone()),
                Shown::Name(pair.label.clone()),
                Shown::Name(metric(results, row.expect.metric).name.to_string()),
                Shown::Name(metric(results, row.expect.base_metric).name.to_string()),
                number(row.expect.ratio),
                Shown::Name(row.expect.sign.word().to_string()),
                number(pair.ratio),
                number(pair.interval.map(|ends| ends.low)),
                number(pair.interval.map(|ends| ends.high)),
                number(pair.p),
                number(end(0).map(|end| end.ratio)),
                by(0),
                number(end(1).map(|end| end.ratio)),
                by(1),
                Shown::Name(row.verdict.to_string()),
            ]);
        }
    }
    file.finish()
}

/// The answer for programs.
pub fn reproduce_json(results: &Results) -> Value {
    let judged = judge(results);
    let of = score(&judged);
    let figures: Vec<Value> =
        results.experiment.file.published.iter().map(|row| figure_json(results, row)).collect();
    json!({
        "schema": "slablab.reproduce.1",
        "name": results.experiment.file.name,
        "title": results.experiment.file.title,
        "source": results.experiment.file.source,
        "fitted": results.experiment.file.fitted.as_ref().map(|fitted| &fitted.how),
        "figures": figures,
        "linear": results.experiment.file.linear.iter().map(|row| linear_json(results, row)).collect::<Vec<_>>(),
        "merit": merit_json(results),
        "shown": shown_json(results),
        "relations": judged.iter().map(|row| relation_json(results, row)).collect::<Vec<_>>(),
        "agree": of.agree,
        "rows": of.rows,
        "best_constant": { "sign": of.constant.0.word(), "agree": of.constant.1 },
    })
}

fn metric(results: &Results, at: usize) -> &'static Metric {
    &results.experiment.file.workload.metrics[at]
}

/// Published figures beside the modelled ones. Cells without a published figure are predictions.
fn figures(results: &Results) -> text::Table {
    let heads = ["", "metric", "published", "modelled", "sd", "ratio", ""];
    let mut table = text::Table::new(heads).numbers(2..6);
    let file = &results.experiment.file;
    let plain = results.plan.cells.len() - results.plan.cells.iter().filter(|cell| is_scaled(cell)).count();
    let mut published = vec![false; plain];
    for row in &file.published {
        for cell in results.plan.selected(&results.experiment, &row.cell) {
            published[cell] |= row.metric == file.metric;
            let fitted = file.fitted.as_ref().is_some_and(|fitted| {
                row.metric == file.metric
                    && results.plan.selected(&results.experiment, &fitted.cell).contains(&cell)
            });
            table.row(figure(results, cell, row.metric, Some(row.value), if fitted { "fitted" } else { "" }));
        }
    }
    for cell in (0..plain).filter(|cell| !published[*cell]) {
        table.row(figure(results, cell, file.metric, None, "predicted"));
    }
    table
}

fn is_scaled(cell: &crate::plan::Cell) -> bool {
    cell.scaled != crate::plan::Scaled::Nothing
}

fn figure(results: &Results, cell: usize, at: usize, published: Option<f64>, note: &str) -> [String; 7] {
    let metric = metric(results, at);
    let engine = &results.experiment.file.engines[results.plan.cells[cell].engine].0;
    let number = |number: f64| format!("{number:.*}", metric.decimals);
    let sample = results.shown(cell, metric);
    let ratio = sample.as_ref().zip(published).filter(|(_, published)| *published > 0.0);
    [
        format!("{} {engine}", results.label(cell)),
        format!("{} {}", metric.name, metric.unit),
        published.map_or("-".into(), number),
        sample.as_ref().map_or("-".into(), |sample| number(sample.mean())),
        sample.as_ref().map_or("-".into(), |sample| number(sample.sd())),
        ratio.map_or("-".into(), |(sample, published)| format!("{:.2}", sample.mean() / published)),
        match results.failure(cell) {
            Some(why) => why.lines().next().unwrap_or_default().trim_end_matches(':').to_string(),
            None => note.to_string(),
        },
    ]
}

fn relations(judged: &[Judged]) -> text::Table {
    let heads = ["", "published", "modelled", "95 %", "x0.5 to x2", "verdict"];
    let mut table = text::Table::new(heads).numbers(1..5);
    for row in judged {
        let several = row.compared.len() > 1;
        for pair in &row.compared {
            let name = match several {
                true => format!("{}: {}", row.expect.name, pair.label),
                false => row.expect.name.clone(),
            };
            table.row([
                name,
                published(&row.expect),
                ratio(pair.ratio),
                interval(pair),
                range(pair),
                row.verdict.to_string(),
            ]);
        }
    }
    table
}

/// Whether numbers grow linearly with a parameter: a table for each row of the file.
fn linear(results: &Results) -> Vec<(String, text::Table)> {
    let of = |row: &Linear| {
        let metric = metric(results, row.metric);
        let fits = fits(results, row);
        let values: Vec<u64> = fits.first()?.points.iter().map(|point| point.0).collect();
        let heads = values.iter().map(|value| format!("{}={value}", row.parameter));
        let ends = ["at 0", "each", "residual %", "verdict"].map(String::from);
        let heads = std::iter::once(String::new()).chain(heads).chain(ends);
        let mut table = text::Table::new(heads).numbers(1..values.len() + 4);
        for fit in &fits {
            let number = |value: f64| format!("{:.*}", metric.decimals + 2, value);
            let points = fit.points.iter().map(|point| number(point.1));
            let verdict = if fit.is_linear { "linear" } else { "not linear" };
            let residual = format!("{:.1}", fit.residual_percent);
            let ends = [number(fit.start), number(fit.slope), residual, verdict.into()];
            table.row(std::iter::once(fit.label.clone()).chain(points).chain(ends));
        }
        let head = format!(
            "{}: {} in {}, and the line of least squares; a residual of {} % of the mean or less is linear",
            row.name, metric.name, metric.unit, row.percent
        );
        Some((head, table))
    };
    results.experiment.file.linear.iter().filter_map(of).collect()
}

fn linear_json(results: &Results, row: &Linear) -> Value {
    let of = |fit: &Fit| {
        json!({
            "cells": fit.label,
            "points": fit.points,
            "at_0": fit.start,
            "each": fit.slope,
            "residual_percent": fit.residual_percent,
            "is_linear": fit.is_linear,
        })
    };
    json!({
        "name": row.name,
        "parameter": row.parameter,
        "metric": metric(results, row.metric).name,
        "unit": metric(results, row.metric).unit,
        "percent": row.percent,
        "fits": fits(results, row).iter().map(of).collect::<Vec<_>>(),
    })
}

fn published(expect: &Expect) -> String {
    match (expect.sign, expect.ratio) {
        (Sign::Nothing, None) => "no difference".into(),
        (sign, None) => sign.word().into(),
        (_, ratio) => self::ratio(ratio),
    }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"))
}

fn interval(pair: &Compared) -> String {
    pair.interval.map_or("-".into(), |ends| format!("{:.3} to {:.3}", ends.low, ends.high))
}

fn range(pair: &Compared) -> String {
    match pair.range() {
        Some([low, high]) => format!("{:.3} to {:.3}", low.ratio, high.ratio),
        None => "not varied".into(),
    }
}

/// What is varied, in words.
fn what_varies(results: &Results) -> String {
    let costs = "assumed costs halved and doubled";
    let Some(ranges) = &results.experiment.file.ranges else {
        return format!("{costs}, each alone and all together");
    };
    let mut words = match ranges.costs {
        Costs::Each => vec![format!("{costs}, each alone and all together")],
        Costs::Together => vec![format!("{costs}, all together")],
        Costs::Given => Vec::new(),
    };
    let mut names: Vec<&str> = ranges.vary.iter().map(|(name, _)| *name).collect();
    names.dedup();
    words.extend((!names.is_empty()).then(|| format!("other values of {}", names.join(", "))));
    format!("{}; {} runs each", words.join(" and with "), results.plan.varied)
}

/// Which changes matter most for each relation, and which flip it.
fn extremes(judged: &[Judged], noise_percent: f64) -> Vec<String> {
    let of = |row: &Judged| {
        let ends = row.compared.iter().filter_map(Compared::range);
        let [low, high] = ends.min_by(|a, b| a[0].ratio.total_cmp(&b[0].ratio))?;
        let mut flips: Vec<&str> = row
            .compared
            .iter()
            .flat_map(|pair| pair.flips(noise_percent))
            .map(|one| one.by.as_str())
            .collect();
        flips.sort_unstable();
        flips.dedup();
        let name = &row.expect.name;
        let flips =
            if flips.is_empty() { String::new() } else { format!("; flips with {}", flips.join(", ")) };
        Some(format!("{name}: lowest with {}, highest with {}{flips}", low.by, high.by))
    };
    judged.iter().filter_map(of).collect()
}

/// What agrees: relations, and pairs in orders of merit.
pub(super) fn sum(results: &Results, score: Score) -> String {
    match (score.rows, merit_sum(results)) {
        (0, None) => "The experiment expects no relation of cells: there is nothing to judge.".into(),
        (0, Some(merit)) => merit,
        (_, None) => score_words(score),
        (_, Some(merit)) => format!("{} {merit}", score_words(score)),
    }
}

/// How many relations agree, beside the best constant answer.
fn score_words(Score { agree, rows, constant: (sign, count) }: Score) -> String {
    format!(
        "{agree} of {rows} relations agree. The best constant answer, \"{}\" for every relation, agrees in \
         {count}.",
        sign.word()
    )
}

fn figure_json(results: &Results, row: &Published) -> Value {
    let metric = metric(results, row.metric);
    let cells = results.plan.selected(&results.experiment, &row.cell);
    let modelled = cells.iter().map(|cell| {
        let sample = results.shown(*cell, metric);
        json!({
            "cell": cell,
            "mean": sample.as_ref().map(|sample| sample.mean()),
            "sd": sample.as_ref().map(|sample| sample.sd()),
        })
    });
    json!({
        "cells": select_json(&row.cell),
        "metric": metric.name,
        "unit": metric.unit,
        "published": row.value,
        "published_sd": row.sd,
        "published_n": row.n,
        "source": row.source,
        "modelled": modelled.collect::<Vec<_>>(),
    })
}

fn select_json(select: &Select) -> Value {
    let mut object = serde_json::Map::new();
    let names = [("machine", &select.machine), ("engine", &select.engine)];
    object.extend(names.into_iter().filter_map(|(key, name)| Some((key.to_string(), json!(name.as_ref()?)))));
    let words =
        |values: &[workload::Value]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    object.extend(select.values.iter().map(|(name, values)| (name.to_string(), json!(words(values)))));
    object.into()
}

fn relation_json(results: &Results, row: &Judged) -> Value {
    let pairs = row.compared.iter().map(|pair| {
        let one = |one: &Varied| json!({ "ratio": one.ratio, "by": one.by, "p_holm": one.p });
        let end = |at: usize| pair.range().map(|ends| one(ends[at]));
        json!({
            "cells": pair.label,
            "base": pair.base,
            "other": pair.other,
            "ratio": pair.ratio,
            "ratio_low_95": pair.interval.map(|ends| ends.low),
            "ratio_high_95": pair.interval.map(|ends| ends.high),
            "p_holm": pair.p,
            "sign": pair.sign.word(),
            "assumed_low": end(0),
            "assumed_high": end(1),
            "flips": pair.flips(results.experiment.file.noise_percent).map(one).collect::<Vec<_>>(),
        })
    });
    json!({
        "name": row.expect.name,
        "metric": metric(results, row.expect.metric).name,
        "base_metric": metric(results, row.expect.base_metric).name,
        "published_ratio": row.expect.ratio,
        "published_sign": row.expect.sign.word(),
        "pairs": pairs.collect::<Vec<_>>(),
        "verdict": row.verdict.to_string(),
    })
}
