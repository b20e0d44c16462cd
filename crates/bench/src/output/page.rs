//! The page of a report.

use super::columns::{self, Line};
use super::text::{contestants, title};
use crate::day::{Day, Moment};
use crate::memory::FIGURES;
use crate::patterns::Group;
use crate::report::{self, PROCESS_FIGURES, Report, Row};
use crate::stats::Estimate;
use crate::times::TIMES_FIGURES;
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Bar, Bars, Lines, Scale, Series, Shape, Whiskers};
use slablab_report::html::{Cell, Head, Table};

/// A section for each group, then memory, then the proofs.
pub(super) fn sections(answer: Answer, report: &Report) -> Answer {
    let answer = Group::ALL.into_iter().fold(answer, |answer, group| {
        let rows: Vec<&Row> = report.group(group).collect();
        if rows.is_empty() {
            return answer;
        }
        let answer = answer.section(title(group));
        if group == Group::Floors {
            let caption = "The machine's cost of steps that are smaller than an allocation.";
            return answer.page_table(caption, floors(&rows));
        }
        if group == Group::Latency {
            return rows.into_iter().fold(answer, times);
        }
        rows.into_iter().fold(answer, |answer, row| {
            let caption = format!("{}: {}. Medians with 95 % intervals.", row.name, row.about);
            day(answer.figure(&caption, bars(row), numbers(row)), row)
        })
    });
    let answer = match report.memory.is_empty() {
        true => answer,
        false => answer
            .section("Resident memory")
            .page_table("Resident memory of one process per allocator: medians.", memory(report)),
    };
    answer
        .section("Proofs")
        .page_table("How each allocator proved that it served the samples.", proofs(report))
}

/// A figure for malloc and one for free.
fn times(answer: Answer, row: &Row) -> Answer {
    ["malloc", "free"].into_iter().enumerate().fold(answer, |answer, (at, call)| {
        let heads = TIMES_FIGURES.iter().map(|(name, unit, _)| Head::number(name).unit(unit));
        let mut table = Table::new(std::iter::once(Head::text("allocator")).chain(heads));
        let mut bars = Vec::new();
        for cell in &row.cells {
            let Some(calls) = cell.calls else { continue };
            let (_, times) = calls.each()[at];
            let figures = TIMES_FIGURES.iter().map(|(.., value)| Cell::Number(value(&times), 0));
            table.row(std::iter::once(Cell::Name(cell.name.into())).chain(figures));
            bars.push(Bar { label: cell.name.into(), values: vec![times.p99_99_ns] });
        }
        let bars = Bars {
            parts: vec![format!("p99.99 of {call}")],
            first_colour: 0,
            bars,
            axis: Axis::new("ns", Scale::Number),
            remainder: false,
        };
        let caption = format!(
            "{call} of {}: {}. The bars: 99.99 % of the calls took no longer. The least of all blocks.",
            row.name, row.about
        );
        answer.figure(&caption, bars, table)
    })
}

/// Resident memory over the day of a service, beside what is live.
fn day(answer: Answer, row: &Row) -> Answer {
    let days: Vec<(&str, &Day)> =
        row.cells.iter().filter_map(|cell| Some((cell.name, cell.day.as_ref()?))).collect();
    let Some((_, first)) = days.first() else { return answer };
    let line = |name: &str, day: &Day, of: fn(&Moment) -> f64| Series {
        name: name.into(),
        points: day.moments.iter().map(|moment| (moment.at, of(moment))).collect(),
        band: Vec::new(),
    };
    let resident = days.iter().map(|(name, day)| line(name, day, |moment| moment.resident_mb));
    let series: Vec<Series> =
        std::iter::once(line("live", first, |moment| moment.live_mb)).chain(resident).collect();
    let heads = series.iter().map(|one| Head::number(&one.name).unit("MB"));
    let mut table = Table::new(std::iter::once(Head::number("share of the day")).chain(heads));
    for (at, moment) in first.moments.iter().enumerate() {
        let mb = series.iter().map(|one| Cell::Number(one.points[at].1, 1));
        table.row(std::iter::once(Cell::Number(moment.at, 2)).chain(mb));
    }
    let lines = Lines {
        x: Axis::new("share of the day", Scale::Number),
        y: Axis::new("MB resident", Scale::Number),
        shape: Shape::Straight,
        series,
    };
    answer.figure("Resident memory over the day, beside live bytes. Medians of all blocks.", lines, table)
}

fn bars(row: &Row) -> Whiskers {
    let bar = |cell: &report::Cell| Bar { label: cell.name.into(), values: vec![cell.cpu_ns.median] };
    let bars = Bars {
        parts: vec!["CPU time".into()],
        first_colour: 0,
        bars: row.cells.iter().map(bar).collect(),
        axis: Axis::new("ns per operation", Scale::Number),
        remainder: false,
    };
    let ends = row.cells.iter().map(|cell| Some([cell.cpu_ns.low, cell.cpu_ns.high]));
    Whiskers { bars, ends: ends.collect() }
}

fn numbers(row: &Row) -> Table {
    let keys = ["cpu", "cpu_low", "cpu_high", "ratio", "ratio_low", "ratio_high", "verdict"];
    if row.cells.iter().any(|cell| cell.process.is_some()) {
        return with_costs(row);
    }
    let threads = row.cells.iter().any(|cell| cell.wall_ns.is_some());
    let more: &[&str] = if threads { &["wall", "trip_before", "trip_after"] } else { &[] };
    let lines: Vec<Line> = row.cells.iter().map(|cell| (row, cell)).collect();
    let name = |line: &Line| Cell::Name(line.1.name.into());
    columns::lines().html(("allocator", &name), &[&keys[..], more].concat(), &lines)
}

/// The figures of contestants that had a process each.
fn with_costs(row: &Row) -> Table {
    let heads = [Head::text("allocator"), Head::number("CPU").unit("ns"), Head::number("over the best peer")];
    let peak = [Head::number("peak").unit("MB"), Head::number("over the leanest peer")];
    let figures = PROCESS_FIGURES.iter().map(|(name, unit, _)| Head::number(name).unit(unit));
    let mut table = Table::new(heads.into_iter().chain(peak).chain(figures));
    let median = |value: Option<Estimate>| value.map_or(Cell::Empty, |value| Cell::Number(value.median, 2));
    for cell in &row.cells {
        let Some(process) = &cell.process else { continue };
        let first = [Cell::Name(cell.name.into()), median(Some(cell.cpu_ns)), median(cell.ratio)];
        let peak = [median(Some(process.peak_mb)), median(process.peak_ratio)];
        let figures = process.figures.iter().map(|value| Cell::Number(*value, 1));
        table.row(first.into_iter().chain(peak).chain(figures));
    }
    table
}

fn floors(rows: &[&Row]) -> Table {
    let lines: Vec<Line> = rows.iter().map(|row| (*row, &row.cells[0])).collect();
    let name = |line: &Line| Cell::Name(line.0.name.into());
    columns::lines().html(("step", &name), &["cpu", "cpu_low", "cpu_high", "about"], &lines)
}

fn memory(report: &Report) -> Table {
    let figures = FIGURES.iter().map(|(name, unit, _)| Head::number(name).unit(unit));
    let mut table = Table::new(std::iter::once(Head::text("allocator")).chain(figures));
    for one in &report.memory {
        let name = Cell::Name(one.name.into());
        table.row(std::iter::once(name).chain(one.figures.iter().map(|value| Cell::Number(*value, 3))));
    }
    table
}

fn proofs(report: &Report) -> Table {
    let rows: Vec<&Row> = report.rows.iter().collect();
    let mut table = Table::new([Head::text("allocator"), Head::text("proof")]);
    for name in contestants(&rows) {
        let cell = rows.iter().flat_map(|row| &row.cells).find(|cell| cell.name == name);
        let proof = cell.map_or(Cell::Empty, |cell| Cell::Text(cell.evidence.into()));
        table.row([Cell::Name(name.into()), proof]);
    }
    table
}
