//! The rows of a replay for programs.

use super::columns::{self, Row};
use super::figures::{Sums, figures};
use super::table::busiest;
use crate::replay::Replay;
use slablab_report::frame::Frame;
use slablab_report::html::Cell;

/// Every cache of every engine, a row for each engine and cache.
pub fn caches_frame(replay: &Replay) -> Frame {
    let rows = replay
        .outcomes
        .iter()
        .flat_map(|outcome| busiest(outcome).into_iter().map(move |cache| Row::new(outcome, cache)));
    columns::caches().frame(rows)
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
