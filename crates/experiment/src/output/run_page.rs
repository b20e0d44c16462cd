//! The page of an experiment: times with intervals, where the time went, which CPU waited for which lock,
//! memory over time, published beside modelled.

use super::memory::group_figures;
use crate::judge::verdict::judge;
use crate::run::observe::Seen;
use crate::run::results::Results;
use crate::workload::Metric;
use slablab_model::Spent;
use slablab_report::Answer;
use slablab_report::html::chart::{
    Axis, Bar, Group, Heat, Intervals, Lines, Point, Scale, Series, Shape, Wholes,
};
use slablab_report::html::{Cell as Shown, Head, Table};
use slablab_sim::profile::Profile;
use std::collections::BTreeMap;

/// Most cells that have a heat map.
const HEATS_MAX: usize = 6;
/// Most figures of the memory.
const MEMORIES_MAX: usize = 6;
/// Most cells with figures of what they sampled.
const SAMPLED_MAX: usize = 3;
/// Most cells in the figure of the time, and most groups in the figure of a metric. More are in tables.
const CELLS_MAX: usize = 60;

/// Adds the blocks of the page. `seen` is what [`crate::run::observe::seen`] saw.
pub(super) fn page_blocks(answer: Answer, results: &Results, seen: &[Option<Seen>]) -> Answer {
    let file = &results.experiment.file;
    let plan = &results.plan;
    let answer = answer
        .paragraph(&format!(
            "{} on modelled machines: {} cells, {}. All times are predicted by the model.",
            file.workload.name,
            results.plain().count(),
            plan.repeats.words()
        ))
        .facts([
            ("Machines", Shown::Count(results.experiment.machines.len() as u64)),
            ("Engines", Shown::Count(file.engines.len() as u64)),
            ("Size", Shown::Text(plan.size.name().into())),
            ("Seed", Shown::Text(plan.seed.to_string())),
        ]);
    let metric = results.metric(file.metric);
    let mut answer = metric_figure(answer.section("Result"), results, metric);
    if !file.expect.is_empty() {
        let caption = "Ratios of two cells; 95 %: the interval of the draws, without draws over the repeats. \
                       docs/reproduce.md says what a verdict is.";
        answer = answer.section("Published beside modelled").page_table(caption, relations(results));
    }
    let found: Vec<(usize, &Profile)> =
        results.plain().filter_map(|(at, _)| Some((at, seen.get(at)?.as_ref()?.profile.as_ref()?))).collect();
    if found.is_empty() {
        let name = file.workload.name;
        answer = answer.paragraph(&format!("{name} does not tell where the time of a run went."));
    } else {
        answer = time_figure(answer.section("Where the time went"), results, &found);
        answer = heat_figures(answer, results, &found);
    }
    answer = placement_table(answer, results, metric);
    answer = memory_figures(answer, results, seen);
    answer = sampled_figures(answer, results, seen);
    answer = failures(answer, results);
    answer
        .section("Every metric")
        .page_table("Means over the repeats. The number of a cell is that of --cell.", metrics_table(results))
}

/// The scale and the factor that a metric's numbers are drawn with.
fn drawn(metric: &Metric) -> (Scale, f64) {
    match metric.name {
        name if name.ends_with("_ps") => (Scale::Seconds, 1e-12),
        name if name.contains("_bytes") => (Scale::Bytes, 1.0),
        name if name.ends_with("_ppm") => (Scale::Percent, 1e-4),
        _ => (Scale::Number, 1.0 / metric.per_unit),
    }
}

/// A metric of each machine and engine with its interval.
fn metric_figure(answer: Answer, results: &Results, metric: &Metric) -> Answer {
    let (scale, factor) = drawn(metric);
    let point = |at: usize| {
        let mean = results.sample(at, metric)?.mean();
        let [low, high] = results.interval(at, metric).map_or([mean; 2], |ends| [ends.low, ends.high]);
        Some(Point { value: mean * factor, low: low * factor, high: high * factor })
    };
    let plain: Vec<usize> = results.plain().map(|(at, _)| at).collect();
    let engines = &results.experiment.file.engines;
    let group = |cells: &[usize]| Group {
        label: results.label(cells[0]),
        points: cells.iter().map(|at| point(*at)).collect(),
    };
    let mut groups: Vec<Group> = plain.chunks(engines.len()).map(group).collect();
    let left_out = groups.len().saturating_sub(CELLS_MAX);
    groups.truncate(CELLS_MAX);
    let values: Vec<f64> =
        groups.iter().flat_map(|group| group.points.iter().flatten().map(|point| point.low)).collect();
    if values.is_empty() {
        return answer.paragraph("No cell has a number.");
    }
    let unit = if scale == Scale::Number { format!(", {}", metric.unit) } else { String::new() };
    let axis = Axis::new(&format!("{}{unit}", metric.name), scale.for_range(values));
    let series = engines.iter().map(|(name, _)| name.clone()).collect();
    let chart = Intervals { series, groups, axis };
    let caption =
        format!("{}: {}. Means with 95 % intervals over the model's repeats.", metric.name, metric.about);
    let table = chart.table("machine", "engine");
    let answer = answer.figure(&caption, chart, table);
    more(answer, left_out, "machines and values are in the table of every metric")
}

/// CPU time of each cell by what it was spent on; waits by lock.
fn time_figure(answer: Answer, results: &Results, found: &[(usize, &Profile)]) -> Answer {
    let mut locks: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, waits) in found.iter().flat_map(|(_, profile)| &profile.waits) {
        *locks.entry(name).or_default() += waits.iter().sum::<u64>();
    }
    let kinds = [
        ("compute", Spent::Compute),
        ("lines from other caches", Spent::Transfer),
        ("lines from memory", Spent::Memory),
    ];
    let names = kinds.iter().map(|kind| kind.0.to_string());
    let parts: Vec<String> = names.chain(locks.keys().map(|lock| format!("wait: {lock}"))).collect();
    let bar = |(at, profile): &(usize, &Profile)| {
        let wait = |lock: &str| -> u64 {
            let of = profile.waits.iter().filter(|(name, _)| *name == lock);
            of.flat_map(|(_, waits)| waits).sum()
        };
        let spent = kinds.iter().map(|kind| profile.sum(kind.1));
        let all = spent.chain(locks.keys().map(|lock| wait(lock))).chain([profile.idle()]);
        Bar { label: results.name(*at), values: all.map(|ps| ps as f64 * 1e-12).collect() }
    };
    let wholes = Wholes {
        parts,
        remainder: Some("idle".into()),
        wholes: found.iter().take(CELLS_MAX).map(bar).collect(),
        axis: Axis::new("time of all CPUs", Scale::Seconds),
    };
    let caption = "Time of the CPUs in the first repeat of each cell: instructions and lines in the CPU's own \
                   caches, lines that came from other caches and from memory, waits by lock, idle.";
    let answer = answer.figure(caption, wholes.chart(), wholes.table("cell"));
    more(answer, found.len().saturating_sub(CELLS_MAX), "cells are left out")
}

/// CPU by lock for the cells in which CPUs waited for the largest part of their time.
fn heat_figures(mut answer: Answer, results: &Results, found: &[(usize, &Profile)]) -> Answer {
    let part = |profile: &Profile| {
        let whole = profile.elapsed as f64 * profile.cpus.len() as f64;
        profile.sum(Spent::LockWait) as f64 / whole.max(1.0)
    };
    let mut with_waits: Vec<_> = found.iter().filter(|(_, profile)| !profile.waits.is_empty()).collect();
    with_waits.sort_by(|a, b| part(b.1).total_cmp(&part(a.1)).then(a.0.cmp(&b.0)));
    for (at, profile) in with_waits.iter().take(HEATS_MAX) {
        let row = |waits: &Vec<u64>| waits.iter().map(|wait| *wait as f64 * 1e-12).collect();
        let heat = Heat {
            what: "time waited".into(),
            scale: Scale::Seconds,
            rows: profile.waits.iter().map(|(name, _)| name.to_string()).collect(),
            thing: "CPU".into(),
            across: profile.cpus.iter().map(|cpu| cpu.0.to_string()).collect(),
            numbers: profile.waits.iter().map(|(_, waits)| row(waits)).collect(),
        };
        let caption = format!("Waits for locks by CPU, {}, first repeat.", results.name(*at));
        let table = heat.table();
        answer = answer.figure(&caption, heat, table);
    }
    if with_waits.is_empty() {
        answer = answer.paragraph("No CPU waited for a lock.");
    }
    more(answer, with_waits.len().saturating_sub(HEATS_MAX), "cells with shorter waits are left out")
}

/// How much of the main metric's variance lies between placements; nothing with one placement.
fn placement_table(answer: Answer, results: &Results, metric: &Metric) -> Answer {
    let parts: Vec<_> =
        results.plain().filter_map(|(at, _)| Some((at, results.parts(at, metric)?))).collect();
    if parts.is_empty() {
        return answer;
    }
    let number = |name: &str| Head::number(name).unit(metric.unit);
    let heads = [number("mean"), number("sd within"), number("sd between")];
    let names = [Head::number("cell"), Head::text("machine and engine")];
    let mut table = Table::new(names.into_iter().chain(heads).chain([Head::number("between").unit("%")]));
    for (at, parts) in parts {
        let mean = results.sample(at, metric).map_or(f64::NAN, |sample| sample.mean());
        let numbers = [mean, parts.within.sqrt(), parts.between.sqrt()];
        let numbers = numbers.map(|value| Shown::Number(value / metric.per_unit, metric.decimals + 1));
        let names = [Shown::Count(at as u64 + 1), Shown::Name(results.name(at))];
        let share = Shown::Number(parts.share_between() * 100.0, 0);
        table.row(names.into_iter().chain(numbers).chain([share]));
    }
    let caption = "Standard deviations of repeats of one placement and of the placements' means, and the part \
                   of the variance between placements. A placement is what changes from boot to boot.";
    answer.section("Within and between placements").page_table(caption, table)
}

/// Memory over time of each machine and combination of parameters, a line for each engine.
fn memory_figures(mut answer: Answer, results: &Results, seen: &[Option<Seen>]) -> Answer {
    let engines = results.experiment.file.engines.len();
    let of = |at: usize| seen.get(at)?.as_ref().map(|seen| &seen.memory).filter(|memory| memory.len() > 1);
    let plain: Vec<usize> = results.plain().map(|(at, _)| at).collect();
    let all: Vec<&[usize]> =
        plain.chunks(engines).filter(|cells| cells.iter().any(|at| of(*at).is_some())).collect();
    if all.is_empty() {
        return answer;
    }
    answer = answer.section("Memory over time");
    for cells in all.iter().take(MEMORIES_MAX) {
        let mut table = Table::new([
            Head::text("engine"),
            Head::number("at the begin"),
            Head::number("highest"),
            Head::number("at the end"),
        ]);
        let mut series = Vec::new();
        for (at, memory) in cells.iter().filter_map(|at| Some((*at, of(*at)?))) {
            let name = results.engine(at);
            let points = memory.iter().map(|(time, bytes)| (*time as f64 * 1e-12, *bytes as f64)).collect();
            series.push(Series { name: name.into(), points, band: Vec::new() });
            let most = memory.iter().map(|point| point.1).max().unwrap_or(0);
            let bytes = [memory[0].1, most, memory[memory.len() - 1].1].map(Shown::Bytes);
            table.row([Shown::Name(name.into())].into_iter().chain(bytes));
        }
        let lines = Lines {
            x: Axis::new("time", Scale::Seconds),
            y: Axis::new("slabs", Scale::Bytes),
            shape: Shape::Steps,
            series,
        };
        let caption = format!("Memory of slabs, {}, first repeat, counted part.", results.label(cells[0]));
        answer = answer.figure(&caption, lines, table);
    }
    more(answer, all.len().saturating_sub(MEMORIES_MAX), "machines and values are left out")
}

/// What cells with page replacement sampled: a figure for each group of tracks.
fn sampled_figures(mut answer: Answer, results: &Results, seen: &[Option<Seen>]) -> Answer {
    let of = |at: usize| seen.get(at)?.as_ref().filter(|seen| !seen.sampled.is_empty());
    let all: Vec<(usize, &Seen)> = results.plain().filter_map(|(at, _)| Some((at, of(at)?))).collect();
    if all.is_empty() {
        return answer;
    }
    answer = answer.section("Memory, paging and disks over time");
    for (at, seen) in all.iter().take(SAMPLED_MAX) {
        answer = group_figures(answer, &results.name(*at), &seen.sampled);
    }
    more(answer, all.len().saturating_sub(SAMPLED_MAX), "cells are left out")
}

/// Relations of cells, published beside modelled.
fn relations(results: &Results) -> Table {
    let mut table = Table::new([
        Head::text("relation"),
        Head::number("published"),
        Head::number("modelled"),
        Head::number("95 %, from"),
        Head::number("to"),
        Head::text("verdict"),
    ]);
    let number = |number: Option<f64>| number.map_or(Shown::Empty, |number| Shown::Number(number, 3));
    for row in judge(results) {
        for pair in &row.compared {
            let ends = pair.ends();
            let name = match pair.label.is_empty() {
                true => row.expect.name.clone(),
                false => format!("{}: {}", row.expect.name, pair.label),
            };
            table.row([
                Shown::Name(name),
                number(row.expect.ratio),
                number(pair.ratio),
                number(ends.map(|ends| ends.low)),
                number(ends.map(|ends| ends.high)),
                Shown::Name(row.words()),
            ]);
        }
    }
    table
}

/// A row for each cell, a column for each metric.
fn metrics_table(results: &Results) -> Table {
    let metrics = results.experiment.file.workload.metrics;
    let heads = metrics.iter().map(|metric| Head::number(metric.name).unit(metric.unit));
    let names = [Head::number("cell"), Head::text("machine"), Head::text("engine")];
    let mut table = Table::new(names.into_iter().chain(heads));
    for (at, _) in results.plain() {
        let numbers = metrics.iter().map(|metric| match results.shown(at, metric) {
            Some(sample) => Shown::Number(sample.mean(), metric.decimals),
            None => Shown::Empty,
        });
        let names = [
            Shown::Count(at as u64 + 1),
            Shown::Name(results.label(at)),
            Shown::Name(results.engine(at).into()),
        ];
        table.row(names.into_iter().chain(numbers));
    }
    table
}

/// Why cells have no numbers.
fn failures(answer: Answer, results: &Results) -> Answer {
    let failed =
        |(at, _): (usize, _)| Some(format!("{}: no numbers: {}", results.name(at), results.failure(at)?));
    let failed: Vec<String> = results.plain().filter_map(failed).collect();
    let answer = if failed.is_empty() { answer } else { answer.section("Cells without numbers") };
    failed.iter().fold(answer, |answer, why| {
        answer.paragraph(&why.lines().map(str::trim).collect::<Vec<_>>().join("; "))
    })
}

/// Says how many things are not shown.
fn more(answer: Answer, count: usize, what: &str) -> Answer {
    if count > 0 { answer.paragraph(&format!("{count} more {what}.")) } else { answer }
}

/// What the numbers rest on.
pub(super) fn basis(results: &Results) -> [String; 1] {
    let assumed = results.experiment.assumed().len();
    [format!(
        "{assumed} costs of the machines are assumed; slablab reproduce shows what they change. Intervals show \
         the scatter of the model's repeats, not that of a real machine."
    )]
}
