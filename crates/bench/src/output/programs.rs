//! The answer of `bench -- PROGRAM`.

use super::text::digits;
use crate::host::{Host, host};
use crate::programs::judged::{Judged, Row, differs};
use crate::stats::Estimate;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::html::chart::{Axis, Bar, Bars, Scale, Whiskers};
use slablab_report::text::counted;
use slablab_report::{Answer, Document, json};

#[derive(Serialize, JsonSchema)]
struct ProgramDocument<'a> {
    /// Complete blocks: in each, the program ran once under every allocator.
    blocks: usize,
    /// The program and its arguments.
    command: &'a str,
    host: Host,
    /// What the intervals contain.
    interval_percent: u8,
    /// Runnable processes after the run.
    load_after: f64,
    /// Runnable processes before the run.
    load_before: f64,
    /// Why there is no verdict; empty if there is one.
    no_verdict: &'a [String],
    /// What a reader must know of the runs.
    notes: &'a [String],
    rows: &'a [Row],
    /// The seed of the order.
    seed: u64,
}

impl Document for ProgramDocument<'_> {
    const NAME: &'static str = "slablab.bench-program.1";
    const TITLE: &'static str = "slablab bench -- PROGRAM: a program under several allocators";
}

/// The schema of this answer.
pub(super) fn schema() -> Named {
    named::<ProgramDocument>()
}

/// The answer of `bench -- PROGRAM`. Beside the usual forms it has hyperfine's JSON.
pub fn program_answer(judged: &Judged) -> Answer {
    let columns = columns();
    let label = ("", &name as &dyn Fn(&Row) -> Cell);
    let keys = ["cpu_ms", "cpu_of_first", "wall_ms", "peak_mb", "peak_of_first", "faults"];
    let on_page = [
        "cpu_ms",
        "cpu_low",
        "cpu_high",
        "cpu_ratio",
        "cpu_ratio_low",
        "cpu_ratio_high",
        "wall_ms",
        "peak_mb",
        "peak_ratio",
        "faults",
    ];
    let document = ProgramDocument {
        blocks: judged.blocks,
        command: &judged.command,
        host: host(),
        interval_percent: 95,
        load_after: judged.load[1],
        load_before: judged.load[0],
        no_verdict: &judged.no_verdict,
        notes: &judged.notes,
        rows: &judged.rows,
        seed: judged.seed,
    };
    let table = columns.text(label, &keys, &judged.rows, Style::Units).numbers(1..7);
    let again = "Run it again on an idle machine, with more --repeats.";
    Answer::new(format!("{} under several allocators", judged.command), sentence(judged))
        .warnings((!judged.no_verdict.is_empty()).then(|| again.to_string()))
        .document(&document)
        .rows(columns.frame(&judged.rows))
        .form("hyperfine", json::document(&hyperfine(judged)))
        .line(format!("{}, {}", judged.command, counted(judged.blocks as u64, "block")))
        .table(table, &["faults", "wall ms"])
        .figure(
            "CPU time of the program and its children, and its 95 % interval.",
            bars(judged),
            columns.html(("allocator", &name), &on_page, &judged.rows),
        )
        .remarks(remarks(judged))
}

/// What is asked first: which allocator takes least, and how sure that is.
fn sentence(judged: &Judged) -> String {
    let Judged { command, rows, no_verdict, .. } = judged;
    let (first, count) = (&judged.base().allocator, rows.iter().filter(|row| !row.is_twin).count());
    if !no_verdict.is_empty() {
        return format!("No verdict on {command}: {}.", no_verdict.join("; "));
    }
    if count == 1 {
        let (cpu, peak) = (digits(judged.base().cpu_ms.median), digits(judged.base().peak_mb.median));
        return format!("{command} takes {cpu} ms of CPU time and {peak} MB under {first}.");
    }
    let of = |(row, ratio): (&Row, Estimate)| {
        let [median, low, high] = [ratio.median, ratio.low, ratio.high].map(|part| format!("{part:.2}"));
        format!("{} ({median} of {first}'s, {low} to {high})", row.allocator)
    };
    let least = |ratio: fn(&Row) -> Option<Estimate>| judged.least(ratio).map(of);
    let none = |ratio: fn(&Row) -> Option<Estimate>, what: &str| {
        let others = rows.iter().filter(|row| !row.is_twin).filter_map(ratio);
        match others.into_iter().any(|ratio| differs(&ratio)) {
            true => format!("none takes less {what} than {first}"),
            false => format!("none differs from {first} in {what}"),
        }
    };
    match (least(|row| row.cpu_ratio), least(|row| row.peak_ratio)) {
        (Some(cpu), Some(peak)) => format!(
            "Of {count} allocators {cpu} takes the least CPU time for {command}, and {peak} the least memory."
        ),
        (Some(cpu), None) => format!(
            "Of {count} allocators {cpu} takes the least CPU time for {command}; {}.",
            none(|row| row.peak_ratio, "memory")
        ),
        (None, Some(peak)) => format!(
            "Of {count} allocators {peak} takes the least memory for {command}; {}.",
            none(|row| row.cpu_ratio, "CPU time")
        ),
        (None, None) => format!(
            "Of {count} allocators {} for {command}, and {}.",
            none(|row| row.cpu_ratio, "CPU time"),
            none(|row| row.peak_ratio, "memory")
        ),
    }
}

fn remarks(judged: &Judged) -> Vec<String> {
    let first = &judged.base().allocator;
    let mut all = vec![
        format!("each interval contains 95 % of the bootstrap resamples of blocks; \"of {first}\" compares runs of one block"),
        format!("\"{first} again\" is the same library: what differs there is the machine's"),
        "each allocator is proved by the dynamic linker in a run of its own before the blocks".into(),
        "CPU time is that of the program and of the processes that it waited for; the peak is that of the largest of \
         them"
        .into(),
    ];
    all.extend(judged.notes.iter().cloned());
    all
}

fn name(row: &Row) -> Cell {
    Cell::Name(if row.is_twin { format!("{} again", row.allocator) } else { row.allocator.clone() })
}

fn columns() -> Columns<Row> {
    /// A part of an estimate.
    type Part = fn(&Estimate) -> f64;
    const MEDIAN: Part = |estimate| estimate.median;
    const LOW: Part = |estimate| estimate.low;
    const HIGH: Part = |estimate| estimate.high;
    let number = |of: fn(&Row) -> Option<Estimate>, part: Part| {
        move |row: &Row| of(row).map_or(Cell::Empty, |estimate| Cell::Number(part(&estimate), 3))
    };
    let shown = |of: fn(&Row) -> Estimate| {
        move |row: &Row| {
            let estimate = of(row);
            Cell::Text(format!("{} \u{b1}{:.0}%", digits(estimate.median), estimate.give_or_take_percent()))
        }
    };
    let over = |of: fn(&Row) -> Option<Estimate>| {
        move |row: &Row| {
            of(row).map_or(Cell::Empty, |ratio| {
                Cell::Text(format!("{:.2} [{:.2} {:.2}]", ratio.median, ratio.low, ratio.high))
            })
        }
    };
    Columns::default()
        .key("allocator", |row: &Row| Cell::Text(row.allocator.clone()))
        .key("is_twin", |row| Cell::Text(if row.is_twin { "yes" } else { "no" }.into()))
        .people("cpu_ms", "CPU ms", "CPU, ms", shown(|row| row.cpu_ms))
        .people("cpu_of_first", "of the first", "of the first", over(|row| row.cpu_ratio))
        .add("cpu", "", "CPU", number(|row| Some(row.cpu_ms), MEDIAN))
        .unit("ms")
        .add("cpu_low", "", "from", number(|row| Some(row.cpu_ms), LOW))
        .unit("ms")
        .add("cpu_high", "", "to", number(|row| Some(row.cpu_ms), HIGH))
        .unit("ms")
        .add("cpu_ratio", "", "of the first", number(|row| row.cpu_ratio, MEDIAN))
        .add("cpu_ratio_low", "", "from", number(|row| row.cpu_ratio, LOW))
        .add("cpu_ratio_high", "", "to", number(|row| row.cpu_ratio, HIGH))
        .people("wall_ms", "wall ms", "wall, ms", shown(|row| row.wall_ms))
        .key("wall", number(|row| Some(row.wall_ms), MEDIAN))
        .key("wall_ratio", number(|row| row.wall_ratio, MEDIAN))
        .people("peak_mb", "peak MB", "peak, MB", shown(|row| row.peak_mb))
        .people("peak_of_first", "of the first ", "of the first", over(|row| row.peak_ratio))
        .key("peak", number(|row| Some(row.peak_mb), MEDIAN))
        .add("peak_ratio", "", "of the first", number(|row| row.peak_ratio, MEDIAN))
        .add("faults", "faults", "page faults", |row| Cell::Number(row.faults, 0))
        .key("library", |row| Cell::Text(row.library.clone()))
}

fn bars(judged: &Judged) -> Whiskers {
    let bar = |row: &Row| Bar { label: row.allocator.clone(), values: vec![row.cpu_ms.median] };
    let rows = || judged.rows.iter().filter(|row| !row.is_twin);
    let bars = Bars {
        parts: vec!["CPU time".into()],
        first_colour: 0,
        bars: rows().map(bar).collect(),
        axis: Axis::new("ms", Scale::Number),
        remainder: false,
    };
    Whiskers { bars, ends: rows().map(|row| Some([row.cpu_ms.low, row.cpu_ms.high])).collect() }
}

/// The results in the form of hyperfine 1.20's `--export-json`: seconds, and the allocator as a parameter.
fn hyperfine(judged: &Judged) -> Value {
    let result = |row: &Row| {
        let of = |number: fn(&crate::programs::judged::Block) -> f64| -> Vec<f64> {
            row.samples.iter().map(number).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let times = of(|block| block.wall_s);
        let (middle, count) = (mean(&times), times.len() as f64);
        let squares: f64 = times.iter().map(|time| (time - middle).powi(2)).sum();
        json!({
            "command": judged.command,
            "mean": middle,
            "stddev": (times.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
            "median": crate::stats::median(&times),
            "user": mean(&of(|block| block.user_s)),
            "system": mean(&of(|block| block.system_s)),
            "min": times.iter().copied().fold(f64::INFINITY, f64::min),
            "max": times.iter().copied().fold(0.0, f64::max),
            "times": times,
            "memory_usage_byte": row.samples.iter().map(|block| block.peak_bytes).collect::<Vec<_>>(),
            "exit_codes": row.samples.iter().map(|block| block.exit_code).collect::<Vec<_>>(),
            "parameters": { "allocator": row.allocator },
        })
    };
    json!({ "results": judged.rows.iter().filter(|row| !row.is_twin).map(result).collect::<Vec<_>>() })
}
