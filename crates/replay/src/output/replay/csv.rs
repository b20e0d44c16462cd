//! CSV and typed columns: one row per engine and cache.

use super::busiest;
use super::columns::{self, Row};
use super::figures::{Sums, figures};
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome};
use slablab_report::frame::Frame;
use slablab_report::html::Cell;

/// Every cache of every engine.
pub fn caches_csv(replay: &Replay) -> String {
    caches_frame(replay).csv()
}

/// The rows of [`caches_csv`].
pub fn caches_frame(replay: &Replay) -> Frame {
    let rows = replay
        .outcomes
        .iter()
        .flat_map(|outcome| busiest(outcome).into_iter().map(move |cache| (outcome, cache)));
    write(rows)
}

/// One cache of every engine; `None` if no engine has it.
pub fn cache_csv(replay: &Replay, name: &str) -> Option<String> {
    let rows: Vec<_> =
        replay.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.cache(name)?))).collect();
    (!rows.is_empty()).then(|| write(rows.into_iter()).csv())
}

fn write<'a>(rows: impl Iterator<Item = (&'a Outcome, &'a CacheOutcome)>) -> Frame {
    columns::caches().frame(rows.map(|(outcome, cache)| Row::new(outcome, cache)))
}

/// The sums of every engine over its caches, a row for each engine.
pub fn engines_frame(replay: &Replay) -> Frame {
    let figures = figures();
    let mut frame = Frame::new(std::iter::once("engine").chain(figures.keys()));
    for outcome in &replay.outcomes {
        let engine = Cell::Name(outcome.engine().to_string());
        frame.row(std::iter::once(engine).chain(figures.cells(&Sums::new(outcome))));
    }
    frame
}

/// Slab memory over time: a row for each sample of each engine.
pub fn timeline_frame(replay: &Replay) -> Frame {
    let mut frame = Frame::new(["engine", "time_ns", "slab_bytes", "live_bytes"]);
    for outcome in &replay.outcomes {
        let engine = outcome.engine().to_string();
        for sample in &outcome.timeline.samples {
            let (slab, live) = (Cell::Bytes(sample.slab_bytes), Cell::Bytes(sample.live_bytes));
            frame.row([Cell::Name(engine.clone()), Cell::Count(sample.time_ns), slab, live]);
        }
    }
    frame
}
