//! The report as text, JSON and CSV. Each figure has one name in all three.

use crate::columns::{self, Figure};
use crate::host::host;
use crate::memory::FIGURES;
use crate::own;
use crate::patterns::Group;
use crate::report::{Cell, PROCESS_FIGURES, ProcessFigure, Report, Row, Verdict};
use crate::stats::Estimate;
use serde_json::{Value, json};
use slablab_report::text::{Table, wrapped};
use std::fmt::Write;

/// The schema's name. The number grows when the meaning of a key changes.
const SCHEMA: &str = "slablab.bench.1";

/// Text: a table of figures and a table of ratios for each group, then memory, then false alarms and notes.
pub fn text(report: &Report) -> String {
    let mut text = heading(report);
    for group in Group::ALL {
        let rows: Vec<&Row> = report.group(group).collect();
        if rows.is_empty() {
            continue;
        }
        match group {
            Group::Floors => text += &floors(&rows),
            Group::Programs => text += &programs(&rows),
            _ => {
                text += &format!("\n{}\n", title(group));
                text += &figures(&rows, |cell| Some(cell.cpu_ns));
                if group == Group::Threads {
                    text += "\nseveral threads: wall ns per allocation and free\n";
                    text += &figures(&rows, |cell| cell.wall_ns);
                    text += "\nround trip of a cache line between two CPUs, ns before / after each sample; \
                             ~: it changed more than twofold\n";
                    text += &trips(&rows);
                }
                text += &ratios(&rows);
            }
        }
    }
    if !report.memory.is_empty() {
        text += &memory(report);
    }
    text += &closing(report);
    text
}

fn heading(report: &Report) -> String {
    let mut text = cannot_tell(report).map_or(String::new(), |said| wrapped(&said, "", "  "));
    writeln!(
        text,
        "{} blocks, scale {}, seed {}, {} CPUs, load {:.1} before and {:.1} after",
        report.blocks, report.scale, report.seed, report.cpus, report.load[0], report.load[1]
    )
    .expect("memory");
    text
}

/// The sentence about what the run cannot tell; `None` if it gives verdicts.
pub(crate) fn cannot_tell(report: &Report) -> Option<String> {
    let why = &report.no_verdict;
    (!why.is_empty()).then(|| {
        let next = "Run it again on an idle machine, with more --repeats.";
        format!("No verdict: {}. {next}", why.join("; "))
    })
}

/// The unit of a group's figures, as a heading.
pub(crate) fn title(group: Group) -> &'static str {
    match group {
        Group::Single => "one thread: CPU ns per allocation and free",
        Group::Threads => "several threads: CPU ns of all threads per allocation and free",
        Group::Programs => {
            "programs, a process of its own per sample: CPU ns of all threads per allocation and free"
        }
        Group::Caches => "objects of one type: CPU ns per object allocated and freed",
        Group::Floors => "floors: CPU ns per step",
    }
}

/// The contestants of some rows, in the order of tables.
pub(crate) fn contestants(rows: &[&Row]) -> Vec<&'static str> {
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
fn columns(rows: &[&Row], show: impl Fn(&Cell) -> Option<String>) -> String {
    let names = contestants(rows);
    let mut table = Table::new([""].iter().chain(&names));
    for row in rows {
        let shown = names.iter().map(|name| cell(row, name).and_then(&show).unwrap_or_default());
        table.row(std::iter::once(row.name.to_string()).chain(shown));
    }
    table.print()
}

fn figures(rows: &[&Row], figure: fn(&Cell) -> Option<Estimate>) -> String {
    columns(rows, |cell| {
        let shown = figure(cell)?;
        Some(format!("{} \u{b1}{:.0}%", digits(shown.median), shown.give_or_take_percent()))
    })
}

fn trips(rows: &[&Row]) -> String {
    columns(rows, |cell| {
        let [before, after] = cell.pingpong_ns?;
        let mark = if cell.moved > 0 { "~" } else { "" };
        Some(format!("{before:.0}/{after:.0}{mark}"))
    })
}

/// Prints three significant digits.
pub(crate) fn digits(number: f64) -> String {
    match number.abs() {
        ..10.0 => format!("{number:.2}"),
        ..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// The ratios of our allocators to the best peer, with the verdicts.
fn ratios(rows: &[&Row]) -> String {
    let ours = |cell: &&Cell| cell.ratio.is_some();
    let names: Vec<&str> = {
        let mut names = contestants(rows);
        names.retain(|name| rows.iter().any(|row| cell(row, name).is_some_and(|cell| ours(&cell))));
        names
    };
    if names.is_empty() {
        return String::new();
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
    format!("\nover the best peer, in the same block [95 %]\n{}", table.print())
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

fn floors(rows: &[&Row]) -> String {
    let mut table = Table::headless().numbers(1..2);
    for row in rows {
        let shown = row.cells[0].cpu_ns;
        let figure = format!("{} \u{b1}{:.0}%", digits(shown.median), shown.give_or_take_percent());
        table.row([row.name, &figure, row.about]);
    }
    format!("\n{}\n{}", title(Group::Floors), table.print())
}

/// A table for each workload, with a row per contestant: CPU time, peak memory and page faults side by side.
fn programs(rows: &[&Row]) -> String {
    let named = |(name, unit, _): &ProcessFigure| match *unit {
        "" => name.to_string(),
        unit => format!("{name} {unit}"),
    };
    let heads =
        || ["", "CPU ns", "peak MB"].map(String::from).into_iter().chain(PROCESS_FIGURES.iter().map(named));
    let mut text = format!("\n{}\n", title(Group::Programs));
    for row in rows {
        let peer = |name: Option<&str>, what| name.map(|name| format!("{what} over {name}"));
        let ratios = [peer(row.best_peer, "CPU"), peer(row.leanest_peer, "peak")];
        let mut table = Table::new(heads().chain(ratios.into_iter().flatten()));
        for cell in &row.cells {
            let Some(process) = &cell.process else { continue };
            let shown = |value: &Estimate| {
                format!("{} \u{b1}{:.0}%", digits(value.median), value.give_or_take_percent())
            };
            let figures = [cell.name.to_string(), shown(&cell.cpu_ns), shown(&process.peak_mb)];
            let figures = figures.into_iter().chain(process.figures.iter().map(|value| digits(*value)));
            let ratios = [judged(cell.ratio, cell.verdict), judged(process.peak_ratio, process.peak_verdict)];
            table.row(figures.chain(ratios));
        }
        write!(text, "\n{}: {}\n{}", row.name, row.about, table.print()).expect("memory");
    }
    text
}

fn memory(report: &Report) -> String {
    let names = FIGURES.iter().map(|(name, unit, _)| format!("{name} {unit}"));
    let mut table = Table::new(std::iter::once(String::new()).chain(names));
    for one in &report.memory {
        let figures = one.figures.iter().zip(&FIGURES).map(|(value, (_, unit, _))| match *unit {
            "B/B" => format!("{value:.3}"),
            _ => digits(*value),
        });
        table.row(std::iter::once(one.name.to_string()).chain(figures));
    }
    format!(
        "\nresident memory of a process, {} MB live; median of {} processes\n{}",
        report.memory_live_bytes / 1_000_000,
        report.memory.first().map_or(0, |one| one.processes),
        table.print()
    )
}

fn closing(report: &Report) -> String {
    let mut text = String::from("\n");
    let [won, even, lost] = report.tally();
    if won + even + lost > 0 {
        writeln!(text, "slablab's allocators against the best peer: {won} won, {even} even, {lost} lost")
            .expect("memory");
    }
    let (alarms, rows) = report.false_alarms();
    if rows > 0 {
        writeln!(text, "false alarms: {alarms} of {rows} intervals of the twin over itself do not contain 1")
            .expect("memory");
    }
    let samples: usize = report.rows.iter().flat_map(|row| &row.cells).map(|one| one.samples_ns.len()).sum();
    writeln!(text, "all {samples} samples are proved to be served by their allocators").expect("memory");
    report.notes.iter().for_each(|note| writeln!(text, "{note}").expect("memory"));
    text
}

/// JSON: the whole report, with every sample.
pub fn json(report: &Report) -> Value {
    let memory = report.memory.iter().map(|one| {
        let figures = FIGURES.iter().zip(&one.figures);
        let figures = figures.map(|((name, unit, _), value)| (key(name, unit), json!(value)));
        json!({
            "name": one.name,
            "role": one.role,
            "processes": one.processes,
            "figures": figures.collect::<serde_json::Map<_, _>>(),
        })
    });
    let (alarms, twins) = report.false_alarms();
    json!({
        "schema": SCHEMA,
        "blocks": report.blocks,
        "scale": report.scale,
        "seed": report.seed,
        "cpus": report.cpus,
        "load_before": report.load[0],
        "load_after": report.load[1],
        "interval_percent": 95,
        "false_alarms": alarms,
        "twins": twins,
        "workloads": report.rows,
        "memory_live_bytes": report.memory_live_bytes,
        "memory": memory.collect::<Vec<_>>(),
        "notes": report.notes,
        "no_verdict": report.no_verdict,
        "host": host(),
    })
}

/// The JSON key of a figure: `90 % freed` in MB becomes `90_percent_freed_mb`.
fn key(name: &str, unit: &str) -> String {
    let unit = unit.to_lowercase().replace('/', "_per_");
    format!("{}_{unit}", name.replace('%', "percent").replace(' ', "_"))
}

/// CSV: one row per figure.
pub fn csv(report: &Report) -> String {
    let lines = report.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
    let timed = lines.flat_map(|(row, cell)| {
        let figure = move |figure, unit, value: Estimate, verdict| Figure {
            workload: row.name,
            group: row.group.name(),
            contestant: cell.name,
            role: cell.role,
            figure,
            unit,
            median: value.median,
            ends: Some([value.low, value.high]),
            samples: cell.samples_ns.len(),
            best_peer: row.best_peer,
            verdict,
        };
        let cpu = figure("cpu", "ns", cell.cpu_ns, None);
        let wall = cell.wall_ns.map(|wall| figure("wall", "ns", wall, None));
        let ratio = cell.ratio.map(|ratio| figure("ratio", "", ratio, cell.verdict));
        let process = cell.process.iter().flat_map(move |process| {
            let peak = figure("peak", "MB", process.peak_mb, None);
            let over = process.peak_ratio;
            let over = over.map(|ratio| Figure {
                best_peer: row.leanest_peer,
                ..figure("peak ratio", "", ratio, process.peak_verdict)
            });
            let others = process.figures.iter().zip(&PROCESS_FIGURES).map(move |(value, (name, unit, _))| {
                let value = Estimate { median: *value, low: *value, high: *value };
                Figure { ends: None, ..figure(name, unit, value, None) }
            });
            [Some(peak), over].into_iter().flatten().chain(others)
        });
        [Some(cpu), wall, ratio].into_iter().flatten().chain(process)
    });
    let memory = report.memory.iter().flat_map(|one| {
        one.figures.iter().zip(&FIGURES).map(|(value, (name, unit, _))| Figure {
            workload: "memory",
            group: "memory",
            contestant: one.name,
            role: one.role,
            figure: name,
            unit,
            median: *value,
            ends: None,
            samples: one.processes,
            best_peer: None,
            verdict: None,
        })
    });
    columns::figures().csv(timed.chain(memory))
}

/// The list for `--list`: workloads with descriptions, and allocators with their proofs.
pub fn list() -> String {
    let all = own::workloads();
    let mut text = String::new();
    for group in Group::ALL {
        writeln!(text, "{}", group.name()).expect("memory");
        for one in all.iter().filter(|one| one.group == group) {
            writeln!(text, "  {:<15} {}", one.name, one.about).expect("memory");
        }
    }
    let about = "resident memory of a process per allocator: threads, live blocks, after frees";
    writeln!(text, "{}\n  {:<15} {about}\n\nallocators", crate::rig::MEMORY, crate::rig::MEMORY)
        .expect("memory");
    let mut seen = Vec::new();
    for one in all.iter().flat_map(|one| &one.contestants) {
        if !seen.contains(&one.name) {
            seen.push(one.name);
            writeln!(text, "  {:<15} {:<6} proof: {}", one.name, one.role.name(), one.evidence)
                .expect("memory");
        }
    }
    text
}
