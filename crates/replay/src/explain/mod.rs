//! The part of each policy in the difference between two presets.
//!
//! ```text
//! Difference ── items      what tells the presets apart
//!    │
//!    ├─ shapley::Plan      which combinations are needed
//!    ├─ replay             each of them, side by side; measures are kept, the rest is let go
//!    └─ shapley            parts of items and interactions of pairs, of every measure ── Explained
//! ```
//!
//! Parts are fractions of whole numbers and add up to the difference. A policy without effect has exactly 0.
//! docs/explain.md says what the parts mean and what they do not mean.

pub mod items;
pub mod measures;

use crate::replay::outcome::Outcome;
use crate::replay::{Options, Prepared, Replay};
use items::{Difference, Item};
use measures::{Measure, of_cache, of_run};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use slablab_report::error::{Error, Result};
use slablab_slabs::Preset;
pub use slablab_stats::shapley::EXACT_MOST;
use slablab_stats::shapley::{Coalition, Interaction, Mean, Plan, SEED};
use slablab_trace::Reader;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Items up to which all combinations are replayed, unless asked otherwise: 1024 replays.
pub const EXACT_USUALLY: usize = 10;
/// Orders that are sampled beyond, unless asked otherwise.
pub const SAMPLES_USUALLY: usize = 64;
/// Items that can be sampled: a bit each.
const ITEMS_MOST: usize = 64;

/// What to explain.
#[derive(Clone, Debug)]
pub struct Question {
    /// From this preset.
    pub from: Preset,
    /// To this one.
    pub to: Preset,
    /// One cache, by directory or alias; all together otherwise.
    pub cache: Option<String>,
    /// Items up to which all combinations are replayed.
    pub exact: usize,
    /// Orders that are sampled beyond.
    pub samples: usize,
}

impl Question {
    /// All caches, as precisely as is usual.
    pub fn new(from: Preset, to: Preset) -> Question {
        Question { from, to, cache: None, exact: EXACT_USUALLY, samples: SAMPLES_USUALLY }
    }
}

/// The answer.
#[derive(Debug)]
pub struct Explained {
    /// The recording, the machine, and the two presets' runs.
    pub replay: Replay,
    /// The cache, if one was asked for: its name.
    pub cache: Option<String>,
    /// What differs.
    pub items: Vec<Item>,
    /// What could not be taken apart, and what does not differ.
    pub notes: Vec<String>,
    /// Combinations replayed, the presets themselves included.
    pub replays: usize,
    /// Orders sampled; `None` where all combinations were replayed.
    pub sampled: Option<usize>,
    /// Measures that are not zero in all combinations.
    pub measures: Vec<Explanation>,
}

/// One measure's difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What is measured.
    pub measure: Measure,
    /// Its value under the first preset.
    pub from: u64,
    /// Its value under the second one.
    pub to: u64,
    /// What each item carries.
    pub parts: Vec<Part>,
    /// What pairs of items do together, strongest first; pairs that do nothing are not there.
    pub interactions: Vec<Interaction>,
}

/// What an item carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Its share of the change.
    pub mean: Mean,
    /// What it changes alone, in the first preset.
    pub alone: i128,
    /// What it changes as the last, towards the second preset.
    pub last: i128,
    /// Whether it changed anything in any combination that was replayed: its share may be nothing all the
    /// same, where what it adds here it takes away there.
    pub moves: bool,
}

impl Explanation {
    /// By how much the measure changes.
    pub fn change(&self) -> i128 {
        i128::from(self.to) - i128::from(self.from)
    }

    /// Whether an item changes it in any combination.
    pub fn moves(&self) -> bool {
        self.parts.iter().any(|part| part.moves)
    }
}

impl Explained {
    /// Whether an item changed a measure anywhere.
    pub fn carries(&self, item: usize) -> bool {
        self.measures.iter().any(|explanation| explanation.parts[item].moves)
    }
}

/// Explains the difference between two presets on a recording; `path` is its name in errors.
///
/// # Errors
/// A trace that cannot be read, a machine that cannot be modelled, or a cache that is in no run.
pub fn explain(
    reader: &Reader,
    path: &Path,
    options: &Options,
    question: &Question,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Explained> {
    let difference = Difference::new(question.from, question.to);
    let items = difference.items.len();
    if items > ITEMS_MOST {
        return Err(Error::new(path, format!("{items} policies differ: expected at most {ITEMS_MOST}")));
    }
    let plan = Plan::new(items, question.exact.min(EXACT_MOST), question.samples, SEED);
    let prepared = Prepared::new(reader, path, options)?;
    let coalitions = plan.coalitions();
    let rows = reader.rows() * coalitions.len() as u64;
    let done = AtomicU64::new(0);
    let tick = |n: u64| progress(done.fetch_add(n, Ordering::Relaxed) + n, rows);
    let run = |chosen: &Coalition| {
        // A cancelled caller unwinds here, before the run's start is made.
        tick(0);
        let outcome = prepared.run(&difference.variant(*chosen), &tick)?;
        let cache = question.cache.as_deref().map(|name| outcome.cache(name));
        let name = cache.flatten().map(|cache| cache.name.clone());
        let measured = match cache {
            Some(cache) => of_cache(&outcome, cache),
            None => of_run(&outcome),
        };
        // Of a thousand runs the two at the ends are kept whole.
        let end = *chosen == 0 || *chosen == plan.all();
        Ok(Ran { measured, name, outcome: end.then_some(outcome) })
    };
    let ran = coalitions.par_iter().map(run).collect::<Result<Vec<_>>>()?;
    let name = ran.iter().find_map(|ran| ran.name.clone());
    if let (Some(wanted), None) = (&question.cache, &name) {
        return Err(Error::new(path, format!("no cache is called {wanted}")));
    }
    let measures = explained(&plan, &coalitions, &ran);
    let mut ends = ran.into_iter().filter_map(|ran| ran.outcome);
    let first = ends.next().expect("the empty coalition was run");
    // If nothing differs, the empty coalition is also that of all players.
    let second = ends.next().unwrap_or_else(|| first.clone());
    Ok(Explained {
        replay: prepared.replay(vec![first, second]),
        cache: name,
        items: difference.items,
        notes: difference.notes,
        replays: coalitions.len(),
        sampled: match &plan {
            Plan::Exact { .. } => None,
            Plan::Sampled { orders, .. } => Some(2 * orders.len()),
        },
        measures,
    })
}

/// What is kept of a run.
struct Ran {
    measured: Vec<(Measure, u64)>,
    /// The cache's own name, where one was asked for and is there.
    name: Option<String>,
    outcome: Option<Outcome>,
}

fn explained(plan: &Plan, coalitions: &[Coalition], ran: &[Ran]) -> Vec<Explanation> {
    let places: FxHashMap<Coalition, usize> =
        coalitions.iter().enumerate().map(|(place, coalition)| (*coalition, place)).collect();
    let measures = ran.first().map_or(0, |ran| ran.measured.len());
    let all = plan.all();
    (0..measures)
        .into_par_iter()
        .filter(|measure| ran.iter().any(|ran| ran.measured[*measure].1 > 0))
        .map(|measure| {
            let worth = |coalition: Coalition| i128::from(ran[places[&coalition]].measured[measure].1);
            let moves = |item: usize| {
                let mut without = coalitions.iter().filter(|before| *before >> item & 1 == 0);
                without.any(|before| {
                    let with = before | 1 << item;
                    places.contains_key(&with) && worth(with) != worth(*before)
                })
            };
            let part = |(item, mean): (usize, Mean)| Part {
                mean,
                alone: worth(1 << item) - worth(0),
                last: worth(all) - worth(all & !(1 << item)),
                moves: moves(item),
            };
            let parts: Vec<Part> = plan.parts(&worth).into_iter().enumerate().map(part).collect();
            let change = worth(all) - worth(0);
            if let Some(over) = parts.first().map(|part| part.mean.over) {
                let sum: i128 = parts.iter().map(|part| part.mean.sum).sum();
                assert_eq!(sum, change * over, "the parts of {:?} add up", ran[0].measured[measure].0);
            }
            let mut interactions = plan.interactions(&worth);
            interactions.retain(|pair| pair.mean.sum != 0);
            interactions.sort_by(|a, b| b.mean.value().abs().total_cmp(&a.mean.value().abs()));
            Explanation {
                measure: ran[0].measured[measure].0.clone(),
                from: worth(0) as u64,
                to: worth(all) as u64,
                parts,
                interactions,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use measures::Unit;

    /// A policy whose doings cancel out has a part of 0 and still an effect; one that never does anything has
    /// none.
    #[test]
    fn nothing_is_not_what_cancels_out() {
        let plan = Plan::new(4, EXACT_USUALLY, 0, SEED);
        let coalitions = plan.coalitions();
        let measure = Measure { name: "slabs".into(), unit: Unit::Count };
        // The first adds one beside the second alone, and takes one away beside the third alone. The fourth
        // is idle.
        let worth =
            |coalition: &Coalition| 10 + u64::from(coalition & 7 == 3) - u64::from(coalition & 7 == 5);
        let ran = |coalition| Ran {
            measured: vec![(measure.clone(), worth(coalition))],
            name: None,
            outcome: None,
        };
        let ran: Vec<Ran> = coalitions.iter().map(ran).collect();
        let found = explained(&plan, &coalitions, &ran);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        let parts: Vec<_> = one.parts.iter().map(|part| (part.mean.exact(), part.moves)).collect();
        let expected = [("0", true), ("1/2", true), ("-1/2", true), ("0", false)];
        assert_eq!(parts, expected.map(|(exact, moves)| (exact.to_string(), moves)));
        assert_eq!((one.parts[0].alone, one.parts[0].last, one.moves()), (0, 0, true));
    }
}
