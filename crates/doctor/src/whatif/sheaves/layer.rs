//! What one release gives each cache: CPU slabs, sheaves, barns.

use crate::state::{Cache, State};
use crate::whatif::rules::Rules;
use slablab_slabs::cache::{CacheFlags, CacheSpec};
use slablab_slabs::engines::slub::{Barns, Sheaves, SlubPolicy};

/// Caches that asked for sheaves in 6.18 (docs/theory/sheaves.md 2).
const OPT_IN: [&str; 2] = ["vm_area_struct", "maple_node"];

/// The capacity that caches asked for in 6.18.
const OPT_IN_CAPACITY: u32 = 32;

/// Caches that are there before sheaves can be, and have none in 7.0 either (docs/theory/sheaves.md 2).
const BOOT_CACHES: [&str; 2] = ["kmem_cache", "kmem_cache_node"];

/// Architectures where a CPU of a node without memory has the nearest node with memory as its own
/// (CONFIG_HAVE_MEMORYLESS_NODES; docs/theory/sheaves.md 8).
const MEMORYLESS_NODES: [&str; 3] = ["ppc64le", "ppc64", "ia64"];

/// The capacity that a cache of this name asks for: 0 for none.
pub fn asked_capacity(name: &str) -> u32 {
    if OPT_IN.contains(&name) { OPT_IN_CAPACITY } else { 0 }
}

/// Whether a cache of this name has no sheaves in any release.
pub fn is_without_sheaves(name: &str) -> bool {
    BOOT_CACHES.contains(&name)
}

/// What the CPUs and nodes of a machine keep under one release.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    policy: SlubPolicy,
    /// Whether each CPU holds a slab.
    pub(super) cpu_slabs: bool,
    /// CPUs online.
    pub(super) cpus: u32,
    /// CPUs whose sheaves take objects.
    pub(super) cpus_with_sheaves: u32,
    /// Nodes with memory.
    memory_nodes: u32,
    /// Nodes that have a barn of each cache with sheaves.
    pub(super) barns: u32,
    /// Full sheaves that a barn keeps.
    pub(super) full_sheaves: u32,
}

impl Layer {
    pub(super) fn new(state: &State, rules: &Rules, policy: SlubPolicy) -> Layer {
        let cpus = rules.cpus.online.max(1);
        let nodes = &state.dump.nodes;
        let with_memory = nodes.iter().filter(|node| node.has_memory);
        let memory_nodes = (with_memory.clone().count() as u32).max(1);
        let on_memory: usize = with_memory.map(|node| node.cpus.len()).sum();
        let all: usize = nodes.iter().map(|node| node.cpus.len()).sum();
        // CPUs that come or go are on nodes with memory as often as those of today.
        let on_memory = (on_memory as u64 * u64::from(cpus)).div_ceil((all as u64).max(1));
        let on_memory = u32::try_from(on_memory).map_or(cpus, |on_memory| on_memory.min(cpus));
        let nearest = state.dump.arch.as_deref().is_some_and(|arch| MEMORYLESS_NODES.contains(&arch));
        let everywhere = policy.barns == Barns::OnlineNodes;
        let takes_all = everywhere || nearest || on_memory == 0;
        let barns = if everywhere { (nodes.len() as u32).max(1) } else { memory_nodes };
        Layer {
            policy,
            cpu_slabs: policy.cpu_slab,
            cpus,
            cpus_with_sheaves: if takes_all { cpus } else { on_memory },
            memory_nodes,
            barns,
            full_sheaves: policy.max_full_sheaves.into(),
        }
    }

    /// Objects in a sheaf of the cache, 0 for none.
    pub(super) fn capacity(&self, cache: &Cache, state: &State) -> u32 {
        let (Ok(size), Ok(page_size)) = (u32::try_from(cache.size), u32::try_from(state.page_size)) else {
            return 0;
        };
        let attrs = cache.attrs.as_ref();
        let debugged = attrs.is_some_and(|attrs| {
            [attrs.red_zone, attrs.poison, attrs.store_user, attrs.sanity_checks].contains(&Some(true))
        });
        let flags =
            CacheFlags::NONE.with(CacheFlags::NO_SHEAVES, is_without_sheaves(&cache.name) || debugged);
        let sheaf_capacity = if debugged { 0 } else { asked_capacity(&cache.name) };
        let spec = CacheSpec { flags, sheaf_capacity, ..CacheSpec::of_size(size) };
        self.policy.sheaf_capacity_of(&spec, size, page_size, self.cpus)
    }

    /// Whether any cache may have sheaves.
    pub(super) fn has_sheaves(&self) -> bool {
        self.policy.sheaves != Sheaves::Off
    }

    /// Empty slabs that the lists of all nodes keep.
    pub(super) fn kept_slabs(&self, cache: &Cache) -> u64 {
        let size = u32::try_from(cache.size).unwrap_or(u32::MAX).max(1);
        u64::from(self.policy.min_partial_of(size)) * u64::from(self.memory_nodes)
    }
}
