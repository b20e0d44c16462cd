//! Compares the sum of the caches with the slab memory in /proc/meminfo.

use super::parked::{nodes_with_memory, online};
use crate::state::State;
use crate::words::size;
use slablab_slabs::Release;
use std::collections::BTreeMap;

/// What /proc/meminfo says, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meminfo {
    /// `Slab`.
    pub slab: u64,
    /// `SReclaimable`, or `Slab` less `SUnreclaim`; if one of them is there.
    pub reclaimable: Option<u64>,
    /// `SUnreclaim`, or `Slab` less `SReclaimable`; if one of them is there.
    pub unreclaimable: Option<u64>,
    /// `MemTotal`, if it is there.
    pub total: Option<u64>,
    /// `Slab` minus the sum of the caches.
    pub gap: i64,
    /// How much the counters behind `Slab` may lag: every CPU keeps a difference to itself until it is large
    /// enough. `None` where the number of CPUs is not known.
    pub lag: Option<u64>,
    /// Whether this kernel counts kmallocs that are too large for a cache as slabs. True where the release is
    /// not known.
    pub has_large: bool,
}

/// Since then large kmallocs are in `Slab`.
const LARGE_SINCE: Release = Release::new(5, 4, 0);

/// The largest difference of one counter that a CPU may keep to itself, in pages, whatever the machine.
const LAG_PAGES_MAX: u64 = 125;
/// Counters of a node that make `Slab`: reclaimable and not.
const COUNTERS: u64 = 2;

impl Meminfo {
    /// Compares. `None` if meminfo is not in the input.
    pub fn of(state: &State, caches_bytes: u64) -> Option<Meminfo> {
        let bytes = |name: &str| state.dump.meminfo.get(name).map(|kib| kib.saturating_mul(1024));
        let (slab, reclaimable, unreclaimable) = (bytes("Slab")?, bytes("SReclaimable"), bytes("SUnreclaim"));
        // The kernel prints Slab as the sum of the two. A text may end before one of them.
        let rest = |known: Option<u64>| known.and_then(|known| slab.checked_sub(known));
        let gap = i128::from(slab) - i128::from(caches_bytes);
        Some(Meminfo {
            slab,
            reclaimable: reclaimable.or_else(|| rest(unreclaimable)),
            unreclaimable: unreclaimable.or_else(|| rest(reclaimable)),
            total: bytes("MemTotal"),
            gap: i64::try_from(gap).unwrap_or(i64::MAX),
            has_large: state.release.is_none_or(|release| release >= LARGE_SINCE),
            lag: online(state).map(|cpus| {
                let each_cpu = COUNTERS * lag_pages(state, cpus);
                cpus.saturating_mul(each_cpu).saturating_mul(state.page_size)
            }),
        })
    }

    /// What explains the gap, in a sentence.
    pub fn explanation(&self) -> String {
        let lag = self.lag.unwrap_or(0);
        let lagging = match self.lag {
            Some(lag) => format!("CPUs may hold up to {} of changes back", size(lag)),
            None => "CPUs hold some changes back".into(),
        };
        match self.gap {
            0 => "no difference".into(),
            ..0 if self.gap.unsigned_abs() <= lag => {
                format!("meminfo lags: {lagging}")
            }
            ..0 => format!(
                "meminfo lags ({lagging}); the rest changed between the two reads, or slabs fell back \
                 to a smaller order"
            ),
            _ if !self.has_large => format!(
                "meminfo lags ({lagging}); the rest changed between the two reads: this kernel counts no \
                 large kmallocs as slabs"
            ),
            _ => format!("large kmallocs, which no cache has and no kernel counts apart; {lagging}"),
        }
    }
}

/// Pages of one counter that a CPU may keep to itself, added up over the nodes: a node's limit is that of its
/// zone with the highest one.
fn lag_pages(state: &State, cpus: u64) -> u64 {
    let zones = &state.dump.zones;
    if zones.is_empty() {
        return nodes_with_memory(state).saturating_mul(LAG_PAGES_MAX);
    }
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for zone in zones.iter().filter(|zone| zone.managed > 0) {
        let bytes = zone.managed.saturating_mul(state.page_size);
        let node = nodes.entry(zone.node).or_default();
        *node = (*node).max(threshold(cpus, bytes));
    }
    nodes.values().sum()
}

/// `vm stats threshold` of a zone of `zone_bytes`, as /proc/zoneinfo prints it: twice the bits of the number
/// of CPUs, times one more than the bits of the number of 128 MiB.
pub fn threshold(cpus: u64, zone_bytes: u64) -> u64 {
    let bits = |number: u64| u64::from(u64::BITS - number.leading_zeros());
    (2 * bits(cpus) * (1 + bits(zone_bytes >> 27))).min(LAG_PAGES_MAX)
}
