//! The answer of a comparison.

mod columns;
mod document;
mod page;
mod text;
mod words;

use crate::comparison::Comparison;
use columns::{Line, columns, lines};
use document::ComparisonDocument;
use slablab_report::Answer;
use slablab_report::document::{Named, named};
use words::{others, remark, sentence};

/// The answer of `compare`. Its CSV has a row for each quantity and each result but the first.
pub fn comparison_answer(comparison: &Comparison) -> Answer {
    let base = &comparison.columns[0];
    let rows: Vec<Line> = comparison.sections.iter().flat_map(|section| lines(comparison, section)).collect();
    let answer = Answer::new(format!("{} against {base}", others(comparison)), sentence(comparison))
        .warnings(comparison.cautions.iter().map(|caution| format!("caution: {caution}.")))
        .document(&ComparisonDocument::new(comparison))
        .rows(columns().frame(rows))
        .line(format!("Results of {}: {} against {base}.", comparison.kind.words, others(comparison)));
    let answer = page::differs(differs(answer, comparison), comparison);
    let answer = comparison.sections.iter().fold(answer, |answer, section| {
        let answer = text::tables(answer, comparison, section).line(remark(comparison, section));
        page::section(answer, comparison, section)
    });
    answer.remarks(remarks(comparison))
}

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    vec![named::<ComparisonDocument>()]
}

/// The facts with more than one value.
fn differs(answer: Answer, comparison: &Comparison) -> Answer {
    let answer = answer.heading("What differs");
    if comparison.differs.is_empty() {
        return answer.line("nothing that the results say");
    }
    comparison.differs.iter().fold(answer, |answer, (name, values)| {
        let value = |(column, value): (&String, &Option<String>)| {
            format!("{column}: {}", value.as_deref().unwrap_or("not said"))
        };
        answer.entry(name, comparison.columns.iter().zip(values).map(value))
    })
}

/// What is the same, what no result says, and what is not compared.
fn remarks(comparison: &Comparison) -> impl Iterator<Item = String> {
    let same: Vec<String> = comparison.same.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let same = (!same.is_empty()).then(|| format!("The same in all results: {}.", same.join("; ")));
    let unknown = &comparison.unknown;
    let unknown = (!unknown.is_empty()).then(|| format!("No result says: {}.", unknown.join(", ")));
    let alone = comparison.alone.iter().map(|alone| format!("Not compared: {alone}."));
    same.into_iter().chain(unknown).chain(alone)
}
