//! The same machine with another policy, other boot parameters, other pages, more or fewer CPUs.
//!
//! ```text
//! predict            a State and a Change become a Prediction
//!   Rules            what chooses orders, today and then
//!   Held             slabs: one for each CPU, and those full of objects
//! ```
//!
//! Orders and objects per slab are arithmetic and exact: the kernel's own rule on the size, the pages and the CPUs. Slabs are
//! a theory of where objects are ([`fill`]); what it was off by on real boots is in docs/whatif.md.
//!
//! Deliberately absent: time, and any constant that was measured on a dump.

pub mod fill;
pub mod grid;
mod rules;

pub use rules::{Policy, Rules};

use crate::error::Result;
use crate::state::{Cache, State};
use fill::Held;
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
    /// Caches whose order today is not what the rules give: what else chose it is not known, and the rules' answer to the
    /// change may be as wrong.
    pub unexplained: Vec<String>,
    /// Sentences on what was assumed.
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
    /// The least that the theory allows; today's is what it is.
    pub low: u64,
    /// The most.
    pub high: u64,
    /// Bytes behind the last object of all slabs.
    pub waste: u64,
}

/// Predicts what a change does.
///
/// # Errors
/// A state that does not tell what the rules need, or a value that no kernel takes.
pub fn predict(state: &State, change: &Change) -> Result<Prediction> {
    let mut assumed = Vec::new();
    let rules = Rules::of(state, &mut assumed)?;
    let rules_whatif = rules.with(change)?;
    let mut prediction = Prediction {
        change: *change,
        rules,
        rules_whatif,
        rows: Vec::with_capacity(state.caches.len()),
        today: Total::default(),
        whatif: Total::default(),
        unexplained: Vec::new(),
        assumed,
    };
    for cache in &state.caches {
        let today = Figures::of(cache, state.page_size);
        if !rules.explain(cache) {
            prediction.unexplained.push(cache.name.clone());
        }
        let (whatif, low, high) = row(cache, &rules_whatif, today);
        prediction.today.add(&today, today.bytes, today.bytes);
        prediction.whatif.add(&whatif, low, high);
        prediction.rows.push(Row { cache: cache.name.clone(), ordinal: cache.ordinal, today, whatif });
    }
    Ok(prediction)
}

/// What a cache takes with the change, and the least and most bytes of it.
fn row(cache: &Cache, rules: &Rules, today: Figures) -> (Figures, u64, u64) {
    let Some((order, per_slab)) = rules.shape(cache.size) else { return (today, today.bytes, today.bytes) };
    let slabs = held(cache).with(per_slab);
    let bytes = |slabs: u64| slabs.saturating_mul(rules.page_size << order);
    let whatif = Figures::new(cache.size, order, per_slab, slabs.likely, rules.page_size);
    (whatif, bytes(slabs.low), bytes(slabs.high))
}

fn held(cache: &Cache) -> Held {
    let cpu_slabs = cpu_slabs(cache);
    Held { cpu_slabs, others: cache.slabs - cpu_slabs, per_slab: cache.objects_per_slab, live: None }
}

/// CPU slabs proper; at most the cache's slabs, since they are not read at one moment. 0 where sysfs is not in the input.
fn cpu_slabs(cache: &Cache) -> u64 {
    let Some(attrs) = &cache.attrs else { return 0 };
    let partial = attrs.slabs_cpu_partial.as_ref().and_then(|counts| counts.total.slabs).unwrap_or(0);
    let all = attrs.cpu_slabs.as_ref().map_or(0, |counts| counts.total.value);
    all.saturating_sub(partial).min(cache.slabs)
}

impl Figures {
    fn of(cache: &Cache, page_size: u64) -> Figures {
        let figures = Figures::new(cache.size, cache.order, cache.objects_per_slab, cache.slabs, page_size);
        Figures { objects: cache.total_objects, ..figures }
    }

    fn new(size: u64, order: u32, objects_per_slab: u64, slabs: u64, page_size: u64) -> Figures {
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
    fn add(&mut self, figures: &Figures, low: u64, high: u64) {
        self.slabs = self.slabs.saturating_add(figures.slabs);
        self.objects = self.objects.saturating_add(figures.objects);
        self.bytes = self.bytes.saturating_add(figures.bytes);
        self.low = self.low.saturating_add(low);
        self.high = self.high.saturating_add(high);
        self.waste = self.waste.saturating_add(figures.waste);
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
        ];
        let said: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(if said.is_empty() { "as today" } else { "" })?;
        f.write_str(&said.join(" "))
    }
}
