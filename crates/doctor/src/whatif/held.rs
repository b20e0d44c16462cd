//! Where the objects of a cache are today: in slabs that CPUs hold, and in others.

use super::fill::Held;
use crate::state::{Cache, State};
use slablab_slabs::Release;

/// Caches with an object for each thread.
pub(super) const PER_THREAD: [&str; 6] =
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

/// Whether a cache has a name as if the kernel allocated from it for each CPU that comes up.
pub(super) fn named_of_every_cpu(name: &str) -> bool {
    let accounted = name.starts_with("kmalloc-cg-") || name.starts_with("kmalloc-rcl-");
    (name.starts_with("kmalloc-") && !accounted) || OF_EVERY_CPU.contains(&name)
}

/// CPU slabs proper; at most the cache's slabs, since they are not read at one moment. Where sysfs is not in
/// the input, one for each CPU as far as there are slabs.
pub(super) fn cpu_slabs(cache: &Cache, state: &State, has_attrs: bool) -> u64 {
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

/// Whether the input has anything of CPU slabs at all.
pub(super) fn has_attrs(state: &State) -> bool {
    state.caches.iter().any(|cache| cache.attrs.as_ref().is_some_and(|attrs| attrs.cpu_slabs.is_some()))
}
