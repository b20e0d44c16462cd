//! The tables of the text.

use crate::day::{Day, PARTS};
use crate::memory::FIGURES;
use crate::patterns::Group;
use crate::report::{Cell, PROCESS_FIGURES, ProcessFigure, Report, Row, Verdict};
use crate::stats::Estimate;
use crate::times::TIMES_FIGURES;
use slablab_report::Answer;
use slablab_report::text::{Table, counted, cut};

/// Columns that are left out on a narrow terminal, in this order. Those of allocators are not among them.
const LEFT_OUT: [&str; 14] = [
    "fault price ns",
    "without faults ns",
    "fault share %",
    "kernel share %",
    "faults",
    "churn ns",
    "churn peak B/B",
    "later MB",
    "later still MB",
    "90 % freed MB",
    "twin over itself",
    "p99.999",
    "p99",
    "above 10 us",
];

/// Of the parts of a day those that are columns: the ends of the ramp and of the peak, after the flush, the
/// end of idleness, and of the day.
const SHOWN: [usize; 5] = [6, 12, 13, 15, 20];

/// A table of figures and a table of ratios for each group, then memory.
pub(super) fn tables(answer: Answer, report: &Report) -> Answer {
    let [before, after] = report.load;
    let answer = answer.line(format!(
        "{}, scale {}, seed {}, {}, load {before:.1} before and {after:.1} after",
        counted(report.blocks as u64, "block"),
        report.scale,
        report.seed,
        counted(report.cpus as u64, "CPU")
    ));
    let answer = Group::ALL.into_iter().fold(answer, |answer, group| {
        let rows: Vec<&Row> = report.group(group).collect();
        match group {
            _ if rows.is_empty() => answer,
            Group::Floors => answer.heading(title(group)).table(floors(&rows), &LEFT_OUT),
            Group::Latency => {
                rows.iter().fold(answer.heading(title(group)), |answer, row| times(answer, row))
            }
            Group::Programs | Group::Service => {
                rows.iter().fold(answer.heading(title(group)), |answer, row| {
                    let answer = answer.heading(format!("{}: {}", row.name, row.about));
                    let (answer, over) = (answer.table(costs(row), &LEFT_OUT), over_peers(row));
                    let answer = if over.is_empty() { answer } else { answer.table(over, &[]) };
                    day(answer, row)
                })
            }
            _ => timed(answer, group, &rows),
        }
    });
    if report.memory.is_empty() {
        return answer;
    }
    let processes = report.memory.first().map_or(0, |one| one.processes);
    answer
        .heading(format!(
            "resident memory of a process, {} MB live; median of {processes} processes",
            report.memory_live_bytes / 1_000_000
        ))
        .table(memory(report), &LEFT_OUT)
}

/// Two tables of a workload whose calls are timed: of malloc, and of free.
fn times(answer: Answer, row: &Row) -> Answer {
    ["malloc", "free"].into_iter().enumerate().fold(answer, |answer, (at, call)| {
        let heads = TIMES_FIGURES.iter().map(|(name, ..)| (*name).to_string());
        let mut table = Table::new(std::iter::once(String::new()).chain(heads));
        for cell in &row.cells {
            let Some(calls) = cell.calls else { continue };
            let (_, times) = calls.each()[at];
            let figures = TIMES_FIGURES.iter().map(|(.., value)| format!("{:.0}", value(&times)));
            table.row(std::iter::once(cell.name.to_string()).chain(figures));
        }
        answer.heading(format!("{call} of {}: {}", row.name, row.about)).table(table, &LEFT_OUT)
    })
}

/// What a service has resident at the moments of its day that are worth a column, beside what is live.
fn day(answer: Answer, row: &Row) -> Answer {
    let days: Vec<(&str, &Day)> =
        row.cells.iter().filter_map(|cell| Some((cell.name, cell.day.as_ref()?))).collect();
    let Some((_, first)) = days.first() else { return answer };
    let shown = || (0..PARTS).filter(|at| SHOWN.contains(&(at + 1)));
    let heads = shown().map(|at| format!("{:.2}", first.moments[at].at));
    let more = ["most", "mean over live"].map(String::from);
    let mut table = Table::new(std::iter::once(String::new()).chain(heads).chain(more));
    let live = shown().map(|at| digits(first.moments[at].live_mb));
    table.row(std::iter::once("live".to_string()).chain(live).chain([String::new(), "1".into()]));
    for (name, day) in days {
        let resident = shown().map(|at| digits(day.moments[at].resident_mb));
        let more = [digits(day.most_mb()), format!("{:.2}", day.over_live())];
        table.row(std::iter::once(name.to_string()).chain(resident).chain(more));
    }
    answer.heading("MB resident at shares of the day").table(table, &LEFT_OUT)
}

/// The workloads that run in the process of the bench.
fn timed(answer: Answer, group: Group, rows: &[&Row]) -> Answer {
    let answer = answer.heading(title(group)).table(figures(rows, |cell| Some(cell.cpu_ns)), &LEFT_OUT);
    let answer = match group {
        Group::Threads => answer
            .heading("several threads: wall ns per allocation and free")
            .table(figures(rows, |cell| cell.wall_ns), &LEFT_OUT)
            .heading(
                "round trip of a cache line between two CPUs, ns before / after each sample; ~: it changed more \
                 than twofold",
            )
            .table(trips(rows), &LEFT_OUT),
        _ => answer,
    };
    match ratios(rows) {
        None => answer,
        Some(table) => answer.heading("over the best peer, in the same block [95 %]").table(table, &LEFT_OUT),
    }
}

/// The unit of a group's figures, as a heading.
pub(super) fn title(group: Group) -> &'static str {
    match group {
        Group::Single => "one thread: CPU ns per allocation and free",
        Group::Threads => "several threads: CPU ns of all threads per allocation and free",
        Group::Programs => {
            "programs, a process of its own per sample: CPU ns of all threads per allocation and free"
        }
        Group::Latency => "latency: ns of a single call, the least of all blocks",
        Group::Service => "a service's day, a process of its own per sample: CPU ns of all threads per call",
        Group::Caches => "objects of one type: CPU ns per object allocated and freed",
        Group::Floors => "floors: CPU ns per step",
    }
}

/// The contestants of some rows, in the order of tables.
pub(super) fn contestants(rows: &[&Row]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        if !names.contains(&cell.name) {
            names.push(cell.name);
        }
    }
    names
}

fn cell<'a>(row: &'a Row, name: &str) -> Option<&'a Cell> {
    row.cells.iter().find(|cell| cell.name == name)
}

/// A table with a row per workload and a column per contestant.
fn columns(rows: &[&Row], show: impl Fn(&Cell) -> Option<String>) -> Table {
    let names = contestants(rows);
    let mut table = Table::new([""].iter().chain(&names));
    for row in rows {
        let shown = names.iter().map(|name| cell(row, name).and_then(&show).unwrap_or_default());
        table.row(std::iter::once(row.name.to_string()).chain(shown));
    }
    table
}

fn figures(rows: &[&Row], figure: fn(&Cell) -> Option<Estimate>) -> Table {
    columns(rows, |cell| figure(cell).as_ref().map(estimated))
}

fn trips(rows: &[&Row]) -> Table {
    columns(rows, |cell| {
        let [before, after] = cell.pingpong_ns?;
        let mark = if cell.moved > 0 { "~" } else { "" };
        Some(format!("{before:.0}/{after:.0}{mark}"))
    })
}

/// Prints three significant digits.
pub(super) fn digits(number: f64) -> String {
    match number.abs() {
        ..10.0 => format!("{number:.2}"),
        ..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// The ratios of our allocators to the best peer, with the verdicts; `None` if none has one.
fn ratios(rows: &[&Row]) -> Option<Table> {
    let ours = |cell: &&Cell| cell.ratio.is_some();
    let names: Vec<&str> = {
        let mut names = contestants(rows);
        names.retain(|name| rows.iter().any(|row| cell(row, name).is_some_and(|cell| ours(&cell))));
        names
    };
    if names.is_empty() {
        return None;
    }
    let mut table = Table::new(["", "best peer"].iter().chain(&names).chain(&["twin over itself"]));
    for row in rows {
        let shown = names
            .iter()
            .map(|name| cell(row, name).map_or(String::new(), |cell| judged(cell.ratio, cell.verdict)));
        let first = [row.name.to_string(), row.best_peer.unwrap_or("").to_string()];
        let twin = row.twin.as_ref().map_or(String::new(), interval);
        table.row(first.into_iter().chain(shown).chain([twin]));
    }
    Some(table)
}

fn interval(ratio: &Estimate) -> String {
    format!("{:.2} [{:.2} {:.2}]", ratio.median, ratio.low, ratio.high)
}

/// A ratio with its verdict, if it has one.
fn judged(ratio: Option<Estimate>, verdict: Option<Verdict>) -> String {
    let Some(ratio) = ratio else { return String::new() };
    verdict.map_or(interval(&ratio), |verdict| format!("{} {}", interval(&ratio), word(verdict)))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Won => "won ",
        Verdict::Even => "even",
        Verdict::Lost => "LOST",
    }
}

fn floors(rows: &[&Row]) -> Table {
    let mut table = Table::headless().numbers(1..2);
    for row in rows {
        table.row([row.name, &estimated(&row.cells[0].cpu_ns), &cut(row.about, 50)]);
    }
    table
}

/// A row for each contestant: CPU time, peak memory and page faults side by side.
fn costs(row: &Row) -> Table {
    let named = |(name, unit, _): &ProcessFigure| match *unit {
        "" => name.to_string(),
        unit => format!("{name} {unit}"),
    };
    let heads = ["", "CPU ns", "peak MB"].map(String::from);
    let mut table = Table::new(heads.into_iter().chain(PROCESS_FIGURES.iter().map(named)));
    for cell in &row.cells {
        let Some(process) = &cell.process else { continue };
        let figures = [cell.name.to_string(), estimated(&cell.cpu_ns), estimated(&process.peak_mb)];
        table.row(figures.into_iter().chain(process.figures.iter().map(|value| digits(*value))));
    }
    table
}

/// A row for each contestant that is compared: CPU time and peak memory over those of the best peers.
fn over_peers(row: &Row) -> Table {
    let peer = |name: Option<&str>, what| format!("{what} over {}", name.unwrap_or("no peer"));
    let heads = [String::new(), peer(row.best_peer, "CPU"), peer(row.leanest_peer, "peak")];
    let mut table = Table::new(heads);
    for cell in row.cells.iter().filter(|cell| cell.ratio.is_some()) {
        let peak = cell.process.as_ref().map(|process| judged(process.peak_ratio, process.peak_verdict));
        table.row([cell.name.to_string(), judged(cell.ratio, cell.verdict), peak.unwrap_or_default()]);
    }
    table
}

/// A median, and half of its interval's width in percent.
fn estimated(value: &Estimate) -> String {
    format!("{} \u{b1}{:.0}%", digits(value.median), value.give_or_take_percent())
}

fn memory(report: &Report) -> Table {
    let names = FIGURES.iter().map(|(name, unit, _)| format!("{name} {unit}"));
    let mut table = Table::new(std::iter::once(String::new()).chain(names));
    for one in &report.memory {
        let figures = one.figures.iter().zip(&FIGURES).map(|(value, (_, unit, _))| match *unit {
            "B/B" => format!("{value:.3}"),
            _ => digits(*value),
        });
        table.row(std::iter::once(one.name.to_string()).chain(figures));
    }
    table
}
