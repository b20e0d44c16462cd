//! The prediction of each cache: its slabs today, and its slabs with the change.

use super::case::Case;
use super::figures::{Figures, Row};
use super::fill::Held;
use super::sheaves::Level;
use super::touch::Cpus;
use super::{arrays, layout, merge};
use crate::state::Cache;
use slablab_slabs::partition::normal_size;
use std::collections::HashMap;

/// The caches of a machine under a change.
struct Caches<'a> {
    case: &'a Case<'a>,
    cpus: &'a Cpus<'a>,
    /// How much another release parks.
    level: Level,
    /// If merging is turned on: for each cache that is merged into another, by place, that other cache's
    /// place.
    folded: HashMap<usize, usize>,
    /// If merging is turned on: for each cache that others are merged into, by place, the places of the
    /// others.
    folded_into: HashMap<usize, Vec<usize>>,
}

/// Every cache today and with the change, in the order of the input; behind each cache the names that come
/// apart from it. `level` is how much another release parks.
pub(super) fn rows(case: &Case, cpus: &Cpus, level: Level) -> Vec<Row> {
    let folded = match case.change.merge {
        Some(true) => merge::folded(case.state),
        _ => HashMap::new(),
    };
    let mut folded_into: HashMap<usize, Vec<usize>> = HashMap::new();
    for (from, into) in &folded {
        folded_into.entry(*into).or_default().push(*from);
    }
    let caches = Caches { case, cpus, level, folded, folded_into };
    let mut rows = Vec::with_capacity(case.state.caches.len());
    for (at, cache) in case.state.caches.iter().enumerate() {
        rows.push(caches.predict(at, cache));
        rows.extend(caches.apart(cache));
    }
    caches.with_own_objects(&mut rows);
    rows
}

impl<'a> Caches<'a> {
    /// A cache today and with the change: first the object, then the slab, then the objects in use, then the
    /// slabs they take.
    fn predict(&self, at: usize, cache: &Cache) -> Row {
        let today = Figures::of(cache, self.case.state.page_size);
        let size = self.size(cache);
        let (order, per_slab) = self.shape(cache, size);
        let merged = self.folded_into.get(&at).into_iter().flatten();
        let held = self.cpus.held(cache, merged.map(|other| &self.case.state.caches[*other]));
        let slabs = if self.folded.contains_key(&at) { 0 } else { self.slabs(cache, held, per_slab) };
        let then = Figures::new(size, order, per_slab, slabs, self.case.rules_whatif.page_size);
        // Without any difference the counted number of objects stays.
        let same = Figures { objects: then.objects, ..today } == then;
        let whatif = if same { today } else { then };
        Row { cache: cache.name.clone(), ordinal: cache.ordinal, today, whatif }
    }

    /// Order and objects per slab with the change.
    fn shape(&self, cache: &Cache, size: u64) -> (u32, u64) {
        let (rules, then) = (self.case.rules, self.case.rules_whatif);
        // An order that the rules of today do not explain has another cause, which the change does not
        // remove.
        let same = rules == then && size == cache.size;
        let asked = if same { None } else { then.shape(size) };
        asked.unwrap_or((cache.order, cache.objects_per_slab))
    }

    /// Adds the objects of kmalloc that sheaves, barns and arrays of accounting are.
    fn with_own_objects(&self, rows: &mut [Row]) {
        let state = self.case.state;
        let own = self.case.holders().map(|holders| holders.own(&state.caches, state, self.level));
        let arrays = arrays::arrays(self.case, rows);
        for (bytes, objects) in own.into_iter().flatten().chain(arrays) {
            let classes =
                rows.iter_mut().filter(|row| row.today.size >= bytes && normal_size(&row.cache).is_some());
            let Some(row) = classes.min_by_key(|row| row.today.size) else { continue };
            let Figures { size, order, objects_per_slab, slabs, .. } = row.whatif;
            let more = (objects / objects_per_slab.max(1) as f64).round() as i64;
            let slabs = slabs.saturating_add_signed(more);
            row.whatif = Figures::new(size, order, objects_per_slab, slabs, self.case.rules_whatif.page_size);
        }
    }

    /// Slabs with the change.
    fn slabs(&self, cache: &Cache, mut held: Held, per_slab: u64) -> u64 {
        let mut then = self.cpus.change(&cache.name, &mut held, per_slab);
        let holders = self.case.holders();
        if let Some(slabs) =
            holders.and_then(|holders| holders.slabs(cache, self.case.state, &then, self.level))
        {
            return slabs;
        }
        let debugged = layout::of_cache(cache).is_on();
        match self.case.change.debug {
            Some(debug) if debug.is_on() && !debugged => held.without_cpu_slabs(per_slab),
            Some(debug) if !debug.is_on() && debugged => {
                // How many CPUs come to hold a slab does not show: all, as far as there are objects.
                then.cpu_slabs = held.slabs().min(self.case.cpus().1.into()) as f64;
                held.with(&then)
            }
            _ => held.with(&then),
        }
    }

    /// Bytes from one object to the next.
    fn size(&self, cache: &Cache) -> u64 {
        if let Some(size) = self.case.size_then(cache) {
            return size;
        }
        let asked = self.case.change.debug.filter(|debug| *debug != layout::of_cache(cache));
        asked.and_then(|debug| debug.size(cache, self.case.release())).unwrap_or(cache.size)
    }

    /// The other names of a merged cache, if they come apart: each has a slab, if there are any. How their
    /// objects divide is not known.
    fn apart(&self, cache: &Cache) -> Vec<Row> {
        if !self.case.comes_apart() {
            return Vec::new();
        }
        let own = Figures::of(cache, self.case.state.page_size);
        let today = Figures { slabs: 0, objects: 0, bytes: 0, waste: 0, ..own };
        let (size, rules) = (self.size(cache), self.case.rules_whatif);
        let whatif = rules.shape(size).map_or(today, |(order, per_slab)| {
            Figures::new(size, order, per_slab, cache.slabs.min(1), rules.page_size)
        });
        let row = |name: &String| Row { cache: name.clone(), ordinal: 0, today, whatif };
        cache.aliases.iter().map(row).collect()
    }
}
