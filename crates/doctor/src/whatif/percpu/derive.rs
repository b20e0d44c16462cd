//! Objects for each CPU, from pairs of dumps.
//!
//! Of a cache with `c` CPU slabs and `f` other slabs of `m` objects, `l` of those on CPUs' partial lists, the
//! objects in use are at least `(f - l) m + c + l` and at most `(f + c) m`, less the free objects that the
//! kernel counts. So a pair of dumps with `n` and `n' > n` CPUs bounds the objects for each CPU:
//! `(least' - most) / (n' - n)` to `(most' - least) / (n' - n)`.
//!
//! A cache is in the table if it grows for sure, `least' > most`, in at least half of the pairs, and can grow
//! in all. The number for each CPU is the median over pairs of what [`Held::objects`] counts, pairs weighted
//! by the square of the CPUs between them. Two kinds of
//! caches depend on nodes too, and are compared only between dumps with as many nodes: those with an object
//! for each thread, since a node has threads of its own, and kmem_cache_node, with an object for each node
//! and cache.

use super::table::{Kernel, MANY, PerCpu, Rate};
use crate::state::State;
use crate::whatif::fill::Held;
use crate::whatif::layout::{self, Debug};
use crate::whatif::{held, merge};
use slablab_report::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Slabs on CPUs' lists that tell how they follow CPUs: just after boot there are few.
const FEWEST_LISTED: f64 = 100.0;

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
        let threads = threads(&pairs);
        let threads_once = threads.and_then(|rate| threads_once(&boots, rate));
        let lists = lists(&pairs);
        Ok(PerCpu { kernel, threads, threads_once, lists, cpus, caches, some_cpus: some_cpus(&boots) })
    }

    /// [`PerCpu::lists`] of dumps after a load.
    pub(in crate::whatif) fn with_lists(self, loaded: &[&State]) -> Result<PerCpu> {
        let boots = loaded.iter().map(|state| Boot::of(state)).collect::<Result<Vec<_>>>()?;
        Ok(PerCpu { lists: lists(&pairs(&boots)), ..self })
    }

    /// What dumps of one kernel with one number of CPUs tell: which caches not every CPU holds a slab of.
    pub(in crate::whatif) fn of_one_size(states: &[&State]) -> Result<PerCpu> {
        let boots = states.iter().map(|state| Boot::of(state)).collect::<Result<Vec<_>>>()?;
        let kernel = states.first().map_or_else(Kernel::default, |state| Kernel::of(state));
        let cpus = boots.iter().map(|boot| boot.cpus).take(1).collect();
        Ok(PerCpu { kernel, cpus, some_cpus: some_cpus(&boots), ..PerCpu::default() })
    }
}

impl<'a> Boot<'a> {
    fn of(state: &'a State) -> Result<Boot<'a>> {
        let cpus = state.cpus.filter(|cpus| cpus.online > 0).ok_or_else(|| {
            Error::new(&state.path, "does not tell how many CPUs there are; --input-cpus says it")
        })?;
        let has_attrs = held::has_attrs(state);
        let held = state.caches.iter().filter(|cache| cache.ordinal == 0);
        let held =
            held.map(|cache| (cache.name.as_str(), held::held(cache, state, has_attrs, None))).collect();
        let nodes = state.dump.nodes.len().max(1);
        let caches = (merge::is_on(state), layout::of_most(state));
        Ok(Boot { state, cpus: cpus.online, nodes, caches, threads: held::threads(state), held })
    }
}

/// All pairs of dumps with the same caches and different numbers of CPUs, the fewer first.
fn pairs<'a, 'b>(boots: &'b [Boot<'a>]) -> Vec<(&'b Boot<'a>, &'b Boot<'a>)> {
    let all = boots.iter().flat_map(|fewer| boots.iter().map(move |more| (fewer, more)));
    all.filter(|(fewer, more)| fewer.cpus < more.cpus && fewer.caches == more.caches).collect()
}

fn rate(name: &str, boots: &[Boot<'_>], pairs: &[(&Boot<'_>, &Boot<'_>)]) -> Option<Rate> {
    let of_nodes = held::PER_THREAD.contains(&name) || name == "kmem_cache_node";
    let (mut lows, mut highs, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for pair in pairs.iter().filter(|(fewer, more)| !of_nodes || fewer.nodes == more.nodes) {
        let (fewer, more) = pair;
        let (Some(before), Some(after)) = (fewer.held.get(name), more.held.get(name)) else { continue };
        let of = |objects: f64| per_cpu(pair, objects);
        let ((least, most), (least_after, most_after)) = (before.bounds(), after.bounds());
        lows.push(of(least_after as f64 - most as f64));
        highs.push(of(most_after as f64 - least as f64));
        counted.push(of(after.objects() - before.objects()));
    }
    let every_cpu = every_cpu(name, boots);
    let weight = |of: &[(f64, f64)], wanted: fn(f64) -> bool| -> f64 {
        of.iter().filter(|(number, _)| wanted(*number)).map(|(_, weight)| weight).sum()
    };
    let grows = weight(&lows, |low| low > 0.0) * 2.0 >= weight(&lows, |_| true).max(1.0)
        && highs.iter().all(|(high, _)| *high > 0.0);
    (grows || every_cpu == Some(true)).then(|| {
        let [low, high, objects] = [&mut lows, &mut highs, &mut counted].map(|numbers| median(numbers));
        // Where growth is not certain, CPU slabs may be all there is.
        let objects = if grows { objects.max(0.0) } else { 0.0 };
        Rate { objects, low: low.max(0.0), high: high.max(0.0), every_cpu }
    })
}

/// A difference of two dumps for each CPU, with its weight: boots of one machine differ too, and by more for
/// each CPU if fewer CPUs are between the two. So the variance goes with the square of that number.
fn per_cpu((fewer, more): &(&Boot<'_>, &Boot<'_>), objects: f64) -> (f64, f64) {
    let cpus = f64::from(more.cpus - fewer.cpus);
    (objects / cpus, cpus * cpus)
}

/// Caches whose names tell that every CPU holds a slab of them, of which in at least half of the dumps some
/// CPUs hold none. What the kernel allocates for each CPU that comes up would be on all of them, but for the
/// slab that one loses to a flush.
fn some_cpus(boots: &[Boot<'_>]) -> BTreeSet<String> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for boot in boots.iter().filter(|boot| boot.cpus > 1 && !boot.caches.1.is_on()) {
        let named =
            boot.held.iter().filter(|(name, held)| held::named_of_every_cpu(name) && held.cpu_slabs > 0);
        for (name, held) in named {
            let (some, all) = counts.entry(name).or_default();
            *some += usize::from(held.cpu_slabs < boot.cpus.into());
            *all += 1;
        }
    }
    let most = counts.into_iter().filter(|(_, (some, all))| some * 2 >= *all);
    most.map(|(name, _)| name.to_string()).collect()
}

/// Whether each CPU had a slab of the cache in every dump of many CPUs.
fn every_cpu(name: &str, boots: &[Boot<'_>]) -> Option<bool> {
    let mut many = boots.iter().filter(|boot| boot.cpus >= MANY).peekable();
    many.peek()?;
    Some(many.all(|boot| boot.held.get(name).is_some_and(|held| held.cpu_slabs >= boot.cpus.into())))
}

fn threads(pairs: &[(&Boot<'_>, &Boot<'_>)]) -> Option<f64> {
    let same = pairs.iter().filter(|(fewer, more)| fewer.nodes == more.nodes);
    let rates = same.filter_map(|pair| Some(per_cpu(pair, pair.1.threads? as f64 - pair.0.threads? as f64)));
    let mut rates: Vec<(f64, f64)> = rates.collect();
    (!rates.is_empty()).then(|| median(&mut rates))
}

/// Threads that no CPU brings, on the dumps with the fewest nodes: the median of what is left without those
/// of CPUs.
fn threads_once(boots: &[Boot<'_>], rate: f64) -> Option<f64> {
    let fewest = boots.iter().map(|boot| boot.nodes).min()?;
    let alike = boots.iter().filter(|boot| boot.nodes == fewest);
    let left = alike.filter_map(|boot| Some((boot.threads? as f64 - rate * f64::from(boot.cpus), 1.0)));
    let mut left: Vec<(f64, f64)> = left.collect();
    (!left.is_empty()).then(|| median(&mut left).max(0.0))
}

/// The power of the CPUs that hold slabs with which slabs on their partial lists grow, from 0 to 1: the one
/// that gives as many slabs on the lists of all larger machines, from those of the smaller, as there are.
fn lists(pairs: &[(&Boot<'_>, &Boot<'_>)]) -> Option<f64> {
    let mut seen: Vec<(f64, f64)> = Vec::new();
    let mut real = 0.0;
    for (fewer, more) in pairs {
        for (name, before) in &fewer.held {
            let Some(after) = more.held.get(name) else { continue };
            if before.cpu_slabs == 0
                || after.cpu_slabs <= before.cpu_slabs
                || before.per_slab != after.per_slab
            {
                continue;
            }
            seen.push((before.listed as f64, after.cpu_slabs as f64 / before.cpu_slabs as f64));
            real += after.listed as f64;
        }
    }
    if seen.iter().map(|(listed, _)| listed).sum::<f64>() < FEWEST_LISTED {
        return None;
    }
    let of = |power: f64| seen.iter().map(|(listed, cpus)| listed * cpus.powf(power)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..20 {
        let middle = (low + high) / 2.0;
        *(if of(middle) < real { &mut low } else { &mut high }) = middle;
    }
    Some((low + high) / 2.0)
}

/// The median of weighted numbers, 0 of none: the mean of the two in the middle, if no one is.
fn median(numbers: &mut [(f64, f64)]) -> f64 {
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = numbers.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for (at, (number, weight)) in numbers.iter().enumerate() {
        below += weight;
        if below > half {
            return *number;
        }
        if below == half {
            return numbers.get(at + 1).map_or(*number, |next| (number + next.0) / 2.0);
        }
    }
    0.0
}
