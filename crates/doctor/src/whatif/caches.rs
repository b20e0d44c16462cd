//! The prediction of each cache: its slabs today, its slabs with the change, and the assumptions.

use super::fill::Held;
use super::percpu::{Kernel, PerCpu};
use super::predict::{Change, Figures, Row};
use super::reach::Touches;
use super::rules::Rules;
use super::{layout, merge, touch};
use crate::state::{Cache, State};
use slablab_report::error::{Error, Result};
use slablab_slabs::engines::slub::Sheaves;
use slablab_slabs::{Preset, Release};
use std::collections::HashMap;

/// The caches of a machine under a change.
pub(super) struct Caches<'a> {
    state: &'a State,
    change: &'a Change,
    rules: Rules,
    rules_whatif: Rules,
    release: Release,
    /// The number of threads, if the input tells it.
    threads: Option<u64>,
    /// Whether the input has CPU slabs of any cache.
    has_attrs: bool,
    /// If merging is turned on: for each cache that is merged into another, by place, that other cache's
    /// place.
    folded: HashMap<usize, usize>,
    /// If merging is turned on: for each cache that others are merged into, by place, the places of the
    /// others.
    folded_into: HashMap<usize, Vec<usize>>,
    /// Whether names that share slabs come apart.
    apart: bool,
    /// What the kernel allocates for each CPU, if another number of CPUs is asked for.
    per_cpu: Option<PerCpu>,
    /// How often programs touched caches, if another number of CPUs is asked for.
    touches: Touches,
}

impl<'a> Caches<'a> {
    pub(super) fn new(
        state: &'a State,
        change: &'a Change,
        rules: Rules,
        rules_whatif: Rules,
        tables: &[PerCpu],
        assumed: &mut Vec<String>,
    ) -> Result<Caches<'a>> {
        let debug = change.debug.unwrap_or_default();
        if (change.debug.is_some() || change.merge == Some(true))
            && state.caches.iter().all(|cache| cache.attrs.is_none())
        {
            let what =
                "has nothing of /sys/kernel/slab: --debug and --merge on need the sizes and flags there";
            return Err(Error::new(&state.path, what));
        }
        if change.merge == Some(true) && debug.prevents_merging() {
            return Err(Error::new("--merge on", format!("caches with debugging {debug} are never merged")));
        }
        let release = match change.engine {
            Some(Preset::Slub(policy)) => policy.release,
            _ => state.release.unwrap_or(Release::new(6, 1, 0)),
        };
        assumed.extend(debug.assumed(release));
        let folded = match change.merge {
            Some(true) => merge::folded(state),
            _ => HashMap::new(),
        };
        let mut folded_into: HashMap<usize, Vec<usize>> = HashMap::new();
        for (from, into) in &folded {
            folded_into.entry(*into).or_default().push(*from);
        }
        let has_attrs = touch::has_attrs(state);
        let apart = change.merge == Some(false) || debug.prevents_merging();
        let threads = touch::threads(state);
        let touches = touch::touches(state);
        Ok(Caches {
            state,
            change,
            rules,
            rules_whatif,
            release,
            threads,
            has_attrs,
            folded,
            folded_into,
            apart,
            per_cpu: PerCpu::nearest(state, tables),
            touches,
        })
    }

    pub(super) fn other_cpus(&self) -> bool {
        self.rules.cpus.online != self.rules_whatif.cpus.online
    }

    /// A cache today and with the change: first the object, then the slab, then the objects in use, then the
    /// slabs they take.
    pub(super) fn predict(&self, at: usize, cache: &Cache) -> Row {
        let today = Figures::of(cache, self.state.page_size);
        let size = self.size(cache);
        let (order, per_slab) = self.shape(cache, size);
        let held = self.held(at, cache);
        let slabs = if self.folded.contains_key(&at) { 0 } else { self.slabs(cache, held, per_slab) };
        let then = Figures::new(size, order, per_slab, slabs, self.rules_whatif.page_size);
        // Without any difference the counted number of objects stays.
        let same = Figures { objects: then.objects, ..today } == then;
        let whatif = if same { today } else { then };
        Row { cache: cache.name.clone(), ordinal: cache.ordinal, today, whatif }
    }

    /// Order and objects per slab with the change.
    fn shape(&self, cache: &Cache, size: u64) -> (u32, u64) {
        // An order that the rules of today do not explain has another cause, which the change does not
        // remove.
        let same = self.rules == self.rules_whatif && size == cache.size;
        let asked = if same { None } else { self.rules_whatif.shape(size) };
        asked.unwrap_or((cache.order, cache.objects_per_slab))
    }

    /// Where the objects are today, those of the caches merged into this one included.
    fn held(&self, at: usize, cache: &Cache) -> Held {
        let mut held = touch::held(cache, self.state, self.has_attrs, self.threads);
        for other in self.folded_into.get(&at).into_iter().flatten() {
            let more = touch::held(&self.state.caches[*other], self.state, self.has_attrs, None);
            // A CPU that holds a slab of each cache needs one slab of the merged cache.
            held.cpu_slabs = held.cpu_slabs.max(more.cpu_slabs);
            held.others += more.others;
            held.listed += more.listed;
        }
        held
    }

    /// Slabs with the change.
    fn slabs(&self, cache: &Cache, mut held: Held, per_slab: u64) -> u64 {
        let cpus = (self.rules.cpus.online, self.rules_whatif.cpus.online);
        let mut then = touch::on_cpus(
            &cache.name,
            &mut held,
            cpus,
            per_slab,
            self.per_cpu.as_ref(),
            &self.touches,
            self.threads_per_cpu(),
        );
        let debugged = layout::of_cache(cache).is_on();
        match self.change.debug {
            Some(debug) if debug.is_on() && !debugged => held.without_cpu_slabs(per_slab),
            Some(debug) if !debug.is_on() && debugged => {
                // How many CPUs come to hold a slab does not show: all, as far as there are objects.
                then.cpu_slabs = held.slabs().min(cpus.1.into()) as f64;
                held.with(&then)
            }
            _ => held.with(&then),
        }
    }

    /// Threads that each CPU has, if dumps tell.
    fn threads_per_cpu(&self) -> Option<f64> {
        let own = Kernel::of(self.state);
        let table = self.per_cpu.as_ref()?;
        table.threads_of_cpu(&own, self.threads, self.rules.cpus.online)
    }

    /// Bytes from one object to the next.
    fn size(&self, cache: &Cache) -> u64 {
        let asked = self.change.debug.filter(|debug| *debug != layout::of_cache(cache));
        asked.and_then(|debug| debug.size(cache, self.release)).unwrap_or(cache.size)
    }

    /// The other names of a merged cache, if they come apart: each has a slab, if there are any. How their
    /// objects divide is not known.
    pub(super) fn apart(&self, cache: &Cache) -> Vec<Row> {
        if !self.apart {
            return Vec::new();
        }
        let today =
            Figures { slabs: 0, objects: 0, bytes: 0, waste: 0, ..Figures::of(cache, self.state.page_size) };
        let size = self.size(cache);
        let whatif = self.rules_whatif.shape(size).map_or(today, |(order, per_slab)| {
            Figures::new(size, order, per_slab, cache.slabs.min(1), self.rules_whatif.page_size)
        });
        let row = |name: &String| Row { cache: name.clone(), ordinal: 0, today, whatif };
        cache.aliases.iter().map(row).collect()
    }

    /// The assumption for engines whose CPUs hold objects elsewhere than in CPU slabs, which are all that the
    /// theory covers.
    pub(super) fn holds_otherwise(&self) -> Option<&'static str> {
        match self.change.engine {
            Some(Preset::Slqb(_)) => Some("SLQB's queues are taken to hold as much as SLUB's CPU slabs."),
            Some(Preset::Slab(_)) => Some("SLAB's arrays are taken to hold as much as SLUB's CPU slabs."),
            Some(Preset::Slub(policy)) if !policy.cpu_slab || policy.sheaves == Sheaves::All => {
                Some("Sheaves are not predicted: they are taken to hold as much as CPU slabs do today.")
            }
            _ if self.state.release.is_some_and(|release| release >= touch::SHEAVES_ONLY_SINCE) => {
                Some("Sheaves are not predicted: slabs are taken for as full as today.")
            }
            _ => None,
        }
    }

    /// Whether boots measured predictions of this kind: CPUs hold objects in CPU slabs, which the input
    /// counts, pages keep their size, and the kernel stays the same one.
    pub(super) fn measured(&self) -> bool {
        self.holds_otherwise().is_none()
            && self.has_attrs
            && self.rules.page_size == self.rules_whatif.page_size
            && self.other_release().is_none()
    }

    /// The release asked for, if the dump is of another, or of none that it tells.
    pub(super) fn other_release(&self) -> Option<Release> {
        let Some(Preset::Slub(policy)) = self.change.engine else { return None };
        let minor = |release: Release| (release.major, release.minor);
        let same = self.state.release.is_some_and(|own| minor(own) == minor(policy.release));
        (!same).then_some(policy.release)
    }

    /// Adds the assumptions that this change needs.
    pub(super) fn assume(&self, unexplained: &[String], assumed: &mut Vec<String>) {
        let mut say = |text: &str| assumed.push(text.into());
        if let Some(text) = self.holds_otherwise() {
            say(text);
        }
        if self.state.release.is_none_or(|release| release < touch::SHEAVES_ONLY_SINCE) && !self.has_attrs {
            say("The input does not count CPU slabs: each CPU is assumed to hold one, as far as a cache \
                 has slabs.");
        }
        if !unexplained.is_empty() {
            let few: Vec<&str> = unexplained.iter().take(5).map(String::as_str).collect();
            let more = if unexplained.len() > few.len() { ", ..." } else { "" };
            assumed.push(format!(
                "{} caches have an order or objects per slab today that the rule `{}` does not give; their \
                 predicted orders may be wrong too: {}{more}.",
                unexplained.len(),
                self.rules.rule.name(),
                few.join(", ")
            ));
        }
        if let Some(release) = self.other_release() {
            let own = Kernel::of(self.state).release;
            let own = if own.is_empty() { "the kernel of the input".into() } else { own };
            assumed.push(format!(
                "{} What {}.{} allocates is not known: objects, their sizes and their number are those of \
                 {own}.",
                self.rules.differences(&self.rules_whatif),
                release.major,
                release.minor,
            ));
        }
        let mut say = |text: &str| assumed.push(text.into());
        if self.rules.page_size != self.rules_whatif.page_size {
            say("Objects keep their sizes and caches stay: the largest kmalloc classes, and kernel stacks \
                 from slab, exist on large pages only; caches whose objects hold page tables or arrays of \
                 pages change size.");
        }
        if self.other_cpus() {
            say("Objects keep their sizes; those with a field for each CPU or a mask of CPUs would change.");
            match &self.per_cpu {
                Some(table) => assumed.push(table.assumed(&Kernel::of(self.state))),
                None => assumed.push(format!(
                    "What the kernel allocates for each CPU is not known: {} threads, and one object of each \
                     cache with an object for each CPU, are assumed.",
                    touch::THREADS_PER_CPU
                )),
            }
            assumed.push(format!(
                "The number of all other objects stays. Programs touch CPUs at random, no cache more often \
                 than {:.0} times. Memory nodes stay: one that comes with CPUs has threads, partial slabs and \
                 objects of its own, 1 % of slab memory on 8 CPUs.",
                self.touches.ln_most.exp()
            ));
        }
        let mut say = |text: &str| assumed.push(text.into());
        match (self.apart, self.change.merge) {
            (true, _) => say(
                "How objects divide among merged names is not known: they stay with the first name, and each \
                              other gets a slab; sizes are those of the merged cache.",
            ),
            (_, Some(true)) => say(
                "Whether a cache's objects are accounted to a cgroup is not in sysfs: accounted and other \
                                    caches of one size are merged here, and are not by the kernel.",
            ),
            _ => {}
        }
    }
}
