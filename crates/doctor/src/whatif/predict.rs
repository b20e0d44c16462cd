//! A state and a change become a prediction.

use super::caches::Caches;
use super::errors::{Class, Range};
use super::layout::Debug;
use super::percpu::PerCpu;
use super::rules::{Policy, Rules};
use crate::state::{Cache, Missing, State};
use slablab_report::error::{Error, Result};
use slablab_slabs::Preset;
use std::fmt;

/// What is different; `None` is as today.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Another engine or release.
    pub engine: Option<Preset>,
    /// Another order rule, or other CPUs for it.
    pub policy: Option<Policy>,
    /// `slub_max_order`.
    pub max_order: Option<u8>,
    /// `slub_min_order`.
    pub min_order: Option<u8>,
    /// `slub_min_objects`.
    pub min_objects: Option<u32>,
    /// Bytes in a page.
    pub page_size: Option<u64>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Whether caches share slabs.
    pub merge: Option<bool>,
    /// Debugging of all caches.
    pub debug: Option<Debug>,
}

/// What slabs would be like.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// What is different.
    pub change: Change,
    /// The rules that gave today's orders.
    pub rules: Rules,
    /// The rules that give those of the change.
    pub rules_whatif: Rules,
    /// Every cache, in the order of the input.
    pub rows: Vec<Row>,
    /// All caches today.
    pub today: Total,
    /// All caches with the change.
    pub whatif: Total,
    /// Where the range of `whatif` is from.
    pub range: Range,
    /// Caches whose order today is not what the rules give: what else chose it is not known, and the rules'
    /// predicted order may be wrong too.
    pub unexplained: Vec<String>,
    /// The assumptions, as sentences.
    pub assumed: Vec<String>,
}

/// A cache, today and with the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name as in the state.
    pub cache: String,
    /// 0 for the first cache of that name.
    pub ordinal: u32,
    /// Today.
    pub today: Figures,
    /// With the change.
    pub whatif: Figures,
}

/// What a cache takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes from one object to the next.
    pub size: u64,
    /// Pages of a slab, log2.
    pub order: u32,
    /// Objects in a slab.
    pub objects_per_slab: u64,
    /// Objects there is room for.
    pub objects: u64,
    /// Slabs.
    pub slabs: u64,
    /// Bytes of the slabs.
    pub bytes: u64,
    /// Bytes behind the last object of all slabs.
    pub waste: u64,
}

/// Sums over caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Slabs.
    pub slabs: u64,
    /// Objects there is room for.
    pub objects: u64,
    /// Bytes of the slabs.
    pub bytes: u64,
    /// The least that is likely ([`Range`]); equal to `bytes` for today.
    pub low: u64,
    /// The most that is likely.
    pub high: u64,
    /// Bytes behind the last object of all slabs.
    pub waste: u64,
}

/// Files whose absence costs a prediction nothing.
const UNUSED: [&str; 5] =
    ["/boot/config", "/proc/buddyinfo", "/proc/vmstat", "/proc/zoneinfo", "/sys/devices/system/node"];

/// What was not in the input and would have made predictions better.
pub fn missing(state: &State) -> impl Iterator<Item = &Missing> {
    state.missing.iter().filter(|missing| !UNUSED.contains(&missing.file.as_str()))
}

/// What was assumed of the input, with the options as they are called here: `--page-size` is a change, not
/// the input's.
pub fn evidence(state: &State) -> impl Iterator<Item = String> {
    state.assumed.iter().map(|text| text.replace("--page-size", "--input-page-size"))
}

/// Predicts what a change does.
///
/// # Errors
/// A state that does not tell what the rules need, or a value that no kernel takes.
pub fn predict(state: &State, change: &Change) -> Result<Prediction> {
    predict_with(state, change, &PerCpu::builtin())
}

/// [`predict`], with these tables of what kernels allocate for each CPU instead of the built-in ones.
///
/// # Errors
/// Those of [`predict`].
pub fn predict_with(state: &State, change: &Change, tables: &[PerCpu]) -> Result<Prediction> {
    if state.caches.is_empty() || state.caches.iter().any(|cache| cache.bytes_only) {
        let what = "has no counts of objects; expected /proc/slabinfo, slabtop's list or vmstat -m";
        return Err(Error::new(&state.path, what));
    }
    let mut assumed = Vec::new();
    let rules = Rules::of(state, &mut assumed)?;
    let rules_whatif = rules.with(change)?;
    let caches = Caches::new(state, change, rules, rules_whatif, tables, &mut assumed)?;
    let mut rows = Vec::with_capacity(state.caches.len());
    for (at, cache) in state.caches.iter().enumerate() {
        rows.push(caches.predict(at, cache));
        rows.extend(caches.apart(cache));
    }
    let unexplained = state.caches.iter().filter(|cache| !rules.explain(cache));
    let unexplained: Vec<String> = unexplained.map(|cache| cache.name.clone()).collect();
    caches.assume(&unexplained, &mut assumed);
    let same = rows.iter().all(|row: &Row| row.today == row.whatif);
    let range = match caches.measured() {
        false if caches.other_release().is_some() => Range::Unknown,
        false => Range::guess(),
        true if same => Range::Unchanged,
        true => Range::measured(Class::of(state, change, &rules_whatif)),
    };
    Ok(Prediction {
        change: *change,
        rules,
        rules_whatif,
        today: Total::of(rows.iter().map(|row| &row.today), Range::Unchanged),
        whatif: Total::of(rows.iter().map(|row| &row.whatif), range),
        range,
        rows,
        unexplained,
        assumed,
    })
}

impl Figures {
    pub(super) fn of(cache: &Cache, page_size: u64) -> Figures {
        let figures = Figures::new(cache.size, cache.order, cache.objects_per_slab, cache.slabs, page_size);
        Figures { objects: cache.total_objects, ..figures }
    }

    pub(super) fn new(size: u64, order: u32, objects_per_slab: u64, slabs: u64, page_size: u64) -> Figures {
        let slab_bytes = page_size << order;
        Figures {
            size,
            order,
            objects_per_slab,
            objects: slabs.saturating_mul(objects_per_slab),
            slabs,
            bytes: slabs.saturating_mul(slab_bytes),
            waste: slabs.saturating_mul(slab_bytes.saturating_sub(objects_per_slab.saturating_mul(size))),
        }
    }
}

impl Total {
    fn of<'a>(rows: impl Iterator<Item = &'a Figures>, range: Range) -> Total {
        let mut total = Total::default();
        for figures in rows {
            total.slabs = total.slabs.saturating_add(figures.slabs);
            total.objects = total.objects.saturating_add(figures.objects);
            total.bytes = total.bytes.saturating_add(figures.bytes);
            total.waste = total.waste.saturating_add(figures.waste);
        }
        let (low, high) = range.around(total.bytes);
        Total { low, high, ..total }
    }
}

impl fmt::Display for Change {
    /// The knobs that are not as today, as `max_order=0 page_size=4096`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value}"));
        let words = [
            self.engine.map(|engine| format!("engine={engine}")),
            self.policy.map(|policy| format!("policy={}", policy.name())),
            number("max_order", self.max_order.map(u64::from)),
            number("min_order", self.min_order.map(u64::from)),
            number("min_objects", self.min_objects.map(u64::from)),
            self.page_size.map(|bytes| format!("page_size={}K", bytes >> 10)),
            number("cpus", self.cpus.map(u64::from)),
            self.merge.map(|on| format!("merge={}", if on { "on" } else { "off" })),
            self.debug.map(|debug| format!("debug={debug}")),
        ];
        let said: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(if said.is_empty() { "as today" } else { "" })?;
        f.write_str(&said.join(" "))
    }
}
