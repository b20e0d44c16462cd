//! CSV: one row per engine and cache.

use super::busiest;
use super::columns::{self, Row};
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome};

/// Every cache of every engine.
pub fn caches_csv(replay: &Replay) -> String {
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
    (!rows.is_empty()).then(|| write(rows.into_iter()))
}

fn write<'a>(rows: impl Iterator<Item = (&'a Outcome, &'a CacheOutcome)>) -> String {
    columns::caches().csv(rows.map(|(outcome, cache)| Row::new(outcome, cache)))
}
