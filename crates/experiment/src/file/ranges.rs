//! What `slablab reproduce` varies of an experiment, where that is not each assumed cost alone.
//!
//! ```toml
//! [ranges]
//! repeats = 3               # runs of each varied cell; 1 if left out
//! costs = "together"        # all assumed costs at once, halved and doubled; "each": also each alone; "none"
//! [ranges.at]               # values of all varied runs, which makes them short; not with --quick
//! part = 16
//! [ranges.vary]             # each value alone
//! heap_mib = [14, 54]
//! ```
//!
//! A varied cell is a plain one with the values of `at`, and one change. With `at` the first change is none:
//! so a relation that short runs do not have is seen. If `at` names a swept parameter, only cells of that
//! value are varied.

use crate::workload::Lists;
use crate::workload::Value;
use slablab_machines::Bad;
use slablab_machines::doc::{Doc, Read, Value as Toml};
use toml::de::DeTable;

/// What becomes of assumed costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Costs {
    /// Halved and doubled, each alone and all together.
    #[default]
    Each,
    /// Halved and doubled, all together.
    Together,
    /// As given.
    Given,
}

impl Costs {
    const WORDS: [(&'static str, Costs); 3] =
        [("each", Costs::Each), ("together", Costs::Together), ("none", Costs::Given)];
}

/// What is varied.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Runs of a varied cell.
    pub repeats: u32,
    /// Assumed costs.
    pub costs: Costs,
    /// Values of all varied runs.
    pub at: Vec<(&'static str, Value)>,
    /// A value of a parameter for each change.
    pub vary: Vec<(&'static str, Value)>,
}

impl Ranges {
    /// Reads the table; `lists` reads values of parameters.
    pub(crate) fn read<'i>(
        doc: &Doc<'i>,
        whole: &Toml<'i>,
        swept: &dyn Fn(&str) -> bool,
        lists: &dyn Fn(&DeTable<'i>) -> Read<Lists>,
    ) -> Read<Ranges> {
        let table = doc.table(whole, "ranges", "a table [ranges]")?;
        doc.known(table, &["repeats", "costs", "at", "vary"])?;
        let repeats = table.get("repeats").map_or(Ok(1), |given| doc.number(given, "repeats", 1..=100))?;
        let costs = match table.get("costs") {
            Some(given) => doc.word(given, "costs", &Costs::WORDS)?,
            None => Costs::default(),
        };
        let of = |name: &str, check: &dyn Fn(&str, usize) -> Option<String>| -> Read<Vec<_>> {
            let Some(given) = table.get(name) else { return Ok(Vec::new()) };
            let lists = lists(doc.table(given, name, "a table of parameters")?)?;
            let bad = lists.iter().find_map(|(parameter, values)| check(parameter, values.len()));
            if let Some(what) = bad {
                return Err(Bad { what, ..doc.bad(given, String::new()) });
            }
            let values =
                lists.into_iter().flat_map(|(name, values)| values.into_iter().map(move |one| (name, one)));
            Ok(values.collect())
        };
        let one = |name: &str, count: usize| {
            (count > 1).then(|| format!("[ranges.at] {name}: expected one value, that of all varied runs"))
        };
        let not_swept = |name: &str, _: usize| {
            let what = "its values are rows already: expected a parameter that [parameters] does not sweep";
            swept(name).then(|| format!("[ranges.vary] {name}: {what}"))
        };
        Ok(Ranges { repeats: repeats as u32, costs, at: of("at", &one)?, vary: of("vary", &not_swept)? })
    }
}
