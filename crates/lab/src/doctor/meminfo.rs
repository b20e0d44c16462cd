//! The sum of the caches beside what /proc/meminfo says of slabs.

use super::parked::{nodes_with_memory, online};
use crate::state::State;

/// What /proc/meminfo says, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meminfo {
    /// `Slab`.
    pub slab: u64,
    /// `SReclaimable`, if it is there.
    pub reclaimable: Option<u64>,
    /// `SUnreclaim`, if it is there.
    pub unreclaimable: Option<u64>,
    /// `MemTotal`, if it is there.
    pub total: Option<u64>,
    /// `Slab` minus the sum of the caches.
    pub gap: i64,
    /// How much the counters behind `Slab` may lag: every CPU keeps a difference to itself until it is large enough.
    /// `None` where the number of CPUs is not known.
    pub lag: Option<u64>,
}

/// The largest difference of one counter that a CPU may keep to itself, in pages: it is a signed byte, and the kernel's
/// limit below 128.
const LAG_PAGES: u64 = 125;

impl Meminfo {
    /// Compares. `None` if meminfo is not in the input.
    pub fn of(state: &State, caches_bytes: u64) -> Option<Meminfo> {
        let bytes = |name: &str| state.dump.meminfo.get(name).map(|kib| kib.saturating_mul(1024));
        let slab = bytes("Slab")?;
        let gap = i128::from(slab) - i128::from(caches_bytes);
        // Two counters, reclaimable and not, of each node with memory.
        let counters = 2 * nodes_with_memory(state);
        Some(Meminfo {
            slab,
            reclaimable: bytes("SReclaimable"),
            unreclaimable: bytes("SUnreclaim"),
            total: bytes("MemTotal"),
            gap: i64::try_from(gap).unwrap_or(i64::MAX),
            lag: online(state).map(|cpus| {
                cpus.saturating_mul(counters).saturating_mul(LAG_PAGES).saturating_mul(state.page_size)
            }),
        })
    }

    /// What explains the gap, in a sentence.
    pub fn explanation(&self) -> String {
        let lag = self.lag.unwrap_or(0);
        let lagging = match self.lag {
            Some(lag) => format!("CPUs may keep up to {} KiB of changes to themselves", lag / 1024),
            None => "CPUs keep some changes to themselves".into(),
        };
        match self.gap {
            0 => "meminfo says the same".into(),
            ..0 if self.gap.unsigned_abs() <= lag => {
                format!("meminfo lags: {lagging}")
            }
            ..0 => format!(
                "meminfo lags ({lagging}); the rest changed between the two reads, or slabs fell back to a smaller order"
            ),
            _ => format!("large kmallocs, which no cache has and no kernel counts apart; {lagging}"),
        }
    }
}
