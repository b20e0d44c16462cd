//! Published beside modelled: figures, relations with verdicts, the score.

mod document;

pub(super) use document::{DrawsDocument, ReproduceDocument, SizesDocument};

use super::experiment::{Look, begun, ended, experiment_avg_std, experiment_mmtests, with_tables};
use super::finding::{joined, missing};
use super::merit::{merit_blocks, merit_sum};
use super::shown::shown_tables;
use crate::file::linear::Linear;
use crate::file::pinned::Pinned;
use crate::file::rows::{Expect, Select, Sign};
use crate::judge::draws::Matter;
use crate::judge::linear::fits;
use crate::judge::merit::{Ordered, merits};
use crate::judge::score::{Sizes, predicted, score, sizes_of};
use crate::judge::verdict::{Compared, Judged, Verdict, judge};
use crate::run::results::Results;
use slablab_report::document::{Named, named};
use slablab_report::frame::Frame;
use slablab_report::html::Cell as Shown;
use slablab_report::text::counted;
use slablab_report::{Answer, text};

/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 4] = ["sd", "95 %", "moved most by", "ratio"];

/// The schema of the answer.
pub(super) fn schema() -> Named {
    named::<ReproduceDocument>()
}

/// The answer of `reproduce`.
pub fn reproduce_answer(results: &Results, look: Look<'_>) -> Answer {
    let file = &results.experiment.file;
    let (judged, orders) = (judge(results), merits(results));
    let sentence = format!("{}{}.", agreement(results, &judged, &orders), missing(results));
    let mut answer = begun(results, sentence, look);
    if let Some(source) = &file.source {
        answer = answer.line(format!("published: {source}"));
    }
    if let Some(fitted) = &file.fitted {
        answer = answer.line(format!("fitted: {}: {}", fitted.parameter, fitted.how));
    }
    answer = file.pinned.iter().fold(answer, |answer, one| answer.line(pinned(results, one)));
    answer = answer.heading("figures").table(figures(results), &LEFT_OUT);
    if !judged.is_empty() {
        answer = answer.heading(head(results)).table(relations(&judged), &LEFT_OUT);
        answer = answer.line(constant(&judged));
        answer = sizes_of(&judged).into_iter().fold(answer, |answer, sizes| answer.line(size_words(sizes)));
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
    let others = predicted(judged).filter(|row| row.verdict != Verdict::Agrees);
    let others: Vec<String> = others.map(|row| format!("{} ({})", row.expect.name, row.words())).collect();
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
            format!("{}{not}{merit}", counts(name, &predicted(judged).collect::<Vec<_>>()))
        }
    }
}

/// How many published relations agree, and what the others do.
pub(super) fn counts(name: &str, judged: &[&Judged]) -> String {
    let count = |wanted| judged.iter().filter(|row| row.verdict == wanted).count();
    let (agree, undetermined) = (count(Verdict::Agrees), count(Verdict::Undetermined));
    let lost = count(Verdict::NotResolvable);
    let others = [
        (agree, "agrees", "agree"),
        (undetermined, "is undetermined", "are undetermined"),
        (lost, "is not resolvable", "are not resolvable"),
        (judged.len() - agree - undetermined - lost, "does not", "do not"),
    ];
    let said = |(at, (count, one, many)): (usize, (usize, &str, &str))| {
        let verb = if count == 1 { one } else { many };
        // What agrees is said first, as a part of all.
        if at == 0 { verb.to_string() } else { format!("{count} {verb}") }
    };
    let told = others.into_iter().enumerate().filter(|(at, (count, ..))| *at == 0 || *count > 0);
    let rows = counted(judged.len() as u64, "published relation");
    format!("{agree} of {rows} of {name} {}", joined(told.map(said).collect()))
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
        "within_percent",
        "modelled_ratio",
        "ratio_low_95",
        "ratio_high_95",
        "p_holm",
        "draws",
        "lower_percent",
        "none_percent",
        "higher_percent",
        "draws_low_95",
        "draws_high_95",
        "outside_percent",
        "moved_most_by",
        "verdict",
    ]);
    let number = |number: Option<f64>| number.map_or(Shown::Empty, |number| Shown::Number(number, 4));
    let words = |text: Option<String>| text.map_or(Shown::Empty, Shown::Name);
    for row in judged {
        for pair in &row.compared {
            let drawn = pair.drawn.as_ref();
            let percent = |at: usize| number(drawn.map(|drawn| drawn.parts[at] * 100.0));
            frame.row([
                Shown::Name(row.expect.name.clone()),
                Shown::Name(pair.label.clone()),
                Shown::Name(results.metric(row.expect.metric).name.to_string()),
                Shown::Name(results.metric(row.expect.base_metric).name.to_string()),
                number(row.expect.ratio),
                Shown::Name(row.expect.sign.word().to_string()),
                number(row.expect.within.map(|within| within.percent)),
                number(pair.ratio),
                number(pair.interval.map(|ends| ends.low)),
                number(pair.interval.map(|ends| ends.high)),
                number(pair.p),
                drawn.map_or(Shown::Empty, |drawn| Shown::Count(drawn.n as u64)),
                percent(0),
                percent(1),
                percent(2),
                number(drawn.map(|drawn| drawn.interval.low)),
                number(drawn.map(|drawn| drawn.interval.high)),
                number(row.expect.ratio.and_then(|published| pair.outside_percent(published))),
                words(drawn.and_then(|drawn| drawn.most.as_ref()).map(|most| most.name.clone())),
                Shown::Name(row.word()),
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
    let plain = results.plain().count();
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
    let heads = ["", "verdict", "published", "modelled", "95 %", "sign", "size", "moved most by"];
    let mut table = text::Table::new(heads).numbers(2..6);
    for row in judged {
        let several = row.compared.len() > 1;
        for pair in &row.compared {
            let name = match several {
                true => format!("{}: {}", row.expect.name, pair.label),
                false => row.expect.name.clone(),
            };
            table.row([
                name,
                row.words(),
                published(&row.expect),
                ratio(pair.ratio),
                interval(pair),
                of_sign(pair, row.expect.sign),
                row.expect.ratio.map_or("-".into(), |published| size(pair, published)),
                most(pair),
            ]);
        }
    }
    table
}

/// What a parameter was pinned on, and what the model has there.
fn pinned(results: &Results, one: &Pinned) -> String {
    let metric = results.metric(one.metric);
    let mean = |cell: &Select| {
        let cells = results.plan.selected(&results.experiment, cell);
        cells.first().and_then(|cell| results.shown(*cell, metric)).map(|sample| sample.mean())
    };
    let modelled = match &one.other {
        Some(other) => mean(&one.base).zip(mean(other)).map(|(base, other)| other / base),
        None => mean(&one.base),
    };
    let what = if one.other.is_some() { "a ratio of" } else { "a figure of" };
    let tried: Vec<String> = one.tried.iter().map(ToString::to_string).collect();
    format!(
        "pinned: {} = {}, on {what} {} alone, published {:.3}, modelled {}; tried: {}. {}",
        one.parameter,
        one.value,
        results.experiment.file.engines[0].0,
        one.published,
        ratio(modelled),
        tried.join(", "),
        one.how
    )
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
    if let Some(within) = expect.within {
        return format!("within {} %", within.percent);
    }
    match (expect.sign, expect.ratio) {
        (Sign::Nothing, None) => "no difference".into(),
        (sign, None) => sign.word().into(),
        (_, ratio) => self::ratio(ratio),
    }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"))
}

/// The 95 % interval of the draws; without, of the repeats.
fn interval(pair: &Compared) -> String {
    pair.ends().map_or("-".into(), |ends| format!("{:.3} to {:.3}", ends.low, ends.high))
}

/// How many draws have a sign, and how many there are.
pub(super) fn of_sign(pair: &Compared, sign: Sign) -> String {
    let Some(drawn) = &pair.drawn else { return "not drawn".into() };
    let part = match sign {
        Sign::Lower => drawn.parts[0],
        Sign::Nothing => drawn.parts[1],
        Sign::Higher => drawn.parts[2],
    };
    format!("{:.0} of {}", part * drawn.n as f64, drawn.n)
}

/// Where the published ratio is, seen from the interval of the draws; without, of the repeats.
pub(super) fn size(pair: &Compared, published: f64) -> String {
    match pair.outside_percent(published) {
        None => "-".into(),
        Some(0.0) => "inside".into(),
        Some(percent) if percent > 0.0 => format!("{percent:.1} % above"),
        Some(percent) => format!("{:.1} % below", -percent),
    }
}

/// The assumption that moves the ratio most, and how much of the variance is its own.
fn most(pair: &Compared) -> String {
    let most = pair.drawn.as_ref().and_then(|drawn| drawn.most.as_ref());
    most.map_or("-".into(), |Matter { name, percent, .. }| format!("{name} ({percent:.0} %)"))
}

/// What the table of relations shows.
fn head(results: &Results) -> String {
    let figures = match results.experiment.file.expect.iter().any(|expect| expect.within.is_some()) {
        true => "; within N %: of a cell over its published figure",
        false => "",
    };
    let most = results.plan.draws;
    if most == 0 {
        let size = "size: where the published ratio is, seen from the interval";
        return format!("ratios of two cells{figures}; 95 %: the interval over the repeats; {size}");
    }
    let ranges = results.experiment.file.ranges.as_ref();
    let costs = ranges.is_none_or(|ranges| ranges.costs).then(|| "all costs".to_string());
    let names = ranges.into_iter().flat_map(|ranges| &ranges.vary).map(|(name, _)| (*name).to_string());
    let drawn: Vec<String> = costs.into_iter().chain(names).collect();
    format!(
        "ratios of two cells at costs as given{figures}; 95 %: the interval over at most {most} draws of {} together; \
         sign: draws that have the published sign; size: where the published ratio is, seen \
         from the interval",
        joined(drawn)
    )
}

/// How near the ratios are to the published ones, beside the null answer.
pub(super) fn size_words(sizes: Sizes) -> String {
    let words = |[inside, all]: [usize; 2], over: &str| match all {
        0 => String::new(),
        _ => format!(", {inside} of {all} inside the intervals{over}"),
    };
    let inside = words(sizes.inside, "") + &words(sizes.inside_repeats, " over the repeats");
    format!(
        "Sizes: over {} the root mean square of the logarithm of modelled over published is {:.3}{inside}; of the \
         same ratio for all, {:.3}, it is {:.3}.",
        counted(sizes.rows as u64, "ratio"),
        sizes.error,
        sizes.same,
        sizes.same_error
    )
}
