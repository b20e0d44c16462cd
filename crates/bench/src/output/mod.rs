//! The answers. Each figure has one name in all of their forms.

mod columns;
mod document;
mod list;
mod native;
mod page;
mod programs;
mod text;

pub use list::{Listed, list_columns, list_sentence, list_text, listed};
pub use native::native_answer;
pub use programs::program_answer;

use crate::memory::FIGURES;
use crate::report::Report;
use document::BenchDocument;
use slablab_report::Answer;
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;

/// The answer of `bench`. Its CSV has a row for each figure.
pub fn bench_answer(report: &Report) -> Answer {
    let idle = "Run it again on an idle machine, with more --repeats.";
    let answer = Answer::new("Allocators side by side", sentence(report))
        .warnings((!report.no_verdict.is_empty()).then(|| idle.to_string()))
        .document(&BenchDocument::new(report))
        .rows(columns::frame(report))
        .facts([
            ("blocks", Cell::Count(report.blocks as u64)),
            ("CPUs", Cell::Count(report.cpus as u64)),
            ("load before", Cell::Number(report.load[0], 1)),
            ("load after", Cell::Number(report.load[1], 1)),
            ("seed", Cell::Text(report.seed.to_string())),
        ]);
    page::sections(text::tables(answer, report), report).remarks(remarks(report))
}

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    vec![named::<BenchDocument>(), native::schema(), programs::schema()]
}

fn sentence(report: &Report) -> String {
    let [won, even, lost] = report.tally();
    let live = FIGURES.iter().position(|(name, ..)| *name == "live").expect("a figure of memory");
    let held = report.memory.iter().map(|one| (one.name, one.figures[live]));
    match held.min_by(|a, b| a.1.total_cmp(&b.1)) {
        _ if !report.no_verdict.is_empty() => format!("No verdict: {}.", report.no_verdict.join("; ")),
        _ if won + even + lost > 0 => format!(
            "Compared with each workload's best peer, slablab's allocators win {won}, are even in {even} and \
             lose {lost}."
        ),
        Some((name, bytes)) if report.rows.is_empty() => format!(
            "Of {} allocators {name} has the least resident memory: {bytes:.3} bytes for each live byte.",
            report.memory.len()
        ),
        None if report.rows.is_empty() => "Nothing was measured: no block is complete.".into(),
        _ => "Times of allocators; none of them is compared with a peer.".into(),
    }
}

fn remarks(report: &Report) -> Vec<String> {
    let (alarms, twins) = report.false_alarms();
    let samples: usize = report.rows.iter().flat_map(|row| &row.cells).map(|one| one.samples_ns.len()).sum();
    let mut all = Vec::new();
    if twins > 0 {
        all.push(format!(
            "false alarms: {alarms} of {twins} intervals of the twin over itself do not contain 1"
        ));
    }
    all.push("each interval contains 95 % of the bootstrap resamples of blocks".into());
    all.push(format!("all {samples} samples are proved to be served by their allocators"));
    all.extend(report.notes.iter().cloned());
    all
}
