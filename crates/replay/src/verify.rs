//! Compares the model's prediction with the kernel's counters.
//!
//! Two kinds: the change between two dumps, judged by skill against "nothing changes", with the slabs that
//! page events show taken and returned in between; and every counter of a kernel with SLUB_STATS, each cache
//! in the window of its own two readings, or of a kernel with SLAB and its statistics.

pub mod change;
pub mod counters;
mod cpustat;
pub mod guess;
pub mod judged;
mod moved;
pub mod pages;
pub mod seeds;
pub mod truth;

pub use change::verify_change;
pub use counters::{Counter, Tally, Values, verify_counters};
pub use moved::{Change, Moved, Skill};
pub use pages::SlabPages;

use crate::map::Same;
use crate::replay::{Evidence, Options};
use judged::Group;
use schemars::JsonSchema;
use seeds::Spread;
use serde::Serialize;
use slablab_report::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use truth::Truth;

/// Refuses to predict page events with a start that was made from them.
fn without_page_frees(options: &Options, path: &Path) -> Result<()> {
    match options.evidence {
        Evidence::None => Ok(()),
        Evidence::Pages => Err(Error::new(path, "verify predicts page events: they cannot set the start")),
    }
}

/// Real and predicted, and what follows from it.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Real and predicted, value by value.
    pub compared: Compared,
    /// Sentences with numbers.
    pub summary: Vec<String>,
}

/// What a verification between two dumps has beside the changes.
#[derive(Clone, Debug)]
pub struct Dumps {
    /// The skill of the recording's own balance.
    pub balance: Skill,
    /// Caches by which of their allocations and frees have events.
    pub groups: [Group; 3],
    /// Slabs that page events show.
    pub pages: Option<SlabPages>,
    /// Figures over draws of the start; empty for one draw.
    pub spreads: Vec<Spread>,
    /// Which slabs serve and go, beside the kernel's; `None` if the recording's addresses do not tell.
    pub same: Option<Same>,
    /// What snapshots of every slab add; `None` without them.
    pub truth: Option<Truth>,
}

/// What a verification by counters has beside the counters.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The workload.
    pub label: String,
    /// The counters by cache.
    pub caches: Vec<CacheCounters>,
    /// Figures over draws of the start; empty for one draw.
    pub spreads: Vec<Spread>,
}

/// The counters of one cache.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheCounters {
    /// Its name.
    pub cache: String,
    /// By the name of the event.
    pub counters: BTreeMap<String, Both>,
}

/// A counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Both {
    /// The kernel's.
    pub real: i64,
    /// The engine's.
    pub predicted: i64,
}

/// Real and predicted, value by value.
#[derive(Clone, Debug)]
pub enum Compared {
    /// The change between two dumps: caches that changed or should have, the most wrong first; and the skill
    /// over all.
    Changes(Vec<Change>, Skill, Box<Dumps>),
    /// Counters, by cache; those of all caches together are called `all`.
    Counters(Vec<Counter>, Counted),
}

impl Compared {
    /// Keeps the first `rows` values and returns the number of the others.
    pub fn truncate(&mut self, rows: usize) -> usize {
        fn cut<T>(values: &mut Vec<T>, rows: usize) -> usize {
            let hidden = values.len().saturating_sub(rows);
            values.truncate(rows);
            hidden
        }
        match self {
            Compared::Changes(changes, ..) => cut(changes, rows),
            Compared::Counters(counters, _) => cut(counters, rows),
        }
    }
}
