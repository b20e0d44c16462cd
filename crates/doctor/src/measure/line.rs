//! A cache in numbers: one line of the report.

use super::accounting::{Charging, Words};
use super::history::{Fit, Growth};
use super::reclaim::Reclaim;
use super::split::Split;
use crate::state::{Cache, State};
use crate::what::{Entry, Known};
use std::fmt::Write;

/// A cache in numbers.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The cache.
    pub cache: &'a Cache,
    /// Where its bytes are.
    pub split: Split,
    /// What its slabs keep beside the objects, if anything.
    pub words: Option<Words>,
    /// How it grew since the first snapshot, if there is one.
    pub growth: Option<Growth>,
    /// What it is for, if that is known.
    pub what: Option<&'static Entry>,
    /// Who frees its objects.
    pub reclaim: Reclaim,
}

impl<'a> Line<'a> {
    /// Where the bytes of `cache`, one of `state`, are.
    pub(super) fn of(
        cache: &'a Cache,
        state: &State,
        charging: Option<&Charging>,
        growth: Option<Growth>,
    ) -> Line<'a> {
        let what = Known::builtin().find(&cache.name);
        let words = charging.and_then(|charging| charging.words(cache, state));
        let split = Split::of(cache, state);
        let split = words.map_or(split.clone(), |words| words.within(split));
        Line { cache, split, words, growth, what, reclaim: Reclaim::of(cache, what) }
    }

    /// The straight line through its snapshots, if there are two with a time.
    pub fn fit(&self) -> Option<Fit> {
        self.growth.as_ref()?.fit
    }
}

/// A cache's name, with its ordinal if it is not the first cache of that name.
pub fn named(line: &Line) -> String {
    let mut name = line.cache.name.clone();
    if line.cache.ordinal > 0 {
        write!(name, "#{}", line.cache.ordinal + 1).expect("a string");
    }
    name
}
