//! Which CPUs hold slabs of a cache, and which objects there are for each CPU.
//!
//! | cache | with other CPUs |
//! |---|---|
//! | each CPU has a slab: the kernel allocates from the cache when a CPU comes up | each CPU has one again |
//! | each CPU has a slab: programs allocated on every CPU | the likely touches, if they hit all CPUs |
//! | some CPUs have a slab | the touches that hit this number of CPUs on average |
//!
//! A touch is equally likely to be on any CPU ([`reach`](super::reach)).
//!
//! Objects: every CPU has [`THREADS_PER_CPU`] kernel threads, and a thread has one of each of `PER_THREAD`.
//! The module `workqueues` has those of pool_workqueue. If the object count of a cache is known to
//! within a quarter of the number of CPUs, and the bounds contain a multiple of that number, the objects
//! scale with the CPUs. The number of all other objects stays.

use super::fill::{Held, Then};
use super::held::{self, PER_THREAD, named_of_every_cpu};
use super::percpu::{Kernel, PerCpu};
use super::reach::Touches;
use super::workqueues;
use crate::state::{Cache, State};

/// Kernel threads of a CPU, as `ps` lists them: idle thread, cpuhp, migration, ksoftirqd, two workers for
/// ordinary work (one that works and one that waits, as workqueues keep it) and one for urgent work.
pub const THREADS_PER_CPU: u64 = 7;

/// The CPUs of a machine, today's and those asked for, with everything that tells which slabs and objects go
/// with them.
pub(super) struct Cpus<'a> {
    state: &'a State,
    /// CPUs online today.
    today: u32,
    /// CPUs asked for.
    then: u32,
    /// Whether the input has CPU slabs of any cache.
    has_attrs: bool,
    /// Threads that there are, if the input tells.
    threads: Option<u64>,
    /// Threads that each CPU has, if dumps tell.
    threads_per_cpu: Option<f64>,
    /// What the kernel allocates for each CPU, if dumps tell.
    per_cpu: Option<PerCpu>,
    /// How often programs touched caches.
    touches: Touches,
}

impl<'a> Cpus<'a> {
    /// The CPUs of `state`, of which it is asked what `then` of them would mean.
    pub(super) fn new(state: &'a State, (today, then): (u32, u32), tables: &[PerCpu]) -> Cpus<'a> {
        let threads = held::threads(state);
        let per_cpu = PerCpu::nearest(state, tables);
        let own = Kernel::of(state);
        let threads_per_cpu = per_cpu.as_ref().and_then(|table| table.threads_of_cpu(&own, threads, today));
        let has_attrs = held::has_attrs(state);
        Cpus { state, today, then, has_attrs, threads, threads_per_cpu, per_cpu, touches: touches(state) }
    }

    /// Whether another number of CPUs is asked for.
    pub(super) fn differ(&self) -> bool {
        self.today != self.then
    }

    /// Whether the input has CPU slabs of any cache.
    pub(super) fn are_counted(&self) -> bool {
        self.has_attrs
    }

    /// What the kernel allocates for each CPU, if dumps tell.
    pub(super) fn table(&self) -> Option<&PerCpu> {
        self.per_cpu.as_ref()
    }

    /// How often programs touched the cache that they touched most.
    pub(super) fn most_touches(&self) -> f64 {
        self.touches.ln_most.exp()
    }

    /// Where the objects of a cache are today, those of the caches merged into it included.
    pub(super) fn held(&self, cache: &Cache, merged: impl Iterator<Item = &'a Cache>) -> Held {
        let mut held = held::held(cache, self.state, self.has_attrs, self.threads);
        for other in merged {
            let more = held::held(other, self.state, self.has_attrs, None);
            // A CPU that holds a slab of each cache needs one slab of the merged cache.
            held.cpu_slabs = held.cpu_slabs.max(more.cpu_slabs);
            held.others += more.others;
            held.listed += more.listed;
        }
        held
    }

    /// What the CPUs asked for mean for the cache `name`, whose slabs then have `per_slab` objects.
    pub(super) fn change(&self, name: &str, held: &mut Held, per_slab: u64) -> Then {
        let same = Then { per_slab, ..held.unchanged() };
        if !self.differ() || held.slabs() == 0 {
            return same;
        }
        let cpu_slabs = self.cpu_slabs(name, held);
        let growth = match held.cpu_slabs {
            0 => f64::from(self.then) / f64::from(self.today),
            holding => cpu_slabs / holding as f64,
        };
        let listed = held.listed as f64 * self.listed_ratio(growth);
        Then { cpu_slabs, listed, more: self.more(name, held), ..same }
    }

    /// CPUs that then hold a slab, on average.
    fn cpu_slabs(&self, name: &str, held: &Held) -> f64 {
        if held.cpu_slabs < 1 {
            0.0
        } else if held.cpu_slabs >= self.today.into() && self.is_of_every_cpu(name) {
            f64::from(self.then)
        } else {
            self.touches.reached(held.cpu_slabs, self.then)
        }
    }

    /// Objects in use that come with the CPUs, or go if negative.
    fn more(&self, name: &str, held: &mut Held) -> f64 {
        let (today, then) = (f64::from(self.today), f64::from(self.then));
        let is_per_thread = PER_THREAD.contains(&name);
        if let Some(threads) = self.threads_per_cpu.filter(|_| is_per_thread) {
            // The stacks that meminfo counts are exact; objects in CPU slabs are not.
            threads * (then - today)
        } else if name == workqueues::CACHE && workqueues::are_per_cpu(self.state) {
            workqueues::more(held.objects(), today, then)
        } else if let Some(rate) = self.table().and_then(|table| table.caches.get(name)) {
            rate.objects * (then - today)
        } else if is_per_thread {
            THREADS_PER_CPU as f64 * (then - today)
        } else if let Some(live) = self.for_each_cpu(held) {
            held.live = Some(live);
            live as f64 * (then / today - 1.0)
        } else {
            0.0
        }
    }

    /// How the number of slabs on CPUs' partial lists follows the number of CPUs that hold slabs. If frees
    /// come from one load that does not grow, the number stays; if each CPU has a load of its own, it grows
    /// as the CPUs do. Where no dumps tell, halfway between the two is assumed, as factors.
    fn listed_ratio(&self, cpus: f64) -> f64 {
        cpus.powf(self.table().and_then(|table| table.lists).unwrap_or(0.5))
    }

    /// Objects in use if they are the same number for each CPU and that is hardly by chance. With sheaves the
    /// objects in use are not known: parked ones are counted among them.
    fn for_each_cpu(&self, held: &Held) -> Option<u64> {
        let known = self.state.release.is_none_or(|release| release < held::SHEAVES_ONLY_SINCE);
        known.then(|| multiple(held, self.today.into())).flatten()
    }

    /// Whether the kernel allocates from the cache on every CPU that comes up.
    fn is_of_every_cpu(&self, name: &str) -> bool {
        let known = self.table().and_then(|table| table.every_cpu(name));
        known.unwrap_or_else(|| named_of_every_cpu(name))
    }
}

/// The multiple of the number of CPUs among the possible numbers of objects, if these span at most a quarter
/// of the number of CPUs, so that three of four other numbers would show.
fn multiple(held: &Held, cpus: u64) -> Option<u64> {
    let (least, most) = held.bounds();
    let multiple = most / cpus.max(1) * cpus;
    (multiple >= least.max(1) && most - least <= cpus / 4).then_some(multiple)
}

/// Name, and CPUs that hold a slab, of each cache that programs touch: of those that the kernel does not
/// allocate from on every CPU.
pub fn touched(state: &State) -> Vec<(&str, u64)> {
    let cpus = state.cpus.map_or(0, |cpus| cpus.online);
    let programs = state.caches.iter().filter(|cache| !named_of_every_cpu(&cache.name));
    let held =
        programs.map(|cache| (cache.name.as_str(), held::cpu_slabs(cache, state, true).min(cpus.into())));
    held.filter(|(_, held)| *held > 0).collect()
}

/// How often programs touched the caches of a machine.
fn touches(state: &State) -> Touches {
    let held: Vec<u64> = touched(state).into_iter().map(|(_, held)| held).collect();
    Touches::of(state.cpus.map_or(0, |cpus| cpus.online), &held)
}
