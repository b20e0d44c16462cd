//! Objects for each CPU, from pairs of dumps.
//!
//! Of a cache with `c` CPU slabs and `f` other slabs of `m` objects, `l` of those on CPUs' partial lists, the
//! objects in use are at least `(f - l) m + c + l` and at most `(f + c) m`, less the free objects that the
//! kernel counts. So a pair of dumps with `n` and `n' > n` CPUs bounds the objects for each CPU:
//! `(least' - most) / (n' - n)` to `(most' - least) / (n' - n)`.
//!
//! A cache is in the table if it grows for sure, `least' > most`, in at least half of the pairs, and can grow
//! in all. The number for each CPU is the median over pairs of what [`Held::objects`] counts. Two kinds of
//! caches depend on nodes too, and are compared only between dumps with as many nodes: those with an object
//! for each thread, since a node has threads of its own, and kmem_cache_node, with an object for each node
//! and cache.

use super::{Kernel, MANY, PerCpu, Rate};
use crate::state::State;
use crate::whatif::fill::Held;
use crate::whatif::{Debug, layout, merge, touch};
use slablab_report::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// A dump, as far as it matters here.
struct Boot<'a> {
    state: &'a State,
    cpus: u32,
    nodes: usize,
    /// Caches are the same ones, with objects of the same size, if merging and debugging are the same.
    caches: (bool, Debug),
    threads: Option<u64>,
    held: HashMap<&'a str, Held>,
}

impl PerCpu {
    /// The table of the kernel of these dumps.
    ///
    /// # Errors
    /// Dumps of different kernels, without the number of CPUs, or all with the same.
    pub fn of(states: &[&State]) -> Result<PerCpu> {
        let boots = states.iter().map(|state| Boot::of(state)).collect::<Result<Vec<_>>>()?;
        let Some(first) = boots.first() else {
            return Err(Error::new("--input", "no dump: expected two with different numbers of CPUs"));
        };
        let kernel = Kernel::of(first.state);
        if let Some(other) = boots.iter().find(|boot| Kernel::of(boot.state) != kernel) {
            let (expected, path) = (&first.state.path.display(), &other.state.path);
            let what = format!("a dump of {}; expected {kernel}, as {expected}", Kernel::of(other.state));
            return Err(Error::new(path, what));
        }
        let mut cpus: Vec<u32> = boots.iter().map(|boot| boot.cpus).collect();
        cpus.sort_unstable();
        cpus.dedup();
        if let [all] = cpus.as_slice() {
            let what = format!("all dumps have {all} CPUs: expected two with different numbers");
            return Err(Error::new("--input", what));
        }
        let pairs = pairs(&boots);
        if pairs.is_empty() {
            let what = "no two dumps with different numbers of CPUs have the same merging and debugging";
            return Err(Error::new("--input", what));
        }
        let names: Vec<&str> = boots.iter().flat_map(|boot| boot.held.keys().copied()).collect();
        let mut caches = BTreeMap::new();
        for name in names {
            if let Some(rate) = rate(name, &boots, &pairs) {
                caches.insert(name.to_string(), rate);
            }
        }
        Ok(PerCpu { kernel, threads: threads(&pairs), cpus, caches })
    }
}

impl<'a> Boot<'a> {
    fn of(state: &'a State) -> Result<Boot<'a>> {
        let cpus = state.cpus.filter(|cpus| cpus.online > 0).ok_or_else(|| {
            Error::new(&state.path, "does not tell how many CPUs there are; --input-cpus says it")
        })?;
        let has_attrs = touch::has_attrs(state);
        let held = state.caches.iter().filter(|cache| cache.ordinal == 0);
        let held =
            held.map(|cache| (cache.name.as_str(), touch::held(cache, state, has_attrs, None))).collect();
        let nodes = state.dump.nodes.len().max(1);
        let caches = (merge::is_on(state), layout::of_most(state));
        Ok(Boot { state, cpus: cpus.online, nodes, caches, threads: touch::threads(state), held })
    }
}

/// All pairs of dumps with the same caches and different numbers of CPUs, the fewer first.
fn pairs<'a, 'b>(boots: &'b [Boot<'a>]) -> Vec<(&'b Boot<'a>, &'b Boot<'a>)> {
    let all = boots.iter().flat_map(|fewer| boots.iter().map(move |more| (fewer, more)));
    all.filter(|(fewer, more)| fewer.cpus < more.cpus && fewer.caches == more.caches).collect()
}

fn rate(name: &str, boots: &[Boot<'_>], pairs: &[(&Boot<'_>, &Boot<'_>)]) -> Option<Rate> {
    let of_nodes = touch::PER_THREAD.contains(&name) || name == "kmem_cache_node";
    let (mut lows, mut highs, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for (fewer, more) in pairs.iter().filter(|(fewer, more)| !of_nodes || fewer.nodes == more.nodes) {
        let (Some(before), Some(after)) = (fewer.held.get(name), more.held.get(name)) else { continue };
        let per_cpu = |objects: f64| objects / f64::from(more.cpus - fewer.cpus);
        let ((least, most), (least_after, most_after)) = (before.bounds(), after.bounds());
        lows.push(per_cpu(least_after as f64 - most as f64));
        highs.push(per_cpu(most_after as f64 - least as f64));
        counted.push(per_cpu(after.objects() - before.objects()));
    }
    let every_cpu = every_cpu(name, boots);
    let grows = lows.iter().filter(|low| **low > 0.0).count() * 2 >= lows.len().max(1)
        && highs.iter().all(|high| *high > 0.0);
    (grows || every_cpu == Some(true)).then(|| {
        let [low, high, objects] = [&mut lows, &mut highs, &mut counted].map(median);
        // Where growth is not certain, CPU slabs may be all there is.
        let objects = if grows { objects.max(0.0) } else { 0.0 };
        Rate { objects, low: low.max(0.0), high: high.max(0.0), every_cpu }
    })
}

/// Whether each CPU had a slab of the cache in every dump of many CPUs.
fn every_cpu(name: &str, boots: &[Boot<'_>]) -> Option<bool> {
    let mut many = boots.iter().filter(|boot| boot.cpus >= MANY).peekable();
    many.peek()?;
    Some(many.all(|boot| boot.held.get(name).is_some_and(|held| held.cpu_slabs >= boot.cpus.into())))
}

fn threads(pairs: &[(&Boot<'_>, &Boot<'_>)]) -> Option<f64> {
    let same = pairs.iter().filter(|(fewer, more)| fewer.nodes == more.nodes);
    let mut rates: Vec<f64> = same
        .filter_map(|(fewer, more)| {
            let threads = more.threads? as f64 - fewer.threads? as f64;
            Some(threads / f64::from(more.cpus - fewer.cpus))
        })
        .collect();
    (!rates.is_empty()).then(|| median(&mut rates))
}

/// The median of a list, 0 of none.
fn median(numbers: &mut Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.as_slice() {
        [] => 0.0,
        numbers if numbers.len() % 2 == 1 => numbers[middle],
        numbers => (numbers[middle - 1] + numbers[middle]) / 2.0,
    }
}
