//! The report: a machine examined.

use super::actions::{self, Action};
use super::verdict::{self, Judgement, Verdict};
use crate::find::finding::{self, Finding};
use crate::find::{caches, climbing, machine, pasted, trust};
use crate::measure::SortKey;
use crate::measure::cgroups::{self, Charged};
use crate::measure::grown::{self, Grown};
use crate::measure::history::{Fit, Growth, History};
use crate::measure::meminfo::Meminfo;
use crate::measure::reclaim::Reclaim;
use crate::measure::rounding::Rounding;
use crate::measure::split::Split;
use crate::state::{Cache, Missing, State};
use crate::what::{Entry, Known};
use slablab_report::error::Result;

/// What the doctor found.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// What was examined: the newest state.
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
    /// Caches that grew, those of equal growth together: first those that the kernel does not free by itself.
    pub grown: Vec<Grown>,
    /// Memory cgroups that are charged for kernel memory.
    pub charged: Vec<Charged<'a>>,
    /// The answer in one sentence.
    pub verdict: Verdict,
    /// What kmalloc's classes cost, if a recording tells.
    pub rounding: Option<&'a Rounding>,
    /// What is worth saying: growth first, then most bytes first.
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
    /// Who frees its objects.
    pub reclaim: Reclaim,
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
    /// Whether to compare snapshots of other machines, kernels and boots.
    pub force: bool,
}

/// Examines a machine.
///
/// # Errors
/// Snapshots that cannot be compared with the state.
pub fn examine<'a>(state: &'a State, options: &Options<'a>) -> Result<Report<'a>> {
    let history = match options.since {
        [] => None,
        since => Some(History::new(state, since, options.hours, options.force)?),
    };
    let state = history.as_ref().map_or(state, History::last);
    let line = |cache: &'a Cache| {
        let what = Known::builtin().find(&cache.name);
        let reclaim = Reclaim::of(cache, what);
        Line { cache, split: Split::of(cache, state), growth: None, what, reclaim }
    };
    let mut lines: Vec<Line> = state.caches.iter().map(line).collect();
    let mut total = Split { parked_unknown: lines.is_empty(), ..Split::default() };
    lines.iter().for_each(|line| total.add(&line.split));
    if let Some(history) = &history {
        lines.iter_mut().zip(history.growth()).for_each(|(line, growth)| line.growth = Some(growth));
    }
    let unknown_sizes = state.caches.iter().filter(|cache| cache.object_size.is_none()).count();
    let meminfo = Meminfo::of(state, total.bytes);
    let rounding = options.rounding;
    let (findings, actions) = (Vec::new(), Vec::new());
    let grown = grown::grown(&lines);
    let first = history.as_ref().map(|history| &history.first().dump.owners);
    let charged = cgroups::charged(&state.dump.owners, first);
    let verdict = Verdict { judgement: Judgement::Unknown, text: String::new() };
    let mut report = Report {
        state,
        lines,
        total,
        unknown_sizes,
        meminfo,
        history,
        grown,
        charged,
        verdict,
        rounding,
        findings,
        actions,
    };
    report.verdict = verdict::of(&report, finding::worth(&report));
    report.findings = find(&report);
    report.actions = actions::offer(&report, finding::worth(&report));
    Ok(report)
}

/// Files that the doctor does not read anything from.
const UNUSED: [&str; 2] = ["/proc/vmstat", "/boot/config"];
/// Files that add details about the machine but change neither the split nor the totals nor the knobs.
const BESIDE: [&str; 4] = ["/sys/devices/system/node", "/proc/zoneinfo", "/proc/buddyinfo", "/proc/cmdline"];

/// Every finding about the machine: growth in its own order, then most bytes first.
fn find(report: &Report) -> Vec<Finding> {
    let worth = finding::worth(report);
    let mut found: Vec<Finding> = caches::find(report, worth);
    found.extend(machine::find(report, worth));
    found.extend(trust::find(report));
    found.extend(pasted::find(report, worth));
    found.extend(cgroups::find(report));
    found.extend(report.rounding.and_then(|rounding| rounding.finding(worth)));
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.kind.cmp(&b.kind)).then(a.caches.cmp(&b.caches)));
    let mut all = climbing::find(report, worth);
    all.append(&mut found);
    all
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
