//! A machine in numbers: every cache, and the sums over caches.

use super::accounting::Charging;
use super::allocator::Allocator;
use super::cgroups::{self, Charged};
use super::code::{Code, Sites};
use super::counters::{self, CounterGrowth};
use super::grown::{self, Grown, TOGETHER_FROM};
use super::held::{self, Held};
use super::history::History;
use super::line::Line;
use super::made::{self, Made};
use super::meminfo::Meminfo;
use super::reclaim::Reclaim;
use super::rounding::Rounding;
use super::sort::SortKey;
use super::split::Split;
use crate::state::{Missing, State};
use slablab_report::error::Result;

/// Percent of all slab memory from which on something is worth saying.
pub const WORTH_PERCENT: u64 = 1;
/// Bytes from which on something is worth saying.
pub const WORTH_BYTES: u64 = 64 << 10;

/// Per cent of the machine's memory below which slabs are no problem: freeing all of them would not be felt.
const LITTLE_PERCENT: u64 = 1;
/// Bytes below which slabs are no problem where the machine's memory is not known: [`LITTLE_PERCENT`] of
/// 6.4 GiB, less than most machines have.
const LITTLE_BYTES: u64 = 64 << 20;

/// Optional inputs of a measurement, in addition to the state.
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
    /// The least bytes that are worth saying; without it a per cent of all slab memory.
    pub worth: Option<u64>,
}

/// A machine in numbers.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// The state that was measured: the newest one.
    pub state: &'a State,
    /// Every cache, in the order of the input.
    pub lines: Vec<Line<'a>>,
    /// What the kernel keeps beside objects, if the input tells its release.
    pub charging: Option<Charging>,
    /// All caches together.
    pub total: Split,
    /// The least bytes that are worth saying on this machine.
    pub worth: u64,
    /// The least growth that is worth saying where its holder is known.
    worth_held: u64,
    /// Caches whose object size is not known, so that their metadata is not in the total.
    pub unknown_sizes: usize,
    /// The sum of the caches, compared with /proc/meminfo.
    pub meminfo: Option<Meminfo>,
    /// Earlier snapshots, if there are any.
    pub history: Option<History<'a>>,
    /// Caches that grew, those of equal growth together: first those that the kernel does not free by itself.
    pub grown: Vec<Grown>,
    /// Large caches whose objects something holds, by the number of both now.
    pub held: Vec<Held>,
    /// Lines of code behind caches that grew, or behind large ones, by the index of the cache's line.
    pub code: Vec<(usize, Vec<Code>)>,
    /// Memory cgroups that are charged for kernel memory.
    pub charged: Vec<Charged<'a>>,
    /// Memory of the kernel beside the caches that grew, most first.
    pub counters: Vec<CounterGrowth>,
    /// What kmalloc's classes cost, if a recording tells.
    pub rounding: Option<&'a Rounding>,
}

/// Files that the doctor does not read anything from.
const UNUSED: [&str; 2] = ["/proc/vmstat", "/boot/config"];
/// Files that add details about the machine but change neither the split nor the totals nor the knobs.
const DETAILS: [&str; 4] = ["/sys/devices/system/node", "/proc/zoneinfo", "/proc/buddyinfo", "/proc/cmdline"];

/// Measures a machine. Of several snapshots the newest is measured, the others tell how it grew.
///
/// # Errors
/// Snapshots that cannot be compared with the state.
pub fn measure<'a>(state: &'a State, options: &Options<'a>) -> Result<Measured<'a>> {
    let history = match options.since {
        [] => None,
        since => Some(History::new(state, since, options.hours, options.force)?),
    };
    let state = history.as_ref().map_or(state, History::last);
    let charging = Charging::of(state);
    let lines = lines(state, charging.as_ref(), history.as_ref());
    let mut total = Split { parked_unknown: lines.is_empty(), ..Split::default() };
    lines.iter().for_each(|line| total.add(&line.split));
    let first = history.as_ref().map(|history| &history.first().dump.owners);
    let worth = options.worth.unwrap_or((total.bytes / 100 * WORTH_PERCENT).max(WORTH_BYTES));
    let worth_held =
        history.as_ref().and_then(of_a_day).map_or(worth, |bytes| bytes.max(WORTH_BYTES).min(worth));
    let code = code(&lines, state, history.as_ref(), total.bytes);
    Ok(Measured {
        state,
        code,
        unknown_sizes: state.caches.iter().filter(|cache| cache.object_size.is_none()).count(),
        meminfo: Meminfo::of(state, total.bytes),
        grown: grown::grown(&lines, state, history.as_ref().map(History::first)),
        held: held::held(&lines, state, total.bytes),
        charged: cgroups::charged(&state.dump.owners, first),
        rounding: options.rounding,
        counters: history.as_ref().map_or_else(Vec::new, counters::grown),
        worth,
        worth_held,
        lines,
        charging,
        total,
        history,
    })
}

/// The lines of code behind each cache that grew by objects; without an earlier snapshot, behind each large
/// one.
fn code(lines: &[Line], state: &State, history: Option<&History>, all: u64) -> Vec<(usize, Vec<Code>)> {
    /// Per cent of all slabs from which on a cache is large.
    const LARGE_PERCENT: u64 = 5;
    let sites = Sites::of(state, history.map(History::first));
    let behind = |line: &Line| match (&line.growth, history) {
        (Some(growth), _) if growth.objects >= TOGETHER_FROM => sites.of_growth(line, growth.objects),
        (None, None) if line.split.bytes > 0 && line.split.bytes >= all / 100 * LARGE_PERCENT => {
            sites.of_now(line)
        }
        _ => Vec::new(),
    };
    let found = lines.iter().enumerate().map(|(at, line)| (at, behind(line)));
    found.filter(|(_, code)| !code.is_empty()).collect()
}

/// Growth between the snapshots of which a day would take 1 % of the machine's memory.
fn of_a_day(history: &History) -> Option<u64> {
    let (memory, _) = history.counter("MemTotal")?;
    Some((memory as f64 / 100.0 * history.span_hours()? / 24.0) as u64)
}

/// Every cache of the state, with its growth if there are earlier snapshots.
fn lines<'a>(state: &'a State, charging: Option<&Charging>, history: Option<&History<'a>>) -> Vec<Line<'a>> {
    let growth = history.map_or_else(Vec::new, History::growth);
    let growth = growth.into_iter().chain(std::iter::repeat_with(|| None));
    state.caches.iter().zip(growth).map(|(cache, growth)| Line::of(cache, state, charging, growth)).collect()
}

impl<'a> Measured<'a> {
    /// Whose slabs these are.
    pub(crate) fn allocator(&self) -> Allocator {
        Allocator::of(self.state)
    }

    /// The module that made a cache, if something tells.
    pub fn made(&self, line: &Line<'a>) -> Option<Made<'a>> {
        made::made(self.state, line)
    }

    /// Whether growth is worth saying. What slabs have together says little of a leak: if its holder is known
    /// by a number that is no accident, less is enough.
    pub fn is_worth(&self, group: &Grown) -> bool {
        let is_many = group.spreads || group.objects >= TOGETHER_FROM;
        let is_held = !group.benign && group.who.is_some() && is_many;
        group.bytes >= if is_held { self.worth_held } else { self.worth }
    }

    /// Bytes of the caches whose objects are freed in this way.
    pub(crate) fn bytes_of(&self, reclaim: Reclaim) -> u64 {
        let lines = self.lines.iter().filter(|line| line.reclaim == reclaim);
        lines.fold(0, |sum, line| sum.saturating_add(line.split.bytes))
    }

    /// The cache with most bytes; none if all are empty.
    pub(crate) fn largest(&self) -> Option<&Line<'a>> {
        self.lines.iter().filter(|line| line.split.bytes > 0).max_by_key(|line| line.split.bytes)
    }

    /// The name of the sum of the caches: slab memory, unless a text has a part of the caches.
    pub(crate) fn sum_name(&self) -> &'static str {
        if self.state.has_all_caches() { "slab memory" } else { "the caches in the text" }
    }

    /// The total in slabtop's head.
    pub(crate) fn in_head(&self) -> Option<u64> {
        Some(self.state.dump.pasted.as_ref()?.totals?.bytes?.1)
    }

    /// Bytes of all slabs that the input tells of: by meminfo, by slabtop's head, or as the sum of the
    /// caches.
    pub(crate) fn all_bytes(&self) -> u64 {
        let counted = self.meminfo.as_ref().map(|meminfo| meminfo.slab);
        counted.unwrap_or(0).max(self.in_head().unwrap_or(0)).max(self.total.bytes)
    }

    /// Whether slabs have too little memory to be a problem.
    pub(crate) fn is_little(&self) -> bool {
        let all = self.all_bytes();
        match self.meminfo.as_ref().and_then(|meminfo| meminfo.total).filter(|total| *total > 0) {
            Some(total) => all < total / 100 * LITTLE_PERCENT,
            None => all < LITTLE_BYTES,
        }
    }

    /// Files that were not in the input and would have told the doctor more.
    pub fn missing(&self) -> impl Iterator<Item = &'a Missing> + use<'a> {
        self.state.missing.iter().filter(|missing| !UNUSED.contains(&missing.file.as_str()))
    }

    /// Whether a part of the answer is missing, because a file is, or caches of an earlier snapshot.
    pub fn is_incomplete(&self) -> bool {
        let lacks_growth = self.history.as_ref().is_some_and(|history| history.least().is_some());
        lacks_growth || self.missing().any(|missing| !DETAILS.contains(&missing.file.as_str()))
    }

    /// The caches by this key.
    pub fn sorted(&self, key: SortKey) -> Vec<&Line<'a>> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by(|a, b| key.compare(a, b));
        lines
    }
}
