//! The report as an HTML page.

use crate::columns::{self, Line};
use crate::memory::FIGURES;
use crate::output::{cannot_tell, contestants, title};
use crate::patterns::Group;
use crate::report::{PROCESS_FIGURES, Report, Row};
use crate::stats::Estimate;
use slablab_report::html::chart::{Axis, Bar, Bars, Scale, Whiskers};
use slablab_report::html::{Cell, Head, Page, Table};

/// The page of a report. `command` is the command line that made it.
pub fn page(report: &Report, command: &str) -> String {
    let mut page = Page::new("Allocators side by side", command);
    page.lede(&lede(report));
    page.facts([
        ("blocks", Cell::Count(report.blocks as u64)),
        ("CPUs", Cell::Count(report.cpus as u64)),
        ("load before", Cell::Number(report.load[0], 1)),
        ("load after", Cell::Number(report.load[1], 1)),
        ("seed", Cell::Text(report.seed.to_string())),
    ]);
    for group in Group::ALL {
        let rows: Vec<&Row> = report.group(group).collect();
        if rows.is_empty() {
            continue;
        }
        page.section(title(group));
        if group == Group::Floors {
            page.table("The machine's cost of steps that are smaller than an allocation.", &floors(&rows));
            continue;
        }
        for row in rows {
            let caption = format!("{}: {}. Medians with 95 % intervals.", row.name, row.about);
            page.figure(&caption, &bars(row), &numbers(row));
        }
    }
    if !report.memory.is_empty() {
        page.section("Resident memory");
        page.table("Resident memory of one process per allocator: medians.", &memory(report));
    }
    page.evidence(&evidence(report));
    page.finish()
}

fn lede(report: &Report) -> String {
    let [won, even, lost] = report.tally();
    match cannot_tell(report) {
        Some(said) => said,
        None if won + even + lost == 0 => "Times of allocators; none of them is compared with a peer.".into(),
        None => format!(
            "Compared with each workload's best peer, slablab's allocators win {won}, are even in {even} and \
             lose {lost}."
        ),
    }
}

fn bars(row: &Row) -> Whiskers {
    let bar = |cell: &crate::report::Cell| Bar { label: cell.name.into(), values: vec![cell.cpu_ns.median] };
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

fn evidence(report: &Report) -> Vec<String> {
    let (alarms, twins) = report.false_alarms();
    let rows: Vec<&Row> = report.rows.iter().collect();
    let proofs = contestants(&rows).into_iter().filter_map(|name| {
        let cell = rows.iter().flat_map(|row| &row.cells).find(|cell| cell.name == name)?;
        Some(format!("{name}: {}", cell.evidence))
    });
    let mut all = vec![
        format!("False alarms: {alarms} of {twins} intervals of the twin over itself do not contain 1."),
        "Each interval contains 95 % of the bootstrap resamples of blocks.".to_string(),
    ];
    all.extend(report.notes.iter().cloned());
    all.extend(proofs);
    all
}
