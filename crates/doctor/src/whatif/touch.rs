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
//! Objects: every CPU has [`THREADS_PER_CPU`] kernel threads, and a thread has one of each of [`PER_THREAD`].
//! If the object count of a cache is known to within a quarter of the number of CPUs, and the bounds contain
//! a multiple of that number, the objects scale with the CPUs. The number of all other objects stays.

use super::fill::{Held, Then};
use super::percpu::PerCpu;
use super::reach::Touches;
use crate::state::{Cache, State};
use slablab_slabs::Release;

/// Kernel threads of a CPU, as `ps` lists them: idle thread, cpuhp, migration, ksoftirqd, two workers for
/// ordinary work (one that works and one that waits, as workqueues keep it) and one for urgent work.
pub const THREADS_PER_CPU: u64 = 7;

/// Caches with an object for each thread.
pub const PER_THREAD: [&str; 6] =
    ["thread_stack", "task_struct", "sighand_cache", "signal_cache", "pid", "cred_jar"];

/// Caches with one object for each thread, or for each process, and no other objects. If few processes have
/// several threads, their number of objects is about that of threads.
const COUNTS_THREADS: [&str; 4] = ["thread_stack", "task_struct", "sighand_cache", "signal_cache"];

/// Caches, in addition to kmalloc's, from which the kernel allocates on each CPU that comes online: it maps
/// the stacks of the CPU's threads, creates the CPU's folder in sysfs, and numbers its interrupts.
const OF_EVERY_CPU: [&str; 3] = ["kernfs_node_cache", "radix_tree_node", "vmap_area"];

/// Since then CPUs have sheaves of every cache, and no slabs.
pub(super) const SHEAVES_ONLY_SINCE: Release = Release::new(7, 0, 0);

/// Kernel stacks where they are not slab objects: 16 KiB on these.
const STACK_BYTES: u64 = 16 << 10;
const STACKS_KNOWN_ON: [&str; 3] = ["x86_64", "aarch64", "arm64"];

/// Where a cache's objects are today. `has_attrs` is [`has_attrs`] of the state: it looks at every cache, so
/// the caller asks once. `threads` tells the live objects if there can be that many; the lists of partial
/// slabs keep the stacks of ended threads, and then the number of threads does not tell the slabs.
pub(super) fn held(cache: &Cache, state: &State, has_attrs: bool, threads: Option<u64>) -> Held {
    let cpu_slabs = cpu_slabs(cache, state, has_attrs);
    let others = cache.slabs - cpu_slabs;
    let free = cache.total_objects.saturating_sub(cache.active_objects);
    let listed = cpu_partial_slabs(cache).min(others);
    let held = Held { cpu_slabs, others, listed, per_slab: cache.objects_per_slab, free, live: None };
    let tells = COUNTS_THREADS.contains(&cache.name.as_str()) && free == 0 && cpu_partial_slabs(cache) == 0;
    let (least, most) = held.bounds();
    Held { live: threads.filter(|live| tells && (least..=most).contains(live)), ..held }
}

/// The threads there are, by the stacks that meminfo counts; `None` where the size of a stack is not known.
pub(super) fn threads(state: &State) -> Option<u64> {
    let stacks = state.dump.meminfo.get("KernelStack")?.checked_mul(1024)?;
    let bytes = match state.cache("thread_stack").filter(|cache| cache.slabs > 0) {
        Some(cache) => cache.size,
        None => {
            let arch = state.dump.arch.as_deref()?;
            STACKS_KNOWN_ON.contains(&arch).then_some(STACK_BYTES)?
        }
    };
    Some(stacks / bytes.max(1))
}

/// What other CPUs mean for a cache: `cpus` are today's and those asked for.
pub(super) fn on_cpus(
    name: &str,
    held: &mut Held,
    cpus: (u32, u32),
    per_slab: u64,
    per_cpu: Option<&PerCpu>,
    touches: &Touches,
    threads_per_cpu: Option<f64>,
) -> Then {
    let same = Then { per_slab, ..held.unchanged() };
    if cpus.0 == cpus.1 || held.slabs() == 0 {
        return same;
    }
    let (today, then) = (f64::from(cpus.0), f64::from(cpus.1));
    let cpu_slabs = held.cpu_slabs as f64;
    let touched = if held.cpu_slabs < 1 {
        0.0
    } else if held.cpu_slabs >= cpus.0.into() && of_every_cpu(name, per_cpu) {
        then
    } else {
        touches.reached(held.cpu_slabs, cpus.1)
    };
    let listed = held.listed as f64
        * listed_ratio(if held.cpu_slabs < 1 { then / today } else { touched / cpu_slabs }, per_cpu);
    let counted = threads_per_cpu.filter(|_| PER_THREAD.contains(&name));
    let more = if let Some(threads) = counted {
        // The stacks that meminfo counts are exact; objects in CPU slabs are not.
        threads * (then - today)
    } else if let Some(rate) = per_cpu.and_then(|table| table.caches.get(name)) {
        rate.objects * (then - today)
    } else if PER_THREAD.contains(&name) {
        THREADS_PER_CPU as f64 * (then - today)
    } else if let Some(live) = for_each_cpu(held, u64::from(cpus.0)) {
        held.live = Some(live);
        live as f64 * (then / today - 1.0)
    } else {
        0.0
    };
    Then { cpu_slabs: touched, listed, more, ..same }
}

/// How the number of slabs on CPUs' partial lists follows the number of CPUs that hold slabs. If frees come
/// from one load that does not grow, the number stays; if each CPU has a load of its own, it grows as the
/// CPUs do. Where no dumps tell, halfway between the two is assumed, as factors.
fn listed_ratio(cpus: f64, per_cpu: Option<&PerCpu>) -> f64 {
    cpus.powf(per_cpu.and_then(|table| table.lists).unwrap_or(0.5))
}

/// Objects in use if they are the same number for each CPU and that is hardly by chance: what is possible
/// spans at most a quarter of the number of CPUs, so that three of four other numbers would show.
fn for_each_cpu(held: &Held, cpus: u64) -> Option<u64> {
    let (least, most) = held.bounds();
    let multiple = most / cpus.max(1) * cpus;
    (multiple >= least.max(1) && most - least <= cpus / 4).then_some(multiple)
}

fn of_every_cpu(name: &str, per_cpu: Option<&PerCpu>) -> bool {
    if let Some(known) = per_cpu.and_then(|table| table.every_cpu(name)) {
        return known;
    }
    named_of_every_cpu(name)
}

/// Whether a cache has a name as if the kernel allocated from it for each CPU that comes up.
pub(super) fn named_of_every_cpu(name: &str) -> bool {
    let accounted = name.starts_with("kmalloc-cg-") || name.starts_with("kmalloc-rcl-");
    (name.starts_with("kmalloc-") && !accounted) || OF_EVERY_CPU.contains(&name)
}

/// CPU slabs proper; at most the cache's slabs, since they are not read at one moment. Where sysfs is not in
/// the input, one for each CPU as far as there are slabs.
fn cpu_slabs(cache: &Cache, state: &State, has_attrs: bool) -> u64 {
    let counted = cache.attrs.as_ref().and_then(|attrs| attrs.cpu_slabs.as_ref());
    match counted {
        Some(counts) => counts.total.value.saturating_sub(cpu_partial_slabs(cache)).min(cache.slabs),
        None if has_attrs || state.release.is_some_and(|release| release >= SHEAVES_ONLY_SINCE) => 0,
        None => cache.slabs.min(state.cpus.map_or(0, |cpus| cpus.online.into())),
    }
}

fn cpu_partial_slabs(cache: &Cache) -> u64 {
    let partial = cache.attrs.as_ref().and_then(|attrs| attrs.slabs_cpu_partial.as_ref());
    partial.and_then(|counts| counts.total.slabs).unwrap_or(0)
}

/// Name, and CPUs that hold a slab, of each cache that programs touch: of those that the kernel does not
/// allocate from on every CPU.
pub fn touched(state: &State) -> Vec<(&str, u64)> {
    let cpus = state.cpus.map_or(0, |cpus| cpus.online);
    let programs = state.caches.iter().filter(|cache| !named_of_every_cpu(&cache.name));
    let held = programs.map(|cache| (cache.name.as_str(), cpu_slabs(cache, state, true).min(cpus.into())));
    held.filter(|(_, held)| *held > 0).collect()
}

/// How often programs touched the caches of a machine.
pub fn touches(state: &State) -> Touches {
    let held: Vec<u64> = touched(state).into_iter().map(|(_, held)| held).collect();
    Touches::of(state.cpus.map_or(0, |cpus| cpus.online), &held)
}

/// Whether the input has anything of CPU slabs at all.
pub(super) fn has_attrs(state: &State) -> bool {
    state.caches.iter().any(|cache| cache.attrs.as_ref().is_some_and(|attrs| attrs.cpu_slabs.is_some()))
}
