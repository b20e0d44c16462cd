//! Published beside modelled: figures, relations with verdicts, the score.

mod document;

pub(super) use document::ReproduceDocument;

use super::experiment::{Look, begun, ended, experiment_avg_std, experiment_mmtests, with_tables};
use super::finding::{joined, ran};
use super::merit::{merit_blocks, merit_sum};
use super::shown::shown_tables;
use crate::file::linear::Linear;
use crate::file::ranges::Costs;
use crate::file::rows::{Expect, Sign};
use crate::judge::linear::fits;
use crate::judge::merit::{Ordered, merits};
use crate::judge::verdict::{Compared, Judged, Verdict, judge, score};
use crate::run::results::Results;
use slablab_report::document::{Named, named};
use slablab_report::frame::Frame;
use slablab_report::html::Cell as Shown;
use slablab_report::text::counted;
use slablab_report::{Answer, text};

/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 3] = ["sd", "95 %", "ratio"];

/// The schema of the answer.
pub(super) fn schema() -> Named {
    named::<ReproduceDocument>()
}

/// The answer of `reproduce`.
pub fn reproduce_answer(results: &Results, look: Look<'_>) -> Answer {
    let file = &results.experiment.file;
    let (judged, orders) = (judge(results), merits(results));
    let sentence = format!("{}; {}.", agreement(results, &judged, &orders), ran(results));
    let mut answer = begun(results, sentence, look);
    if let Some(source) = &file.source {
        answer = answer.line(format!("published: {source}"));
    }
    if let Some(fitted) = &file.fitted {
        answer = answer.line(format!("fitted: {}: {}", fitted.parameter, fitted.how));
    }
    answer = answer.heading("figures").table(figures(results), &LEFT_OUT);
    if !judged.is_empty() {
        let head = format!(
            "ratios of two cells, with 95 % intervals over the repeats; x0.5 to x2: the lowest and the highest \
             ratio with {}",
            what_varies(results)
        );
        answer = answer.heading(head).table(relations(&judged), &LEFT_OUT);
        answer = extremes(&judged, file.noise_percent).into_iter().fold(answer, Answer::line);
        answer = answer.line(constant(&judged));
    }
    answer = with_tables(answer, linear(results));
    answer = with_tables(merit_blocks(answer, results, &orders), shown_tables(results));
    ended(answer, results, look)
        .document(&ReproduceDocument::new(results, &judged, &orders))
        .rows(frame(results, &judged))
        .form("mmtests", experiment_mmtests(results, look.wrap))
        .form("avgstd", experiment_avg_std(results, look.wrap))
}

/// How many of the relations and the pairs in orders of merit agree, and which relations do not.
fn agreement(results: &Results, judged: &[Judged], orders: &[Ordered]) -> String {
    let of = score(judged);
    let others = judged.iter().filter(|row| row.verdict != Verdict::Agrees);
    let others: Vec<String> = others.map(|row| format!("{} ({})", row.expect.name, row.verdict)).collect();
    let merit = merit_sum(orders);
    let name = &results.experiment.file.name;
    match (of.rows, merit) {
        (0, None) => {
            format!("The experiment {name} expects no relation of cells: there is nothing to judge")
        }
        (0, Some(merit)) => format!("Of {name} {merit}"),
        (_, merit) => {
            let not = if others.is_empty() { String::new() } else { format!(": {}", joined(others)) };
            let merit = merit.map_or(String::new(), |merit| format!("; {merit}"));
            format!("{}{not}{merit}", three_counts(name, &judged.iter().collect::<Vec<_>>()))
        }
    }
}

/// How many published relations agree, are undetermined and do not agree.
pub(super) fn three_counts(name: &str, judged: &[&Judged]) -> String {
    let count = |wanted| judged.iter().filter(|row| row.verdict == wanted).count();
    let (agree, undetermined) = (count(Verdict::Agrees), count(Verdict::Undetermined));
    let not = judged.len() - agree - undetermined;
    let verb = |count: usize, one, many| if count == 1 { one } else { many };
    let rows = counted(judged.len() as u64, "published relation");
    let others = match judged.len() - agree {
        0 => String::new(),
        _ => format!(
            ", {undetermined} {} undetermined and {not} {} not",
            verb(undetermined, "is", "are"),
            verb(not, "does", "do")
        ),
    };
    format!("{agree} of {rows} of {name} {}{others}", verb(agree, "agrees", "agree"))
}

/// The score of an experiment: relations, and pairs in orders of merit.
pub(super) fn sum(judged: &[Judged], orders: &[Ordered]) -> String {
    let of = score(judged);
    let rows = counted(of.rows as u64, "relation");
    let agree = if of.agree == 1 { "agrees" } else { "agree" };
    let relations = format!("{} of {rows} {agree}. {}", of.agree, constant(judged));
    match (of.rows, merit_sum(orders)) {
        (0, None) => "The experiment expects no relation of cells: there is nothing to judge.".into(),
        (0, Some(merit)) => format!("{merit}."),
        (_, None) => relations,
        (_, Some(merit)) => format!("{relations} {merit}."),
    }
}

/// The score of the best answer that is the same for all relations.
fn constant(judged: &[Judged]) -> String {
    let (sign, count) = score(judged).constant;
    format!("The best constant answer, \"{}\" for every relation, agrees in {count}.", sign.word())
}

/// The relations, one each row.
fn frame(results: &Results, judged: &[Judged]) -> Frame {
    let mut frame = Frame::new([
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
    for row in judged {
        for pair in &row.compared {
            let range = pair.range();
            let end = |at: usize| range.map(|ends| ends[at]);
            let by = |at: usize| words(end(at).map(|end| end.by.clone()));
            frame.row([
                Shown::Name(row.expect.name.clone()),
                Shown::Name(pair.label.clone()),
                Shown::Name(results.metric(row.expect.metric).name.to_string()),
                Shown::Name(results.metric(row.expect.base_metric).name.to_string()),
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
    frame
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
    let metric = results.metric(at);
    let number = |number: f64| format!("{number:.*}", metric.decimals);
    let sample = results.shown(cell, metric);
    let ratio = sample.as_ref().zip(published).filter(|(_, published)| *published > 0.0);
    [
        results.name(cell),
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
        let metric = results.metric(row.metric);
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
    format!("{}; {} each", words.join(" and with "), counted(results.plan.varied.into(), "run"))
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
