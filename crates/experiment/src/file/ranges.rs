//! What `slablab reproduce` draws of an experiment, where that is not the costs alone.
//!
//! ```toml
//! [ranges]
//! draws = 16                # of each cell at most; 64 if left out
//! costs = "none"            # "drawn" if left out
//! [ranges.at]               # values of all drawn runs, which makes them short; not with --quick
//! part = 16
//! [ranges.vary]             # a drawn run has the cell's own value or one of these, all equally often
//! heap_mib = [14, 54]
//! ```
//!
//! If `at` names a swept parameter, only cells of that value are drawn.

use crate::workload::{Lists, Size, Value};
use slablab_machines::Bad;
use slablab_machines::doc::{Doc, Read, Value as Toml};
use slablab_stats::draws::LOOKS;
use toml::de::DeTable;

/// The draws of a cell at the first look.
pub const DRAWS_FIRST: u32 = LOOKS[0] as u32;
/// The most draws of a cell: those of the last look.
pub const DRAWS_MAX: u32 = LOOKS[LOOKS.len() - 1] as u32;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// Draws of a cell, at most.
    pub draws: u32,
    /// Whether costs are drawn.
    pub costs: bool,
    /// Values of all drawn runs.
    pub at: Vec<(&'static str, Value)>,
    /// Further values of a parameter.
    pub vary: Lists,
}

/// What becomes of costs.
const COSTS: [(&str, bool); 2] = [("drawn", true), ("none", false)];

impl Ranges {
    /// Reads the table; `lists` reads values of parameters.
    pub(crate) fn read<'i>(
        doc: &Doc<'i>,
        whole: &Toml<'i>,
        swept: &dyn Fn(&str) -> bool,
        lists: &dyn Fn(&DeTable<'i>) -> Read<Lists>,
    ) -> Read<Ranges> {
        let table = doc.table(whole, "ranges", "a table [ranges]")?;
        doc.known(table, &["draws", "costs", "at", "vary"])?;
        let most = u64::from(DRAWS_MAX);
        let draws = table.get("draws").map_or(Ok(most), |given| doc.number(given, "draws", 2..=most))?;
        let costs = table.get("costs").map_or(Ok(true), |given| doc.word(given, "costs", &COSTS))?;
        let of = |name: &str, check: &dyn Fn(&str, usize) -> Option<String>| -> Read<Lists> {
            let Some(given) = table.get(name) else { return Ok(Lists::new()) };
            let lists = lists(doc.table(given, name, "a table of parameters")?)?;
            let bad = lists.iter().find_map(|(parameter, values)| check(parameter, values.len()));
            match bad {
                Some(what) => Err(Bad { what, ..doc.bad(given, String::new()) }),
                None => Ok(lists),
            }
        };
        let one = |name: &str, count: usize| {
            (count > 1).then(|| format!("[ranges.at] {name}: expected one value, that of all drawn runs"))
        };
        let not_swept = |name: &str, _: usize| {
            let what = "its values are rows already: expected a parameter that [parameters] does not sweep";
            swept(name).then(|| format!("[ranges.vary] {name}: {what}"))
        };
        let at = of("at", &one)?
            .into_iter()
            .flat_map(|(name, values)| values.into_iter().map(move |one| (name, one)));
        Ok(Ranges { draws: draws as u32, costs, at: at.collect(), vary: of("vary", &not_swept)? })
    }

    /// Values of all drawn runs of a size: quick runs are short as they are.
    pub(crate) fn shared(&self, size: Size) -> &[(&'static str, Value)] {
        if size == Size::Quick { &[] } else { &self.at }
    }
}
