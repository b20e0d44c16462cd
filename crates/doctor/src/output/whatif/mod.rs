//! A what-if: slab memory with another setting, beside that of today.

mod columns;
mod document;
mod mail;
mod page;
mod per_cpu;
mod reconciled;
mod text;

pub use columns::changes_frame;
pub use per_cpu::per_cpu_answer;

use super::doctor;
use crate::state::State;
use crate::whatif::errors::{COVERAGE, Range};
use crate::whatif::{Against, Change, Prediction, evidence, missing};
use columns::{labels, lines};
use document::WhatifDocument;
use slablab_report::Answer;
use slablab_report::document::{Named, named};
use slablab_report::html::number;
use std::cmp::Ordering;

/// The answer of `whatif`: text and page have `listed` caches. `against` is the prediction beside a boot that
/// had the change. `after` predicts the machine after a load, for the mail.
pub fn whatif_answer(
    state: &State,
    predictions: &[Prediction],
    against: Option<&Against>,
    after: Option<&Prediction>,
    listed: usize,
) -> Answer {
    let labels = labels(predictions);
    let title = format!("What if: slab memory of {}", doctor::machine(state));
    let answer = Answer::new(title, sentence(predictions, against))
        .document(&WhatifDocument::new(state, predictions, against))
        .rows(columns::columns().frame(lines(predictions, &labels)))
        .line(format!("Input: {}", doctor::title(state)));
    let answer = text::tables(answer, predictions, listed);
    let answer = page::sections(answer, predictions, listed);
    let answer = match (against, predictions) {
        (Some(against), [one]) => page::real(text::beside_reality(answer, against), one, against),
        _ => answer,
    };
    let answer = match predictions {
        [one] => answer.form("mail", mail::whatif_mail(one, after)),
        _ => answer,
    };
    answer.remarks(remarks(state, predictions))
}

/// The schemas of the answers of `whatif`.
pub(super) fn schemas() -> [Named; 2] {
    [named::<WhatifDocument>(), per_cpu::schema()]
}

/// What the change that takes least does, and how a boot with it compares.
fn sentence(predictions: &[Prediction], against: Option<&Against>) -> String {
    // Changes whose memory is not known come last.
    let order = |prediction: &&Prediction| (prediction.range.unknown().is_some(), prediction.whatif.bytes);
    let Some(least) = predictions.iter().min_by_key(order) else {
        return "No change was asked for.".into();
    };
    let (today, whatif) = (least.today.bytes, least.whatif.bytes);
    let [now, then] = [today, whatif].map(number::bytes);
    let label = match least.change == Change::default() {
        true => "no change".into(),
        false => least.change.to_string(),
    };
    let said = match predictions {
        [one] if one.range == Range::Unchanged && one.change == Change::default() => {
            format!("Slabs take {now}: no change was asked for")
        }
        [one] if one.range == Range::Unchanged => {
            format!("With {label} slabs take {now}, as today: no cache is altered")
        }
        _ if let Some(why) = least.range.unknown() => {
            format!("Slab memory with {label} is not predicted: {why}; slabs take {now} today")
        }
        [_] => {
            format!("With {label} slabs would take {then} ({}){}", within(least), than(&now, today, whatif))
        }
        several if whatif >= today && least.range == Range::Unchanged => format!(
            "None of {} changes makes slabs take less than the {now} of today: no change is better than the machine \
             as it is",
            several.len()
        ),
        several if whatif >= today => format!(
            "None of {} changes makes slabs take less than the {now} of today: with the best, {label}, they would \
             take {then} ({})",
            predicted(several),
            within(least)
        ),
        several => format!(
            "Of {} changes {label} gives the least slab memory: {then} ({}){}",
            predicted(several),
            within(least),
            than(&now, today, whatif)
        ),
    };
    let real = against.map_or(String::new(), |against| {
        let (real, percent) = (number::bytes(against.real), number::percent(100.0 * against.error.abs()));
        match against.error {
            _ if against.real == 0 => "; the boot to compare with has no slabs".into(),
            0.0 => format!("; a boot that had the change took {real}, as predicted"),
            error => {
                let side = if error > 0.0 { "high" } else { "low" };
                format!("; a boot that had the change took {real}: the prediction is {percent} too {side}")
            }
        }
    });
    said + &real + "."
}

/// How many of the changes are predicted.
fn predicted(predictions: &[Prediction]) -> usize {
    predictions.iter().filter(|one| one.range.unknown().is_none()).count()
}

/// The range of a prediction, and what it contains.
fn within(prediction: &Prediction) -> String {
    let [low, high] = [prediction.whatif.low, prediction.whatif.high].map(number::bytes);
    match prediction.range {
        Range::Unchanged => "no cache is altered".into(),
        Range::Unknown(why) => format!("unknown: {why}"),
        Range::Modelled { .. } => format!("{low} to {high}"),
        Range::Measured { .. } => format!("{low} to {high} in {:.0} % of measured boots", 100.0 * COVERAGE),
        Range::Guess { .. } => format!("{low} to {high}, a guess"),
    }
}

/// The difference to today, whose slabs take `now`, which may read as what they would take.
fn than(now: &str, today: u64, whatif: u64) -> String {
    let percent = 100.0 * (whatif as f64 / today.max(1) as f64 - 1.0);
    let side = match whatif.cmp(&today) {
        Ordering::Equal => return ", as today".into(),
        Ordering::Less => "less",
        Ordering::Greater => "more",
    };
    let percent = number::percent(percent.abs());
    match number::bytes(whatif) == now {
        true => format!(", {percent} {side} than today"),
        false => format!(" instead of {now}: {percent} {side}"),
    }
}

/// What the numbers assume, each sentence once.
fn remarks(state: &State, predictions: &[Prediction]) -> Vec<String> {
    let of_changes = predictions.iter().flat_map(|prediction| prediction.assumed.iter().cloned());
    let lacking = missing(state)
        .map(|missing| format!("{}: {}; unknown: {}", missing.file, missing.why, missing.costs));
    let mut said = vec![reconciled::reconciled(state) + "."];
    for text in evidence(state).chain(of_changes).chain(lacking) {
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}
