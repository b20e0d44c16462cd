//! Where slab memory goes, what would help, and what this kernel lets its user do.
//!
//! ```text
//! examine               a State becomes a Report
//!   split::Split        each cache's bytes, adding up to slabinfo's Loss
//!     parked            bounds of the objects that are parked with CPUs
//!   meminfo::Meminfo    the sum, compared with /proc/meminfo's Slab
//!   since::History      growth against earlier snapshots
//!   rounding            what kmalloc's classes cost, by a recording
//!   findings            what is worth saying
//!     caches, machine   of caches, of the machine around them; since and rounding have theirs
//!     trust             of the numbers themselves
//!     pasted            of a text: its messages, and what one moment tells
//!   actions             what can be done about it here
//!     knobs             what this kernel lets its user change
//!     predict           what a change would save
//! ```
//!
//! The doctor reads no file and no clock. Its input is [`State`].

pub mod actions;
mod caches;
pub mod findings;
pub mod knobs;
mod machine;
pub mod meminfo;
pub mod parked;
mod pasted;
pub mod predict;
pub mod rounding;
pub mod since;
mod sort;
pub mod split;
mod trust;

pub use sort::SortKey;

use crate::state::{Cache, Missing, State};
use crate::what::{Entry, Known};
use actions::Action;
use findings::Finding;
use meminfo::Meminfo;
use rounding::Rounding;
use since::{Fit, Growth, History};
use slablab_report::error::Result;
use split::Split;

/// What the doctor found.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// What was examined.
    pub state: &'a State,
    /// Every cache, in the order of the input.
    pub lines: Vec<Line<'a>>,
    /// All caches together.
    pub total: Split,
    /// Caches whose object size is not known, so that their metadata is not in the total.
    pub unknown_sizes: usize,
    /// The sum of the caches, compared with /proc/meminfo.
    pub meminfo: Option<Meminfo>,
    /// Earlier snapshots, if there are any.
    pub history: Option<History<'a>>,
    /// What kmalloc's classes cost, if a recording tells.
    pub rounding: Option<&'a Rounding>,
    /// What is worth saying, most bytes first.
    pub findings: Vec<Finding>,
    /// What can be done about it on this kernel, most likely savings first.
    pub actions: Vec<Action>,
}

/// A cache and its bytes.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The cache.
    pub cache: &'a Cache,
    /// Where its bytes are.
    pub split: Split,
    /// How it grew since the first snapshot, if there is one.
    pub growth: Option<Growth>,
    /// What it is for, if that is known.
    pub what: Option<&'static Entry>,
}

impl Line<'_> {
    /// The straight line through its snapshots, if there are two with a time.
    pub fn fit(&self) -> Option<Fit> {
        self.growth.as_ref()?.fit
    }
}

/// Optional inputs of the examination, in addition to the state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Earlier snapshots of the same machine, in the order the user gave them.
    pub since: &'a [State],
    /// Hours from the first snapshot to the state, where the snapshots do not tell.
    pub hours: Option<f64>,
    /// A recording of the machine's kmallocs.
    pub rounding: Option<&'a Rounding>,
}

/// Examines a machine.
///
/// # Errors
/// Snapshots that cannot be compared with the state.
pub fn examine<'a>(state: &'a State, options: &Options<'a>) -> Result<Report<'a>> {
    let mut lines: Vec<Line> = state
        .caches
        .iter()
        .map(|cache| Line {
            cache,
            split: Split::of(cache, state),
            growth: None,
            what: Known::builtin().find(&cache.name),
        })
        .collect();
    let mut total = Split::default();
    lines.iter().for_each(|line| total.add(&line.split));
    let history = match options.since {
        [] => None,
        since => Some(History::new(state, since, options.hours)?),
    };
    if let Some(history) = &history {
        lines.iter_mut().zip(history.growth()).for_each(|(line, growth)| line.growth = Some(growth));
    }
    let unknown_sizes = state.caches.iter().filter(|cache| cache.object_size.is_none()).count();
    let meminfo = Meminfo::of(state, total.bytes);
    let rounding = options.rounding;
    let (findings, actions) = (Vec::new(), Vec::new());
    let mut report =
        Report { state, lines, total, unknown_sizes, meminfo, history, rounding, findings, actions };
    report.findings = find(&report);
    report.actions = actions::offer(&report, findings::worth(&report));
    Ok(report)
}

/// Files that the doctor does not read anything from.
const UNUSED: [&str; 2] = ["/proc/vmstat", "/boot/config"];
/// Files that add details about the machine but change neither the split nor the totals nor the knobs.
const BESIDE: [&str; 4] = ["/sys/devices/system/node", "/proc/zoneinfo", "/proc/buddyinfo", "/proc/cmdline"];

/// Every finding about the machine, most bytes first.
fn find(report: &Report) -> Vec<Finding> {
    let worth = findings::worth(report);
    let mut found: Vec<Finding> = caches::find(report, worth);
    found.extend(machine::find(report, worth));
    found.extend(trust::find(report));
    found.extend(pasted::find(report, worth));
    found.extend(since::find(report, worth));
    found.extend(report.rounding.and_then(|rounding| rounding.finding(worth)));
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.kind.cmp(&b.kind)).then(a.caches.cmp(&b.caches)));
    found
}

impl Report<'_> {
    /// What was missing and would have told the doctor more.
    pub fn missing(&self) -> impl Iterator<Item = &Missing> {
        self.state.missing.iter().filter(|missing| !UNUSED.contains(&missing.file.as_str()))
    }

    /// Whether a part of the answer is missing, because a file is.
    pub fn is_incomplete(&self) -> bool {
        self.missing().any(|missing| !BESIDE.contains(&missing.file.as_str()))
    }

    /// The caches by this key.
    pub fn sorted(&self, key: SortKey) -> Vec<&Line<'_>> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by(|a, b| key.compare(a, b));
        lines
    }
}
